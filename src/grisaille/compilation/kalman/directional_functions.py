"""Derivatives of functions with arguments of our own names: along directions of some of them, and in reverse."""

from __future__ import annotations

import casadi as ca


def with_directions(function: ca.Function, moving: tuple[str, ...], names: tuple[str, ...], ns: int) -> ca.Function:
    """Return outputs, then their derivatives along ns directions of the moving arguments (columns)."""
    arguments = [ca.SX.sym(n, function.sparsity_in(i)) for i, n in enumerate(names)]
    outputs = function.call(arguments)
    if not ns:
        return function
    places = [names.index(n) for n in moving]
    seeds = [ca.SX.sym(f"d{names[i]}", arguments[i].numel(), ns) for i in places]
    by = ca.vertcat(*(arguments[i] for i in places))
    column = ca.vertcat(*(ca.vec(o) for o in outputs))
    along = ca.densify(ca.jtimes(column, by, ca.vertcat(*seeds)))
    sizes = [0, *(int(o.numel()) for o in outputs)]
    edges = [sum(sizes[: i + 1]) for i in range(len(sizes))]
    parts = ca.vertsplit(along, edges) if along.numel() else [along] * len(outputs)
    return ca.Function("forward", [*arguments, *seeds], ca.cse([*outputs, *parts]))


def reversed_function(
    function: ca.Function, names: tuple[str, ...], moving: tuple[str, ...] = ("s", "q")
) -> ca.Function:
    """Return adjoints of the moving arguments from those of the outputs."""
    arguments = [ca.SX.sym(n, function.sparsity_in(i)) for i, n in enumerate(names)]
    outputs = function.call(arguments)
    seeds = [ca.SX.sym(f"l{i}", o.numel()) for i, o in enumerate(outputs)]
    given = [arguments[names.index(n)] for n in moving]
    column = ca.vertcat(*(ca.vec(o) for o in outputs))
    back = ca.densify(ca.jtimes(column, ca.vertcat(*given), ca.vertcat(*seeds), True))
    edges = [sum(int(g.numel()) for g in given[:i]) for i in range(len(given) + 1)]
    results = ca.vertsplit(back, edges) if back.numel() else [ca.SX(0, 1)] * len(given)
    return ca.Function("reverse", [*arguments, *seeds], ca.cse(results))
