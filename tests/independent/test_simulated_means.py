"""Simulated prediction errors of linear models against closed forms of their mean and variance, minimised by SciPy.

x' = −a x + u + w with w of variance s² and exp(−t/τ) as its correlation: the mean obeys the equation without w, and

    var x(t) = 2 s² ∫₀ᵗ∫₀ᵛ exp(−a(2t − v − r)) exp(−(v − r)/τ) dr dv.

Estimates may differ by the Monte Carlo error of the ensemble, which is a small part of their standard errors.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import least_squares, minimize

import grisaille as gr
from grisaille import der

TAU, NOISE = 0.5, 0.05
TIMES = np.linspace(0.0, 20.0, 41)
LEVEL = 1.0 + (np.sin(0.7 * TIMES) > 0)


class Drain(gr.Model):
    a = gr.Parameter(0.5, bounds=(0.05, 5.0))
    x = gr.Variable(0.0)
    u = gr.Input()
    w = gr.Disturbance(gr.spectra.matern12(TAU), scale=0.3)
    y = gr.Output(x, noise=NOISE)
    equations = [der(x) == -a * x + u + w]


def _mean(a: float) -> np.ndarray:
    """From zero, the input held between samples."""
    x, step = np.zeros(len(TIMES)), np.diff(TIMES)
    for k, h in enumerate(step):
        x[k + 1] = np.exp(-a * h) * x[k] - np.expm1(-a * h) / a * LEVEL[k]
    return x


def _variance(a: float, s: float) -> np.ndarray:
    """The double integral in closed form."""
    b, t = 1 / TAU, TIMES
    inner = (1 - np.exp(-2 * a * t)) / (2 * a) - (np.exp(-(a + b) * t) - np.exp(-2 * a * t)) / (a - b)
    return np.asarray(2 * s**2 / (a + b) * inner)


@pytest.fixture(scope="module")
def record() -> np.ndarray:
    rng, fine = np.random.default_rng(4), 100
    x, w, found, h = 0.0, 0.3 * rng.normal(), [0.0], (TIMES[1] - TIMES[0]) / 100
    keep = np.exp(-h / TAU)
    for k in range(len(TIMES) - 1):
        for _ in range(fine):
            after = keep * w + 0.3 * np.sqrt(1 - keep**2) * rng.normal()
            x += h * (-0.8 * (x + 0.5 * h * (LEVEL[k] + w - 0.8 * x)) + LEVEL[k] + 0.5 * (w + after))
            w = after
        found.append(x)
    return np.array(found) + NOISE * rng.normal(size=len(TIMES))


def _fitted(record: np.ndarray, names: list[str], **options: object) -> gr.Fit:
    data = gr.Experiment(TIMES, {"u": LEVEL}, {"y": record}, hold="zoh")
    return gr.fit(Drain(), data, names, gr.SimulatedPEM(**options), progress=False)


def test_the_mean(record):
    """Mirrored realizations have the exact mean."""
    fit = _fitted(record, ["a"], realizations=200, antithetic=True)
    squares = least_squares(lambda p: record - _mean(p[0]), [0.5], x_scale="jac")
    assert float(fit["a"]) == pytest.approx(squares.x[0], abs=0.02 * fit["a"].std_error)


def test_mean_and_variance(record):
    fit = _fitted(record, ["a", "scale(w)"], realizations=500, antithetic=True, match="mean-variance")

    def criterion(p: np.ndarray) -> float:
        a, s = np.exp(p)
        S = _variance(a, s) + NOISE**2
        return float(0.5 * np.sum((record - _mean(a)) ** 2 / S + np.log(S)))

    found = np.exp(minimize(criterion, np.log([0.5, 0.3]), method="Nelder-Mead", options={"xatol": 1e-6}).x)
    for name, value in zip(("a", "scale(w)"), found, strict=True):
        assert float(fit[name]) == pytest.approx(value, abs=0.25 * fit[name].std_error)
