"""What is estimated, as slots: one per parameter, level or start that moves in any record.

A slot holds an entry of θ in the records that the unknown belongs to, and a known number in the others; so one set of
functions serves all records, whatever is shared and whatever is local.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from grisaille.collocation.direct.mesh import DirectRecord, Floats
from grisaille.errors import EstimationError
from grisaille.model.lowering.lowering import evaluate
from grisaille.structure.parameters import ParameterFormulas
from grisaille.structure.reduction import Structure
from grisaille.trial.unknown import Unknown


@dataclass(frozen=True, eq=False)
class Slots:
    """Names of slots, and where each record finds their values."""

    names: tuple[str, ...]
    index: NDArray[np.int64]
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
        """(R, slots)"""
        padded = np.append(theta, 0.0)
        return np.asarray(np.where(self.index >= 0, padded[self.index], self.known))

    def parameters(self, theta: Floats) -> Floats:
        """All parameters of every record, (R, parameters)."""
        rows = []
        for r, values in enumerate(self.values(theta)):
            given = dict(zip(self.constants, self.constant_values[r].tolist(), strict=True))
            given |= {n: float(v) for n, v in zip(self.names, values, strict=True) if n in self.formulas.given}
            rows.append(self.formulas.evaluate(given).values)
        return np.array(rows).reshape(len(rows), len(self.formulas.names))

    def quantities(self, slots: ca.SX, constants: ca.SX) -> ca.SX:
        """(all parameters, levels) over the symbols of slots and constants."""
        given = {n: constants[k] for k, n in enumerate(self.constants)}
        given |= {n: slots[k] for k, n in enumerate(self.names) if n in self.formulas.given}
        levels = [slots[self.names.index(n)] for n in self.levels]
        return ca.vertcat(self.formulas.symbolic(given), *levels)


def make_slots(
    structure: Structure, records: Sequence[DirectRecord], unknowns: Sequence[Unknown], guess: Floats
) -> Slots:
    """The slots of a problem; ``guess`` is θ to begin with."""
    names = tuple(dict.fromkeys(u.local_name for u in unknowns))
    free = {u.local_name for u in unknowns if u.kind == "parameter"}
    constants = tuple(dict.fromkeys(c for r in records for c in r.trial.constants if c not in free))
    formulas = ParameterFormulas(structure.model, {*constants, *free})
    index = np.full((len(records), len(names)), -1, dtype=np.int64)
    for k, unknown in enumerate(unknowns):
        for r, record in enumerate(records):
            if unknown.applies_to(record.name):
                index[r, names.index(unknown.local_name)] = k
    known = np.zeros(index.shape)
    for r, record in enumerate(records):
        for k, name in enumerate(names):
            if index[r, k] < 0:
                known[r, k] = _known_value(structure, record, name, name in free)
    values = np.array([[_constant(structure, r, c) for c in constants] for r in records])
    spans = np.array([u.upper - u.lower for u in unknowns])
    sizes = np.maximum(np.abs(guess), np.where(np.isfinite(spans), spans / 4, 0.0))
    return Slots(names, index, known, constants, values.reshape(len(records), len(constants)), formulas, sizes)


def _constant(structure: Structure, record: DirectRecord, name: str) -> float:
    constants = record.trial.constants
    if name in constants:
        return float(constants[name])
    return ParameterFormulas(structure.model, set(constants)).evaluate(constants)[name]


def _known_value(structure: Structure, record: DirectRecord, slot: str, is_parameter: bool) -> float:
    if is_parameter:
        return _constant(structure, record, slot)
    kind, _, target = slot.removesuffix(")").partition("(")
    if kind == "start" and target in record.trial.demands:
        return float(record.trial.demands[target])
    flat = structure.model
    sources: dict[str, Any] = {"scale": flat.disturbances, "noise": flat.outputs, "start": flat.variables}
    formula = getattr(sources[kind][target], kind, None)
    if formula is None:
        raise EstimationError(f"'{slot}' has no value in record '{record.name}': estimate it there too.")
    given = ParameterFormulas(flat, set(record.trial.constants)).evaluate(record.trial.constants)
    return evaluate([formula], dict(zip(given.names, given.values.tolist(), strict=True)))[0]
