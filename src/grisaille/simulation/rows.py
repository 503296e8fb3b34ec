"""Static models on many rows at once: every row is an algebraic problem of its own.

0 = residual(z, u_i, p) is solved for all rows i (``row_roots``), and y_i = observed(z_i, u_i, p) with its derivatives
follows by the implicit function theorem:  dz/dp = −(∂r/∂z)⁻¹ ∂r/∂p.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import casadi as ca
import numpy as np

from grisaille.errors import DataError, GrisailleError
from grisaille.model.classes import Model
from grisaille.simulation.crossings import Crossing
from grisaille.simulation.row_roots import RowRoots
from grisaille.simulation.runner import Prediction
from grisaille.structure.parameters import ParameterFormulas, ParameterValues
from grisaille.structure.prepared import structure_of


class RowRunner:
    """Predicts the outputs of one static experiment; the twin of ``Runner`` for models without derivatives."""

    starts: tuple[str, ...] = ()

    def __init__(
        self,
        model: Model,
        inputs: Mapping[str, np.ndarray],
        rows: int,
        *,
        outputs: Sequence[str],
        parameters: Sequence[str] = (),
        constants: Mapping[str, float] | None = None,
    ) -> None:
        self.structure = structure_of(model)
        system = self.structure.system
        if system.nx:
            raise DataError(f"{self.structure.model.name} has derivatives: its experiments need times.")
        self.parameters, self.constants = tuple(parameters), dict(constants or {})
        self.formulas = ParameterFormulas(self.structure.model, {*self.constants, *self.parameters})
        self.u = _table(self.structure.model.inputs, [s.name for s in system.signals], inputs, rows)
        names = system.observed_names
        chosen = ca.vertcat(*(system.observed[names.index(o)] for o in outputs))
        arguments = [system.z, system.u, system.p]
        free = [system.p[self.formulas.names.index(n)] for n in self.formulas.names]
        p = ca.vertcat(*free) if free else ca.SX(0, 1)
        self._observed = _rowwise(arguments, [chosen])
        self._slopes = _rowwise(
            arguments,
            [ca.jacobian(system.residual, p), ca.jacobian(chosen, system.z), ca.jacobian(chosen, p)],
        )
        self.ny, self.nz = len(outputs), system.nz
        self.roots = RowRoots(self.structure, self.u)

    def refine(self, excess: float = 1.0) -> None:
        """Nothing to refine: there are no steps."""

    def crossings(self, values: Mapping[str, float], starts: Mapping[str, float]) -> list[Crossing]:
        """None: there is no trajectory."""
        return []

    def predict(self, values: Mapping[str, float], starts: Mapping[str, float], *, sensitive: bool) -> Prediction:
        """Outputs (rows, outputs) and their derivatives by ``parameters``."""
        try:
            given = self.formulas.evaluate({**self.constants, **values})
            z = self.roots.solve(given.values)
        except GrisailleError as error:
            return self._failed(str(error), sensitive)
        with np.errstate(all="ignore"):
            y = self._call(self._observed, z, given)[0].reshape(-1, self.ny)
            sy = self._differentiate(z, given) if sensitive else np.zeros((0, 0, 0))
        if not (np.isfinite(y).all() and np.isfinite(sy).all()):
            row = int(np.flatnonzero(~np.isfinite(y).all(axis=1))[0]) if not np.isfinite(y).all() else 0
            return self._failed(f"the outputs are not finite in row {row}", sensitive)
        return Prediction(y, sy)

    def _call(self, function: ca.Function, z: np.ndarray, given: ParameterValues) -> list[np.ndarray]:
        """Each result as (rows, …) with rows first."""
        n = self.u.shape[1]
        p = np.repeat(given.values[:, None], n, axis=1)
        results = function(z, self.u, p)
        results = results if isinstance(results, tuple | list) else [results]
        return [np.array(r.full()).reshape(-1, n, order="F").T for r in results]

    def _differentiate(self, z: np.ndarray, given: ParameterValues) -> np.ndarray:
        n, np_ = self.u.shape[1], len(given.names)
        rp, oz, op = self._call(self._slopes, z, given)
        slopes = op.reshape(n, np_, self.ny).swapaxes(1, 2)
        if self.nz:
            dz = -np.linalg.solve(self.roots.slopes(z, given.values)[1], rp.reshape(n, np_, self.nz).swapaxes(1, 2))
            slopes = slopes + oz.reshape(n, self.nz, self.ny).swapaxes(1, 2) @ dz
        picked = np.array([given.names.index(name) for name in self.parameters], dtype=int)
        return np.asarray(slopes @ given.jacobian[:, picked])

    def _failed(self, reason: str, sensitive: bool) -> Prediction:
        shape = (self.u.shape[1], self.ny)
        return Prediction(np.full(shape, np.nan), np.full((*shape, len(self.parameters) * sensitive), np.nan), reason)


def _table(
    declared: Mapping[str, object], names: Sequence[str], inputs: Mapping[str, np.ndarray], rows: int
) -> np.ndarray:
    table = np.zeros((len(names), rows))
    for k, name in enumerate(names):
        value = inputs.get(name, getattr(declared.get(name), "default", 0.0))
        if value is None:
            raise DataError(f"Input '{name}' has no values: give one per row.")
        table[k] = value
    return table


def _rowwise(arguments: list[ca.SX], formulas: list[ca.SX]) -> ca.Function:
    """A function that CasADi maps over columns; matrices are given back column by column."""
    return ca.Function("rows", arguments, [ca.densify(ca.vec(f)) for f in formulas])
