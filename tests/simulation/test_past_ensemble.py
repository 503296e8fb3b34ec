"""Realizations of models with delayed states: against independent steps on the same paths, and derivatives."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pytest

import grisaille as gr
from grisaille.bound_experiment import BoundExperiment, EstimatedQuantities
from grisaille.simulation.ensembles import EnsembleOptions, EnsembleRunner, delayed_weights

ROWS = np.linspace(0.0, 6.0, 61)


class Disturbed(gr.Model):
    """x' = −k x(t − tau) + w."""

    tau = gr.Parameter(1.0, bounds=(0.2, 3))
    k = gr.Parameter(1.0)
    s = gr.Parameter(0.1)
    x = gr.Variable(start=1.0)
    w = gr.Disturbance(gr.spectra.lowpass(bandwidth=1.0), scale=s)
    equations = [gr.der(x) == -k * gr.delay(x, tau) + w]
    y = gr.Output(x, noise=0.02)


class Oscillator(gr.Model):
    """Two dead times, a held input that is delayed too, a formula of states, and what was before the start."""

    a = gr.Parameter(0.43, bounds=(0.1, 2))
    b = gr.Parameter(1.31, bounds=(0.1, 3))
    c = gr.Parameter(1.5)
    s = gr.Parameter(0.3)
    u = gr.Input()
    x = gr.Variable(start=1.0)
    v = gr.Variable(start=0.0)
    w = gr.Disturbance(gr.spectra.lowpass(bandwidth=1.0), scale=s)
    equations = [
        gr.der(x) == v,
        gr.der(v)
        == -gr.tanh(c * gr.delay(x, a)) - 0.5 * gr.delay(v * x, b, before=0.5) - 0.3 * v + u + w + 0.2 * gr.delay(u, a),
    ]
    y = gr.Output(x, noise=0.01)


HELD = {"u": np.sign(np.sin(1.3 * ROWS + 0.1))}
Rates = Callable[[float, np.ndarray, Callable[[float], np.ndarray]], np.ndarray]


def steps(rates: Rates, start: list[float], h: float, until: float) -> np.ndarray:
    """Classical Runge–Kutta steps that keep every value and slope; the past by cubics between them."""
    count = round(until / h)
    x, behind, before = np.zeros((3, count + 1, len(start)))
    x[0] = start

    def past(t: float) -> np.ndarray:
        if t <= 0:
            return x[0]
        j = int(t / h)
        r, a, b, da, db = t / h - j, x[j], x[j + 1], h * behind[j], h * before[j + 1]
        return np.asarray(a + r * (da + r * (3 * (b - a) - 2 * da - db + r * (2 * (a - b) + da + db))))

    for i in range(count):
        # steps begin just behind jumps and end just before them
        t, e = i * h, 1e-9 * h
        behind[i] = rates(t + e, x[i], past)
        half = rates(t + h / 2, x[i] + h / 2 * behind[i], past)
        again = rates(t + h / 2, x[i] + h / 2 * half, past)
        before[i + 1] = rates(t + h - e, x[i] + h * again, past)
        x[i + 1] = x[i] + h / 6 * (behind[i] + 2 * half + 2 * again + before[i + 1])
    return x


@pytest.mark.parametrize("tau", [1.0, 0.73, 0.06])
def test_paths_are_those_of_independent_steps(tau: float) -> None:
    """On and between multiples of the grid's cells, and within one of them."""
    run = gr.simulate(Disturbed(), ROWS, parameters={"tau": tau}, realizations=2, seed=2, step=0.1)
    for x, w in zip(run["x"].values, run["w"].values, strict=True):
        found = steps(lambda t, _, p, w=w: -p(t - tau) + np.interp(t, ROWS, w), [1.0], 0.01, 6.0)[::10, 0]
        assert x == pytest.approx(found, abs=4e-6)
    alone = gr.simulate(Disturbed(), ROWS, parameters={"tau": tau}, realizations=1, seed=2, step=0.1)
    assert np.array_equal(alone["x"].values[0], run["x"].values[0])


def test_two_dead_times_a_held_input_and_what_was_before() -> None:
    """Dead times on multiples of the grid's cells, where the path of w is that of its rows."""
    a, b = 0.4, 1.3
    given = {"inputs": HELD, "parameters": {"a": a, "b": b}, "realizations": 1, "seed": 2}
    run = gr.simulate(Oscillator(), ROWS, step=0.1, rtol=1e-8, **given)

    def rates(t: float, z: np.ndarray, past: Callable[[float], np.ndarray]) -> np.ndarray:
        u, late = (HELD["u"][max(int(np.floor((t - lag) / 0.1)), 0)] for lag in (0.0, a))
        product = np.prod(past(t - b)) if t > b else 0.5
        w = np.interp(t, ROWS, run["w"].values[0])
        return np.array([z[1], -np.tanh(1.5 * past(t - a)[0]) - 0.5 * product - 0.3 * z[1] + u + w + 0.2 * late])

    found = steps(rates, [1.0, 0.0], 0.01, 6.0)[::10]
    assert run["x"].values[0] == pytest.approx(found[:, 0], abs=1e-7)


def test_without_a_disturbance_every_path_is_the_method_of_steps() -> None:
    """Dead times between multiples, fixed and moving: steps follow no kink, or know where they are."""
    alone = gr.simulate(Oscillator(), ROWS, inputs=HELD, rtol=1e-10)["x"].values
    given = {"inputs": HELD, "parameters": {"s": 1e-12}, "realizations": 1}
    for moved, near in (([], 3e-6), (["b"], 2e-3)):
        run = gr.simulate(Oscillator(), ROWS, sensitivities=moved, **given)
        assert run["x"].values[0] == pytest.approx(alone, abs=near)


@pytest.mark.parametrize(
    ("model", "inputs", "values"),
    [
        (Disturbed(), {}, {"tau": 0.73, "k": 1.1, "s": 0.3}),
        (Oscillator(), HELD, {"a": 0.43, "b": 1.31, "c": 1.5, "s": 0.3}),
    ],
)
def test_means_and_variances_have_the_right_slope(
    model: gr.Model, inputs: dict[str, np.ndarray], values: dict[str, float]
) -> None:
    data = gr.Experiment(ROWS, outputs={"y": ROWS}, inputs=inputs)
    runner = EnsembleRunner(
        BoundExperiment.of(model, data, EstimatedQuantities.named(list(values))),
        ["y"],
        EnsembleOptions(realizations=10),
    )
    theta = np.array(list(values.values()))
    runner = runner.on(runner.discretise(theta))
    found = runner.predict(theta, sensitive=True)
    for k, step in enumerate(np.diag(1e-4 * theta)):
        ends = [runner.predict(theta + s * step, sensitive=False) for s in (-1, 1)]
        mean, variance = ((getattr(ends[1], n) - getattr(ends[0], n)) / (2 * step[k]) for n in ("mean", "variance"))
        assert found.mean_slopes[..., k] == pytest.approx(mean, abs=1e-6), k
        assert found.variance_slopes[..., k] == pytest.approx(variance, abs=1e-6), k


def test_weights_give_back_what_was_and_its_moments() -> None:
    """A quartic is kept as it is; on each step its parabola has the values that its first moments say."""
    points, tau = np.sort(np.append(np.random.default_rng(1).uniform(0, 3, 19), [0.0, 3.0])), 0.7
    f = np.polynomial.Polynomial([0.4, -1.0, 0.3, 0.2, -0.1])
    # the middle of a piece is its middle
    points[1::2] = 0.5 * (points[:-1:2] + points[2::2])
    a, m, b = points[:-1:2], points[1::2], points[2::2]
    kept = np.append(np.stack([f(a), f.deriv()(a), f(m), f.deriv()(m), f(b)], axis=1).ravel(), f(0.0))
    s, weights = np.polynomial.legendre.leggauss(40)
    for order, g in enumerate([f, f.deriv()]):
        found = (delayed_weights(points, tau, order) @ kept).reshape(-1, 3)
        for k, (left, right) in enumerate(pairwise(points)):
            t = left + (right - left) * 0.5 * (s + 1)
            v = np.where(t < tau, f(0.0) if order == 0 else 0.0, g(t - tau))
            parabola = np.polynomial.legendre.Legendre(
                [(2 * j + 1) / 2 * weights @ (v * np.polynomial.legendre.Legendre.basis(j)(s)) for j in range(3)]
            )
            # Gauss's rule does not see where in a step the past begins
            near = 0.1 if left < tau < right else 1e-12
            assert found[k] == pytest.approx(parabola(np.array([-1.0, 0.0, 1.0])), abs=near)


def test_simulated_pem_finds_gain_and_dead_time() -> None:
    t = np.linspace(0.0, 12.0, 61)
    truth = {"k": 1.2, "tau": 0.83}
    run = gr.simulate(Disturbed(), t, parameters=truth, realizations=1, seed=101)
    y = run["x"].values[0] + 0.02 * np.random.default_rng(1).normal(size=t.size)
    fit = gr.fit(
        Disturbed(), gr.Experiment(t, outputs={"y": y}), estimate=["k", "tau"], bounds={"tau": (0.3, 1.6)},
        method=gr.SimulatedPEM(realizations=48),
    )  # fmt: skip
    assert fit.converged
    for name, value in truth.items():
        row = fit.parameters.loc[name]
        assert abs(row["estimate"] - value) < 3 * row["std_error"] < 0.3


class White(gr.Model):
    x = gr.Variable(start=1.0)
    w = gr.Disturbance(gr.spectra.white(), scale=0.1)
    equations = [gr.der(x) == -gr.delay(x, 0.5) + w]


class Implicit(gr.Model):
    x = gr.Variable(start=1.0)
    z = gr.Variable()
    w = gr.Disturbance(gr.spectra.lowpass(1.0), scale=0.1)
    equations = [gr.der(x) == -z + w, z + 0.1 * z**3 == gr.delay(x, 0.5)]


class Rough(gr.Model):
    x = gr.Variable(start=1.0)
    z = gr.Variable()
    w = gr.Disturbance(gr.spectra.lowpass(1.0), scale=0.1)
    equations = [gr.der(x) == -gr.delay(z, 0.5), z == x + w]


class Stiff(gr.Model):
    x = gr.Variable(start=1.0)
    w = gr.Disturbance(gr.spectra.lowpass(1.0), scale=0.1)
    equations = [gr.der(x) == -1e5 * (x - gr.cos(gr.delay(x, 0.5))) + w]


@pytest.mark.parametrize(
    ("model", "options", "words"),
    [
        (White(), {}, r"delay\(x, 0.5\).*white noise in its equations: give it a bandwidth"),
        (Implicit(), {}, r"stay implicit, z: write them as formulas"),
        (Rough(), {}, r"delays z, which is no smooth formula of states and may jump.*let a state follow it"),
        (Stiff(), {}, r"decays too fast"),
        (Disturbed(), {"method": "frozen-implicit"}, "are explicit steps"),
        (Disturbed(), {"device": "cuda"}, r"delay\(x, tau\) is kept on processors only"),
    ],
)
def test_what_cannot_be_followed_is_said(model: gr.Model, options: dict[str, str], words: str) -> None:
    with pytest.raises(gr.GrisailleError, match=words):
        gr.simulate(model, ROWS, realizations=2, **options)
