"""Which start counts where several variables are equal (Modelica 3.6, section 8.6.2).

Connections and equations such as ``T = port.T`` make variables equal, and each may have a start of its own. Of those
that differ

- a fixed one is a demand, and the others say nothing,
- the most confident one counts: the one written on the outermost level, of equals the one whose parameter got its value
  on the outermost level; starts of types come last,
- at equal confidence that of a variable under ``der()`` counts, which is all that flat text leaves to decide by.

Where this leaves two that differ, the first declared counts if the variable is differentiated, and a remark says so;
starts of algebraic variables are first guesses and stay as they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from grisaille.model.content import WrittenEquation
from grisaille.model.expression import Call, Constant, Expression, Name, postorder, same
from grisaille.model.flat import FlatVariable
from grisaille.modelica.full.confidence import path_of
from grisaille.modelica.model import ModelNames
from grisaille.modelica.values import is_number

MAX_TERMS = 12
"""Variables of the longest sum that may turn out to make two of them equal."""


@dataclass(frozen=True)
class _Member:
    """One of several variables that are equal but for their signs."""

    name: str
    sign: float
    start: Expression
    """Of the variable that the signs refer to."""
    key: tuple[Any, ...]
    """Small for the start that counts."""


def choose_starts(names: ModelNames, laws: Iterable[WrittenEquation]) -> None:
    """Leaves of the starts of equal variables those that count."""
    laws = list(laws)
    differentiated = {
        node.arguments[0].path for law in laws for node in postorder((law.left, law.right))
        if isinstance(node, Call) and node.operation == "der" and isinstance(node.arguments[0], Name)
    }  # fmt: skip
    for signs in equal_variables(laws, names.variables):
        _choose(names, signs, differentiated)


def _choose(names: ModelNames, signs: Mapping[str, float], differentiated: set[str]) -> None:
    members = [_member(names, name, sign, name in differentiated) for name, sign in signs.items()]
    known = [member for member in members if member is not None]
    if len(known) < 2 or all(_agree(names, known[0], other) for other in known[1:]):
        return
    fixed = [m for m in known if names.variables[m.name].fixed]
    best = min(m.key for m in known)
    counting = fixed or [m for m in known if m.key == best]
    states = [name for name in signs if name in differentiated]
    first = counting[0]
    other = next((m for m in counting[1:] if not _agree(names, first, m)), None)
    if other is not None and not fixed and states:
        at = names.place_of(other.name)
        names.remarks.add(
            at, f"'{first.name}' and '{other.name}' are equal, their starts are not: {first.name}'s counts"
        )
        counting = [first]
    elif other is not None:
        states = []
    kept = {m.name for m in counting}
    for m in known:
        if m.name not in kept and m.name not in states:
            names.variables[m.name] = replace(names.variables[m.name], start=None)
    for name in states:
        if name not in kept and not names.variables[name].fixed:
            start = _signed(first.start, signs[name])
            names.variables[name] = replace(names.variables[name], start=start)


def _member(names: ModelNames, name: str, sign: float, is_differentiated: bool) -> _Member | None:
    variable: FlatVariable = names.variables[name]
    if variable.start is None:
        return None
    start = _signed(variable.start, sign)
    confidence = names.confidence.get(name, {})
    level = confidence.get("ofStart", 0)
    is_of_type = level > len(path_of(name))
    key = (is_of_type, level, confidence.get("ofValue", level), not is_differentiated)
    return _Member(name, sign, start, key)


def _signed(start: Expression, sign: float) -> Expression:
    if sign > 0:
        return start
    return Constant(-start.value) if isinstance(start, Constant) else Call("neg", (start,))


def _agree(names: ModelNames, a: _Member, b: _Member) -> bool:
    x, y = names.number(a.start), names.number(b.start)
    if is_number(x) and is_number(y):
        return bool(abs(x - y) <= 1e-12 * max(abs(x), abs(y)))
    return bool(same(a.start, b.start))


# --- equal variables ---


def equal_variables(laws: Iterable[WrittenEquation], variables: Mapping[str, object]) -> list[dict[str, float]]:
    """Return sets of variables that equations make equal, with signs relative to the first; not those that are zero."""
    forms = [form for law in laws if (form := _terms(law, variables)) is not None]
    zero: set[str] = set()
    while True:
        forms = [form for form in (_without(form, zero) for form in forms) if form]
        new = {next(iter(form)) for form in forms if len(form) == 1}
        if not new:
            break
        zero |= new
    parent: dict[str, tuple[str, float]] = {}

    def root(name: str) -> tuple[str, float]:
        sign = 1.0
        while name in parent:
            name, s = parent[name]
            sign *= s
        return name, sign

    order = {name: k for k, name in enumerate(variables)}
    for form in forms:
        if len(form) == 2:
            (a, p), (b, q) = form.items()
            if abs(p) == abs(q):
                (ra, sa), (rb, sb) = root(a), root(b)
                if ra != rb:  # a = −(q/p) b
                    parent[rb] = (ra, -(q / p) * sa * sb)
    found: dict[str, dict[str, float]] = {}
    for name in sorted({*parent, *(up for up, _ in parent.values())}, key=order.__getitem__):
        top, sign = root(name)
        found.setdefault(top, {})[name] = sign
    return list(found.values())


def _without(form: dict[str, float], zero: set[str]) -> dict[str, float]:
    return form if zero.isdisjoint(form) else {n: c for n, c in form.items() if n not in zero}


def _terms(law: WrittenEquation, variables: Mapping[str, object]) -> dict[str, float] | None:
    """Return coefficients of variables in a law that is linear in them, with numbers for coefficients and nothing
    else.
    """
    found: dict[str, float] = {}
    stack: list[tuple[Expression, float]] = [(law.left, 1.0), (law.right, -1.0)]
    while stack:
        node, factor = stack.pop()
        if isinstance(node, Name):
            if node.path not in variables or len(found) > MAX_TERMS:
                return None
            found[node.path] = found.get(node.path, 0.0) + factor
        elif isinstance(node, Constant):
            if node.value * factor != 0.0:
                return None
        elif isinstance(node, Call) and node.operation in ("add", "sub"):
            stack += [(node.arguments[0], factor), (node.arguments[1], factor if node.operation == "add" else -factor)]
        elif isinstance(node, Call) and node.operation == "neg":
            stack.append((node.arguments[0], -factor))
        elif isinstance(node, Call) and node.operation == "mul" and isinstance(node.arguments[0], Constant):
            stack.append((node.arguments[1], factor * node.arguments[0].value))
        else:
            return None
    return {name: c for name, c in found.items() if c != 0.0}
