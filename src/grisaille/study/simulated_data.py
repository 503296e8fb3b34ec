"""Data sets simulated from a model at the times, inputs and gaps of a plan, with measurement noise and disturbances.

    y_run = h(x(t_k)) + σ_k z_k

Without disturbances the trajectory is the same in every run: it is simulated once, and a run only draws its noise. With
them each run simulates its own realization. Either way a run has the numbers of ``gr.simulate(…, noise=True)`` under
its seed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from grisaille.bound_experiment.bound_experiment import known_starts
from grisaille.disturbance import Purpose, Stream
from grisaille.errors import EstimationError
from grisaille.estimation.measurements.output_law import have_laws
from grisaille.laws import Law
from grisaille.model.classes import Model
from grisaille.model.expression import as_expression
from grisaille.model.flat import FlatModel
from grisaille.simulation.ensembles.ensemble import simulate_ensemble
from grisaille.simulation.ensembles.ensemble_options import EnsembleOptions
from grisaille.simulation.measurement_draws import draw_by_law
from grisaille.simulation.measurement_noise import evaluate_along, law_along, with_noise
from grisaille.simulation.posing import pose
from grisaille.simulation.simulate import simulate
from grisaille.structure.parameters import evaluate_parameters
from grisaille.structure.structure_cache import structure_of
from grisaille.study.data_sets import DataSet, OtherData, with_data
from grisaille.study.seeds import experiment_seed

if TYPE_CHECKING:
    import xarray as xr

    from grisaille.experiment.experiment import Experiment

DEFAULT_SEED = 0
"""Seed of the measurements with which a problem is posed whose plan has none."""


@dataclass
class Simulated(OtherData):
    """Measurements drawn from a model."""

    model: Model
    noise: dict[str, float]
    """Standard deviations instead of those that the model declares."""
    rtol: float
    step: float | None = None
    """Largest cell of the grid on which disturbances are drawn, as in ``gr.simulate``."""
    start_covariances: tuple[np.ndarray, ...] = ()
    """P₀ of the plant's states for each experiment, where records begin in N(start, P₀)."""
    about: tuple[str, ...] = ()
    _flat: FlatModel | None = field(default=None, repr=False)
    _clean: list[_NoiseFreeRecord] = field(default_factory=list, repr=False)

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_flat": None, "_clean": []}

    @property
    def notes(self) -> tuple[str, ...]:
        return self.about

    def header(self) -> dict[str, str]:
        fine = {} if self.step is None else {"step": repr(float(self.step))}
        starts = {"starts": repr([P.tolist() for P in self.start_covariances])} if self.start_covariances else {}
        return {"noise": repr(sorted(self.noise.items())), **fine, **starts}

    def prepare(self, plan: Sequence[Experiment]) -> FlatModel:
        """Prepare what all runs share, and refuse what would make every run fail."""
        if self._flat is None:
            flat = noisy_model(structure_of(self.model).model, self.noise, plan)
            if not flat.disturbances and not flat.noise_covariance and not self.start_covariances:
                self._clean = [self._trajectory(flat, e) for e in plan]
            self._flat = flat
        return self._flat

    def data_set(self, plan: Sequence[Experiment], seed: int) -> DataSet:
        flat = self.prepare(plan)
        if self._clean:
            return [c.with_noise(experiment_seed(seed, k)) for k, c in enumerate(self._clean)]
        return [self._drawn(flat, e, experiment_seed(seed, k), k) for k, e in enumerate(plan)]

    def _trajectory(self, flat: FlatModel, experiment: Experiment) -> _NoiseFreeRecord:
        result = self._simulate(experiment)
        known = self._parameters(flat, experiment)
        by_law = [n for n in experiment.outputs if flat.outputs[n].distribution is not None]
        deviations = {n: evaluate_along(result, _noise(flat, n), known) for n in experiment.outputs if n not in by_law}
        return _NoiseFreeRecord(
            {n: result[n].values for n in experiment.outputs}, deviations, rows_of(experiment), result["time"].values,
            {n: law_along(result, flat, n, known) for n in by_law},
        )  # fmt: skip

    def _drawn(self, flat: FlatModel, experiment: Experiment, seed: int, k: int) -> dict[str, np.ndarray]:
        chosen = {"realizations": 1, "seed": seed, "step": self.step} if flat.disturbances else {}
        path = self._begun(experiment, seed, k) if self.start_covariances else self._simulate(experiment, **chosen)
        result = with_noise(path, flat, self._parameters(flat, experiment), seed)
        rows = rows_of(experiment)
        return {n: result[n].values.reshape(-1)[rows[n]] for n in experiment.outputs}

    def _simulate(self, experiment: Experiment, **chosen: Any) -> xr.Dataset:
        signals, hold = experiment.input_signals()
        return simulate(
            self.model, experiment.grid(), inputs=signals, hold=hold, parameters=dict(experiment.constants),
            start=known_starts(experiment), rtol=self.rtol, **chosen,
        )  # fmt: skip

    def _begun(self, experiment: Experiment, seed: int, k: int) -> xr.Dataset:
        """Simulate one realization from a start of its own."""
        signals, hold = experiment.input_signals()
        posed = pose(
            self.model, experiment.grid(), signals, dict(experiment.constants), known_starts(experiment), hold=hold,
            sensitivities=(),
        )  # fmt: skip
        options = EnsembleOptions(
            1, seed=seed, step=self.step, rtol=self.rtol, start_covariance=self.start_covariances[k]
        )
        return simulate_ensemble(posed, options, noise=False, strict=True, progress=False)

    @staticmethod
    def _parameters(flat: FlatModel, experiment: Experiment) -> dict[str, float]:
        values = evaluate_parameters(flat, dict(experiment.constants))
        return dict(zip(values.names, values.values.tolist(), strict=True))


@dataclass(frozen=True)
class _NoiseFreeRecord:
    """A trajectory without noise, and the noise it is to get, on the grid of its experiment.

    laws : filled, of outputs that declare a distribution
    """

    values: dict[str, np.ndarray]
    deviations: dict[str, np.ndarray]
    rows: dict[str, np.ndarray]
    times: np.ndarray
    laws: dict[str, Law]

    def with_noise(self, seed: int) -> dict[str, np.ndarray]:
        return {name: self._drawn(name, seed)[self.rows[name]] for name in self.values}

    def _drawn(self, name: str, seed: int) -> np.ndarray:
        z = Stream.of(seed, Purpose.NOISE, name).normals(0, np.arange(len(self.times)), 1)[:, 0]
        if name in self.laws:
            return draw_by_law(self.laws[name], z, name, self.times)
        return np.asarray(self.values[name] + self.deviations[name] * z)


def drawn_plan(variation: Simulated, plan: Sequence[Experiment]) -> list[Experiment]:
    """Return a plan with measurements of its own where outputs declare laws, which cannot have given any values.

    Samples with a limit keep it: it holds in every data set.
    """
    flat = structure_of(variation.model).model
    if not have_laws(flat, [n for e in plan for n in e.outputs if n in flat.outputs]):
        return list(plan)
    drawn = [dict(d) for d in variation.data_set(plan, DEFAULT_SEED)]
    for e, d in zip(plan, drawn, strict=True):
        d.update({n: np.where(marks != 0, e.outputs[n].values, d[n]) for n, marks in e.marks.items()})
    return [with_data(e, d) for e, d in zip(plan, drawn, strict=True)]


def noisy_model(flat: FlatModel, noise: Mapping[str, float], plan: Sequence[Experiment]) -> FlatModel:
    """Return the model with every measured output's noise known."""
    given = {n: replace(o, noise=as_expression(float(noise[n]))) for n, o in flat.outputs.items() if n in noise}
    strangers = [n for n in noise if n not in flat.outputs]
    if strangers:
        raise EstimationError(f"noise= names '{strangers[0]}'; the outputs are {', '.join(flat.outputs)}.")
    by_law = [n for n in given if flat.outputs[n].distribution is not None]
    if by_law:
        law = type(flat.outputs[by_law[0]].distribution).__name__
        raise EstimationError(
            f"noise= gives a standard deviation to output '{by_law[0]}', which is measured by the law {law}: leave it "
            f"out; data are drawn by the law."
        )
    outputs = {**flat.outputs, **given}
    unknown = [n for e in plan for n in e.outputs if outputs[n].noise is None and outputs[n].distribution is None]
    if unknown:
        raise EstimationError(
            f"The noise of output '{unknown[0]}' is unknown, so no data can be drawn: give "
            f"noise={{'{unknown[0]}': …}}, or declare it, gr.Output(…, noise=0.1)."
        )
    measured = {n for e in plan for n in e.outputs}
    static = [e.name for e in plan if e.is_static and flat.disturbances]
    if static:
        raise EstimationError(
            f"Experiment '{static[0]}' is static: rows without times have no realization of the disturbances."
        )
    silent = {
        n: replace(o, noise=as_expression(0.0), distribution=None) for n, o in outputs.items()
        if n not in measured and (o.noise is None or o.distribution is not None)
    }  # fmt: skip
    return replace(flat, outputs={**outputs, **silent})


def rows_of(experiment: Experiment) -> dict[str, np.ndarray]:
    """Return the rows of each output on the grid."""
    grid = experiment.grid()
    return {n: np.searchsorted(grid, s.times) for n, s in experiment.outputs.items()}


def _noise(flat: FlatModel, output: str) -> Any:
    return flat.outputs[output].noise
