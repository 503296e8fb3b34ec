"""``gr.log_density``: exact derivatives, the maximum of fits, closed forms, unbounded coordinates, threads, pickles."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import minimize

import grisaille as gr
from grisaille import der
from grisaille.results import DensityFunction

TIMES = np.linspace(0.0, 6.0, 25)
RNG = np.random.default_rng(5)
SHAKEN = np.exp(-0.7 * TIMES) + 0.05 * RNG.standard_normal(25)


class Tank(gr.Model):
    """Linear, with two outputs of open and declared noise."""

    k = gr.Parameter(0.5, bounds=(0.05, 5.0))
    q = gr.Parameter(1.0)
    h = gr.Variable(1.0)
    y = gr.Output(h)
    double = gr.Output(2 * h, noise=0.1)
    equations = [der(h) == q - k * h]


class Growing(gr.Model):
    """Noise is a formula of what is predicted and of an unknown."""

    k = gr.Parameter(0.5, bounds=(0.05, 5.0))
    a = gr.Parameter(0.05, bounds=(0.001, 1.0))
    x = gr.Variable(1.0)
    y = gr.Output(x, noise=0.01 + a * abs(x) + 0.01 * k)
    equations = [der(x) == -k * x * (1 + 0.1 * x)]


class Shaken(gr.Model):
    """Not linear, so that filters choose their steps."""

    k = gr.Parameter(0.6, bounds=(0.05, 10.0))
    x = gr.Variable(start=1.0)
    w = gr.Disturbance(gr.spectra.white(), scale=0.1)
    y = gr.Output(x, noise=0.05)
    equations = [der(x) == -k * x * gr.sqrt(0.1 + x**2) + w]


class Pendulum(gr.Model):
    """Index 3: direct collocation."""

    k = gr.Parameter(0.5, bounds=(0.01, 20.0))
    x, y = gr.Variable(start=0.6), gr.Variable(start=-0.8)
    vx, vy, s = gr.Variable(0.0), gr.Variable(0.0), gr.Variable()
    w = gr.Disturbance(gr.spectra.lowpass(2.0), scale=0.2)
    phi = gr.Output(x, noise=0.01)
    equations = [
        der(x) == vx, der(y) == vy, der(vx) == s * x - k * vx + w, der(vy) == s * y - k * vy - 9.81, x**2 + y**2 == 1.0,
    ]  # fmt: skip


class Line(gr.Model):
    a = gr.Parameter(1.0)
    b = gr.Parameter(0.5)
    u = gr.Input()
    y = gr.Output(a + b * u, noise=0.3)
    equations = []


def tank(name: str, seed: int) -> gr.Experiment:
    h, noise = 2.0 - np.exp(-0.6 * TIMES), np.random.default_rng(seed).standard_normal((2, 25))
    double = np.where(TIMES > 4, np.nan, 2 * h + 0.1 * noise[1])
    weights = {"y": np.where(TIMES < 1, 2.0, 1.0), "double": 1.0}
    return gr.Experiment(TIMES, {}, {"y": h + 0.03 * noise[0], "double": double}, name=name, weights=weights)


TWO = [tank("A", 1), tank("B", 2)]
ONE = gr.Experiment(TIMES, {}, {"y": SHAKEN})
SWING = gr.Experiment(np.linspace(0, 1.0, 11), {}, {"phi": 0.6 * np.cos(3.0 * np.linspace(0, 1.0, 11))})
LAWS = {"k": gr.LogNormal(0.6, 0.3), "q": gr.laws.Student(1.2, 3.0, 0.2)}
JOINT = gr.MultivariateNormal(["k", "q"], [0.6, 1.2], [[0.02, 0.005], [0.005, 0.05]])

CASES: dict[str, Callable[[], DensityFunction]] = {
    "least squares": lambda: gr.log_density(
        Tank(), TWO, ["k", "q", "start(h)"], gr.OutputError(), priors=LAWS, local=["q"]
    ),
    "joint prior": lambda: gr.log_density(Tank(), TWO[0], ["k", "q"], gr.OutputError(), priors=JOINT),
    "formula of noise": lambda: gr.log_density(Growing(), ONE, ["k", "a"], gr.OutputError()),
    "exact filter": lambda: gr.log_density(
        Tank(), TWO, ["k", "q"], gr.KalmanML(), priors={"k": gr.Gamma(0.6, 3.0), "noise(y)": gr.HalfNormal(0.1)}
    ),
    "extended filter": lambda: gr.log_density(Shaken(), ONE, ["k", "scale(w)"], gr.KalmanML("extended")),
    "unscented filter": lambda: gr.log_density(Shaken(), ONE, ["k", "scale(w)"], gr.KalmanML("unscented")),
    "penalty of bounds": lambda: gr.log_density(
        Shaken(), ONE, ["k"], gr.KalmanML("extended", bounds="transform", penalty=0.3)
    ),
    "splines": lambda: gr.log_density(
        Shaken(), [ONE.replace(name="A"), ONE.replace(name="B")], ["k", "noise(y)"], gr.Collocation(),
        priors={"k": gr.Uniform(0.1, 3.0)},
    ),
    "elements": lambda: gr.log_density(
        Pendulum(), [SWING.replace(name="A"), SWING.replace(name="B")], ["k", "scale(w)"], gr.Collocation(refine=0),
        priors={"k": gr.Normal(0.5, 0.3)},
    ),
}  # fmt: skip


@cache
def density(name: str) -> DensityFunction:
    return CASES[name]()


def richardson(f: Callable[[np.ndarray], float], x: np.ndarray, h: np.ndarray) -> np.ndarray:
    """Central differences, extrapolated twice."""

    def central(step: np.ndarray) -> float:
        return (f(x + step) - f(x - step)) / (2 * np.abs(step).sum())

    found = []
    for k in range(len(x)):
        D = [central(np.eye(len(x))[k] * h[k] / 2**j) for j in range(3)]
        E = [(4 * D[j + 1] - D[j]) / 3 for j in range(2)]
        found.append((16 * E[1] - E[0]) / 15)
    return np.array(found)


@pytest.mark.parametrize("name", CASES)
def test_derivatives_are_exact_and_parts_add_up(name: str) -> None:
    f = density(name)
    at = f.start * (1 + 0.02 * np.arange(1, 1 + len(f.names)))
    value, slope = f.value_and_gradient(at)
    assert value == f(dict(zip(f.names, at, strict=True))) and f.failure(at) == ""
    size = np.abs(slope) + 1e-3 * np.abs(value / at)
    np.testing.assert_allclose(richardson(f, at, 2e-3 * np.abs(at)) / size, slope / size, atol=1e-7)
    parts = f.parts(at)
    assert sum(p.log_density for p in parts) == pytest.approx(value, rel=1e-14)
    np.testing.assert_allclose(sum(p.gradient for p in parts), slope, rtol=1e-10, atol=1e-10 * size.max())
    xi = f.to_unbounded(at)
    np.testing.assert_allclose(f.from_unbounded(xi), at, rtol=1e-12)
    moved = (f.from_unbounded(xi + 1e-5) - f.from_unbounded(xi - 1e-5)) / 2e-5
    np.testing.assert_allclose(f.slopes(xi), moved, rtol=1e-7)
    slope = f.unbounded.gradient(xi)
    size = np.abs(slope) + 1e-3 * abs(value)
    np.testing.assert_allclose(richardson(f.unbounded, xi, np.full(len(xi), 2e-3)) / size, slope / size, atol=1e-7)


@pytest.mark.parametrize(
    ("model", "data", "names", "method", "priors"),
    [
        (Tank(), TWO, ["k", "q"], gr.OutputError(), LAWS),
        (Tank(), TWO, ["k", "q"], gr.KalmanML(), LAWS),
        (Shaken(), ONE, ["k", "scale(w)"], gr.KalmanML("extended"), {"scale(w)": gr.HalfNormal(0.2)}),
        (Shaken(), ONE, ["k"], gr.Collocation(), {"k": gr.LogNormal(0.6, 0.2)}),
    ],
)
def test_its_maximum_is_the_fit(model: gr.Model, data: Any, names: list[str], method: Any, priors: Any) -> None:
    fit = gr.fit(model, data, names, method, priors=priors)
    f = gr.log_density(model, data, names, method, guess=fit, priors=priors)
    scale = np.array([fit.parameters["std_error"].get(n, fit.estimates.get(n, 0.05)) for n in f.names])
    start = f.start + 0.3 * scale * (-1.0) ** np.arange(len(scale))
    found = minimize(
        lambda x: -f(x * scale), start / scale, jac=lambda x: -f.gradient(x * scale) * scale, method="BFGS",
        options={"gtol": 1e-8},
    )  # fmt: skip
    for name, value in zip(f.names, found.x * scale, strict=True):
        if name in fit.names:
            assert value == pytest.approx(float(fit[name]), abs=1e-6 * fit.parameters["std_error"][name])
    if isinstance(method, gr.KalmanML):
        prior = sum(p.log_density for p in f.parts(f.start) if p.kind == "prior")
        assert f(fit.estimates) == pytest.approx(fit.log_likelihood + prior, rel=1e-12)


def test_open_noise_is_the_normal_law() -> None:
    x = np.array([0.5, 1.0, 2.0, 3.0])
    y = np.array([1.2, 1.4, 2.1, 2.4])

    class Open(gr.Model):
        a = gr.Parameter(1.0)
        u = gr.Input()
        y = gr.Output(a + 0.5 * u)
        equations = []

    f = gr.log_density(Open(), gr.Experiment(None, {"u": x}, {"y": y}), ["a"])
    assert f.names == ("a", "noise(y)") and f.bounds == ((-np.inf, np.inf), (0.0, np.inf))
    e = y - 0.9 - 0.5 * x
    assert f([0.9, 0.2]) == pytest.approx(float(-0.5 * np.sum((e / 0.2) ** 2) - 4 * np.log(0.2 * np.sqrt(2 * np.pi))))
    assert f([0.9, 0.0]) == -np.inf and "noise(y) is zero" in f.failure([0.9, 0.0])
    assert f([0.9, -1.0]) == -np.inf and "noise(y) = -1 lies outside" in f.failure([0.9, -1.0])
    assert np.isnan(f.gradient([0.9, -1.0])).all()


def test_a_formula_without_a_value_is_a_failure_in_words() -> None:
    class Relative(gr.Model):
        b = gr.Parameter(0.5)
        u = gr.Input()
        y = gr.Output(gr.sqrt(b) * u, noise=b)
        equations = []

    f = gr.log_density(Relative(), gr.Experiment(None, {"u": [1.0, 2.0]}, {"y": [0.6, 1.3]}), ["b"])
    e = np.array([0.6, 1.3]) - np.sqrt(0.3) * np.array([1.0, 2.0])
    assert f([0.3]) == pytest.approx(float(-0.5 * np.sum((e / 0.3) ** 2) - 2 * np.log(0.3 * np.sqrt(2 * np.pi))))
    assert f([-0.3]) == -np.inf and np.isnan(f.gradient([-0.3])).all() and f.failure([-0.3])
    assert f.unbounded([-0.3]) == -np.inf


BELIEFS = [
    gr.LogNormal(0.8, 0.4), gr.Gamma(0.8, 2.0), gr.Uniform(0.2, 2.0), gr.Beta(0.6, 9.0), gr.laws.Student(0.7, 3.0, 0.2),
    gr.laws.Truncated(0.2, 2.0, gr.LogNormal(0.8, 0.4)),
]  # fmt: skip


@pytest.mark.parametrize("prior", BELIEFS, ids=repr)
def test_the_unbounded_density_has_the_same_integral(prior: gr.laws.Law) -> None:
    data = gr.Experiment(None, {"u": [0.0, 1.0]}, {"y": [0.6, 1.0]})
    f = gr.log_density(Line(), data, ["a"], guess={"a": 0.6}, priors={"a": prior})
    by_log = f.measure["a"] == "log a"
    assert by_log == ("LogNormal" in repr(prior))
    low, high = max(f.bounds[0][0], -6.0) + 1e-9, min(f.bounds[0][1], 6.0)
    assert f.bounds[0][0] == pytest.approx(prior.support[0], abs=1e-6)
    bounded = quad(lambda a: np.exp(f([a])) / (a if by_log else 1.0), low, high, epsabs=0, epsrel=1e-10, limit=200)[0]
    unbounded = quad(lambda xi: np.exp(f.unbounded([xi])), -25.0, 25.0, epsabs=0, epsrel=1e-10, limit=400)[0]
    assert unbounded == pytest.approx(bounded, rel=1e-7)


def test_a_conjugate_posterior() -> None:
    """Precision 1/0.5² + N/0.3², with b known."""
    u = np.linspace(-1, 1, 9)
    y = 0.7 + 0.5 * u + 0.1 * np.cos(9 * u)
    f = gr.log_density(Line(), gr.Experiment(None, {"u": u}, {"y": y}), ["a"], priors={"a": gr.Normal(1.0, 0.5)})
    precision = 1 / 0.5**2 + 9 / 0.3**2
    mean = (1.0 / 0.5**2 + np.sum(y - 0.5 * u) / 0.3**2) / precision
    at = np.array([0.4])
    assert f.gradient(at)[0] == pytest.approx(-precision * (0.4 - mean), rel=1e-12)
    assert f(at) - f([mean]) == pytest.approx(-0.5 * precision * (0.4 - mean) ** 2, rel=1e-10)


@pytest.mark.parametrize("name", ["least squares", "exact filter", "extended filter", "splines"])
def test_threads_and_pickles_give_the_same_bits(name: str) -> None:
    f = density(name)
    points = [f.start * (1 + 0.01 * k) for k in range(8)]
    expected = [f.value_and_gradient(p) for p in points]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(f.value_and_gradient, [*points, *reversed(points)]))
    again = pickle.loads(pickle.dumps(f))
    for a, b in [
        *zip([*expected, *reversed(expected)], found, strict=True),
        (expected[1], again.value_and_gradient(points[1])),
    ]:
        assert a[0] == b[0]
        np.testing.assert_array_equal(a[1], b[1])


def test_what_is_no_likelihood_is_refused() -> None:
    for method, words in (
        (gr.OutputError(loss="huber"), r"a robust loss is none: use gr\.OutputError\(loss='linear'\)\.$"),
        (gr.KalmanML(robust=3.0), r"a robust loss is none: use gr\.KalmanML\(robust=None\)"),
        (gr.KalmanML(horizon=3), r"horizon=3 is none"),
        (gr.Collocation(criterion="amle"), r"criterion='amle' is none"),
        (gr.SimulatedPEM(realizations=20), r"criterion of gr\.SimulatedPEM is none: use gr\.OutputError\(\), "),
    ):
        with pytest.raises(gr.EstimationError, match=words):
            gr.log_density(Shaken(), ONE, ["k"], method)


def test_wrong_values_are_refused_in_words() -> None:
    f = density("extended filter")
    with pytest.raises(gr.GrisailleError, match=r"names 'scale\(v\)', which is no unknown; give k, scale\(w\)\."):
        f({"k": 0.5, "scale(v)": 0.1})
    with pytest.raises(gr.GrisailleError, match=r"lacks a value for 'scale\(w\)'"):
        f.gradient({"k": 0.5})
    with pytest.raises(gr.GrisailleError, match=r"shape \(3,\); give 2 numbers, of k, scale\(w\)"):
        f([1.0, 2.0, 3.0])
    with pytest.raises(gr.GrisailleError, match="give 2 numbers"):
        f("k")
    assert f([np.nan, 0.1]) == -np.inf and "k = nan" in f.failure([np.nan, 0.1])


def test_a_prior_of_noise_goes_with_methods_that_name_it() -> None:
    priors = {"noise(y)": gr.HalfNormal(0.1)}
    with pytest.raises(gr.EstimationError, match=r"'noise\(y\)', which is not estimated.*gr\.KalmanML\(\) estimates"):
        gr.log_density(Tank(), TWO[0], ["k"], gr.OutputError(), priors=priors)
    f, at = gr.log_density(Tank(), TWO[0], ["k"], gr.KalmanML(), priors=priors), {"k": 0.6, "noise(y)": 0.04}
    (prior,) = (p.log_density for p in f.parts(at) if p.kind == "prior")
    assert prior == pytest.approx(float(priors["noise(y)"].log_density(np.array(0.04))), rel=1e-12)
