"""Records drawn from a fitted model at any values of its unknowns, as the fit's own likelihood has them.

    exact filter     from the filter's own matrices (``filter_records``)
    other filters    a simulation of disturbances and noise from starts x₀ ~ N(x̂₀, P₀) (``simulated_data``)
    output error     y = ŷ(θ) + (σ/w) z, or by the laws of outputs at θ (``record_laws``)

All draws depend on the seed and their number alone, so that records at other values differ by these values only.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from grisaille.disturbance import Purpose, Stream
from grisaille.errors import EstimationError
from grisaille.estimation.density.least_squares import ConcentratedDensity
from grisaille.estimation.fitted import Fitted
from grisaille.estimation.measurements.density import MeasuredDensity
from grisaille.study.data_sets import kept_rows
from grisaille.study.filter_records import discrete_model, draw_outputs, is_exact
from grisaille.study.seeds import run_seed
from grisaille.study.uncertain_starts import simulated_records

Values = list[np.ndarray]
"""One array for each of a problem's ``samples``, in order."""


def draw_records(fit: Fitted, theta: np.ndarray, count: int, seed: int) -> Iterator[Values]:
    """Records 0, …, count − 1 from the model at θ."""
    cases = fit.estimate.cases
    if fit.method.redraw is None or fit.method.redraw.what == "noise":
        yield from _with_noise(fit, theta, count, seed)
        return
    if is_exact(fit):
        drawn = []
        for k, case in enumerate(cases):
            y = draw_outputs(discrete_model(case, theta), count, run_seed(seed, k))
            drawn += [y[:, s.rows, case.trial.data.outputs.index(s.output)] for s in case.samples]
        yield from ([values[m] for values in drawn] for m in range(count))
        return
    yield from _simulated(fit, theta, count, seed)


def _simulated(fit: Fitted, theta: np.ndarray, count: int, seed: int) -> Iterator[Values]:
    variation = simulated_records(fit, theta, 1e-6)
    for m in range(count):
        data = variation.data_set(list(fit.experiments), run_seed(seed, m))
        yield [
            d[s.output][kept_rows(c.experiment, s.output)]
            for c, d in zip(fit.estimate.cases, data, strict=True) for s in c.samples
        ]  # fmt: skip


def _with_noise(fit: Fitted, theta: np.ndarray, count: int, seed: int) -> Iterator[Values]:
    if not fit.estimate.evaluation.is_least_squares:
        laws = MeasuredDensity.around(fit.estimate).problem.record_laws(theta)
        for m in range(count):
            yield [y for k, own in enumerate(laws) for y in own.drawn(run_seed(seed, k), m)]
        return
    density = ConcentratedDensity.around(fit.initial_model, fit.estimate)
    problem = density.problem
    found = problem.evaluate(theta, sensitive=False)
    if not found.completed:
        raise EstimationError(f"Records cannot be drawn: {found.failure}")
    problem = problem.discretised_problem.replace(sigma=density.levels(found))
    parts: list[tuple[np.ndarray, np.ndarray, Stream]] = []
    for k, (case, prediction) in enumerate(zip(problem.cases, found.predictions, strict=True)):
        for s in case.samples:
            deviations = problem.deviations(case, s.output, s.rows, prediction, theta)
            stream = Stream.of(run_seed(seed, k), Purpose.BOOTSTRAP, s.output)
            parts.append((prediction.y[s.rows, case.column(s.output)], deviations / s.weights, stream))
    for m in range(count):
        yield [y + sigma * z.normals(m, np.arange(len(y)), 1)[:, 0] for y, sigma, z in parts]
