"""Fits of outputs with laws beside likelihoods written with SciPy: the maximum, standard errors, the log-density.

Independent: trajectories from closed forms or SciPy's integrators, densities from ``scipy.stats``, derivatives from
differences, the expected information as sums or integrals of products of these.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from scipy import stats
from scipy.integrate import solve_ivp

import grisaille as gr
from grisaille import der

rng = np.random.default_rng(20)
Predictions = Callable[[np.ndarray], list[np.ndarray]]
"""Of θ: the predicted locations, one array for each experiment."""
LawOf = Callable[[np.ndarray, np.ndarray], Any]
"""Of (location, θ): a frozen law of SciPy's."""


@dataclass
class Problem:
    """A model with data, and the same written with SciPy."""

    model: gr.Model
    data: list[gr.Experiment]
    estimate: list[str]
    predictions: Predictions
    law: LawOf
    values: list[np.ndarray]
    is_discrete: bool = False


class Saturation(gr.Model):
    """A static model: counts of a detector that saturates."""

    top, half, size = gr.Parameter(40.0), gr.Parameter(1.0), gr.Parameter(5.0, bounds=(0.1, 100.0))
    dose = gr.Input()
    rate = gr.Variable()
    counts = gr.Output(rate, distribution=gr.laws.NegativeBinomial(size=size))
    equations = [rate == top * dose / (half + dose)]


def saturation() -> Problem:
    dose = np.linspace(0.2, 4.0, 60)
    mean = 50 * dose / (0.8 + dose)
    y = rng.negative_binomial(8, 8 / (8 + mean)).astype(float)
    return Problem(
        Saturation(), [gr.Experiment(inputs={"dose": dose}, outputs={"counts": y})], ["top", "half", "size"],
        lambda p: [p[0] * dose / (p[1] + dose)], lambda mu, p: stats.nbinom(p[2], p[2] / (p[2] + mu)), [y], True,
    )  # fmt: skip


class Decay(gr.Model):
    """An ordinary differential equation: counts of a decaying source above a background."""

    k, background = gr.Parameter(0.2, bounds=(0.01, 3.0)), gr.Parameter(2.0, bounds=(0.0, 50.0))
    n = gr.Variable(start=80.0)
    counts = gr.Output(n + background, distribution=gr.laws.Poisson())
    equations = [der(n) == -k * n]


def decay() -> Problem:
    t = np.linspace(0.0, 12.0, 50)
    y = rng.poisson(80 * np.exp(-0.35 * t) + 4).astype(float)
    return Problem(
        Decay(), [gr.Experiment(t, {}, {"counts": y})], ["k", "background"],
        lambda p: [80 * np.exp(-p[0] * t) + p[1]], lambda mu, p: stats.poisson(mu), [y], True,
    )  # fmt: skip


class Fraction(gr.Model):
    """How many of twenty have survived: an expected count and n of the law."""

    k = gr.Parameter(0.2, bounds=(0.01, 3.0))
    alive = gr.Variable(start=1.0)
    survivors = gr.Output(20 * alive, distribution=gr.laws.Binomial(n=20))
    equations = [der(alive) == -k * alive]


def fraction() -> Problem:
    t = np.linspace(0.1, 8.0, 40)
    y = rng.binomial(20, np.exp(-0.3 * t)).astype(float)
    return Problem(
        Fraction(), [gr.Experiment(t, {}, {"survivors": y}, t0=0.0)], ["k"],
        lambda p: [20 * np.exp(-p[0] * t)], lambda mu, p: stats.binom(20, mu / 20), [y], True,
    )  # fmt: skip


class Leak(gr.Model):
    """Of index one: a tank whose outflow solves an equation, measured with an error in proportion."""

    c, shape = gr.Parameter(0.5, bounds=(0.05, 5.0)), gr.Parameter(30.0, bounds=(1.0, 1000.0))
    h, q = gr.Variable(start=4.0), gr.Variable(start=1.0)
    flow = gr.Output(q, distribution=gr.laws.Gamma(shape=shape))
    equations = [der(h) == -q, q + q**3 / 10 == c * h]


def leak() -> Problem:
    t = np.linspace(0.0, 6.0, 40)

    def flow(c: float) -> np.ndarray:
        def q(h: float) -> float:
            roots = np.roots([0.1, 0.0, 1.0, -c * h])
            return float(roots[np.abs(roots.imag) < 1e-9].real[0])

        h = solve_ivp(lambda _, h: [-q(h[0])], (0, 6), [4.0], t_eval=t, rtol=1e-11, atol=1e-12).y[0]
        return np.array([q(v) for v in h])

    y = rng.gamma(50.0, flow(0.6) / 50.0)
    return Problem(
        Leak(), [gr.Experiment(t, {}, {"flow": y})], ["c", "shape"],
        lambda p: [flow(p[0])], lambda mu, p: stats.gamma(p[1], scale=mu / p[1]), [y],
    )  # fmt: skip


class Pendulum(gr.Model):
    """Of index three, with a sensor that has outliers."""

    k, s = gr.Parameter(0.1, bounds=(0.0, 2.0)), gr.Parameter(0.05, bounds=(1e-3, 1.0))
    x, y = gr.Variable(start=1.0, fixed=True), gr.Variable(start=0.0)
    vx, vy, tension = gr.Variable(start=0.0), gr.Variable(start=0.0, fixed=True), gr.Variable()
    side = gr.Output(x, distribution=gr.laws.Student(df=4.0, scale=s))
    equations = [
        der(x) == vx, der(y) == vy, der(vx) == -tension * x - k * vx, der(vy) == -tension * y - k * vy - 9.81,
        x**2 + y**2 == 1.0,
    ]  # fmt: skip


def pendulum() -> Problem:
    t = np.linspace(0.0, 3.0, 50)

    def side(k: float) -> np.ndarray:
        def rates(_: float, a: np.ndarray) -> list[float]:
            return [a[1], -9.81 * np.sin(a[0]) - k * a[1]]

        return np.sin(solve_ivp(rates, (0, 3), [np.pi / 2, 0.0], t_eval=t, rtol=1e-11, atol=1e-12).y[0])

    y = side(0.3) + 0.03 * rng.standard_t(4, len(t))
    return Problem(
        Pendulum(), [gr.Experiment(t, {}, {"side": y})], ["k", "s"],
        lambda p: [side(p[0])], lambda mu, p: stats.t(4.0, mu, p[1]), [y],
    )  # fmt: skip


class Growth(gr.Model):
    """Two experiments with gaps, and errors that are factors."""

    r, s = gr.Parameter(0.3, bounds=(0.01, 3.0)), gr.Parameter(0.2, bounds=(0.01, 2.0))
    first = gr.Parameter(1.0)
    b = gr.Variable(start=first)
    density = gr.Output(b, distribution=gr.laws.LogNormal(log_std=s))
    equations = [der(b) == r * b * (1 - b / 10)]


def growth() -> Problem:
    times, firsts = [np.linspace(0.0, 12.0, 40), np.linspace(0.0, 9.0, 25)], [1.0, 3.0]

    def size(r: float, t: np.ndarray, first: float) -> np.ndarray:
        return 10 / (1 + (10 / first - 1) * np.exp(-r * t))

    values, data = [], []
    for k, (t, first) in enumerate(zip(times, firsts, strict=True)):
        y = size(0.5, t, first) * np.exp(0.1 * rng.standard_normal(len(t)))
        y[5:11] = np.nan
        values.append(y)
        data.append(gr.Experiment(t, {}, {"density": y}, name="AB"[k], constants={"first": first}))
    return Problem(
        Growth(), data, ["r", "s"],
        lambda p: [size(p[0], t, first) for t, first in zip(times, firsts, strict=True)],
        lambda mu, p: stats.lognorm(p[1], scale=mu), values,
    )  # fmt: skip


EVERY = [saturation, decay, fraction, leak, pendulum, growth]


@pytest.mark.parametrize("made", EVERY, ids=lambda f: f.__name__)
def test_estimates_are_those_of_an_independent_maximum_likelihood(made: Callable[[], Problem]) -> None:
    problem = made()
    fit = gr.fit(problem.model, problem.data, problem.estimate, gr.OutputError(rtol=1e-10), progress=False)
    assert fit.converged, fit.status
    theta = np.array([float(fit[n]) for n in problem.estimate])
    assert fit.log_likelihood == pytest.approx(_log_likelihood(problem, theta), rel=1e-7)
    slope = _differences(lambda p: _log_likelihood(problem, p), theta)
    covariance = np.linalg.inv(_expected_information(problem, theta))
    assert np.sqrt(slope @ covariance @ slope) < 1e-4  # standard errors to the other program's maximum
    errors = fit.parameters.loc[problem.estimate, "std_error"].to_numpy(dtype=float)
    assert errors == pytest.approx(np.sqrt(np.diag(covariance)), rel=1e-4)


@pytest.mark.parametrize("made", [saturation, growth], ids=lambda f: f.__name__)
def test_the_log_density_has_the_gradient_of_its_values(made: Callable[[], Problem]) -> None:
    problem = made()
    density = gr.log_density(problem.model, problem.data, problem.estimate, method=gr.OutputError(rtol=1e-9))
    theta = np.array([1.1 * problem.model.parameters[n].value for n in problem.estimate])
    assert density(theta) == pytest.approx(_log_likelihood(problem, theta), rel=1e-6)
    assert density.gradient(theta) == pytest.approx(_differences(density, theta), rel=1e-5, abs=1e-6)


def test_normal_noise_beside_a_law_has_an_open_level() -> None:
    class Both(Decay):
        weight = gr.Output(2 * Decay.n)

    t = np.linspace(0.0, 10.0, 60)
    n = 80 * np.exp(-0.3 * t)
    data = gr.Experiment(t, {}, {"counts": rng.poisson(n + 4), "weight": 2 * n + rng.standard_normal(60)})
    fit = gr.fit(Both(), data, ["k", "background"], gr.OutputError(), progress=False)
    assert list(fit.parameters.index) == ["k", "background", "noise(weight)"]
    level = float(np.sqrt(np.mean((data.outputs["weight"].values - 2 * 80 * np.exp(-float(fit["k"]) * t)) ** 2)))
    assert float(fit["noise(weight)"]) == pytest.approx(level, rel=1e-6)
    assert fit.parameters.loc["noise(weight)", "std_error"] == pytest.approx(level / np.sqrt(120), rel=1e-6)


def _log_likelihood(problem: Problem, theta: np.ndarray) -> float:
    return sum(
        float(np.nansum(_log_density(problem, mu, y, theta)))
        for mu, y in zip(problem.predictions(theta), problem.values, strict=True)
    )


def _log_density(problem: Problem, location: np.ndarray, y: np.ndarray, theta: np.ndarray) -> np.ndarray:
    law = problem.law(location, theta)
    return np.asarray(law.logpmf(y) if problem.is_discrete else law.logpdf(y))


def _expected_information(problem: Problem, theta: np.ndarray) -> np.ndarray:
    """Return Σ_i E[∂ log p ∂ log pᵀ], the expectation as a sum over counts or by the trapezoidal rule."""
    n, total = len(theta), np.zeros((len(theta), len(theta)))
    moved = [_moved(problem, theta, k) for k in range(n)]
    for e, mu in enumerate(problem.predictions(theta)):
        kept = np.isfinite(problem.values[e])
        law = problem.law(mu, theta)
        low, high = law.ppf(1e-13), law.ppf(1 - 1e-13)
        low, high = np.where(np.isfinite(low), low, 0.0), np.where(np.isfinite(high), high, 0.0)
        if problem.is_discrete:
            y = np.arange(int(high.max()) + 1.0)[:, None] * np.ones(len(mu))
            weight = law.pmf(y)
        else:
            share = np.linspace(0.0, 1.0, 20001)[:, None]
            y = low + share * (high - low)
            weight = law.pdf(y) * (high - low) / 20000
        scores = [
            (_log_density(problem, up[e], y, theta_up) - _log_density(problem, down[e], y, theta_down)) / step
            for up, theta_up, down, theta_down, step in moved
        ]
        s = np.where(weight > 0, np.nan_to_num(np.array(scores)), 0.0)[:, :, kept]
        total += np.einsum("aij,ij,bij->ab", s, weight[:, kept], s)
    return total


def _moved(problem: Problem, theta: np.ndarray, k: int) -> tuple[Any, ...]:
    step = np.zeros(len(theta))
    step[k] = 1e-5 * abs(theta[k])
    up, down = theta + step, theta - step
    return problem.predictions(up), up, problem.predictions(down), down, 2 * step[k]


def _differences(function: Callable[[np.ndarray], float], theta: np.ndarray) -> np.ndarray:
    def slope(k: int, h: float) -> float:
        step = np.zeros(len(theta))
        step[k] = h * abs(theta[k])
        return (function(theta + step) - function(theta - step)) / (2 * step[k])

    return np.array([(4 * slope(k, 5e-4) - slope(k, 1e-3)) / 3 for k in range(len(theta))])


def test_a_law_with_a_kink_ends_in_the_least_absolute_errors() -> None:
    class Line(gr.Model):
        a, b, s = gr.Parameter(0.0), gr.Parameter(1.0), gr.Parameter(1.0, bounds=(1e-3, 100.0))
        u = gr.Input()
        v = gr.Variable()
        y = gr.Output(v, distribution=gr.laws.Laplace(scale=s))
        equations = [v == a + b * u]

    u = np.linspace(0.0, 3.0, 45)
    y = 1 + 2 * u + rng.laplace(scale=0.3, size=45)
    fit = gr.fit(Line(), gr.Experiment(inputs={"u": u}, outputs={"y": y}), ["a", "b", "s"], gr.OutputError())
    assert fit.converged, fit.status
    pairs = [(i, j) for i in range(45) for j in range(i)]  # the best line passes through two of the samples
    lines = [((y[i] - y[j]) / (u[i] - u[j]), y[i], u[i]) for i, j in pairs]
    sums = [np.sum(np.abs(y - (c + slope * (u - at)))) for slope, c, at in lines]
    slope, c, at = lines[int(np.argmin(sums))]
    scale = min(sums) / 45
    errors = fit.parameters["std_error"].to_numpy(dtype=float)
    found = np.array([float(fit[n]) for n in ("a", "b", "s")])
    assert np.abs((found - [c - slope * at, slope, scale]) / errors).max() < 1e-4
    J = np.stack([np.ones(45), u], axis=1)
    assert errors == pytest.approx([*np.sqrt(np.diag(np.linalg.inv(J.T @ J))) * scale, scale / 45**0.5], rel=1e-4)
