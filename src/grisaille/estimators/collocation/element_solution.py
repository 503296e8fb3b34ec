"""Solved trajectories on elements: their predictions of samples and states."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property

import casadi as ca
import numpy as np

from grisaille.collocation.banded import NotPositiveDefinite
from grisaille.collocation.direct.direct_model import DirectModel
from grisaille.collocation.direct.marginal import exact_model, marginal_of, marginals_of, told_by_laws
from grisaille.collocation.direct.path_newton import LinearizedPath, PathPoint
from grisaille.collocation.direct.solution_statistics import (
    curvature_at,
    output_slopes,
    quantities_along,
    theta_covariance,
)
from grisaille.collocation.laplace import Marginal
from grisaille.estimation.quantities import ObservedFunctions, Quantities
from grisaille.estimators.collocation.trajectory_basis import Solution, Statistics, TrajectoryPredictions


@dataclass(eq=False, kw_only=True)
class ElementSolution(Solution):
    """A path with its unknowns; ``inside``: those that no bound decided, ``levels``: intensities and noise levels."""

    at: PathPoint
    inside: np.ndarray
    levels: np.ndarray

    def free(self) -> np.ndarray:
        return self.inside.copy()

    @cached_property
    def _exact(self) -> LinearizedPath | None:
        return exact_model(self.at)

    @cached_property
    def _model(self) -> LinearizedPath | None:
        """With Gauss–Newton's curvature where the exact one has no minimum."""
        return curvature_at(self.at, self.inside & ~self.levels, self._exact)

    @property
    def curvature_of_path(self) -> LinearizedPath | None:
        """Return the model at the solution, with Gauss–Newton's curvature where the exact one has no minimum."""
        return self._model

    def least(self) -> tuple[np.ndarray, np.ndarray]:
        if self._model is None:
            return np.zeros(len(self.theta)), np.zeros((len(self.theta), len(self.theta)))
        return self._model.gradient, self._model.curvature

    @property
    def has_exact_priors(self) -> bool:
        return self._model is None or self._model.exact

    def seen(self, k: int, implicit: bool) -> TrajectoryPredictions:
        record, at = self.at.program.records[k], self.at.program.meshes[k].ends_of_samples
        found, slopes = output_slopes(self.at, self._model, k)
        y, errors, weights = found[at], record.y - found[at], self._weights(k)
        return TrajectoryPredictions(record.outputs, y, errors, errors * weights, -slopes[at] * weights[:, :, None])

    def residuals_by_laws(self) -> np.ndarray:
        return told_by_laws(self.at)

    def along(self, k: int, names: Sequence[str]) -> np.ndarray:
        """Return what is observed by some names, (times, names)."""
        program, system = self.at.program, self.at.program.model.structure.system
        if not names:
            return np.zeros((len(program.records[k].times), 0))
        rows = ca.vertcat(*(program.model.observed[system.observed_names.index(n)] for n in names))
        return np.asarray(program.look(rows, self.at.point, k)[0][program.meshes[k].ends_of_samples])

    def _weights(self, k: int) -> np.ndarray:
        """Return weights of the samples: reciprocal standard deviations; for laws, roots of the information of a
        sample.
        """
        program = self.at.program
        sigma = program.look("deviation", self.at.point, k)[0]
        weights = program.records[k].weights / sigma[program.meshes[k].ends_of_samples]
        arguments = program.arguments_of_laws(self.at.point, k) if program.functions.laws else np.zeros((0, 0))
        for one in program.samples_by_law[k]:
            told = one.law(arguments).information([one.cost.by.paths[0]])[:, 0, 0]
            weights[one.samples.rows, one.cost.by.column] = np.sqrt(told)
        return np.asarray(weights)

    def explained(self, k: int) -> np.ndarray:
        """Return the variance of the predicted output, parameters included: the trace in ``collocation.intensity``."""
        covariance = np.nan_to_num(theta_covariance(self.at, self.inside & ~self.levels))
        deviation = quantities_along(self.at, self._model, k, covariance, "measured")[1]
        return (self._weights(k) * deviation[self.at.program.meshes[k].ends_of_samples]) ** 2

    def marginal(self, sensitive: bool) -> Marginal:
        if self._exact is None:
            raise NotPositiveDefinite
        return marginal_of(self.at, self._exact)

    def marginals(self, sensitive: bool) -> list[Marginal]:
        if self._exact is None:
            raise NotPositiveDefinite
        return marginals_of(self.at, self._exact)

    def statistics(self, k: int, names: Sequence[str] | None, covariance: np.ndarray, width: float) -> Statistics:
        program = self.at.program
        quantities = Quantities(_observed(program.model), names)
        curvature = curvature_at(self.at, np.diag(covariance) > 0)
        mean, std = quantities_along(self.at, curvature, k, covariance, ca.vertcat(*quantities.rows.values()))
        record, there = program.records[k], program.meshes[k].sample_at >= 0
        mean, std = mean[there], std[there]
        block = np.stack([mean, std, mean - width * std, mean + width * std])
        return record.name, record.times, list(quantities.rows), block

    def arrays(self) -> dict[str, np.ndarray]:
        point = self.at.point
        return {f"path_{f.name}": getattr(point, f.name) for f in fields(point)}


def _observed(model: DirectModel) -> ObservedFunctions:
    system = model.structure.system
    rows = set(ca.jacobian_sparsity(model.observed, model.v).row()) if model.nv else set()
    infinite = tuple(n for i, n in enumerate(system.observed_names) if i in rows)
    return ObservedFunctions(
        model.structure, model.t, model.q, model.quantities, model.outputs, model.observed, system.observed_names,
        infinite,
    )  # fmt: skip
