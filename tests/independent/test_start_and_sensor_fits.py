"""Wrong starts and sensors that share noise, against a Kalman filter and a sandwich written in NumPy here."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import expm
from scipy.optimize import minimize

import grisaille as gr
from grisaille import der

N, STEP = 100, 0.1
INFLOW = 0.5 + 0.3 * np.repeat(np.random.default_rng(8).choice([-1, 1], N // 20), 20)


class Tank(gr.Model):
    k = gr.Parameter(0.3, bounds=(0.05, 50.0))
    h = gr.Variable(1.0)
    q = gr.Input()
    w = gr.Disturbance(gr.spectra.matern12(5.0), scale=0.1)
    y = gr.Output(h, noise=0.02)
    equations = [der(h) == q - k * h + w]


def discretised(k: float, scale: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """F, G and Q of (h, w) over one step, by Van Loan's matrix exponential; the inflow is held."""
    A = np.array([[-k, 1.0], [0.0, -1 / 5]])
    W = np.diag([0.0, 2 * scale**2 / 5])
    block = expm(STEP * np.block([[-A, W], [np.zeros((2, 2)), A.T]]))
    F = block[2:, 2:].T
    G = np.linalg.solve(A, (F - np.eye(2)) @ np.array([1.0, 0.0]))
    return F, G, F @ block[:2, 2:]


def minus_log_likelihood(y: np.ndarray, k: float, scale: float, start: float) -> float:
    """The filter as in a textbook; h begins at a known value plus what the disturbance builds up over one step."""
    F, G, Q = discretised(k, scale)
    m, P = np.array([start, 0.0]), np.diag([0.0, scale**2])
    P[0, 0] = Q[0, 0]  # the package's "first-sample"
    total = 0.0
    for value, q in zip(y, INFLOW, strict=True):
        S = P[0, 0] + 0.02**2
        e = value - m[0]
        total += 0.5 * (e**2 / S + np.log(2 * np.pi * S))
        gain = P[:, 0] / S
        m, P = m + gain * e, P - np.outer(gain, P[0])
        m, P = F @ m + G * q, F @ P @ F.T + Q
    return total


def record(start: float) -> gr.Experiment:
    random, (F, G, Q) = np.random.default_rng(3), discretised(0.5, 0.1)
    root, state, seen = np.linalg.cholesky(Q), np.array([start, 0.1 * random.normal()]), []
    for q in INFLOW:
        seen.append(state[0])
        state = F @ state + G * q + root @ random.normal(size=2)
    return gr.Experiment(STEP * np.arange(N), {"q": INFLOW}, {"y": np.array(seen) + 0.02 * random.normal(size=N)})


def test_a_start_that_is_estimated_and_one_that_is_wrong() -> None:
    data = record(1.25)
    y = data.outputs["y"].values
    free = gr.fit(Tank(), data, ["k", "scale(w)", "start(h)"])
    found = np.array([np.log(float(free["k"])), np.log(float(free["scale(w)"])), float(free["start(h)"])])
    reference = minimize(
        lambda x: minus_log_likelihood(y, np.exp(x[0]), np.exp(x[1]), x[2]), found + np.array([0.05, -0.05, 0.02]),
        method="BFGS", options={"gtol": 1e-3},
    )  # fmt: skip
    P0 = minus_log_likelihood(y, float(free["k"]), float(free["scale(w)"]), float(free["start(h)"]))
    assert free.log_likelihood == pytest.approx(-P0, abs=1e-6)
    assert found == pytest.approx(reference.x, abs=2e-3) and free.log_likelihood == pytest.approx(
        -reference.fun, abs=1e-5
    )
    held = gr.fit(Tank(), data, ["k", "scale(w)"])
    ratio = 2 * (free.log_likelihood - held.log_likelihood)
    assert ratio > 60 and "does not begin where h was declared to" in held.notes[0]
    said = float(held.notes[0].split("say h = ")[1].split(" ±")[0])
    assert said == pytest.approx(float(free["start(h)"]), abs=0.03)


class Sensors(gr.Model):
    k = gr.Parameter(0.4, bounds=(0.05, 5.0))
    x = gr.Variable(0.0)
    u = gr.Input()
    y1, y2, y3, y4 = gr.Output(x), gr.Output(x), gr.Output(x), gr.Output(x)
    equations = [der(x) == u - k * x]


def test_four_sensors_with_a_common_reference() -> None:
    random, t = np.random.default_rng(5), 0.2 * np.arange(150)
    u = np.where(t % 10 < 5, 1.0, 0.0)

    def level(k: float) -> np.ndarray:
        x, a = np.zeros(len(t)), np.exp(-0.2 * k)
        for i in range(1, len(t)):
            x[i] = a * x[i - 1] + (1 - a) / k * u[i - 1]
        return x

    shared = 0.1 * random.normal(size=len(t))
    seen = {f"y{j}": level(0.5) + shared + 0.02 * random.normal(size=len(t)) for j in (1, 2, 3, 4)}
    fit = gr.fit(Sensors(), gr.Experiment(t, {"u": u}, seen), ["k"])
    k = float(fit["k"])
    errors = np.array([y - level(k) for y in seen.values()])
    slope = (level(k + 1e-5) - level(k - 1e-5)) / 2e-5
    sigma = np.sqrt(np.sum(errors**2, axis=1) / (len(t) - 1 / 4))
    information = np.sum(slope**2) * np.sum(1 / sigma**2)
    scatter = np.cov(errors, ddof=0) / np.outer(sigma, sigma)
    meat = np.sum(slope**2) * np.sum(scatter / np.outer(sigma, sigma))
    assert fit["k"].std_error == pytest.approx(1 / np.sqrt(information), rel=0.01)
    assert fit.with_errors("robust")["k"].std_error == pytest.approx(np.sqrt(meat) / information, rel=0.2)
    assert np.sqrt(meat / information) > 1.8
    verdict = next(v for v in fit.diagnose().verdicts if v.test == "between outputs")
    assert verdict.statistic == pytest.approx(np.abs(np.corrcoef(errors) - np.eye(4)).max(), abs=0.01)
    assert not verdict.healthy and "are correlated" in fit.notes[0]
