"""Trajectories on elements that were solved for: what they say of samples and states."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any

import casadi as ca
import numpy as np

from grisaille.collocation.banded import NotPositiveDefinite
from grisaille.collocation.direct.direct import DirectSolution
from grisaille.collocation.direct.marginal import exact_model, marginal_of
from grisaille.collocation.direct.model import DirectModel
from grisaille.collocation.direct.newton import Linearized
from grisaille.collocation.direct.summary import curvature_at, output_slopes, seen, theta_covariance
from grisaille.collocation.intensity import Misfit
from grisaille.collocation.marginal import Marginal
from grisaille.estimation.quantities import Observed, Quantities
from grisaille.estimators.collocation.trajectories import Solution, Statistics, Told
from grisaille.simulation.runner import Prediction

if TYPE_CHECKING:
    from grisaille.estimation.cases import Case


@dataclass(frozen=True, eq=False)
class ElementSolution(Solution):
    """A path with its unknowns."""

    found: DirectSolution
    levels: np.ndarray

    def free(self) -> np.ndarray:
        return self.found.inside.copy()

    @cached_property
    def _exact(self) -> Linearized | None:
        return exact_model(self.found.at)

    @cached_property
    def _model(self) -> Linearized | None:
        """With Gauss–Newton's curvature where the exact one has no minimum."""
        free = self.found.inside & ~self.levels
        return curvature_at(self.found.at, free, self._exact)

    def told(self, cases: Sequence[Case], implicit: bool) -> Told:
        found, program, n, model = self.found, self.found.program, len(self.theta), self._model
        errors, residuals, rows, predictions = [], [], [], []
        for r, case in enumerate(cases):
            if model is None:
                y, sigma = (program.look(what, found.point, r)[0] for what in ("measured", "deviation"))
                slopes = np.zeros((*y.shape, n))
            else:
                y, sigma, slopes = output_slopes(found.at, model, r)
            ends = program.meshes[r].ends_of_samples
            predictions.append(Prediction(y[ends], np.zeros((0, 0, 0))))
            for s in case.samples:
                column, at = program.model.outputs.index(s.output), ends[s.rows]
                e = s.values - y[at, column]
                errors.append(e)
                residuals.append(e * s.weights / sigma[at, column])
                rows.append(-slopes[at, column] * (s.weights / sigma[at, column])[:, None])
        return Told(
            np.zeros(n) if model is None else model.gradient, np.zeros((n, n)) if model is None else model.curvature,
            np.concatenate(residuals), np.concatenate(errors), np.concatenate(rows), tuple(predictions),
        )  # fmt: skip

    def marginal(self, sensitive: bool) -> Marginal:
        if self._exact is None:
            raise NotPositiveDefinite
        return marginal_of(self.found.at, self._exact)

    def misfit(self, cases: Sequence[Case], outputs: Sequence[str]) -> Misfit:
        """Var ŷ is that of the band of the output, parameters included: the trace in ``collocation.intensity``."""
        found, program = self.found, self.found.program
        squares, explained, counts = (np.zeros(len(outputs)) for _ in range(3))
        covariance = np.nan_to_num(theta_covariance(found.at, found.inside & ~self.levels))
        model = self._model
        for r, case in enumerate(cases):
            y, deviation = seen(found.at, model, r, covariance, "measured")
            sigma = program.look("deviation", found.point, r)[0]
            ends = program.meshes[r].ends_of_samples
            for s in case.samples:
                j, column, at = list(outputs).index(s.output), program.model.outputs.index(s.output), ends[s.rows]
                scaled = (s.weights / sigma[at, column]) ** 2
                squares[j] += float((scaled * (s.values - y[at, column]) ** 2).sum())
                explained[j] += float((scaled * deviation[at, column] ** 2).sum())
                counts[j] += len(s.values)
        return Misfit(squares, explained, counts)

    def statistics(self, k: int, names: Any, covariance: np.ndarray, width: float) -> Statistics:
        program = self.found.program
        quantities = Quantities(_observed(program.model), names)
        curvature = curvature_at(self.found.at, np.diag(covariance) > 0)
        mean, std = seen(self.found.at, curvature, k, covariance, ca.vertcat(*quantities.rows.values()))
        record, there = program.records[k], program.meshes[k].sample_at >= 0
        mean, std = mean[there], std[there]
        block = np.stack([mean, std, mean - width * std, mean + width * std])
        return record.name, record.times, list(quantities.rows), block

    def arrays(self) -> dict[str, np.ndarray]:
        point = self.found.point
        return {f"path_{f.name}": getattr(point, f.name) for f in fields(point)}


def _observed(model: DirectModel) -> Observed:
    system = model.structure.system
    rows = set(ca.jacobian_sparsity(model.observed, model.v).row()) if model.nv else set()
    infinite = tuple(n for i, n in enumerate(system.observed_names) if i in rows)
    return Observed(
        model.structure, model.t, model.q, model.quantities, model.outputs, model.observed, system.observed_names,
        infinite,
    )  # fmt: skip
