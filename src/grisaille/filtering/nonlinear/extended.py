"""The filters of nonlinear models: extended, iterated and unscented ones, each a kind of ``passes``."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, Self

import casadi as ca
import numpy as np

from grisaille.bound_experiment.discretisation import Discretisation
from grisaille.bound_experiment.skipped_bends import SkippedBump
from grisaille.disturbance.duals import Floats
from grisaille.disturbance.stochastic_model import StochasticModel
from grisaille.experiment.record_cells import MeasuredRecord
from grisaille.filtering.algebraic_model import AlgebraicModel
from grisaille.filtering.filter import Derivatives, Filter, FilterPoint, FilterStates, InnovationWeighting
from grisaille.filtering.filter_steps import FilterDiscretisation, steps_of
from grisaille.filtering.formulation import FilterKind
from grisaille.filtering.jumps.near_switches import near_switch
from grisaille.filtering.kalman import Likelihood, LikelihoodSums, likelihood_of_sums
from grisaille.filtering.nonlinear.extended_states import states_of
from grisaille.filtering.nonlinear.nonlinear_ahead import AheadOfPasses
from grisaille.filtering.passes import Passes
from grisaille.filtering.stepping.expm_scaling import freeze_doublings
from grisaille.filtering.stepping.skipped_features import features_skipped_by
from grisaille.filtering.stepping.step_passes import StepPasses
from grisaille.filtering.stepping.substeps import choose_substeps


class ExtendedFilter(Passes, Filter):
    """A filter of a nonlinear model; ``kind`` selects whether it linearises, iterates or takes sigma points."""

    derivatives: ClassVar[Derivatives] = "forward+reverse"

    def __init__(
        self,
        model: StochasticModel,
        record: MeasuredRecord,
        nominal: Floats,
        initial_covariance: str | np.ndarray = "first-sample",
        substeps: int = 1,
        kind: FilterKind | None = None,
        weighing: InnovationWeighting | None = None,
    ) -> None:
        Filter.__init__(self, model, record)
        Passes.__init__(self, model, record, nominal, initial_covariance, substeps, kind)
        self.weighing = weighing or InnovationWeighting()

    @property
    def name(self) -> str:
        return self.kind.update

    @property
    def rival(self) -> str:
        if not self.model.nonlinear:
            return ""
        return "extended" if self.kind.update == "unscented" else "unscented"

    @property
    def ahead(self) -> AheadOfPasses:
        """Predictions over several samples."""
        return AheadOfPasses(self, self.weighing)

    def log_likelihood(self, at: FilterPoint) -> Likelihood:
        w = self.weighing
        sums = self.run(at.q, at.dq, at.start.x, robust=w.robust, condition=w.condition, z0=at.start.z)
        return likelihood_of_sums(sums)

    def gradient(self, at: FilterPoint) -> Likelihood:
        w = self.weighing
        sums = self.run_for_gradient(at.q, at.dq, at.start.x, robust=w.robust, condition=w.condition, z0=at.start.z)
        return likelihood_of_sums(sums)

    def states(self, at: FilterPoint) -> FilterStates | Likelihood:
        found = states_of(self, at.q, at.start.x[:1], at.start.z[:1])
        if isinstance(found, LikelihoodSums):
            return likelihood_of_sums(found)
        here = np.flatnonzero(self.cells(at.q).sample_at >= 0)
        return FilterStates(
            found.filtered.x_filt[here], found.filtered.P_filt[here], found.x_smooth[here], found.P_smooth[here],
            found.z[here],
        )  # fmt: skip

    def choose_steps(
        self, at: FilterPoint, count: int | str, known: Discretisation | None, values: str
    ) -> FilterDiscretisation:
        own = self.on(steps_of(known).to_refine)
        q, _, start = at.plain
        if isinstance(count, int):
            own.substeps = count
            freeze_doublings(StepPasses(own, q, start.x, start.z))
        else:
            choose_substeps(own, q, start.x, start.z, values)
        return own.discretisation

    def with_steps(self, steps: Discretisation, at: Callable[[], FilterPoint]) -> ExtendedFilter:
        known = steps_of(steps)
        assert known.common, f"{steps} are no steps of a nonlinear filter"
        made = self.on(known.to_refine)
        if made.roots is not None and not known.to_refine.sizes:
            # an older file has no sizes of algebraic unknowns
            q, _, start = at().plain
            made.measure_roots(q, start.x, start.z)
        return made

    def with_record(self, record: MeasuredRecord) -> Self:
        return self.on(self.discretisation, record)

    def start_moments(self, at: FilterPoint) -> tuple[Floats, Floats]:
        s = self.start(self.prepared(at.q), at.q, at.dq, at.start.x, at.start.z)
        x, P, _ = self.packing.split(s[0])
        return np.asarray(x), np.asarray(P)

    def refusal(self, at: Callable[[], FilterPoint]) -> str:
        if not self.model.jumps:
            return ""
        q, _, start = at().plain
        return near_switch(self, q, start.x, start.z)

    def passed(self, at: FilterPoint) -> list[SkippedBump]:
        q, _, start = at.plain
        return [bump for _, bump in features_skipped_by(StepPasses(self, q, start.x, start.z))]

    def innovation_covariances(self, at: FilterPoint) -> Floats:
        known, z = self.ahead.known(at, np.arange(len(self.record.times)) - 1)
        H, R = _outputs_at(self.model, *self.at_samples(self.cells(at.q)), known.x, z, at.q)
        undefined = ~np.isfinite(H).all(axis=2) & np.isnan(self.record.y)  # where nothing was measured
        H = np.where(undefined[:, :, None], 0.0, H)
        weights = self.record.weights
        R = R / weights[:, :, None] / weights[:, None, :]
        return np.asarray(H @ known.P @ H.transpose(0, 2, 1) + R)


def _outputs_at(model: StochasticModel, t: Floats, u: Floats, x: Floats, z: Floats, q: Floats) -> tuple[Floats, Floats]:
    """Return H and R at every instant."""
    closed, N, ny = AlgebraicModel(model), len(t), len(model.outputs)
    rows = closed.formula(ca.densify(model.measured))
    formulas = [ca.densify(ca.jacobian(rows, model.X)), ca.densify(closed.formula(ca.densify(model.variance)))]
    function = ca.Function("outputs", closed.plain_symbols, formulas)
    found = function(t[None, :], x.T, z.T, u.T, np.repeat(q[:, None], N, axis=1))
    H, R = (np.array(f.full()).reshape(ny, N, -1).transpose(1, 0, 2) for f in found)
    return H, R
