"""One trial simulated as an ensemble again and again: mean and covariance of its outputs, with their derivatives.

The random numbers are the same at every call (common random numbers) and come from the model's own streams, not from
those that ``simulate`` uses for data. Where grid, steps per cell and the scheme for white noise are fixed (``on``), the
statistics are smooth in the parameters; elsewhere every call chooses them anew.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from grisaille.bound_experiment import BoundExperiment, ExperimentPoint
from grisaille.disturbance import Purpose, Stream
from grisaille.errors import INDEPENDENT_OF_VALUES, GrisailleError
from grisaille.simulation.ensembles.disturbances import Disturbances
from grisaille.simulation.ensembles.ensemble import Ensemble, discretise, run_ensemble, run_ensembles
from grisaille.simulation.ensembles.ensemble_discretisation import EnsembleGrid
from grisaille.simulation.ensembles.ensemble_methods import AUTO
from grisaille.simulation.ensembles.ensemble_options import EnsembleOptions
from grisaille.simulation.ensembles.moment_projection import MomentProjection, ProjectionForm, RecordNoise, SlopeEnergy
from grisaille.simulation.ensembles.pairs import covariances, pair_names, with_sums
from grisaille.simulation.ensembles.passed_features import describe_skipped
from grisaille.simulation.ensembles.reducers import REALIZATIONS_PER_BLOCK, Statistic
from grisaille.simulation.ensembles.rough_signals import without_rough_signals
from grisaille.structure.reduction import Structure

if TYPE_CHECKING:
    from grisaille.simulation.ensembles.reducers import Reducer

MAX_NUMBERS_IN_MEMORY = 1 << 21
"""Numbers of trajectories held at a time when every realization is projected (16 MB)."""
DIFFERENCE_STEP = 1e-4
"""Relative step of central differences."""


@dataclass(frozen=True)
class EnsemblePrediction:
    """Statistics of the outputs; derivatives have the directions last."""

    mean: np.ndarray
    """(times, outputs)"""
    variance: np.ndarray
    mean_slopes: np.ndarray
    variance_slopes: np.ndarray
    failure: str = ""
    failed_realizations: int = 0
    covariance: np.ndarray = field(default_factory=lambda: np.zeros((0, 0, 0)))
    """(times, q, q) of the outputs named in ``paired``."""
    covariance_slopes: np.ndarray = field(default_factory=lambda: np.zeros((0, 0, 0, 0)))
    device: str = "cpu"
    """Where it was made, and why there."""

    @property
    def y(self) -> np.ndarray:
        """Return what is compared with measurements."""
        return self.mean

    @property
    def completed(self) -> bool:
        return not self.failure


class EnsembleRunner:
    """Predicts the outputs of one trial by their mean over realizations.

    paired : outputs whose covariances with each other are wanted, with typical sizes
    """

    def __init__(
        self,
        trial: BoundExperiment,
        outputs: Sequence[str],
        options: EnsembleOptions,
        paired: Mapping[str, float] | None = None,
    ) -> None:
        self.trial, self.outputs, self.paired = trial, tuple(outputs), dict(paired or {})
        observed = dict.fromkeys([*outputs, *pair_names(tuple(self.paired)).values()])
        self.options = replace(options, purpose=Purpose.MODEL, observed=tuple(observed))
        self.differences: np.ndarray | None = None
        """Sizes of θ, where derivatives are to be central differences."""
        self._disturbances: Disturbances | None = None
        self._extended: tuple[object, Structure] | None = None

    def with_experiment(self, trial: BoundExperiment) -> EnsembleRunner:
        """Return a runner of the same experiment with other measurements."""
        other = copy.copy(self)
        other.trial = trial
        return other

    def renewed(self, realizations: int | None = None, first: int = 0) -> EnsembleRunner:
        """Return the same with another number of realizations, from another one on; what was chosen once is kept."""
        other = copy.copy(self)
        other.options = replace(self.options, realizations=realizations or self.options.realizations, first=first)
        return other

    def predict(self, theta: np.ndarray, *, sensitive: bool) -> EnsemblePrediction:
        """Return mean and variance at θ."""
        if sensitive and self.differences is not None:
            return self._by_differences(theta, self.differences)
        try:
            found = self._run(self._at(theta, sensitive), ["mean", "variance"])
        except INDEPENDENT_OF_VALUES:
            raise
        except GrisailleError as error:
            return self._failed(str(error), sensitive)
        return self._checked(self._prediction(found, sensitive), sensitive)

    def _checked(self, answer: EnsemblePrediction, sensitive: bool) -> EnsemblePrediction:
        fine = np.isfinite(answer.mean) & np.isfinite(answer.variance)
        if fine.all():
            return answer
        compared = self.trial.data.compared(self.outputs)
        if not fine[compared].all():
            return self._failed(
                f"the mean over the realizations is not finite{self._where(compared & ~fine)}", sensitive
            )
        return _without(~fine, answer)

    def _where(self, bad: np.ndarray) -> str:
        row, column = np.argwhere(bad)[0]
        return f": {self.outputs[column]} is infinite or undefined at t = {self.trial.times[row]:.6g}"

    def predict_each(self, thetas: Sequence[np.ndarray]) -> list[EnsemblePrediction]:
        """Return mean and variance at several θ; together where a graphics processor simulates them."""
        if self.options.device == "cpu" or self.options.substeps is None:
            return [self.predict(theta, sensitive=False) for theta in thetas]
        try:
            points = [self._at(theta, False) for theta in thetas]
            options = replace(self.options, reduce=["mean", "variance"])
            found = run_ensembles(points, options, self._disturbances_of(points[0]))
        except INDEPENDENT_OF_VALUES:
            raise
        except GrisailleError:
            # some point cannot be simulated: each says for itself whether it can
            return [self.predict(theta, sensitive=False) for theta in thetas]
        return [self._checked(self._prediction(f, False), False) for f in found]

    def projections(
        self,
        theta: np.ndarray,
        forms: Sequence[ProjectionForm],
        at: EnsemblePrediction,
        weights: np.ndarray | None = None,
        noise: np.ndarray | None = None,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return, for each realization, the vectors of all forms, (M, n₁ + n₂ + …), from deviations from ``at``; and
        with ``weights`` W (times, outputs, outputs) Σ_m Σ_k D_kᵀ W_k D_k over those of the sensitivities.

        noise : standard deviations of the measurement noise (times, outputs) in forms of records
        """
        wanted = weights is not None or any(f.slope_linear is not None for f in forms)
        sensitive = wanted and self.differences is None and bool(len(self.trial.moves))
        posed = self._at(theta, sensitive)
        names = list(self.options.observed or ())
        columns, compared = [names.index(o) for o in self.outputs], self.trial.data.compared(self.outputs)
        vectors, energy = [], np.zeros(2 * (len(self.trial.moves),))
        stream = Stream.of(self.options.seed, Purpose.MODEL, "measurement noise", self.options.antithetic)
        for part in self._parts(len(names) * (1 + len(self.trial.moves) * sensitive)):
            slopes = at.mean_slopes if sensitive else None
            added = None if noise is None else RecordNoise(noise, stream, part.options.first)
            reducers: list[Any] = (
                [MomentProjection(tuple(forms), at.mean, slopes, columns, added, compared)] if forms else []
            )
            reducers += (
                [SlopeEnergy(weights, slopes, columns, compared)] if weights is not None and slopes is not None else []
            )
            found = part._run(posed, reducers).statistics
            vectors += [found["projection"].values] if forms else []
            energy += found["energy"].values if "energy" in found else 0.0
        return np.concatenate(vectors) if vectors else np.zeros((0, 0)), energy

    def _parts(self, numbers: int) -> Iterator[EnsembleRunner]:
        """Yield the ensemble cut so that rows with so many numbers at each instant fit into little memory."""
        count, first = self.options.realizations, self.options.first
        each = max(
            REALIZATIONS_PER_BLOCK,
            MAX_NUMBERS_IN_MEMORY
            // (len(self.trial.times) * numbers)
            // REALIZATIONS_PER_BLOCK
            * REALIZATIONS_PER_BLOCK,
        )
        for begin in range(0, count, each):
            yield self.renewed(min(each, count - begin), first + begin)

    def discretise(self, theta: np.ndarray) -> EnsembleGrid:
        """Return grid, steps and scheme that suit these values, as far as they are not fixed yet."""
        posed = self._at(theta, False)
        return discretise(posed, self.options, self._disturbances_of(posed))

    def skipped(self, theta: np.ndarray) -> str:
        """Return what the steps pass without meeting it, in words; empty where they meet everything."""
        try:
            posed = self._at(theta, False)
            return describe_skipped(posed, self.options, self._disturbances_of(posed))
        except GrisailleError:
            return ""

    def on(self, grid: EnsembleGrid) -> EnsembleRunner:
        """Return the same with grid and steps fixed."""
        other = copy.copy(self)
        steps = {f.name: getattr(grid, f.name) for f in fields(grid)}
        other.options = replace(self.options, **steps)
        return other

    @property
    def grid(self) -> EnsembleGrid:
        """As the options have it."""
        o = self.options
        return EnsembleGrid(o.step, o.substeps, o.inner_step, o.method, o.effort)

    def refined(self, theta: np.ndarray) -> EnsembleRunner:
        """Return the same grid with the steps that these values need, where they are more; itself where they are not.

        Raises ``GrisailleError`` where no steps within the limit of work are short enough.
        """
        method = self.options.made.white or AUTO.name
        found = self.on(EnsembleGrid(self.options.step, None, None, method)).discretise(theta)
        finer = self.grid.with_steps_of(found)
        return self if finer == self.grid else self.on(finer)

    def _prediction(self, found: Ensemble, sensitive: bool) -> EnsemblePrediction:
        mean, variance = found.statistics["mean"], found.statistics["variance"]
        columns = [found.names.index(o) for o in self.outputs]
        paired = [found.names.index(o) for o in self.paired]
        pairs = {k: found.names.index(n) for k, n in pair_names(tuple(self.paired)).items()}
        units = list(self.paired.values())
        slopes = variance.slopes if sensitive else None
        return EnsemblePrediction(
            mean.values[:, columns],
            variance.values[:, columns],
            _slopes(mean, columns, sensitive),
            _slopes(variance, columns, sensitive),
            failed_realizations=len(found.failed),
            device=found.device,
            covariance=covariances(
                variance.values[:, paired], {k: variance.values[:, c] for k, c in pairs.items()}, units
            ),
            covariance_slopes=np.zeros((0, 0, 0, 0))
            if slopes is None
            else covariances(_slopes(variance, paired, True), {k: slopes[:, :, c] for k, c in pairs.items()}, units),
        )

    def _by_differences(self, theta: np.ndarray, sizes: np.ndarray) -> EnsemblePrediction:
        """Return central differences of the statistics, with the same random numbers at both ends."""
        here = self.predict(theta, sensitive=False)
        fields = ("mean", "variance", "covariance")
        columns: dict[str, list[np.ndarray]] = {f: [] for f in fields}
        for step in np.diag(DIFFERENCE_STEP * sizes):
            h = float(step.sum())
            ends = [self.predict(theta + sign * step, sensitive=False) for sign in (1, -1)]
            failed = next((p.failure for p in (here, *ends) if p.failure), "")
            if failed:
                return self._failed(failed, True)
            for f in fields:
                columns[f].append((getattr(ends[0], f) - getattr(ends[1], f)) / (2 * h))
        slopes = [np.stack(columns[f], axis=-1) for f in fields]
        return replace(here, mean_slopes=slopes[0], variance_slopes=slopes[1], covariance_slopes=slopes[2])

    def _at(self, theta: np.ndarray, sensitive: bool) -> ExperimentPoint:
        """Return the point of θ on steps that ensembles make, with sums of outputs where covariances are wanted."""
        point = self.trial.at(theta)
        if point.structure.system.moving is not None:
            point = point.on_standing_steps()
        if not sensitive:
            point = point.without_derivatives()
        elif point.has_moving_jumps:
            point.refuse_moving_jumps()
        if len(self.paired) > 1:
            if self._extended is None or self._extended[0] is not point.structure.system:
                extended = with_sums(point.structure, tuple(self.paired), self.paired)
                self._extended = point.structure.system, extended
            point = point.with_structure(replace(self._extended[1], model=point.structure.model))
        return without_rough_signals(point) if point.structure.system.has.stepped_around else point

    def _run(self, posed: ExperimentPoint, reduce: list[str | Reducer]) -> Ensemble:
        return run_ensemble(posed, replace(self.options, reduce=reduce), None, self._disturbances_of(posed))

    def _disturbances_of(self, posed: ExperimentPoint) -> Disturbances:
        if self._disturbances is None:
            self._disturbances = Disturbances(posed.structure.model, posed.structure.system)
        return self._disturbances

    def _failed(self, reason: str, sensitive: bool) -> EnsemblePrediction:
        shape = (len(self.trial.times), len(self.outputs))
        slopes = np.full((*shape, len(self.trial.moves) * sensitive), np.nan)
        return EnsemblePrediction(np.full(shape, np.nan), np.full(shape, np.nan), slopes, slopes, reason)


def _without(bad: np.ndarray, answer: EnsemblePrediction) -> EnsemblePrediction:
    """Return statistics without those of outputs where they are undefined and nothing was measured: zero, as are their
    derivatives.
    """
    zeroed: dict[str, Any] = {
        "mean": bad,
        "variance": bad,
        "mean_slopes": bad[:, :, None],
        "variance_slopes": bad[:, :, None],
    }
    found: dict[str, Any] = {
        n: np.where(where, 0.0, v) for n, where in zeroed.items() if (v := getattr(answer, n)).size
    }
    return replace(answer, **found)


def _slopes(statistic: Statistic, columns: list[int], sensitive: bool) -> np.ndarray:
    if not sensitive or statistic.slopes is None:
        return np.zeros((0, 0, 0))
    return np.swapaxes(statistic.slopes[:, :, columns], 1, 2)
