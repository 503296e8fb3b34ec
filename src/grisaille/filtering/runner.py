"""One experiment filtered again and again: same times, inputs and measurements, other parameters, levels and starts.

The start of the states is the consistent start of a simulation, with its derivatives; a filter that fails is an answer,
not an exception: optimizers must survive it.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import casadi as ca
import numpy as np

from grisaille.disturbance.duals import Floats
from grisaille.disturbance.stochastic_model import StochasticModel, build_stochastic_model
from grisaille.errors import EstimationError, GrisailleError
from grisaille.experiment.cells import Record
from grisaille.experiment.interpolation import SignalTable, make_table
from grisaille.experiment.switching import find_switches
from grisaille.filtering.extended import ExtendedFilter
from grisaille.filtering.extended_states import states_of
from grisaille.filtering.formulation import FilterKind
from grisaille.filtering.free_start import FreeStart, starts_freely
from grisaille.filtering.kalman import Likelihood, States, Sums, centred, finish, run_filter
from grisaille.filtering.linear import LinearFilter
from grisaille.filtering.native import add_up
from grisaille.filtering.near_switches import near_switch
from grisaille.filtering.sigma_points import SigmaPoints
from grisaille.filtering.smoother import smooth
from grisaille.filtering.substeps import choose_substeps, freeze_doublings
from grisaille.model.classes import Model
from grisaille.structure.initialization import Initializer
from grisaille.structure.parameters import ParameterFormulas, ParameterValues
from grisaille.structure.prepared import structure_of, vanishing_pivots


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


@dataclass(frozen=True)
class Moved:
    """Names whose values come with every call, in the order of the derivatives."""

    parameters: tuple[str, ...] = ()
    scales: tuple[str, ...] = ()
    noises: tuple[str, ...] = ()
    starts: tuple[str, ...] = ()

    @property
    def count(self) -> int:
        return len(self.parameters) + len(self.scales) + len(self.noises) + len(self.starts)


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
    """The log-likelihood of one experiment.

    times : increasing, the start first
    y, weights : (times, outputs), NaN where not measured
    moved : what comes with every call; ``constants``, ``demands`` : values that hold for this experiment
    """

    def __init__(
        self,
        model: Model,
        name: str,
        times: Floats,
        y: Floats,
        weights: Floats,
        *,
        outputs: Sequence[str],
        inputs: Mapping[str, Any],
        hold: Mapping[str, str] | str | None,
        moved: Moved,
        constants: Mapping[str, float],
        demands: Mapping[str, float],
        options: FilterOptions,
    ) -> None:
        self.model, self.moved, self.options = model, moved, options
        self.constants, self.demands = dict(constants), dict(demands)
        self.inputs, self.hold, self.times = dict(inputs), hold, times
        self.structure = structure_of(model)
        self.initializer = Initializer(self.structure)
        self.formulas = ParameterFormulas(self.structure.model, {*self.constants, *moved.parameters})
        self._table: SignalTable | None = None
        measured = np.where(weights > 0, y, np.nan)
        self.record = Record(name, times, measured, weights, self.signals)
        self.outputs = tuple(outputs)
        self.filter: LinearFilter | ExtendedFilter | None = None
        self.algebraic = np.zeros((0, 0))
        """Algebraic unknowns at cell boundaries, after ``states``."""

    def likelihood(self, values: Mapping[str, float], *, sensitive: bool) -> Filtered:
        """log L at values of everything that moves: ``"k"``, ``"scale(w)"``, ``"noise(y)"``, ``"start(x)"``."""
        o = self.options

        def sums(q: Floats, dq: Floats, start: Starting) -> Sums:
            if isinstance(self.filter, ExtendedFilter):
                return self.filter.run(q, dq, start.x, robust=o.robust, condition=o.condition, z0=start.z)
            return self._exact(q, dq, start.x)

        return self._likelihood(values, sensitive, sums)

    def gradient(self, values: Mapping[str, float]) -> Filtered:
        """log L and its gradient only: cheaper, in reverse mode, where the filter is nonlinear and compiled."""
        o = self.options

        def sums(q: Floats, dq: Floats, start: Starting) -> Sums:
            if isinstance(self.filter, ExtendedFilter):
                return self.filter.gradient(q, dq, start.x, robust=o.robust, condition=o.condition, z0=start.z)
            return self._exact(q, dq, start.x)

        return self._likelihood(values, True, sums)

    def _likelihood(
        self, values: Mapping[str, float], sensitive: bool, sums: Callable[[Floats, Floats, Starting], Sums]
    ) -> Filtered:
        try:
            found = finish(sums(*self.posed(values, sensitive)))
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

    def states(
        self, values: Mapping[str, float]
    ) -> tuple[LinearFilter | ExtendedFilter, Floats, States, tuple[Floats, Floats]]:
        """The filter, q, filtered moments at cell boundaries, and smoothed ones."""
        q, dq, start = self.posed(values, False)
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

    def start_at(self, values: Mapping[str, float]) -> dict[str, float]:
        """Every observed name at the consistent start, without the starts that come with a call."""
        given = self._parameters(values)
        self._restructure(given.values)
        t0, u = float(self.times[0]), self.signals(given.values).at(float(self.times[0]))
        start = self.initializer.solve(t0, u, given.values, self.demands)
        return self.initializer.observe(t0, start, u, given.values)

    def _restructure(self, p: Floats) -> None:
        """Equations that do not divide by anything that vanishes at these values."""
        if vanishing_pivots(self.structure, p):
            self.structure = structure_of(self.model, p)
            self.initializer = Initializer(self.structure)

    def prepare(self, values: Mapping[str, float]) -> StochasticModel:
        """The stochastic model and its filter; raises what a user must know before anything is minimised."""
        given = self._parameters(values)
        self._restructure(given.values)
        known = dict(zip(given.names, given.values.tolist(), strict=True))
        model = build_stochastic_model(
            self.structure, self.outputs, scales=self.moved.scales, noises=self.moved.noises, values=known
        )
        self._refuse_moving_switches()
        self.filter = self._choose(model, self._quantities(given, values))
        if isinstance(self.filter, ExtendedFilter):
            self.choose_steps(self.filter, values)
        return model

    def choose_steps(self, filter: ExtendedFilter, values: Mapping[str, float]) -> None:
        """Steps between samples: as the options say, or as many as these values need."""
        q, _, start = self.posed(values, False)
        chosen = self.options.substeps
        if isinstance(chosen, int):
            filter.substeps, filter.finer = chosen, None
            freeze_doublings(filter, q, start.x, start.z)
        else:
            choose_substeps(filter, q, start.x, start.z)

    def _choose(self, model: StochasticModel, q: Floats) -> LinearFilter | ExtendedFilter:
        """Unless one was asked for: the exact filter where it applies, the unscented one where the model jumps."""
        o = self.options
        if o.filter == "linear" or (o.filter == "auto" and not model.nonlinear):
            exact = LinearFilter(model, self.record, o.initial_covariance, o.compiled)
            if o.filter == "linear" or not exact.varies(q):
                exact.cells(q)
                return exact
        update = o.filter if o.filter in ("iterated", "unscented") else "extended"
        if o.filter == "auto" and model.jumps:
            update = "unscented"
        kind = FilterKind(update, o.propagation, sigma=o.sigma, solver=o.solver)
        return ExtendedFilter(
            model, self.record, self.initializer.nominal[: model.nx], o.initial_covariance, kind=kind,
            compiled=o.compiled,
        )  # fmt: skip

    def refusal(self, values: Mapping[str, float]) -> str:
        """Why the likelihood at these values must not be believed, in words; empty where it may."""
        q, _, start = self.posed(values, False)
        return near_switch(self.filter, q, start.x, start.z) if isinstance(self.filter, ExtendedFilter) else ""

    def with_measurements(self, y: Floats) -> FilterRunner:
        """The same experiment with other measurements."""
        other = copy.copy(self)
        other.record = replace(self.record, y=y)
        if self.filter is not None:
            other.filter = copy.copy(self.filter)
            other.filter.record = other.record
        return other

    def signals(self, p: Floats) -> SignalTable:
        """Made once, unless formulas of time switch."""
        system = self.structure.system
        if self._table is None or system.switches.numel() + system.bends.numel():
            defaults = {n: i.default for n, i in self.structure.model.inputs.items()}
            switches, bends = find_switches(system, p, self.times)
            self._table = make_table(system.signals, self.inputs, self.hold, self.times, defaults, switches, bends)
        return self._table

    def _parameters(self, values: Mapping[str, float]) -> ParameterValues:
        return self.formulas.evaluate({**self.constants, **{n: values[n] for n in self.moved.parameters}})

    @cached_property
    def _free(self) -> FreeStart | None:
        """The quick way to the start, where there is one; where it gives no number the long way says why."""
        m = self.moved
        if not starts_freely(self.initializer, [*self.demands, *m.starts]):
            return None
        levels = [*(f"scale({w})" for w in m.scales), *(f"noise({y})" for y in m.noises)]
        return FreeStart(
            self.initializer, self.formulas, self.constants, self.demands, m.parameters, levels, m.starts
        )  # fmt: skip

    def _quantities(self, given: ParameterValues, values: Mapping[str, float]) -> Floats:
        levels = [*(f"scale({w})" for w in self.moved.scales), *(f"noise({y})" for y in self.moved.noises)]
        return np.concatenate([given.values, [values[name] for name in levels]])

    def posed(self, values: Mapping[str, float], sensitive: bool) -> tuple[Floats, Floats, Starting]:
        """q, its directions, and the consistent start with its derivatives."""
        if self.filter is None:
            self.prepare(values)
        if self._free is not None:
            q, dq, x0 = self._free.at(values, sensitive)
            if np.isfinite(q).all() and np.isfinite(x0).all():
                return q, dq, Starting(x0, np.zeros((len(x0), 0)))
        given = self._parameters(values)
        dp, levels, starts = self._directions(given, sensitive)
        t0, u = float(self.times[0]), self.signals(given.values).at(float(self.times[0]))
        demands = {**self.demands, **{n: values[f"start({n})"] for n in self.moved.starts}}
        start = self.initializer.solve(t0, u, given.values, demands)
        x0, z0 = start.x[None], start.z[None]
        if sensitive:
            moved = self.initializer.sensitivity(t0, u, given.values, start, dp, demands, starts)
            x0, z0 = np.concatenate([x0, moved.sx]), np.concatenate([z0, moved.sz])
        return self._quantities(given, values), np.hstack([dp, levels]), Starting(x0, z0)

    def _directions(self, given: ParameterValues, sensitive: bool) -> tuple[Floats, Floats, dict[str, Floats]]:
        m, ns = self.moved, self.moved.count if sensitive else 0
        dp = np.zeros((ns, len(given.names)))
        levels = np.zeros((ns, len(m.scales) + len(m.noises)))
        if not sensitive:
            return dp, levels, {}
        for k, name in enumerate(m.parameters):
            dp[k] = given.jacobian[:, given.names.index(name)]
        first = len(m.parameters)
        levels[first : first + levels.shape[1]] = np.eye(levels.shape[1])
        rows = np.eye(ns)[first + levels.shape[1] :]
        return dp, levels, dict(zip(m.starts, rows, strict=True))

    def _refuse_moving_switches(self) -> None:
        """A jump at an instant that depends on an unknown has a derivative that formulas between jumps do not show."""
        system = self.structure.system
        formulas = ca.vertcat(system.switches, system.bends)
        moved = [system.p[system.parameter_names.index(n)] for n in self.moved.parameters]
        if formulas.numel() and moved and ca.depends_on(formulas, ca.vertcat(*moved)):
            raise EstimationError(
                f"{self.structure.model.name} switches at instants that depend on an estimated parameter; KalmanML "
                "needs instants that stay. Fix that parameter, or use gr.OutputError."
            )

    def _reason(self, sample: int) -> str:
        if sample >= len(self.times):
            return "the data do not determine the states that start diffuse; use initial_covariance='first-sample'."
        return (
            f"the innovation covariance of {', '.join(self.outputs)} at t = {self.times[sample]:g} is not finite and "
            f"positive definite: the model runs away, or measurement noise and state uncertainty vanish together."
        )
