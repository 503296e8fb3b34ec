"""Names of things to differentiate by, as directions in parameters and start values.

``"k"``, ``"r.R"``, ``"legs[*].m"`` are parameters; ``"start(x)"`` is the start of a variable, ``"start(*)"`` those of
the states that can be chosen independently of each other; ``"scale(w)"`` is the scale of a disturbance. A direction is
the derivative of every parameter, of the demanded starts and of the scales.
"""

from __future__ import annotations

import difflib
import fnmatch
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from grisaille.errors import ModelError
from grisaille.structure.parameters import ParameterValues
from grisaille.structure.reduction import Structure


@dataclass(frozen=True)
class Directions:
    names: tuple[str, ...]
    parameters: np.ndarray
    """(ns, np)"""
    starts: dict[str, np.ndarray]
    """Variable → (ns,) derivative of its start."""
    scales: dict[str, np.ndarray] = field(default_factory=dict)
    """Disturbance → (ns,) derivative of its scale."""
    candidates: tuple[str, ...] = ()
    """Variables that only ``"start(*)"`` names: those that are tied to others are to be left out."""

    def none(self) -> Directions:
        """No direction."""
        return Directions((), self.parameters[:0], {}, {})

    def without(self, tied: Sequence[str]) -> Directions:
        """The same without the starts of some variables."""
        left_out = {f"start({name})" for name in tied}
        kept = [k for k, name in enumerate(self.names) if name not in left_out]
        starts = {n: d[kept] for n, d in self.starts.items() if n not in tied}
        scales = {n: d[kept] for n, d in self.scales.items()}
        return Directions(tuple(self.names[k] for k in kept), self.parameters[kept], starts, scales)


def resolve_directions(structure: Structure, values: ParameterValues, wanted: Iterable[str]) -> Directions:
    """Directions by name; wildcards are expanded, unknown names get the nearest ones."""
    listed = list(wanted)
    names = [n for w in listed for n in _expand(structure, w)]
    repeated = {n for n in names if names.count(n) > 1}
    if repeated:
        raise ModelError(f"sensitivities= names {', '.join(sorted(repeated))} more than once.")
    parameters = np.zeros((len(names), len(values.names)))
    starts: dict[str, np.ndarray] = {}
    scales: dict[str, np.ndarray] = {}
    for k, name in enumerate(names):
        if name.startswith("start("):
            starts[name[6:-1]] = np.eye(len(names))[k]
        elif name.startswith("scale("):
            scales[name[6:-1]] = np.eye(len(names))[k]
        else:
            parameters[k] = values.jacobian[:, values.names.index(name)]
    candidates = tuple(n for n in starts if f"start({n})" not in listed) if "start(*)" in listed else ()
    return Directions(tuple(names), parameters, starts, scales, candidates)


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
