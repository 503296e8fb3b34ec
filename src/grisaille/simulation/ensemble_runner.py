"""One experiment simulated as an ensemble again and again: mean and variance of its outputs, with their derivatives.

The random numbers are the same at every call (common random numbers) and come from the model's own streams, not from
those that ``simulate`` uses for data. The grid, the number of steps per cell and the scheme for white noise are
fixed at the first call, so that the statistics are smooth in the parameters. Outputs of infinite variance are refused
there too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from grisaille.disturbance import Purpose
from grisaille.errors import GrisailleError
from grisaille.model.classes import Model
from grisaille.simulation.disturbances import Disturbances
from grisaille.simulation.ensemble import Ensemble, EnsembleOptions, run_ensemble
from grisaille.simulation.posing import Posed, pose
from grisaille.simulation.reducers import Block, Statistic
from grisaille.structure.well_posedness import well_posedness


@dataclass(frozen=True)
class EnsemblePrediction:
    """Statistics of the outputs; derivatives are (times, outputs, directions)."""

    mean: np.ndarray
    variance: np.ndarray
    mean_slopes: np.ndarray
    variance_slopes: np.ndarray
    failure: str = ""
    failed_realizations: int = 0

    @property
    def completed(self) -> bool:
        return not self.failure


class EnsembleRunner:
    """Predicts the outputs of one experiment by their mean over ``realizations``.

    names : what is differentiated by, in order: parameters, then ``"start(x)"``
    """

    def __init__(
        self,
        model: Model,
        times: np.ndarray,
        *,
        outputs: Sequence[str],
        names: Sequence[str],
        inputs: Mapping[str, Any],
        hold: Any,
        constants: Mapping[str, float],
        demands: Mapping[str, float],
        options: EnsembleOptions,
    ) -> None:
        self.model, self.times, self.names = model, times, tuple(names)
        self.outputs = tuple(outputs)
        self.inputs, self.hold = dict(inputs), hold
        self.constants, self.demands = dict(constants), dict(demands)
        self.options = replace(options, purpose=Purpose.MODEL, observed=tuple(dict.fromkeys(outputs)))
        self._disturbances: Disturbances | None = None
        self._is_frozen = False

    def predict(
        self, values: Mapping[str, float], starts: Mapping[str, float], *, sensitive: bool
    ) -> EnsemblePrediction:
        """Mean and variance at given values."""
        if not self._is_frozen:
            self._require_finite_variance(values)
        try:
            found = self._run(self._posed(values, starts, sensitive), ["mean", "variance"])
        except GrisailleError as error:
            return self._failed(str(error), sensitive)
        mean, variance = found.statistics["mean"], found.statistics["variance"]
        columns = [found.names.index(o) for o in self.outputs]
        answer = EnsemblePrediction(
            mean.values[:, columns],
            variance.values[:, columns],
            _slopes(mean, columns, sensitive),
            _slopes(variance, columns, sensitive),
            failed_realizations=len(found.failed),
        )
        if not (np.isfinite(answer.mean).all() and np.isfinite(answer.variance).all()):
            return self._failed("the mean over the realizations is not finite", sensitive)
        return answer

    def projections(
        self, values: Mapping[str, float], starts: Mapping[str, float], directions: np.ndarray, means: np.ndarray
    ) -> np.ndarray:
        """Σ_k ψ_kᵀ (ŷ_m,k − ȳ_k) for every realization m: (M, directions); ``directions`` is (times, outputs, n)."""
        posed = self._posed(values, starts, False)
        names = list(dict.fromkeys(self.outputs))
        collector = _Projection(directions, means, [names.index(o) for o in self.outputs])
        found = self._run(posed, [collector])
        return np.asarray(found.statistics["projection"].values)

    def _posed(self, values: Mapping[str, float], starts: Mapping[str, float], sensitive: bool) -> Posed:
        return pose(
            self.model, self.times, self.inputs, {**self.constants, **values}, {**self.demands, **starts},
            hold=self.hold, sensitivities=self.names if sensitive else (),
        )  # fmt: skip

    def _require_finite_variance(self, values: Mapping[str, float]) -> None:
        known = {n: v for n, v in {**self.constants, **values}.items() if not n.startswith("scale(")}
        well_posedness(self.model, parameters=known).require("gr.fit", self.outputs)

    def _run(self, posed: Posed, reduce: list[Any]) -> Ensemble:
        if self._disturbances is None:
            self._disturbances = Disturbances(posed.structure.model, posed.structure.system)
        found = run_ensemble(posed, replace(self.options, reduce=reduce), None, self._disturbances)
        if not self._is_frozen:
            self.options, self._is_frozen = _frozen(self.options, found), True
        return found

    def _failed(self, reason: str, sensitive: bool) -> EnsemblePrediction:
        shape = (len(self.times), len(self.outputs))
        slopes = np.full((*shape, len(self.names) * sensitive), np.nan)
        return EnsemblePrediction(np.full(shape, np.nan), np.full(shape, np.nan), slopes, slopes, reason)


def _frozen(options: EnsembleOptions, found: Ensemble) -> EnsembleOptions:
    """The options that repeat what was chosen, whatever the parameters become."""
    step = float(np.diff(found.grid.roots).max(initial=0.0)) * (1 + 1e-9)
    method = found.scheme or options.method
    if found.solver in ("frozen implicit", "frozen explicit"):
        method = found.solver.replace(" ", "-")
    substeps = options.substeps or found.substeps or None
    return replace(options, step=step or None, substeps=substeps, inner_step=found.inner_step, method=method)


def _slopes(statistic: Statistic, columns: list[int], sensitive: bool) -> np.ndarray:
    if not sensitive or statistic.slopes is None:
        return np.zeros((0, 0, 0))
    return np.swapaxes(statistic.slopes[:, :, columns], 1, 2)


class _Projection:
    """A reducer that keeps one vector per realization: its deviations projected on given directions."""

    suffix, needs_rows = "projection", True

    def __init__(self, directions: np.ndarray, means: np.ndarray, columns: list[int]) -> None:
        self.directions, self.means, self.columns = directions, means, columns
        self.rows: list[np.ndarray] = []
        self.total: np.ndarray | None = None

    def update(self, block: Block) -> None:
        if block.y is not None:
            deviation = block.y[:, :, self.columns] - self.means[block.instants]
            self.rows.append(np.einsum("mto,ton->mn", deviation, self.directions[block.instants]))
        if block.is_last and self.rows:
            part = np.concatenate(self.rows)
            self.total = part if self.total is None else self.total + part
            self.rows = []

    def result(self) -> Statistic:
        assert self.total is not None
        return Statistic((), self.total)
