"""Names of things to differentiate by, and the values they have.

``"k"``, ``"r.R"``, ``"legs[*].m"`` are parameters; ``"start(x)"`` is the start of a variable, ``"start(*)"`` those of
the states that can be chosen independently of each other; ``"scale(w)"`` is the scale of a disturbance.
"""

from __future__ import annotations

import difflib
import fnmatch
from collections.abc import Iterable

from grisaille.bound_experiment import EstimatedQuantities, ExperimentPoint
from grisaille.errors import ModelError
from grisaille.model.lowering.lowering import evaluate
from grisaille.structure.reduction import Structure


def expanded_names(structure: Structure, wanted: Iterable[str]) -> tuple[list[str], list[str]]:
    """Return names with wildcards expanded, unknown ones refused; and those starts that only ``"start(*)"`` names."""
    listed = list(wanted)
    names = [n for w in listed for n in _expand(structure, w)]
    repeated = {n for n in names if names.count(n) > 1}
    if repeated:
        raise ModelError(f"sensitivities= names {', '.join(sorted(repeated))} more than once.")
    starts = [n for n in names if n.startswith("start(") and n not in listed] if "start(*)" in listed else []
    return names, starts


def moving_point(point: ExperimentPoint, names: list[str], candidates: list[str]) -> ExperimentPoint:
    """Return the same point with derivatives by ``names``; those ``candidates`` that are tied to others are left
    out.
    """
    variables = [n[6:-1] for n in names if n.startswith("start(")]
    if candidates:
        free = point.initializer.independent(point.t0, point.u, point.p, point.start, variables)
        names = [n for n in names if n not in candidates or n[6:-1] in free]
    moves = EstimatedQuantities.named(names)
    # differentiating by a start makes it a demand, at the value it has
    now = point.observed() if variables else {}
    values = [_value(point, kind, target, now) for kind, target in moves.entries]
    return point.trial.moving(moves).at(values).as_at(point)


def _value(point: ExperimentPoint, kind: str, target: str, now: dict[str, float]) -> float:
    if kind == "start":
        return point.demands.get(target, now[target])
    if kind == "parameter":
        return point.known[target]
    if target in point.scales:
        return point.scales[target]
    formula = point.trial.flat.disturbances[target].scale
    return 1.0 if formula is None else evaluate([formula], point.known)[0]


def _expand(structure: Structure, name: str) -> list[str]:
    if name == "start(*)":
        return [f"start({s.name})" for s in structure.states if s.order == 0]
    if name.startswith("start(") and name.endswith(")"):
        pool = {f"start({v})": None for v in structure.model.variables}
    elif name.startswith("scale(") and name.endswith(")"):
        pool = {f"scale({w})": None for w in structure.model.disturbances}
    else:
        pool = dict.fromkeys(structure.model.parameters)
    if name in pool:
        return [name]
    if "*" in name:
        # brackets are part of names (legs[0]), not character classes
        pattern = name.replace("[", "[[]") if "[*]" not in name else name.replace("[*]", "[[]*]")
        found = [n for n in pool if fnmatch.fnmatchcase(n, pattern)]
        if found:
            return found
    near = difflib.get_close_matches(name, list(pool), n=3, cutoff=0.3)
    hint = f" Nearest: {', '.join(near)}." if near else ""
    if name in structure.model.variables:
        hint = f" '{name}' is a variable; its start value is 'start({name})'."
    elif name in structure.model.inputs:
        hint = f" '{name}' is an input; make it depend on a parameter in the model to differentiate by it."
    raise ModelError(f"{structure.model.name} has no parameter or start called '{name}'.{hint}")
