"""One trial filtered again and again at other values of what moves.

The start of the states is the consistent start of a simulation, with its derivatives; a filter that fails is an answer,
not an exception: optimizers must survive it.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from grisaille.disturbance.duals import Floats
from grisaille.disturbance.stochastic_model import StochasticModel, build_stochastic_model
from grisaille.errors import EstimationError, GrisailleError
from grisaille.experiment.cells import Record
from grisaille.experiment.interpolation import SignalTable
from grisaille.filtering.exact.linear import LinearFilter
from grisaille.filtering.extended import ExtendedFilter
from grisaille.filtering.extended_states import states_of
from grisaille.filtering.formulation import FilterKind
from grisaille.filtering.jumps.near_switches import near_switch
from grisaille.filtering.kalman import Likelihood, States, Sums, centred, finish, run_filter
from grisaille.filtering.native import add_up
from grisaille.filtering.sigma_points import SigmaPoints
from grisaille.filtering.smoother import smooth
from grisaille.filtering.substeps import choose_substeps, freeze_doublings
from grisaille.trial import Point, Trial
from grisaille.trial.form import Form
from grisaille.trial.refusals import refuse_moving_instants


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


@dataclass(frozen=True, eq=False)
class Starting:
    """The consistent start with its derivatives: (1 + ns, nx) and (1 + ns, nz)."""

    x: Floats
    z: Floats


class FilterRunner:
    """The log-likelihood of one trial."""

    def __init__(self, trial: Trial, options: FilterOptions) -> None:
        self.trial, self.options = trial, options
        self.record = self._record()
        self.filter: LinearFilter | ExtendedFilter | None = None
        self.form: Form | None = None
        """Of the equations that the filter was made for."""
        self.algebraic = np.zeros((0, 0))
        """Algebraic unknowns at cell boundaries, after ``states``."""

    def _record(self) -> Record:
        data = self.trial.data
        return Record(self.trial.name, self.trial.times, data.y, data.weights, self.signals)

    def likelihood(self, theta: Floats, *, sensitive: bool) -> Filtered:
        """log L at values of everything that moves."""
        o = self.options

        def sums(q: Floats, dq: Floats, start: Starting) -> Sums:
            if isinstance(self.filter, ExtendedFilter):
                return self.filter.run(q, dq, start.x, robust=o.robust, condition=o.condition, z0=start.z)
            return self._exact(q, dq, start.x)

        return self._likelihood(theta, sensitive, sums)

    def gradient(self, theta: Floats) -> Filtered:
        """log L and its gradient only: cheaper, in reverse mode, where the filter is nonlinear and compiled."""
        o = self.options

        def sums(q: Floats, dq: Floats, start: Starting) -> Sums:
            if isinstance(self.filter, ExtendedFilter):
                return self.filter.gradient(q, dq, start.x, robust=o.robust, condition=o.condition, z0=start.z)
            return self._exact(q, dq, start.x)

        return self._likelihood(theta, True, sums)

    def _likelihood(self, theta: Floats, sensitive: bool, sums: Callable[[Floats, Floats, Starting], Sums]) -> Filtered:
        try:
            found = finish(sums(*self.posed(theta, sensitive)))
        except GrisailleError as error:
            return Filtered(None, str(error))
        return Filtered(found, self._reason(found.failed) if found.failed >= 0 else "")

    def _exact(self, q: Floats, dq: Floats, x0: Floats) -> Sums:
        assert isinstance(self.filter, LinearFilter)
        o, matrices = self.options, self.filter.discretise(q, dq, x0)
        sums = add_up(matrices, robust=o.robust, condition=o.condition, compiled=o.compiled)
        if matrices.X0.shape[1] and sums.failed < 0:
            return add_up(centred(matrices, sums), compiled=o.compiled)
        return sums

    def states(self, theta: Floats) -> tuple[LinearFilter | ExtendedFilter, Floats, States, tuple[Floats, Floats]]:
        """The filter, q, filtered moments at cell boundaries, and smoothed ones."""
        q, dq, start = self.posed(theta, False)
        if isinstance(self.filter, ExtendedFilter):
            found = states_of(self.filter, q, start.x, start.z)
            if isinstance(found, Sums):
                raise EstimationError(self._reason(found.failed))
            self.algebraic = found.z
            return self.filter, q, found.filtered, (found.x_smooth, found.P_smooth)
        assert self.filter is not None
        matrices = self.filter.discretise(q, dq, start.x)
        if matrices.X0.shape[1]:
            raise EstimationError(
                "States under initial_covariance='diffuse' are not available: a flat prior has no covariance. Use "
                "'stationary', 'first-sample', or large variances {state: variance}."
            )
        kept: list[States] = []
        sums = run_filter(matrices, states=kept)
        if sums.failed >= 0:
            raise EstimationError(self._reason(sums.failed))
        return self.filter, q, kept[0], smooth(matrices, kept[0])

    def prepare(self, theta: Floats) -> StochasticModel:
        """The stochastic model and its filter; raises what a user must know before anything is minimised."""
        point, moves = self.trial.at(theta), self.trial.moves
        model = build_stochastic_model(
            point.structure, self.trial.data.outputs, scales=moves.targets("scale"), noises=moves.targets("noise"),
            values=point.known,
        )  # fmt: skip
        refuse_moving_instants(self.trial, point.form, "a filter")
        self.form = point.form
        self.filter = self._choose(model, point)
        if isinstance(self.filter, ExtendedFilter):
            self.choose_steps(self.filter, theta)
        return model

    def choose_steps(self, filter: ExtendedFilter, theta: Floats) -> None:
        """Steps between samples: as the options say, or as many as these values need."""
        q, _, start = self.posed(theta, False)
        chosen = self.options.substeps
        if isinstance(chosen, int):
            filter.substeps, filter.finer = chosen, None
            freeze_doublings(filter, q, start.x, start.z)
        else:
            choose_substeps(filter, q, start.x, start.z)

    def _choose(self, model: StochasticModel, point: Point) -> LinearFilter | ExtendedFilter:
        """Unless one was asked for: the exact filter where it applies, the unscented one where the model jumps."""
        o = self.options
        if o.filter == "linear" or (o.filter == "auto" and not model.nonlinear):
            exact = LinearFilter(model, self.record, o.initial_covariance, o.compiled)
            if o.filter == "linear" or not exact.varies(point.q):
                exact.cells(point.q)
                return exact
        update = o.filter if o.filter in ("iterated", "unscented") else "extended"
        if o.filter == "auto" and model.jumps:
            update = "unscented"
        kind = FilterKind(update, o.propagation, sigma=o.sigma, solver=o.solver)
        return ExtendedFilter(
            model, self.record, point.initializer.nominal[: model.nx], o.initial_covariance, kind=kind,
            compiled=o.compiled,
        )  # fmt: skip

    def refusal(self, theta: Floats) -> str:
        """Why the likelihood at these values must not be believed, in words; empty where it may."""
        q, _, start = self.posed(theta, False)
        return near_switch(self.filter, q, start.x, start.z) if isinstance(self.filter, ExtendedFilter) else ""

    def with_trial(self, trial: Trial) -> FilterRunner:
        """An independent runner of the same experiment with other measurements."""
        other = copy.copy(self)
        other.trial = trial
        other.record = other._record()
        if self.filter is not None:
            other.filter = copy.copy(self.filter)
            other.filter.record = other.record
        return other

    @property
    def steps(self) -> dict[str, int]:
        """How steps between samples were chosen; none of the exact filter."""
        if not isinstance(self.filter, ExtendedFilter):
            return {}
        return {"substeps": int(self.filter.substeps), "doublings": int(self.filter.doublings)}

    def take_steps(self, steps: Mapping[str, int]) -> None:
        """Steps that were chosen before."""
        if isinstance(self.filter, ExtendedFilter) and steps:
            self.filter.substeps, self.filter.doublings = int(steps["substeps"]), int(steps["doublings"])

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
            return "the data do not determine the states that start diffuse; use initial_covariance='first-sample'."
        outputs, t = ", ".join(self.trial.data.outputs), float(self.trial.times[sample])
        return (
            f"the innovation covariance of {outputs} at t = {t:g} is not finite and "
            f"positive definite: the model runs away, or measurement noise and state uncertainty vanish together."
        )
