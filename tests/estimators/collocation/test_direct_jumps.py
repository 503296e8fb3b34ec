"""Algebraic unknowns where held inputs jump: a sample at that instant sees both after the jump, as in a simulation."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import least_squares

import grisaille as gr
from grisaille import der
from grisaille.estimators import build_problem

SIGMA = 0.02


class Cubic(gr.Model):
    """z is defined implicitly by the state and the input."""

    a, g = gr.Parameter(0.8, bounds=(0.01, 50.0)), gr.Parameter(1.5, bounds=(0.01, 10.0))
    u, x, z = gr.Input(), gr.Variable(start=0.0), gr.Variable()
    y = gr.Output(z, noise=SIGMA)
    equations = [der(x) == u - a * x, z + 0.3 * z**3 == x + g * u]


class Disturbed(Cubic):
    w = gr.Disturbance(gr.spectra.white(), scale=0.05)
    equations = [der(Cubic.x) == Cubic.u - Cubic.a * Cubic.x + w, Cubic.equations[1]]


class Battery(gr.Model):
    """A load that draws the power P: V i = P."""

    R, C = gr.Parameter(0.05, bounds=(1e-3, 1.0)), gr.Parameter(2000.0, bounds=(10.0, 1e5))
    P = gr.Input()
    v, i, V = gr.Variable(start=0.0), gr.Variable(start=10.0), gr.Variable(start=3.7)
    w = gr.Disturbance(gr.spectra.white(), scale=1e-4)
    y = gr.Output(V, noise=0.005)
    equations = [der(v) == i / C - v / (0.03 * C) + w, V == 3.8 - v - R * i, V * i == P]


def cubic(value: np.ndarray) -> np.ndarray:
    z = np.zeros_like(value)
    for _ in range(60):
        z -= (z + 0.3 * z**3 - value) / (1 + 0.9 * z**2)
    return z


def state(times: np.ndarray, at: np.ndarray, u: np.ndarray, a: float) -> np.ndarray:
    """x at instants, with u held from instants ``at`` on, by exponentials."""
    every = np.union1d(times, at)
    x = np.zeros(len(every))
    for k in range(len(every) - 1):
        now = u[np.searchsorted(at, every[k], side="right") - 1]
        decay = np.exp(-a * (every[k + 1] - every[k]))
        x[k + 1] = decay * x[k] + now * (1 - decay) / a
    return x[np.searchsorted(every, times)]


def held(times: np.ndarray, at: np.ndarray, u: np.ndarray) -> np.ndarray:
    return u[np.searchsorted(at, times, side="right") - 1]


TIMES = 0.25 * np.arange(41)
CLOCKS = {
    "at every third sample": TIMES[::3],
    "between samples": np.append(0.0, 0.6 * np.arange(1, 16) + 0.07),
    "at samples and between": np.append(TIMES[:20:2], np.arange(5.1, 9.5, 0.55)),
}


@pytest.mark.parametrize("clock", CLOCKS)
@pytest.mark.parametrize("optimizer", ["gauss-newton", "ipopt"])
def test_least_squares_with_the_input_after_the_jump(clock: str, optimizer: str) -> None:
    rng, at = np.random.default_rng(4), CLOCKS[clock]
    u = rng.choice([-1.0, 1.0], len(at))

    def formula(p: np.ndarray) -> np.ndarray:
        return cubic(state(TIMES, at, u, p[0]) + p[1] * held(TIMES, at, u))

    y = formula(np.array([1.1, 1.9])) + SIGMA * rng.standard_normal(len(TIMES))
    found = least_squares(lambda p: (formula(p) - y) / SIGMA, [0.8, 1.5], xtol=1e-14, ftol=1e-14)
    errors = np.sqrt(np.diag(np.linalg.inv(found.jac.T @ found.jac)))
    fit = gr.fit(
        Cubic(), gr.Experiment(TIMES, {"u": (at, u)}, {"y": y}), ["a", "g"], 
        gr.Collocation(criterion="amle", optimizer=optimizer), progress=False,
    )  # fmt: skip
    assert fit.converged
    for k, name in enumerate(("a", "g")):
        assert abs(float(fit[name]) - found.x[k]) < 0.02 * errors[k]
    means = fit.states().sel(given="smoothed", statistic="mean")
    np.testing.assert_allclose(
        means["z"] + 0.3 * means["z"] ** 3, means["x"] + float(fit["g"]) * held(TIMES, at, u), atol=1e-7
    )


def load(times: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Powers and voltages of the battery, by small steps of Euler and Maruyama."""
    P = np.repeat(rng.choice([5.0, 15.0, 30.0, 45.0], len(times)), 4)[: len(times)]
    v, V, steps = 0.0, [], 100

    def current(v: float, P: float) -> float:
        return float((3.8 - v - np.sqrt((3.8 - v) ** 2 - 4 * 0.05 * P)) / 0.1)

    h = (times[1] - times[0]) / steps
    for power in P:
        V.append(3.8 - v - 0.05 * current(v, power))
        for dW in 1e-4 * np.sqrt(h) * rng.standard_normal(steps):
            v += h * (current(v, power) / 2000.0 - v / 60.0) + dW
    return P, np.array(V) + 0.005 * rng.standard_normal(len(times))


def test_constant_power_agrees_with_the_filter_and_the_truth() -> None:
    times, rng = 5.0 * np.arange(61), np.random.default_rng(7)
    P, y = load(times, rng)
    record = gr.Experiment(times, {"P": P}, {"y": y})
    fit, filtered = (
        gr.fit(Battery(), record, ["R", "C"], m, progress=False)
        for m in (gr.Collocation(criterion="laplace"), gr.KalmanML())
    )
    for name, truth in (("R", 0.05), ("C", 2000.0)):
        assert abs(float(fit[name]) - float(filtered[name])) < 0.1 * filtered[name].std_error
        assert abs(float(fit[name]) - truth) < 3.5 * fit[name].std_error
    means = fit.states().sel(given="smoothed", statistic="mean")
    np.testing.assert_allclose(means["V"] * means["i"], P, rtol=1e-7)


def test_continuous_inputs_need_no_second_value() -> None:
    u = np.sin(TIMES)
    for hold, extra in (("foh", 0), ("zoh", 1)):
        record = gr.Experiment(TIMES, {"u": u}, {"y": np.zeros(len(TIMES))}, hold=hold)
        problem = build_problem(Disturbed(), [record], ["a"], gr.Collocation(criterion="amle"))
        assert problem.trajectories.program.functions.after == extra


def test_a_fit_is_loaded_with_its_path(tmp_path) -> None:
    u = np.sign(np.sin(2 * TIMES))
    rng = np.random.default_rng(5)
    y = cubic(state(TIMES, TIMES, u, 0.8) + 1.5 * u) + SIGMA * rng.standard_normal(len(TIMES))
    fit = gr.fit(
        Disturbed(), gr.Experiment(TIMES, {"u": u}, {"y": y}), ["a"], gr.Collocation(criterion="amle"), progress=False
    )
    fit.save(tmp_path / "fit.gr")
    again = gr.load(tmp_path / "fit.gr", Disturbed())
    np.testing.assert_allclose(again.states()["z"], fit.states()["z"], rtol=1e-6, atol=1e-9)
