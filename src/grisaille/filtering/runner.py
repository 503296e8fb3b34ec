"""One trial filtered again and again at other values of what moves.

The start of the states is the consistent start of a simulation, with its derivatives; a filter that fails is an answer,
not an exception: optimizers must survive it.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

import numpy as np

from grisaille.disturbance.duals import Floats
from grisaille.disturbance.stochastic_model import StochasticModel, build_stochastic_model
from grisaille.errors import INDEPENDENT_OF_VALUES, EstimationError, GrisailleError
from grisaille.experiment.cells import Record
from grisaille.experiment.interpolation import SignalTable
from grisaille.filtering.diffuse import DiffusePass
from grisaille.filtering.doublings import freeze_doublings
from grisaille.filtering.exact.linear import LinearFilter
from grisaille.filtering.extended import ExtendedFilter
from grisaille.filtering.extended_states import states_of
from grisaille.filtering.formulation import FilterKind
from grisaille.filtering.jumps.near_switches import near_switch
from grisaille.filtering.kalman import Likelihood, States, Sums, centred, finish, run_filter
from grisaille.filtering.native import add_up
from grisaille.filtering.passed_steps import passed_by
from grisaille.filtering.sigma_points import SigmaPoints
from grisaille.filtering.smoother import smooth
from grisaille.filtering.start import variances_by_name
from grisaille.filtering.steps import Exact, FilterSteps
from grisaille.filtering.substeps import choose_substeps
from grisaille.memory import DOUBLE, require_memory
from grisaille.trial import Point, Trial
from grisaille.trial.discretisation import Discretisation
from grisaille.trial.form import Form
from grisaille.trial.passed_bends import PassedBump
from grisaille.trial.refusals import refuse_moving_switches, scheduled_trial
from grisaille.trial.unknown import describe_values

MOST_KEPT = 3
"""Filters with other steps that are kept beside the last one."""
COVARIANCES = 6
"""Matrices and as many vectors of each instant that both passes over a record hold."""
MOST_RECENT = 4
"""Likelihoods that are kept: where other experiments have unknowns of their own, most evaluations do not move this."""


LARGEST = 200_000
"""Derivatives of innovations of those that are kept."""


@dataclass(frozen=True)
class FilterOptions:
    """How a record is filtered; see ``gr.KalmanML``."""

    filter: str = "auto"
    substeps: int | str = "auto"
    initial_covariance: Any = "first-sample"
    condition: bool = False
    robust: float = np.inf
    compiled: bool | None = None
    propagation: str = "linearize"
    sigma: SigmaPoints = field(default_factory=SigmaPoints)
    solver: str = "rk4"


@dataclass(frozen=True, eq=False)
class Filtered:
    """The likelihood of one record, or why there is none."""

    likelihood: Likelihood | None
    failure: str = ""


RecentKind: TypeAlias = Literal["all", "gradient", "value"]
"""What was computed; the first serves for the others."""


@dataclass(frozen=True, eq=False)
class Recent:
    """A likelihood that was computed before, and where."""

    theta: bytes
    steps: Discretisation
    kind: RecentKind
    found: Filtered


@dataclass(frozen=True, eq=False)
class Starting:
    """The consistent start with its derivatives: (1 + ns, nx) and (1 + ns, nz)."""

    x: Floats
    z: Floats


Summing: TypeAlias = Callable[[LinearFilter | ExtendedFilter, Floats, Floats, Starting], Sums]


@dataclass(frozen=True, eq=False)
class Moments:
    """What a filter and its smoother say at every cell boundary."""

    filter: LinearFilter | ExtendedFilter
    q: Floats
    filtered: States
    smoothed: tuple[Floats, Floats]
    algebraic: Floats
    """Algebraic unknowns after updates, (K + 1, nz)."""
    open_filtered: Floats
    """(K + 1, n, nδ) directions of a flat prior that the data leave open (``diffuse``)."""
    open_smoothed: Floats


class FilterRunner:
    """The log-likelihood of one trial."""

    def __init__(self, trial: Trial, options: FilterOptions) -> None:
        self.trial, self.options = scheduled_trial(trial, "a filter") if trial.flat.whens else trial, options
        self.record = self._record()
        self.filter: LinearFilter | ExtendedFilter | None = None
        """As it was prepared; ``filter_on`` gives one with steps."""
        self.form: Form | None = None
        """Of the equations that the filter was made for."""
        self._stepping: tuple[tuple[FilterSteps, ExtendedFilter], ...] = ()
        """Filters with the steps that were last asked for."""
        self._recent: tuple[Recent, ...] = ()

    @property
    def reach(self) -> int:
        """Over how many samples predictions are compared with the data, at most."""
        return 1

    def _record(self) -> Record:
        data = self.trial.data
        return Record(self.trial.name, self.trial.times, data.y, data.weights, self.signals)

    def discretise(self, theta: Floats, known: Discretisation | None = None) -> FilterSteps | Exact:
        """Steps between samples: as the options say, or as many as these values need.

        known : steps that were chosen elsewhere, whose Newton steps are enough to begin with
        """
        q, _, start = self.posed(theta, False)
        if not isinstance(self.filter, ExtendedFilter):
            return Exact()
        filter = self.filter.on(known if isinstance(known, FilterSteps) else FilterSteps(1), self.record)
        chosen = self.options.substeps
        if isinstance(chosen, int):
            filter.substeps = chosen
            freeze_doublings(filter, q, start.x, start.z)
        else:
            choose_substeps(filter, q, start.x, start.z, describe_values(self.trial.moves.names, theta.tolist()))
        return filter.discretisation

    def passed(self, theta: Floats, steps: Discretisation) -> list[PassedBump]:
        """Return the bumps of tables and short conditions that the steps pass without meeting them."""
        q, _, start = self.posed(theta, False)
        filter = self.filter_on(steps, theta)
        if not isinstance(filter, ExtendedFilter):
            return []
        return [bump for _, bump in passed_by(filter, q, start.x, start.z)]

    def filter_on(self, steps: Discretisation, theta: Floats) -> LinearFilter | ExtendedFilter:
        """The filter with steps; θ is where one that was not prepared yet is."""
        if self.filter is None:
            self.prepare(theta)
        assert self.filter is not None
        if isinstance(self.filter, LinearFilter):
            return self.filter
        assert isinstance(steps, FilterSteps)
        for known, filter in self._stepping:
            if known is steps or known == steps:
                return filter
        made = self.filter.on(steps, self.record)
        if made.roots is not None and not steps.sizes:
            # an older file has no sizes of algebraic unknowns
            q, _, start = self.posed(theta, False)
            made.measure_roots(q, start.x, start.z)
        self._stepping = ((steps, made), *self._stepping[:MOST_KEPT])
        return made

    def likelihood(self, theta: Floats, steps: Discretisation, *, sensitive: bool) -> Filtered:
        """log L at values of everything that moves."""
        o = self.options

        def sums(filter: LinearFilter | ExtendedFilter, q: Floats, dq: Floats, start: Starting) -> Sums:
            if isinstance(filter, ExtendedFilter):
                return filter.run(q, dq, start.x, robust=o.robust, condition=o.condition, z0=start.z)
            return self._exact(filter, q, dq, start.x)

        return self._likelihood(theta, steps, sensitive, sums)

    def gradient(self, theta: Floats, steps: Discretisation) -> Filtered:
        """log L and its gradient only: cheaper, in reverse mode, where the filter is nonlinear and compiled."""
        o = self.options

        def sums(filter: LinearFilter | ExtendedFilter, q: Floats, dq: Floats, start: Starting) -> Sums:
            if isinstance(filter, ExtendedFilter):
                return filter.gradient(q, dq, start.x, robust=o.robust, condition=o.condition, z0=start.z)
            return self._exact(filter, q, dq, start.x)

        return self._likelihood(theta, steps, True, sums)

    def recalled(self, theta: Floats, steps: Discretisation, kind: RecentKind) -> Filtered:
        """The likelihood, its gradient or its value: as it was computed before where neither θ nor steps are others."""
        at = theta.tobytes()
        for known in self._recent:
            if known.theta == at and known.steps is steps and known.kind in ("all", kind):
                return known.found
        if kind == "gradient":
            found = self.gradient(theta, steps)
        else:
            found = self.likelihood(theta, steps, sensitive=kind == "all")
        if found.likelihood is not None and found.likelihood.slopes.size > LARGEST:
            return found
        self._recent = (Recent(at, steps, kind, found), *self._recent[: MOST_RECENT - 1])
        return found

    def _likelihood(self, theta: Floats, steps: Discretisation, sensitive: bool, sums: Summing) -> Filtered:
        try:
            posed = self.posed(theta, sensitive)
            found = finish(sums(self.filter_on(steps, theta), *posed))
        except INDEPENDENT_OF_VALUES:
            raise
        except GrisailleError as error:
            return Filtered(None, str(error))
        return Filtered(found, self._reason(found.failed) if found.failed >= 0 else "")

    def _exact(self, filter: LinearFilter, q: Floats, dq: Floats, x0: Floats) -> Sums:
        o, matrices = self.options, filter.discretise(q, dq, x0)
        sums = add_up(matrices, robust=o.robust, condition=o.condition, compiled=o.compiled)
        if matrices.X0.shape[1] and sums.failed < 0:
            return add_up(centred(matrices, sums), compiled=o.compiled)
        return sums

    def states(self, theta: Floats, steps: Discretisation) -> Moments:
        """Filtered and smoothed moments at cell boundaries."""
        q, dq, start = self.posed(theta, False)
        filter = self.filter_on(steps, theta)
        self._require_states(filter.model.n)
        if isinstance(filter, ExtendedFilter):
            found = states_of(filter, q, start.x, start.z)
            if isinstance(found, Sums):
                raise EstimationError(self._reason(found.failed))
            closed = np.zeros((*found.filtered.x_filt.shape, 0))
            return Moments(filter, q, found.filtered, (found.x_smooth, found.P_smooth), found.z, closed, closed)
        matrices = filter.discretise(q, dq, start.x)
        if matrices.X0.shape[1]:
            over = DiffusePass.of(matrices)
            f, s = over.filtered, over.smoothed
            states = replace(over.base, x_filt=f.x, P_filt=f.P)
            return Moments(filter, q, states, (s.x, s.P), np.zeros((len(f.x), 0)), f.D, s.D)
        kept: list[States] = []
        sums = run_filter(matrices, states=kept)
        if sums.failed >= 0:
            raise EstimationError(self._reason(sums.failed))
        nothing = np.zeros((len(kept[0].x_filt), 0))
        closed = np.zeros((*kept[0].x_filt.shape, 0))
        return Moments(filter, q, kept[0], smooth(matrices, kept[0]), nothing, closed, closed)

    def _require_states(self, n: int) -> None:
        """Refuse moments at every instant that do not fit into memory."""
        each, count = DOUBLE * COVARIANCES * n * (n + 1), len(self.trial.times)
        require_memory(
            each * count,
            f"States of {self.trial.structure.model.name} with their covariances ({n} states, {count} samples)",
            lambda available: f"{available // each} samples would fit: ask for the states of a part of the record.",
        )

    def start_covariance(self, theta: Floats, steps: Discretisation) -> Floats:
        """Return P₀ of all states before the first sample; zero in directions with a flat prior."""
        q, dq, start = self.posed(theta, False)
        filter = self.filter_on(steps, theta)
        if isinstance(filter, LinearFilter):
            return np.asarray(filter.discretise(q, dq, start.x).P0[0])
        s = filter.start(filter.prepared(q), q, dq, start.x, start.z)
        return np.asarray(filter.packing.split(s[0])[1])

    def prepare(self, theta: Floats) -> StochasticModel:
        """The stochastic model and its filter; raises what a user must know before anything is minimised."""
        point, moves = self.trial.at(theta), self.trial.moves
        model = build_stochastic_model(
            point.structure, self.trial.data.outputs, scales=moves.targets("scale"), noises=moves.targets("noise"),
            values=point.known,
        )  # fmt: skip
        if point.structure.system.has.moving_instants:
            refuse_moving_switches(self.trial, point.form, "a filter")
        self.form, self._recent = point.form, ()
        self.filter = self._choose(model, point)
        return model

    def _choose(self, model: StochasticModel, point: Point) -> LinearFilter | ExtendedFilter:
        """Unless one was asked for: the exact filter where it applies, the unscented one where the model jumps."""
        o = self.options
        if isinstance(o.initial_covariance, Mapping):
            variances_by_name(model, o.initial_covariance)  # refuses what contradicts the model
        if o.filter == "linear" or (o.filter == "auto" and not model.nonlinear):
            exact = LinearFilter(model, self.record, o.initial_covariance, o.compiled)
            if o.filter == "linear" or not exact.varies_too_fast(point.q):
                exact.cells(point.q)
                return exact
        update = o.filter if o.filter in ("iterated", "unscented") else "extended"
        if o.filter == "auto" and model.jumps:
            update = "unscented"
        kind = FilterKind(update, o.propagation, sigma=o.sigma, solver=o.solver)
        made = ExtendedFilter(
            model, self.record, point.initializer.nominal[: model.nx], o.initial_covariance, kind=kind,
            compiled=o.compiled,
        )  # fmt: skip
        made.cells(point.q)
        return made

    def refusal(self, theta: Floats, steps: Discretisation) -> str:
        """Why the likelihood at these values must not be believed, in words; empty where it may."""
        filter = self.filter_on(steps, theta)
        if isinstance(filter, LinearFilter) or not filter.model.jumps:
            return ""
        q, _, start = self.posed(theta, False)
        return near_switch(filter, q, start.x, start.z)

    def with_trial(self, trial: Trial) -> FilterRunner:
        """A runner of the same experiment with other measurements."""
        other = copy.copy(self)
        other.trial, other._stepping = scheduled_trial(trial, "a filter") if trial.flat.whens else trial, ()
        other._recent = ()
        other.record = other._record()
        if isinstance(self.filter, LinearFilter):
            other.filter = copy.copy(self.filter)
            other.filter.record = other.record
        return other

    def signals(self, p: Floats) -> SignalTable:
        """The table of u at parameter values."""
        return self.trial.signals(self.form or self.trial.form(p), p).table

    def posed(self, theta: Floats, sensitive: bool) -> tuple[Floats, Floats, Starting]:
        """q, its directions, and the consistent start with its derivatives."""
        if self.filter is None:
            self.prepare(theta)
        point = self.trial.at(theta, self.form)
        x0, z0 = point.start.x[None], point.start.z[None]
        if sensitive:
            x0, z0 = np.concatenate([x0, point.dstart.sx]), np.concatenate([z0, point.dstart.sz])
        return point.q, point.dq if sensitive else point.dq[:0], Starting(x0, z0)

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
