"""Bands at horizon ∞ against simulations in NumPy at the same values.

Coverage of N fresh paths by quantiles of M may be off by 4.5 √(0.05 · 0.95 (1/N + 1/M)), 3.4 %, and by a hundredth of
the spread for steps.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import grisaille as gr
from grisaille import der
from grisaille.estimation.predictions import BAND_REALIZATIONS

COUNT, STEP, EVERY, SAMPLES = 1000, 0.01, 25, 41
MARGIN = 4.5 * np.sqrt(0.05 * 0.95 * (1 / COUNT + 1 / BAND_REALIZATIONS)) + 0.005
Drift = Callable[[np.ndarray, float], np.ndarray]


class Cycle(gr.Model):
    """A limit cycle, whose phase spreads."""

    k = gr.Parameter(1.0, bounds=(0.1, 5.0))
    x, v = gr.Variable(2.0), gr.Variable(0.0)
    w = gr.Disturbance(gr.spectra.white(), scale=0.4)
    y = gr.Output(x, noise=0.05)
    equations = [der(x) == v, der(v) == k * (1 - x**2) * v - x + w]


class Wells(gr.Model):
    """Two wells, between which paths go to and fro."""

    k = gr.Parameter(1.0, bounds=(0.1, 5.0))
    x = gr.Variable(0.5)
    w = gr.Disturbance(gr.spectra.white(), scale=0.5)
    y = gr.Output(x, noise=0.05)
    equations = [der(x) == k * (x - x**3) + w]


class Coloured(gr.Model):
    """Slow noise through a formula that bends."""

    k = gr.Parameter(1.0, bounds=(0.1, 5.0))
    x = gr.Variable(1.0)
    w = gr.Disturbance(gr.spectra.lowpass(bandwidth=1.0), scale=0.6)
    y = gr.Output(x, noise=0.05)
    equations = [der(x) == 1.0 - k * x**3 + w]


def cycle(s: np.ndarray, k: float) -> np.ndarray:
    return np.stack([s[1], k * (1 - s[0] ** 2) * s[1] - s[0]])


def wells(s: np.ndarray, k: float) -> np.ndarray:
    return k * (s - s**3)


def coloured(s: np.ndarray, k: float) -> np.ndarray:
    return np.stack([1 - k * s[0] ** 3 + s[1], -s[1]])


def paths(drift: Drift, start: np.ndarray, intensity: float, k: float, seed: int) -> np.ndarray:
    """(samples, N) of the first state by Heun's method; noise drives the last one."""
    random, s = np.random.default_rng(seed), start
    kept = [s[0]]
    for i in range(1, (SAMPLES - 1) * EVERY + 1):
        kick = np.zeros_like(s)
        kick[-1] = intensity * np.sqrt(STEP) * random.standard_normal(s.shape[1])
        first = drift(s, k)
        s = s + 0.5 * STEP * (first + drift(s + STEP * first + kick, k)) + kick
        if i % EVERY == 0:
            kept.append(s[0])
    return np.array(kept)


def starts(values: list[float], count: int, spread: float = 0.0) -> np.ndarray:
    s = np.repeat(np.array(values)[:, None], count, axis=1)
    s[-1] += spread * np.random.default_rng(9).standard_normal(count)
    return s


@pytest.mark.parametrize(
    ("model", "drift", "values", "spread", "intensity"),
    [(Cycle, cycle, [2.0, 0.0], 0.0, 0.4), (Wells, wells, [0.5], 0.0, 0.5),
     # dw = −w dt + 0.6 dV, from its stationary law
     (Coloured, coloured, [1.0, 0.0], 0.6 / np.sqrt(2.0), 0.6)],
)  # fmt: skip
def test_bands_hold_fresh_paths(model, drift, values, spread, intensity):
    times = STEP * EVERY * np.arange(SAMPLES)
    random = np.random.default_rng(3)
    own = paths(drift, starts(values, 1, spread), intensity, 1.0, 2)[:, 0] + 0.05 * random.standard_normal(SAMPLES)
    method = gr.KalmanML(filter="unscented", initial_covariance={"x": 1e-12})
    fit = gr.fit(model(), gr.Experiment(times, outputs={"y": own}), ["k"], method)
    band = fit.predict(horizon=np.inf)["y"]
    fresh = paths(drift, starts(values, COUNT, spread), intensity, float(fit["k"]), 4)
    fresh = fresh + 0.05 * random.standard_normal(fresh.shape)
    lower, upper = (band.sel(statistic=s).values[:, None] for s in ("lower", "upper"))
    inside = ((fresh >= lower) & (fresh <= upper)).mean(axis=1)
    assert np.abs(inside - 0.95).max() < MARGIN, inside
    apart = np.abs(band.sel(statistic="mean").values - fresh.mean(axis=1)) / fresh.std(axis=1)
    assert apart.max() < 4.5 * np.sqrt(1 / COUNT + 1 / BAND_REALIZATIONS) + 0.02


def test_the_start_spreads():
    """A given variance of the start is in the bands; the same fit gives the same bands."""
    data = gr.Experiment(0.25 * np.arange(SAMPLES), outputs={"y": 0.9 + 0.05 * np.sin(np.arange(SAMPLES))})
    widths = []
    for variance in (1e-12, 0.04):
        fit = gr.fit(Wells(), data, ["k"], gr.KalmanML(filter="extended", initial_covariance={"x": variance}))
        band = fit.predict(horizon=np.inf)
        assert band.identical(fit.predict(horizon=np.inf))
        widths.append(float(band["x"].sel(statistic="std")[0]))
    assert widths[0] < 1e-5 and abs(widths[1] - 0.2) < 0.2 * 4.5 / np.sqrt(2 * BAND_REALIZATIONS)
