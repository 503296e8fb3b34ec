"""The exact filter of a linear model on one record: log-likelihood, states and predictions of a normal law."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

import numpy as np

from grisaille.bound_experiment.discretisation import Discretisation
from grisaille.disturbance.duals import Floats
from grisaille.disturbance.stochastic_model import StochasticModel
from grisaille.experiment.record_cells import MeasuredRecord
from grisaille.filtering.compiled_sums import add_up, filter_states
from grisaille.filtering.diffuse import DiffusePass
from grisaille.filtering.exact.linear_ahead import AheadOfLinear, moments_ahead
from grisaille.filtering.exact.matrices import Matrices
from grisaille.filtering.filter import Derivatives, Filter, FilterPoint, FilterStates, InnovationWeighting
from grisaille.filtering.filter_steps import FilterDiscretisation, NoSteps
from grisaille.filtering.kalman import DiscreteModel, Likelihood, likelihood_of_sums, with_centred_start
from grisaille.filtering.smoother import smooth


class LinearFilter(Matrices, Filter):
    """The Kalman filter of a model that is linear in its states."""

    derivatives: ClassVar[Derivatives] = "forward"
    is_exact: ClassVar[bool] = True

    def __init__(
        self, model: StochasticModel, record: MeasuredRecord, initial_covariance: str | np.ndarray = "first-sample",
        weighing: InnovationWeighting | None = None,
    ) -> None:  # fmt: skip
        Filter.__init__(self, model, record)
        Matrices.__init__(self, model, record, initial_covariance)
        self.weighing = weighing or InnovationWeighting()

    @property
    def name(self) -> str:
        return "linear"

    @property
    def ahead(self) -> AheadOfLinear:
        """Predictions over several samples."""
        return AheadOfLinear(self._at, self.weighing)

    def log_likelihood(self, at: FilterPoint) -> Likelihood:
        matrices, w = self._at(at), self.weighing
        sums = add_up(matrices, robust=w.robust, condition=w.condition)
        if matrices.X0.shape[1] and sums.failed < 0:
            sums = add_up(with_centred_start(matrices, sums))
        return likelihood_of_sums(sums)

    def states(self, at: FilterPoint) -> FilterStates | Likelihood:
        matrices = self._at(at.plain)
        here = np.flatnonzero(matrices.sample_at >= 0)
        if matrices.X0.shape[1]:
            over = DiffusePass.of(matrices)
            f, s = over.filtered, over.smoothed
            return FilterStates(
                f.x[here], f.P[here], s.x[here], s.P[here], open_filtered=f.D[here], open_smoothed=s.D[here]
            )
        sums, found = filter_states(matrices)
        if sums.failed >= 0:
            return likelihood_of_sums(sums)
        x, P = smooth(matrices, found)
        return FilterStates(found.x_filt[here], found.P_filt[here], x[here], P[here])

    def choose_steps(
        self, at: FilterPoint, count: int | str, known: Discretisation | None, values: str
    ) -> FilterDiscretisation:
        return NoSteps()

    def start_moments(self, at: FilterPoint) -> tuple[Floats, Floats]:
        matrices = self._at(at)
        return np.asarray(matrices.x0[0]), np.asarray(matrices.P0[0])

    def innovation_covariances(self, at: FilterPoint) -> Floats:
        matrices = self._at(at.plain)
        P = moments_ahead(matrices, np.arange(len(matrices.y)) - 1)[1][:, 0]
        H, R = matrices.H[matrices.H_of][:, 0], matrices.R[matrices.R_of][:, 0]
        return np.asarray(H @ P @ H.transpose(0, 2, 1) + R)

    def matrices(self, at: FilterPoint) -> DiscreteModel:
        found = self._at(at.plain)
        flat = found.X0
        if not flat.shape[1]:
            return found
        smoothed = DiffusePass.of(found).smoothed.x[0]
        return replace(found, x0=found.x0 + flat @ np.linalg.pinv(flat) @ (smoothed - found.x0[0]))

    def _at(self, at: FilterPoint) -> DiscreteModel:
        return self.discretise(at.q, at.dq, at.start.x)
