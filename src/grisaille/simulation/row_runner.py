"""Static models on many rows at once: every row is an algebraic problem of its own.

0 = residual(z, u_i, p) is solved for all rows i (``row_roots``), and y_i = observed(z_i, u_i, p) with its derivatives
follows by the implicit function theorem:  dz/dp = −(∂r/∂z)⁻¹ ∂r/∂p.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence

import casadi as ca
import numpy as np

from grisaille.bound_experiment import BoundExperiment, ExperimentPoint
from grisaille.errors import INDEPENDENT_OF_VALUES, DataError, GrisailleError
from grisaille.simulation.crossings import Crossing
from grisaille.simulation.row_roots import KnownRoot, RowRoots
from grisaille.simulation.runner import EventListing, Prediction
from grisaille.simulation.simulation_steps import StaticRows


class RowRunner:
    """Predicts the outputs of one static trial; the twin of ``Runner`` for models without derivatives."""

    def __init__(self, trial: BoundExperiment, outputs: Sequence[str]) -> None:
        self.trial, self.structure = trial, trial.structure
        system = self.structure.system
        if system.nx:
            raise DataError(f"{self.structure.model.name} has derivatives: its experiments need times.")
        self.u = _table(trial, [s.name for s in system.signals])
        names = system.observed_names
        chosen = ca.vertcat(*(system.observed[names.index(o)] for o in outputs))
        arguments = [system.z, system.u, system.p]
        self._observed = _rowwise(arguments, [chosen])
        self._slopes = _rowwise(
            arguments,
            [ca.jacobian(system.residual, system.p), ca.jacobian(chosen, system.z), ca.jacobian(chosen, system.p)],
        )
        self.ny, self.nz = len(outputs), system.nz
        self.roots = RowRoots(self.structure, self.u)
        self._last: tuple[StaticRows, KnownRoot] | None = None

    def with_experiment(self, trial: BoundExperiment) -> RowRunner:
        """Return a runner of the same experiment with other measurements."""
        other = copy.copy(self)
        other.trial = trial
        return other

    def discretise(self, theta: np.ndarray) -> StaticRows:
        """Return the roots of all rows at θ, from which those at other values are followed."""
        point = self.trial.at(theta)
        if not self.nz:
            return StaticRows()
        return StaticRows(tuple(point.p.tolist()), tuple(map(tuple, self.roots.solve(point.p).T.tolist())))

    def refined(self, theta: np.ndarray, rows: StaticRows, excess: float) -> StaticRows:
        """Return the same: roots are found to rounding."""
        return rows

    @property
    def is_exact(self) -> bool:
        """Rows have no past that could cross a switch."""
        return True

    def event_listing(self, theta: np.ndarray, rows: StaticRows) -> EventListing:
        """Return None: rows have no past."""
        return EventListing()

    def crossings(self, theta: np.ndarray, rows: StaticRows | None = None) -> list[Crossing]:
        """Return no crossings: there is no trajectory."""
        return []

    def predict(self, theta: np.ndarray, rows: StaticRows, *, sensitive: bool) -> Prediction:
        """Return outputs (rows, outputs) and their derivatives by θ."""
        try:
            point = self.trial.at(theta)
            z = self.roots.solve(point.p, self._known(rows))
        except INDEPENDENT_OF_VALUES:
            raise
        except GrisailleError as error:
            return self.failed(str(error), sensitive)
        with np.errstate(all="ignore"):
            y = self._call(self._observed, z, point.p)[0].reshape(-1, self.ny)
            sy = self._differentiate(z, point) if sensitive else np.zeros((0, 0, 0))
        if not (np.isfinite(y).all() and np.isfinite(sy).all()):
            row = int(np.flatnonzero(~np.isfinite(y).all(axis=1))[0]) if not np.isfinite(y).all() else 0
            return self.failed(f"the outputs are not finite in row {row}", sensitive)
        return Prediction(y, sy)

    def _known(self, rows: StaticRows) -> KnownRoot | None:
        if not rows.roots:
            return None
        last = self._last
        if last is None or last[0] is not rows:
            self._last = last = rows, KnownRoot(np.array(rows.roots).T, np.array(rows.parameters))
        return last[1]

    def _call(self, function: ca.Function, z: np.ndarray, p: np.ndarray) -> list[np.ndarray]:
        """Return each result as (rows, …) with rows first."""
        n = self.u.shape[1]
        results = function(z, self.u, np.repeat(p[:, None], n, axis=1))
        results = results if isinstance(results, tuple | list) else [results]
        return [np.array(r.full()).reshape(-1, n, order="F").T for r in results]

    def _differentiate(self, z: np.ndarray, point: ExperimentPoint) -> np.ndarray:
        n, np_ = self.u.shape[1], len(point.p)
        rp, oz, op = self._call(self._slopes, z, point.p)
        slopes = op.reshape(n, np_, self.ny).swapaxes(1, 2)
        if self.nz:
            dz = -np.linalg.solve(self.roots.slopes(z, point.p)[1], rp.reshape(n, np_, self.nz).swapaxes(1, 2))
            slopes = slopes + oz.reshape(n, self.nz, self.ny).swapaxes(1, 2) @ dz
        return np.asarray(slopes @ point.dp.T)

    def failed(self, reason: str, sensitive: bool) -> Prediction:
        """Return the answer where there is none."""
        shape = (self.u.shape[1], self.ny)
        return Prediction(np.full(shape, np.nan), np.full((*shape, len(self.trial.moves) * sensitive), np.nan), reason)


def _table(trial: BoundExperiment, names: Sequence[str]) -> np.ndarray:
    """Return inputs (signals, rows)."""
    table, declared = np.zeros((len(names), len(trial.times))), trial.flat.inputs
    for k, name in enumerate(names):
        given = trial.inputs.get(name, declared[name].default if name in declared else 0.0)
        if given is None:
            raise DataError(f"Input '{name}' has no values: give one per row.")
        table[k] = given[1] if isinstance(given, tuple) else given
    return table


def _rowwise(arguments: list[ca.SX], formulas: list[ca.SX]) -> ca.Function:
    """Return a function that CasADi maps over columns; matrices are given back column by column."""
    return ca.Function("rows", arguments, [ca.densify(ca.vec(f)) for f in formulas])
