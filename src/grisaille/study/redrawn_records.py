"""Records drawn from a fitted model at any values of its unknowns, as the fit's own likelihood has them.

    exact filter     x₀ ~ N(x̂₀, P₀),   x_k+1 = F x_k + c + Q^½ v,   y_k = H x_k + d + R^½ e: the filter's own matrices
    other filters    a simulation of disturbances and noise (``simulated_data``)
    output error     y = ŷ(θ) + (σ/w) z

All draws depend on the seed and their number alone, so that records at other values differ by these values only.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from grisaille.assessment.criterion import Criterion
from grisaille.disturbance import Purpose, Stream
from grisaille.errors import EstimationError
from grisaille.estimation.fitted import Fitted
from grisaille.filtering.exact.linear import LinearFilter
from grisaille.filtering.kalman import DiscreteModel
from grisaille.study.data_sets import kept_rows
from grisaille.study.seeds import run_seed
from grisaille.study.simulated_data import Simulated

Values = list[np.ndarray]
"""One array for each of a problem's ``samples``, in order."""


def draw_records(fit: Fitted, theta: np.ndarray, count: int, seed: int) -> Iterator[Values]:
    """Records 0, …, count − 1 from the model at θ."""
    cases = fit.estimate.cases
    if not fit.method.filters:
        yield from _with_noise(fit, theta, count, seed)
        return
    if all(isinstance(case.runner.filter, LinearFilter) for case in cases):
        drawn = []
        for k, case in enumerate(cases):
            runner = case.runner
            q, dq, start = runner.posed(case.own(theta), False)
            assert isinstance(runner.filter, LinearFilter)
            y = _paths(runner.filter.discretise(q, dq, start.x), count, run_seed(seed, k))
            drawn += [y[:, s.rows, case.trial.data.outputs.index(s.output)] for s in case.samples]
        yield from ([values[m] for values in drawn] for m in range(count))
        return
    yield from _simulated(fit, theta, count, seed)


def _paths(model: DiscreteModel, count: int, seed: int) -> np.ndarray:
    """Outputs at all samples, (count, samples, outputs)."""
    n, ny = model.n, model.y.shape[1]
    stream = Stream.of(seed, Purpose.BOOTSTRAP, "states")
    noise = Stream.of(seed, Purpose.BOOTSTRAP, "noise")
    which = np.arange(count)
    x = model.x0[0] + stream.normals(which, 0, n) @ _root(model.P0[0]).T
    y = np.empty((count, len(model.y), ny))
    for k, sample in enumerate(model.sample_at.tolist()):
        if k:
            Q = model.Q[model.Q_of[k - 1]][0]
            x = x @ model.F[model.F_of[k - 1]][0].T + model.c[k - 1][0] + stream.normals(which, k, n) @ _root(Q).T
        if sample >= 0:
            R = model.R[model.R_of[sample]][0]
            seen = x @ model.H[model.H_of[sample]][0].T + model.d[sample][0]
            y[:, sample] = seen + noise.normals(which, k, ny) @ _root(R).T
    return y


def _root(covariance: np.ndarray) -> np.ndarray:
    """A square root of a matrix that may be singular."""
    values, vectors = np.linalg.eigh((covariance + covariance.T) / 2)
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0)))


def _simulated(fit: Fitted, theta: np.ndarray, count: int, seed: int) -> Iterator[Values]:
    own = [u.name for u in fit.estimate.unknowns if u.experiment is not None and len(fit.experiments) > 1]
    if own:
        raise EstimationError(f"Records cannot be drawn: there is no one model where '{own[0]}' is per experiment.")
    model = Fitted(fit.initial_model, fit.experiments, fit.method, replace(fit.estimate, theta=theta)).model
    variation = Simulated(model, {}, 1e-6, fit.method.compiled)
    variation.prepare(list(fit.experiments))
    for m in range(count):
        data = variation.data_set(list(fit.experiments), run_seed(seed, m))
        yield [
            d[s.output][kept_rows(c.experiment, s.output)]
            for c, d in zip(fit.estimate.cases, data, strict=True) for s in c.samples
        ]  # fmt: skip


def _with_noise(fit: Fitted, theta: np.ndarray, count: int, seed: int) -> Iterator[Values]:
    criterion = Criterion(fit)
    problem = criterion.problem
    found = problem.evaluate(theta, sensitive=False)
    if not found.completed:
        raise EstimationError(f"Records cannot be drawn: {found.failure}")
    problem = problem.begun.but(sigma=criterion.levels(found))
    parts: list[tuple[np.ndarray, np.ndarray, Stream]] = []
    for k, (case, prediction) in enumerate(zip(problem.cases, found.predictions, strict=True)):
        for s in case.samples:
            deviations = problem.deviations(case, s.output, s.rows, prediction, theta)
            stream = Stream.of(run_seed(seed, k), Purpose.BOOTSTRAP, s.output)
            parts.append((prediction.y[s.rows, case.column(s.output)], deviations / s.weights, stream))
    for m in range(count):
        yield [y + sigma * z.normals(m, np.arange(len(y)), 1)[:, 0] for y, sigma, z in parts]
