"""Alias elimination: equations that only say a = b, a = −b or a = number.

Connections make most of a component model's equations of this kind. Each removes one equation and one unknown; the
answer comes back through ``Equations.observed``, which keeps every name.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NoReturn

import casadi as ca

from grisaille.errors import StructureError
from grisaille.structure.equations import EquationRow, Equations
from grisaille.structure.switching_pieces import is_affine


@dataclass(frozen=True)
class _Link:
    """a = sign · b, or a = value when ``b`` is None."""

    a: str
    b: str | None
    sign: float
    value: float
    row: EquationRow


def eliminate_aliases(equations: Equations) -> Equations:
    """Return the equations without trivial ones; observed formulas follow."""
    links, kept = _find_links(equations)
    if not links:
        return equations
    roots, repeated = _merge(links, equations)
    jets = equations.jets
    old, new = [], []
    for symbol in jets.of_kind(["unknown"]):
        if symbol.name in roots:
            root, sign, value = roots[symbol.name]
            old.append(jets.symbol(symbol.name, symbol.order))
            new.append(
                sign * jets.symbol(root, symbol.order)
                if root is not None
                else ca.SX(value if symbol.order == 0 else 0.0)
            )
    replaced = ca.substitute([*(r.residual for r in kept), *equations.observed.values()], old, new)
    rows = tuple(replace(r, residual=ca.simplify(e)) for r, e in zip(kept, replaced, strict=False))
    for row in rows:
        _refuse_empty(row)
    return replace(
        equations,
        unknowns=tuple(n for n in equations.unknowns if n not in roots),
        rows=rows,
        observed=dict(zip(equations.observed, replaced[len(kept) :], strict=True)),
        aliases={a: _in_words(*target) for a, target in roots.items()},
        repeated=repeated,
    )


def _in_words(root: str | None, sign: float, value: float) -> str:
    return f"{value:g}" if root is None else root if sign > 0 else f"-{root}"


def _find_links(equations: Equations) -> tuple[list[_Link], list[EquationRow]]:
    links, kept = [], []
    for row in equations.rows:
        link = _as_link(row, equations)
        if link is None:
            kept.append(row)
        else:
            links.append(link)
    return links, kept


def _as_link(row: EquationRow, equations: Equations) -> _Link | None:
    terms = _plain_terms(row.residual)
    if terms is not None:
        return _plain_link(row, equations, *terms)
    symbols = ca.symvar(row.residual)
    if not 1 <= len(symbols) <= 2:
        return None
    meanings = [equations.jets.meaning(s) for s in symbols]
    if any(m is None or m.kind != "unknown" or m.order > 0 for m in meanings):
        return None
    slopes = ca.jacobian(row.residual, ca.vertcat(*symbols))
    if not slopes.is_constant() or slopes.nnz() != len(symbols) or not is_affine(row.residual, ca.vertcat(*symbols)):
        return None
    c = [float(v) for v in slopes.nonzeros()]
    offset = float(ca.substitute(row.residual, ca.vertcat(*symbols), ca.SX.zeros(len(symbols))))
    names = [m.name for m in meanings if m is not None]
    if len(c) == 1:
        return _Link(names[0], None, 0.0, -offset / c[0], row) if c[0] != 0 else None
    if abs(c[0]) != abs(c[1]) or c[0] == 0 or offset != 0:
        return None
    return _Link(names[0], names[1], -c[1] / c[0], 0.0, row)


def _plain_terms(residual: ca.SX) -> tuple[list[tuple[ca.SX, float]], float] | None:
    """Return symbols with their signs, and the number, in what is written as a ± b, ±a, a ± number; None for anything
    else.

    Most equations are of this kind, and looking at them is quicker than differentiating them.
    """
    terms: list[tuple[ca.SX, float]] = []
    offset = 0.0
    stack = [(residual, 1.0, 0)]
    while stack:
        node, sign, depth = stack.pop()
        if node.is_symbolic():
            terms.append((node, sign))
        elif node.is_constant():
            offset += sign * float(node)
        elif depth == 3:
            return None
        else:
            operation = node.op()
            if operation == ca.OP_NEG:
                stack.append((node.dep(0), -sign, depth + 1))
            elif operation in (ca.OP_ADD, ca.OP_SUB):
                stack.append((node.dep(1), sign if operation == ca.OP_ADD else -sign, depth + 1))
                stack.append((node.dep(0), sign, depth + 1))
            else:
                return None
    different = {symbol.element_hash() for symbol, _ in terms}
    return (terms, offset) if len(different) == len(terms) else None


def _plain_link(
    row: EquationRow, equations: Equations, terms: list[tuple[ca.SX, float]], offset: float
) -> _Link | None:
    meanings = [equations.jets.meaning(symbol) for symbol, _ in terms]
    names = [m.name for m in meanings if m is not None and m.kind == "unknown" and m.order == 0]
    if not len(terms) == len(names) <= 2 or not names:
        return None
    if len(names) == 1:
        return _Link(names[0], None, 0.0, -offset / terms[0][1], row)
    return None if offset else _Link(names[0], names[1], -terms[1][1] / terms[0][1], 0.0, row)


def _merge(
    links: list[_Link], equations: Equations
) -> tuple[dict[str, tuple[str | None, float, float]], tuple[EquationRow, ...]]:
    """Return union–find with signs; the value side of a class is a constant root called None. Rows that say nothing new
    are given back: what they fail to determine is found and named by the structural analysis.
    """
    parent: dict[str, tuple[str | None, float, float]] = {}
    reason: dict[str, EquationRow] = {}
    repeated: list[EquationRow] = []

    def find(name: str) -> tuple[str | None, float, float]:
        sign, at = 1.0, name
        while at in parent:
            up, s, value = parent[at]
            if up is None:
                return None, 0.0, sign * value
            sign, at = sign * s, up
        return at, sign, 0.0

    order = {name: k for k, name in enumerate(equations.unknowns)}
    for link in links:
        ra, sa, va = find(link.a)
        rb, sb, vb = (None, 0.0, link.value) if link.b is None else find(link.b)
        vb, sb = (vb, sb) if link.b is None else (link.sign * vb, link.sign * sb)
        if ra is None and rb is None:
            if va != vb:
                _refuse(link, reason, equations)
            repeated.append(link.row)
        elif ra == rb:
            assert ra is not None
            if sa == sb:
                repeated.append(link.row)
            else:
                parent[ra] = (None, 0.0, 0.0)
        elif ra is None:
            assert rb is not None
            parent[rb] = (None, 0.0, va / sb)
        elif rb is None:
            parent[ra] = (None, 0.0, vb / sa)
        else:
            keep, drop, sign = (
                (rb, ra, sb / sa) if _rank(rb, equations, order) <= _rank(ra, equations, order) else (ra, rb, sa / sb)
            )
            parent[drop] = (keep, sign, 0.0)
        reason[link.a] = link.row
    return {name: find(name) for name in list(parent)}, tuple(repeated)


def _rank(name: str, equations: Equations, order: dict[str, int]) -> tuple[bool, bool, int, int]:
    """Return a number that is small for the name worth keeping: demanded, wished for, near the top of the tree,
    declared first.
    """
    variable = equations.model.variables.get(name)
    has_start = variable is not None and variable.start is not None
    fixed = variable is not None and variable.fixed
    return (not fixed, not has_start, name.count("."), order[name])


def _refuse(link: _Link, reason: dict[str, EquationRow], equations: Equations) -> NoReturn:
    others = "; ".join(f"'{r.text}'" for r in list(reason.values())[-3:])
    raise StructureError(
        f"In {equations.model.name} the equation '{link.row.text}' contradicts what other equations already say about "
        f"{link.a}{' and ' + link.b if link.b else ''}, among them {others}"
        f"{' (' + link.row.source + ')' if link.row.source else ''}. Remove one of them, or a part that fixes the same "
        f"quantity twice; an open end makes its flow zero."
    )


def _refuse_empty(row: EquationRow) -> None:
    if row.residual.is_constant():
        value = float(row.residual)
        verdict = "is always true" if value == 0 else f"can never hold (it says 0 = {value:g})"
        raise StructureError(
            f"After equal variables were merged the equation '{row.text}' {verdict}"
            f"{' (' + row.source + ')' if row.source else ''}: remove it, or check the connections of its variables."
        )
