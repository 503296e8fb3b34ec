"""One experiment filtered repeatedly at other values of its unknowns.

The start of the states is the consistent start of a simulation, with its derivatives; a filter that fails is an answer,
not an exception: optimizers must survive it.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal, Self, TypeAlias

import numpy as np

from grisaille.bound_experiment import BoundExperiment, ExperimentPoint
from grisaille.bound_experiment.discretisation import Discretisation
from grisaille.bound_experiment.shared_refusals import refuse_moving_switches, scheduled_trial
from grisaille.bound_experiment.skipped_bends import SkippedBump
from grisaille.bound_experiment.system_form import SystemForm
from grisaille.bound_experiment.unknown import describe_values
from grisaille.disturbance.duals import Floats
from grisaille.disturbance.stochastic_model import StochasticModel, build_stochastic_model
from grisaille.errors import INDEPENDENT_OF_VALUES, EstimationError, GrisailleError
from grisaille.experiment.piecewise_polynomials import SignalTable
from grisaille.experiment.record_cells import MeasuredRecord
from grisaille.filtering.filter import Filter, FilterPoint, FilterStates, StartValues
from grisaille.filtering.filter_methods import FilterOptions, make_filter
from grisaille.filtering.filter_steps import FilterDiscretisation
from grisaille.filtering.kalman import Likelihood
from grisaille.filtering.likelihood_differences import differentiate_likelihood
from grisaille.filtering.shared_noise import covariance_failure, is_shared
from grisaille.memory import BYTES_PER_DOUBLE, require_memory

__all__ = ["FilterOptions", "FilterResult", "FilterRunner", "RecentKind"]

MAX_KEPT = 3
"""Filters with other steps that are kept beside the last one."""
MATRICES_PER_INSTANT = 6
"""Matrices and as many vectors of each instant that both passes over a record hold."""
MAX_RECENT = 4
"""Likelihoods that are kept: where other experiments have unknowns of their own, most evaluations do not move this."""


MAX_KEPT_DERIVATIVES = 200_000
"""Derivatives of innovations of those that are kept."""


@dataclass(frozen=True, eq=False)
class FilterResult:
    """The likelihood of one record, or why there is none."""

    likelihood: Likelihood | None
    failure: str = ""


RecentKind: TypeAlias = Literal["all", "gradient", "value"]
"""What was computed; the first serves for the others."""


@dataclass(frozen=True, eq=False)
class RecentLikelihood:
    """A likelihood that was computed before, and where."""

    theta: bytes
    steps: Discretisation
    kind: RecentKind
    found: FilterResult


Running: TypeAlias = Callable[[Filter, FilterPoint], Likelihood]


class FilterRunner:
    """The log-likelihood of one trial."""

    def __init__(self, trial: BoundExperiment, options: FilterOptions) -> None:
        self.trial, self.options = self.followed(trial), options
        self.record = self._record()
        self.filter: Filter | None = None
        """As it was prepared; ``filter_on`` gives one with steps."""
        self.form: SystemForm | None = None
        """Of the equations that the filter was made for."""
        self._stepping: tuple[tuple[Discretisation, Filter], ...] = ()
        """Filters with the steps that were last asked for."""
        self._recent: tuple[RecentLikelihood, ...] = ()

    @staticmethod
    def followed(trial: BoundExperiment) -> BoundExperiment:
        """Return the trial as the filter follows it: discrete variables are signals, or refused."""
        return scheduled_trial(trial, "a filter") if trial.flat.whens else trial

    @property
    def reach(self) -> int:
        """Over how many samples predictions are compared with the data, at most."""
        return 1

    def _record(self) -> MeasuredRecord:
        data = self.trial.data
        return MeasuredRecord(self.trial.name, self.trial.times, data.y, data.weights, self.signals)

    def discretise(self, theta: Floats, known: Discretisation | None = None) -> FilterDiscretisation:
        """Return steps between samples: as the options say, or as many as these values need.

        known : steps that were chosen elsewhere, whose Newton steps are enough to begin with
        """
        at = self.posed(theta, False)
        values = describe_values(self.trial.moves.names, theta.tolist())
        return self.prepared_at(theta).choose_steps(at, self.options.substeps, known, values)

    def prepared_at(self, theta: Floats) -> Filter:
        """Return the filter as it was prepared; θ is where one that was not yet is."""
        if self.filter is None:
            self.prepare(theta)
        assert self.filter is not None
        return self.filter

    @property
    def lacks_derivatives(self) -> bool:
        """Return whether differences replace derivatives of the filter."""
        return self.filter is not None and self.filter.derivatives is None

    def passed(self, theta: Floats, steps: Discretisation) -> list[SkippedBump]:
        """Return the bumps of tables and short conditions that the steps pass without meeting them."""
        at = self.posed(theta, False)
        return self.filter_on(steps, theta).passed(at)

    def filter_on(self, steps: Discretisation, theta: Floats) -> Filter:
        """Return the filter with steps; θ is where one that was not prepared yet is."""
        filter = self.prepared_at(theta)
        for known, made in self._stepping:
            if known is steps or known == steps:
                return made
        made = filter.with_steps(steps, lambda: self.posed(theta, False))
        self._stepping = ((steps, made), *self._stepping[:MAX_KEPT])
        return made

    def likelihood(self, theta: Floats, steps: Discretisation, *, sensitive: bool) -> FilterResult:
        """Return log L at values of all estimated quantities."""
        return self._likelihood(theta, steps, sensitive, lambda filter, at: filter.log_likelihood(at))

    def gradient(self, theta: Floats, steps: Discretisation) -> FilterResult:
        """Return log L and its gradient only: cheaper, in reverse mode, where the filter is nonlinear and compiled."""
        return self._likelihood(theta, steps, True, lambda filter, at: filter.gradient(at))

    def recalled(self, theta: Floats, steps: Discretisation, kind: RecentKind) -> FilterResult:
        """Return the likelihood, its gradient or its value: as it was computed before where neither θ nor steps are
        others.
        """
        at = theta.tobytes()
        for known in self._recent:
            if known.theta == at and known.steps is steps and known.kind in ("all", kind):
                return known.found
        if kind == "gradient":
            found = self.gradient(theta, steps)
        else:
            found = self.likelihood(theta, steps, sensitive=kind == "all")
        if found.likelihood is not None and found.likelihood.slopes.size > MAX_KEPT_DERIVATIVES:
            return found
        self._recent = (RecentLikelihood(at, steps, kind, found), *self._recent[: MAX_RECENT - 1])
        return found

    def _likelihood(self, theta: Floats, steps: Discretisation, sensitive: bool, run: Running) -> FilterResult:
        try:
            at = self.posed(theta, sensitive)
            filter = self.filter_on(steps, theta)
            failure = self._shared_noise_failure(filter, theta, at)
            if failure:
                return FilterResult(None, failure)
            if sensitive and filter.derivatives is None:
                found = differentiate_likelihood(lambda there: run(filter, there), at, theta, filter.difference)
            else:
                found = run(filter, at)
        except INDEPENDENT_OF_VALUES:
            raise
        except GrisailleError as error:
            return FilterResult(None, str(error))
        return FilterResult(found, self._reason(found.failed) if found.failed >= 0 else self._left_out(filter, found))

    def _left_out(self, filter: Filter, found: Likelihood) -> str:
        """Say which measured samples have no innovation, which would count as if nothing had been measured."""
        y = self.record.y[self.options.condition :]
        rows, columns = np.nonzero(np.isnan(found.innovations[self.options.condition :]) & ~np.isnan(y))
        if not len(rows):
            return ""
        output, t = self.trial.data.outputs[columns[0]], self.trial.times[rows[0] + self.options.condition]
        return (
            f"the filter {filter.name} has no innovation (NaN) of '{output}' at t = {t:g}, where it was measured: "
            f"states must stay finite at samples that lack measurements (NaN in record.y)."
        )

    def _shared_noise_failure(self, filter: Filter, theta: Floats, at: FilterPoint) -> str:
        """Say that the noise of outputs has no covariance; empty where it has one, or where they share none."""
        if not filter.model.cached_value("shares noise", lambda: is_shared(filter.model)):
            return ""
        point = self.trial.at(theta, self.form)
        return covariance_failure(filter.model, point.t0, point.u, at)

    def states(self, theta: Floats, steps: Discretisation) -> FilterStates:
        """Return filtered and smoothed moments at every sample."""
        at = self.posed(theta, False)
        filter = self.filter_on(steps, theta)
        self._require_states(filter.model.n)
        found = filter.states(at)
        if isinstance(found, Likelihood):
            raise EstimationError(self._reason(found.failed))
        if found.z is None:
            found = replace(found, z=np.repeat(at.start.z[:1], len(found.x_filt), axis=0))
        return found

    def _require_states(self, n: int) -> None:
        """Refuse moments at every instant that do not fit into memory."""
        each, count = BYTES_PER_DOUBLE * MATRICES_PER_INSTANT * n * (n + 1), len(self.trial.times)
        require_memory(
            each * count,
            f"States of {self.trial.structure.model.name} with their covariances ({n} states, {count} samples)",
            lambda available: f"{available // each} samples would fit: ask for the states of a part of the record.",
        )

    def start_covariance(self, theta: Floats, steps: Discretisation) -> Floats:
        """Return P₀ of all states before the first sample; zero in directions with a flat prior."""
        at = self.posed(theta, False)
        return self.filter_on(steps, theta).start_moments(at)[1]

    def prepare(self, theta: Floats) -> StochasticModel:
        """Return the stochastic model and its filter; raises what a user must know before anything is minimised."""
        point, moves = self.trial.at(theta), self.trial.moves
        model = build_stochastic_model(
            point.structure, self.trial.data.outputs, scales=moves.targets("scale"), noises=moves.targets("noise"),
            values=point.known,
        )  # fmt: skip
        if point.structure.system.has.moving_instants:
            refuse_moving_switches(self.trial, point.form, "a filter")
        self.form, self._recent = point.form, ()
        self.filter, self._stepping = self._choose(model, point), ()
        return model

    def _choose(self, model: StochasticModel, point: ExperimentPoint) -> Filter:
        """Return the filter that the options ask for."""
        return make_filter(self.options, model, self.record, point)

    def refusal(self, theta: Floats, steps: Discretisation) -> str:
        """Return why the likelihood at these values must not be believed, in words; empty where it may."""
        return self.filter_on(steps, theta).refusal(lambda: self.posed(theta, False))

    def with_experiment(self, trial: BoundExperiment) -> Self:
        """Return a runner of the same experiment with other measurements."""
        other = copy.copy(self)
        other.trial, other._stepping = self.followed(trial), ()
        other._recent = ()
        other.record = other._record()
        if self.filter is not None:
            other.filter = self.filter.with_record(other.record)
        return other

    def signals(self, p: Floats) -> SignalTable:
        """Return the table of u at parameter values."""
        return self.trial.signals(self.form or self.trial.form(p), p).table

    def posed(self, theta: Floats, sensitive: bool) -> FilterPoint:
        """Return q, its directions, and the consistent start with its derivatives."""
        if self.filter is None:
            self.prepare(theta)
        point = self.trial.at(theta, self.form)
        x0, z0 = point.start.x[None], point.start.z[None]
        if sensitive:
            x0, z0 = np.concatenate([x0, point.dstart.sx]), np.concatenate([z0, point.dstart.sz])
        return FilterPoint(point.q, point.dq if sensitive else point.dq[:0], StartValues(x0, z0))

    def _reason(self, sample: int) -> str:
        if sample >= len(self.trial.times):
            return (
                "the data do not determine the states that start diffuse; use initial_covariance='first-sample', or "
                "{state: np.inf} for those that they do."
            )
        outputs, t = ", ".join(self.trial.data.outputs), float(self.trial.times[sample])
        moved = self.options.propagation == "square-root"
        root = "; propagation='square-root' needs both everywhere: try 'moments'" if moved else ""
        return (
            f"the innovation covariance of {outputs} at t = {t:g} is not finite and "
            f"positive definite: the model runs away, or measurement noise and state uncertainty vanish together{root}."
        )
