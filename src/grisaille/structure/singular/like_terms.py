"""Terms that cancel in a sum of formulas, found by their form: c₁ g(x) in one part and −c₁ g(x) in another.

Values at random points tell that a sum of exponentials cancels, not how to write it without them; written with them it
is the rounding of the largest. Each formula is read as Σ c_k g_k + c₀ with numbers c_k and terms g_k that are no sums;
two terms are the same if they apply the same operation to sums of the same terms, in whatever order these are written.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import casadi as ca

TERM_ROUNDING = 1e-12
"""Of the largest coefficient of a term."""
TERM_ONE = -1
"""The number of the term 1."""
COMMUTATIVE_OPERATIONS = frozenset((ca.OP_MUL, ca.OP_FMIN, ca.OP_FMAX, ca.OP_EQ, ca.OP_NE))

Sum = dict[int, float]
"""Number of a term → its coefficient."""


def without_like_terms(parts: Sequence[ca.SX]) -> list[ca.SX]:
    """Return the parts of a sum without the terms whose coefficients add up to nothing; parts without any stay as they
    are.
    """
    terms = _Terms()
    sums = terms.read(parts)
    total: Sum = {}
    largest: Sum = {}
    for found in sums:
        for term, coefficient in found.items():
            total[term] = total.get(term, 0.0) + coefficient
            largest[term] = max(largest.get(term, 0.0), abs(coefficient))
    gone = {t for t, size in largest.items() if size > 0 and abs(total[t]) <= TERM_ROUNDING * size}
    return [
        part if gone.isdisjoint(found) else terms.written({t: c for t, c in found.items() if t not in gone})
        for part, found in zip(parts, sums, strict=True)
    ]


def without_cancelled_terms(formula: ca.SX) -> ca.SX:
    """Return the formula without terms whose coefficients in it add up to nothing, or as it is where there are none."""
    terms = _Terms(cancels=True)
    (found,) = terms.read([formula])
    return terms.written(found) if terms.cancelled else formula


@dataclass
class _Terms:
    """Terms that were met, numbered."""

    cancels: bool = False
    """Whether coefficients that add up to rounding are left out of sums."""
    cancelled: bool = False
    """Whether some were."""

    values: list[ca.SX] = field(default_factory=list)
    known: dict[object, int] = field(default_factory=dict)

    def read(self, parts: Sequence[ca.SX]) -> list[Sum]:
        """Return each part as a sum of terms."""
        symbols = ca.symvar(ca.vertcat(*parts))
        function = ca.Function("parts", [ca.vertcat(*symbols)] if symbols else [], [ca.densify(p) for p in parts])
        slots: dict[int, Sum] = {}
        results: list[Sum] = [{} for _ in parts]
        for k in range(function.n_instructions()):
            operation, inputs = function.instruction_id(k), function.instruction_input(k)
            outputs = function.instruction_output(k)
            if operation == ca.OP_OUTPUT:
                results[outputs[0]] = slots[inputs[0]]
            elif operation == ca.OP_INPUT:
                symbol = symbols[inputs[1]]
                slots[outputs[0]] = {self._number(symbol.element_hash(), symbol): 1.0}
            elif operation == ca.OP_CONST:
                slots[outputs[0]] = {TERM_ONE: function.instruction_constant(k)}
            else:
                slots[outputs[0]] = self._apply(operation, [slots[i] for i in inputs])
        return results

    def written(self, found: Sum) -> ca.SX:
        """Return a sum of terms as a formula."""
        total = ca.SX(found.get(TERM_ONE, 0.0))
        for term, coefficient in found.items():
            if term != TERM_ONE:
                total = total + self.values[term] * coefficient
        return total

    def _apply(self, operation: int, operands: list[Sum]) -> Sum:
        first, *rest = operands
        if operation == ca.OP_ADD:
            return self._added(first, rest[0], 1.0)
        if operation == ca.OP_SUB:
            return self._added(first, rest[0], -1.0)
        if operation == ca.OP_NEG:
            return _times(first, -1.0)
        if operation == ca.OP_TWICE:
            return _times(first, 2.0)
        if operation == ca.OP_SQ:
            return self._apply(ca.OP_MUL, [first, first])
        if operation == ca.OP_DIV and set(rest[0]) <= {TERM_ONE} and rest[0].get(TERM_ONE):
            return {t: c / rest[0][TERM_ONE] for t, c in first.items()}
        if operation == ca.OP_MUL:
            for a, b in ((first, rest[0]), (rest[0], first)):
                if set(a) <= {TERM_ONE}:
                    return _times(b, a.get(TERM_ONE, 0.0))
        factor = 1.0
        if operation in (ca.OP_MUL, ca.OP_DIV):  # a number before a single factor counts for the product
            for k, operand in enumerate(operands):
                if len(operand) == 1 and next(iter(operand.values())):
                    ((term, c),) = operand.items()
                    factor = factor * c if operation == ca.OP_MUL or k == 0 else factor / c
                    operands[k] = {term: 1.0}
        return {self._term(operation, operands): factor}

    def _added(self, a: Sum, b: Sum, sign: float) -> Sum:
        total = dict(a)
        for term, c in b.items():
            total[term] = a.get(term, 0.0) + sign * c
            if self.cancels and 0.0 < abs(total[term]) <= TERM_ROUNDING * abs(c):
                self.cancelled = True
                del total[term]
        return total

    def _term(self, operation: int, operands: list[Sum]) -> int:
        forms = [tuple(sorted((t, f"{c:.13e}") for t, c in operand.items() if c)) for operand in operands]
        key = (operation, *(sorted(forms) if operation in COMMUTATIVE_OPERATIONS else forms))
        if key not in self.known:
            values = [self.written(operand) for operand in operands]
            self._number(key, ca.SX.unary(operation, *values) if len(values) == 1 else ca.SX.binary(operation, *values))
        return self.known[key]

    def _number(self, key: object, value: ca.SX) -> int:
        if key not in self.known:
            self.known[key] = len(self.values)
            self.values.append(value)
        return self.known[key]


def _times(a: Sum, factor: float) -> Sum:
    return {t: factor * c for t, c in a.items()}
