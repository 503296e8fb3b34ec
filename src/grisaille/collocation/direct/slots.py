"""Estimated quantities as slots: one per parameter, level or start that is estimated in any record.

A slot holds an entry of θ in the records that the unknown belongs to, and a known number in the others; so one set of
functions serves all records, whatever is shared and whatever is local.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np

from grisaille.bound_experiment import ExperimentPoint
from grisaille.bound_experiment.unknown import Unknown
from grisaille.collocation.array_types import Floats, Integers, Mask
from grisaille.errors import EstimationError
from grisaille.model.lowering.lowering import evaluate
from grisaille.structure.parameters import ParameterFormulas, formulas_of


@dataclass(frozen=True, eq=False)
class Slots:
    """Names of slots, and where each record finds their values."""

    names: tuple[str, ...]
    index: Integers
    """(R, slots) into θ, −1 where the value is known."""
    known: Floats
    """(R, slots) those values."""
    constants: tuple[str, ...]
    """Parameters that some record gives as a number."""
    constant_values: Floats
    """(R, constants)"""
    formulas: ParameterFormulas
    sizes: Floats
    """(nθ,) typical magnitudes of θ, from its guess and its bounds; 0 where neither tells one."""

    @property
    def levels(self) -> tuple[str, ...]:
        """Slots that are not parameters."""
        return tuple(n for n in self.names if n not in self.formulas.names)

    def values(self, theta: Floats) -> Floats:
        """Return the values of all slots in all records, (R, slots)."""
        padded = np.append(theta, 0.0)
        return np.asarray(np.where(self.index >= 0, padded[self.index], self.known))

    def add_to(self, total: Floats, r: int, values: Floats) -> None:
        """Add what belongs to the slots of a record to θ: a vector, or a matrix."""
        own = self.index[r] >= 0
        np.add.at(total, np.ix_(*[self.index[r][own]] * total.ndim), values[np.ix_(*[own] * total.ndim)])

    def local_names(self, which: Mask) -> tuple[str, ...]:
        """Return slots that hold one of some entries of θ."""
        used = np.append(which, False)[self.index]
        return tuple(n for n, k in zip(self.names, used.T, strict=True) if k.any())

    def quantities(self, slots: ca.SX, constants: ca.SX) -> ca.SX:
        """Return (all parameters, levels) over the symbols of slots and constants."""
        given = {n: constants[k] for k, n in enumerate(self.constants)}
        given |= {n: slots[k] for k, n in enumerate(self.names) if n in self.formulas.given}
        levels = [slots[self.names.index(n)] for n in self.levels]
        return ca.vertcat(self.formulas.symbolic(given), *levels)


def make_slots(points: Sequence[ExperimentPoint], unknowns: Sequence[Unknown]) -> Slots:
    """Return the slots of a problem, from its trials at the guess."""
    names = tuple(dict.fromkeys(u.local_name for u in unknowns))
    free = {u.local_name for u in unknowns if u.kind == "parameter"}
    constants = tuple(dict.fromkeys(c for p in points for c in p.trial.constants if c not in free))
    formulas = formulas_of(points[0].structure.model, {*constants, *free})
    index = np.full((len(points), len(names)), -1, dtype=np.int64)
    for k, unknown in enumerate(unknowns):
        for r, point in enumerate(points):
            if unknown.applies_to(point.trial.name):
                index[r, names.index(unknown.local_name)] = k
    known = [[_known(p, n) if i < 0 else 0.0 for n, i in zip(names, own, strict=True)]
             for p, own in zip(points, index, strict=True)]  # fmt: skip
    values = np.array([[p.known[c] for c in constants] for p in points]).reshape(len(points), len(constants))
    spans = np.array([u.upper - u.lower for u in unknowns])
    guess = np.array([u.guess for u in unknowns])
    sizes = np.maximum(np.abs(guess), np.where(np.isfinite(spans), spans / 4, 0.0))
    return Slots(names, index, np.array(known).reshape(index.shape), constants, values, formulas, sizes)


def _known(point: ExperimentPoint, slot: str) -> float:
    """Return the value of a slot that is not estimated."""
    if slot in point.known:
        return point.known[slot]
    kind, _, target = slot.removesuffix(")").partition("(")
    if kind == "start" and target in point.demands:
        return point.demands[target]
    flat = point.structure.model
    sources: dict[str, Any] = {"scale": flat.disturbances, "noise": flat.outputs, "start": flat.variables}
    formula = getattr(sources[kind][target], kind, None)
    if formula is None:
        raise EstimationError(f"'{slot}' has no value in record '{point.trial.name}': estimate it there too.")
    return evaluate([formula], point.known)[0]
