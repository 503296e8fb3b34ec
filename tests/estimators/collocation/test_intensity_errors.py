"""How well misfits tell intensities, against dense matrices and against roots of drawn data."""

from __future__ import annotations

import numpy as np
import pytest

import grisaille as gr
from grisaille import der
from grisaille.collocation import OutputMisfit, errors_of_roots

TIMES = np.linspace(0.0, 10.0, 41)
NOISE, RATE, BAND = 0.05, 0.5, 1.0


def covariance(scale: float, fine: int = 40) -> np.ndarray:
    """Of x at the samples: x' = −RATE x + w, w = BAND/(s + BAND) of white noise, from zero, by held small steps."""
    h, n = (TIMES[1] - TIMES[0]) / fine, len(TIMES)
    t = h * np.arange((n - 1) * fine)
    K = 0.5 * BAND * scale**2 * np.exp(-BAND * np.abs(t[:, None] - t))
    a = np.exp(-RATE * h)
    L = np.zeros((n, len(t)))
    for k in range(1, n):
        L[k, : k * fine] = (1 - a) / RATE * a ** np.arange(k * fine)[::-1]
    return np.asarray(L @ K @ L.T)


def hat(K: np.ndarray, scale: float = 1.0) -> np.ndarray:
    """What data explain of themselves, with the start unknown."""
    shift = 1e6 * np.exp(-RATE * TIMES)[:, None] * np.exp(-RATE * TIMES)
    whole = scale**2 * K + shift
    return np.asarray(whole @ np.linalg.inv(whole + NOISE**2 * np.eye(len(K))))


def expected(K: np.ndarray) -> float:
    """(2 tr (I − A)²)^½ / 2 tr A(I − A)"""
    A = hat(K)
    B = np.eye(len(A)) - A
    return float(np.sqrt(2 * np.trace(B @ B)) / (2 * np.trace(A @ B)))


def told(K: np.ndarray) -> float:
    T = [np.trace(hat(K, s)) for s in (1.0, np.exp(0.05), np.exp(-0.05))]
    misfit = OutputMisfit(np.zeros(1), np.array(T[:1]), np.array([float(len(K))]))
    return float(errors_of_roots(misfit, np.array([[(T[1] - T[2]) / 0.1]]), [0])[0])


@pytest.mark.parametrize("scale", [0.05, 0.2, 1.0, 5.0])
def test_traces_alone_give_the_error_of_the_root(scale: float) -> None:
    K = covariance(scale)
    assert told(K) == pytest.approx(expected(K), rel=0.02)


def test_roots_of_drawn_data_scatter_as_told() -> None:
    K, random = covariance(0.5), np.random.default_rng(5)
    n, grid = len(K), np.linspace(-3.0, 3.0, 121)
    hats = [hat(K, float(np.exp(x))) for x in grid]
    root, found = np.linalg.cholesky(K + NOISE**2 * np.eye(n)), []
    for _ in range(300):
        y = root @ random.normal(size=n)
        g = np.array([np.sum((y - A @ y) ** 2) / NOISE**2 + np.trace(A) - n for A in hats])
        falls = np.flatnonzero((g[:-1] > 0) & (g[1:] <= 0))
        found.append(grid[falls[0]] if len(falls) else np.sign(g[0]) * 3.0)
    low, high = np.quantile(found, [0.159, 0.841])
    assert (high - low) / 2 == pytest.approx(told(K), rel=0.2)


class Driven(gr.Model):
    """Low-pass noise of unknown strength behind an integration, from an unknown start."""

    x = gr.Variable(0.0)
    w = gr.Disturbance(gr.spectra.lowpass(bandwidth=BAND), scale=0.3)
    y = gr.Output(x, noise=NOISE)
    equations = [der(x) == -RATE * x + w]


@pytest.mark.parametrize("seed", [1, 2])
def test_a_fit_tells_what_dense_matrices_tell_at_its_estimate(seed: int) -> None:
    random = np.random.default_rng(seed)
    y = np.linalg.cholesky(covariance(0.5) + NOISE**2 * np.eye(len(TIMES))) @ random.normal(size=len(TIMES))
    data = gr.Experiment(TIMES, {}, {"y": y}, name="run")
    fit = gr.fit(Driven(), data, ["start(x)", "scale(w)"], gr.Collocation(criterion="amle"))
    found = fit["scale(w)"]
    assert found.std_error / float(found) == pytest.approx(told(covariance(float(found))), rel=0.15)
    assert any(f"scale(w) to ± {found.std_error / float(found):.0%}" in note for note in fit.notes)
    marginal = gr.fit(Driven(), data, ["start(x)", "scale(w)"], gr.Collocation(criterion="laplace"))
    assert marginal["scale(w)"].std_error / float(marginal["scale(w)"]) < 0.6 * found.std_error / float(found)


class Shaken(gr.Model):
    """White noise in the one equation: by splines."""

    x = gr.Variable(0.0)
    w = gr.Disturbance(gr.spectra.white(), scale=0.3)
    y = gr.Output(x, noise=NOISE)
    equations = [der(x) == -RATE * x + w]


@pytest.mark.parametrize("transcription", ["spline", "direct"])
def test_white_noise_is_told_the_same_by_both_transcriptions(transcription: str) -> None:
    def K(scale: float) -> np.ndarray:
        s, t = np.minimum(TIMES[:, None], TIMES), np.abs(TIMES[:, None] - TIMES)
        return np.asarray(scale**2 / (2 * RATE) * (np.exp(-RATE * t) - np.exp(-RATE * (t + 2 * s))))

    random = np.random.default_rng(3)
    y = np.linalg.cholesky(K(0.2) + NOISE**2 * np.eye(len(TIMES))) @ random.normal(size=len(TIMES))
    method = gr.Collocation(criterion="amle", transcription=transcription)
    fit = gr.fit(Shaken(), gr.Experiment(TIMES, {}, {"y": y}), ["start(x)", "scale(w)"], method)
    found = fit["scale(w)"]
    assert found.std_error / float(found) == pytest.approx(told(K(float(found))), rel=0.15)
