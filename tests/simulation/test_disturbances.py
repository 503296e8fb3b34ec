"""Disturbances as ``simulate`` delivers them: every spectrum against its formula, vectors, several at once.

The theory here is written out by hand: a spectral density integrated numerically, or an impulse response.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from scipy.integrate import quad

import grisaille as gr
from grisaille import der, spectra


def gain(num: list[float], den: list[float]) -> Callable[[float], float]:
    return lambda o: float(abs(np.polyval(num, 1j * o) / np.polyval(den, 1j * o)) ** 2)


STATIONARY = {
    "lowpass": (spectra.lowpass(2.0), gain([2.0], [1.0, 2.0])),
    "lowpass of order 3": (spectra.lowpass(2.0, order=3), gain([8.0], [1.0, 6.0, 12.0, 8.0])),
    "Ornstein–Uhlenbeck": (spectra.ornstein_uhlenbeck(1.5), lambda o: 1 / (o**2 + 2.25)),
    "resonance": (spectra.resonance(4.0, 0.1), gain([1.0], [1.0, 0.8, 16.0])),
    "Matérn 1/2": (spectra.matern12(0.5), lambda o: 2 * 2.0 / (4.0 + o**2)),
    "Matérn 3/2": (spectra.matern32(0.5), lambda o: 4 * 12.0**1.5 / (12.0 + o**2) ** 2),
    "Matérn 5/2": (spectra.matern52(0.5), lambda o: 16 / 3 * 20.0**2.5 / (20.0 + o**2) ** 3),
    "quasi-periodic": (
        spectra.quasi_periodic(1.5, 1.0),
        lambda o: 1 / (1 + (o - 2 * np.pi / 1.5) ** 2) + 1 / (1 + (o + 2 * np.pi / 1.5) ** 2),
    ),
    "rational": (spectra.rational([1.0, 0.5], [1.0, 2.0, 3.0, 1.0]), gain([1.0, 0.5], [1.0, 2.0, 3.0, 1.0])),
    "spectral density": (
        spectra.from_spectral_density([1.0, 2.0], [1.0, 3.0, 4.0]),
        lambda o: (o**2 + 2) / (o**4 + 3 * o**2 + 4),
    ),
    "state space": (
        spectra.state_space([[0.0, 1.0], [-5.0, -2.0]], [[0.0], [1.0]], [[1.0, 0.5]]),
        gain([0.5, 1.0], [1.0, 2.0, 5.0]),
    ),
}
WANDERING = {
    "integrated": (spectra.integrated(), lambda t: 1.0),
    "double integrated": (spectra.double_integrated(), lambda t: t),
    "periodic": (spectra.periodic(1.5), lambda t: np.sin(2 * np.pi / 1.5 * t)),
    "lowpass from zero": (spectra.lowpass(2.0, start="zero"), lambda t: 2 * np.exp(-2 * t)),
}
UNEVEN = np.array([0.0, 0.05, 0.5, 0.6, 2.0])


def covariance(density: Callable[[float], float], lags: np.ndarray) -> np.ndarray:
    """R(τ) = (1/π) ∫₀^∞ S(ω) cos ωτ dω."""
    values = {0.0: quad(density, 0, np.inf, limit=400)[0] / np.pi}
    for lag in np.unique(np.abs(lags).round(12)):
        if lag > 0:
            values[lag] = quad(density, 0, np.inf, weight="cos", wvar=lag, limlst=400)[0] / np.pi
    return np.vectorize(values.__getitem__)(np.abs(lags).round(12))


def grown(response: Callable[[float], float], t: float, s: float) -> float:
    """cov(w(t), w(s)) = ∫₀^min h(t − r) h(s − r) dr."""
    return quad(lambda r: response(t - r) * response(s - r), 0, min(t, s))[0]


def sampled(spectrum: spectra.Spectrum, times: np.ndarray, count: int, seed: int) -> np.ndarray:
    class Heard(gr.Model):
        w = gr.Disturbance(spectrum, scale=0.7)
        y = gr.Variable()
        equations = [y == w]

    step = float(np.diff(times).max())
    return gr.simulate(Heard(), times, realizations=count, seed=seed, step=step).y.values / 0.7


def assert_covariance(paths: np.ndarray, theory: np.ndarray) -> None:
    """Every entry within five of its standard deviations √((c_ii c_jj + c_ij²)/M)."""
    found = paths.T @ paths / len(paths)
    diagonal = np.diag(theory)
    margin = 5 * np.sqrt((np.outer(diagonal, diagonal) + theory**2) / len(paths))
    assert np.all(np.abs(found - theory) <= margin + 1e-12)


@pytest.mark.parametrize("name", STATIONARY)
def test_variance_and_covariance_function(name):
    spectrum, density = STATIONARY[name]
    assert_covariance(sampled(spectrum, UNEVEN, 4000, 11), covariance(density, UNEVEN[:, None] - UNEVEN))


@pytest.mark.parametrize("name", WANDERING)
def test_growing_variance(name):
    spectrum, response = WANDERING[name]
    theory = np.array([[grown(response, t, s) for s in UNEVEN] for t in UNEVEN])
    assert_covariance(sampled(spectrum, UNEVEN, 4000, 11), theory)


@pytest.mark.parametrize("name", STATIONARY)
def test_periodogram(name):
    """600 paths of 64 points: each bin within five standard deviations of its exact mean, leakage and aliasing in."""
    N, M, h = 64, 600, 0.1
    spectrum, density = STATIONARY[name]
    paths = sampled(spectrum, np.arange(N) * h, M, 12)
    measured = np.mean(np.abs(np.fft.rfft(paths, axis=1)) ** 2, axis=0)[1:-1] / N
    k = np.arange(1 - N, N)
    weighted = (1 - np.abs(k) / N) * covariance(density, k * h)
    expected = np.array([weighted @ np.cos(2 * np.pi * j * k / N) for j in range(1, N // 2)])
    assert np.all(np.abs(measured / expected - 1) < 5 / np.sqrt(M))


class Vector(gr.Model):
    """Integrals of two correlated disturbances."""

    x1, x2 = gr.Variable(0.0), gr.Variable(0.0)
    w = gr.Disturbance(spectra.lowpass(4.0), size=2, scale=[1.0, 2.0], correlation=[[1.0, -0.8], [-0.8, 1.0]])
    equations = [der(x1) == w[0], der(x2) == w[1]]


@pytest.mark.parametrize("between", ["linear", "exact"])
def test_vectors_keep_their_cross_covariance_inside_a_cell(between):
    """One cell of 1 s: ∫∫ R = 2v/b² (b − 1 + e^{−b}) for the process, v (1 + e^{−b})/2 for lines; times D Dᵀ."""
    run = gr.simulate(Vector(), [0.0, 1.0], realizations=1500, step=1.0, rtol=1e-2, between=between)
    b, v, fade = 4.0, 2.0, np.exp(-4.0)
    size = 2 * v / b**2 * (b - 1 + fade) if between == "exact" else v * (1 + fade) / 2
    assert_covariance(np.stack([run.x1[:, -1], run.x2[:, -1]], axis=1), size * np.array([[1.0, -1.6], [-1.6, 4.0]]))


class Several(gr.Model):
    """Two vectors of correlated disturbances and a single one, in products, so that everything moves the mean."""

    r, q, b, d, s = gr.Parameter(0.6), gr.Parameter(-0.3), gr.Parameter(3.0), gr.Parameter(0.4), gr.Parameter(0.8)
    w = gr.Disturbance(spectra.lowpass(b), size=3, scale=[s, 1.0, 2 * s], correlation=[[1, r, 0], [r, 1, q], [0, q, 1]])
    v = gr.Disturbance(spectra.resonance(b + 1, d), size=2, scale=[4.0, 5 * s], correlation=[[1, q], [q, 1]])
    e = gr.Disturbance(spectra.matern32(d))
    x, y = gr.Variable(0.1), gr.Variable(0.0)
    equations = [der(x) == -x + w[0] * w[1] + v[0] * v[1] * y, der(y) == -b * y + e * w[2] + x]


def test_sensitivities_with_several_correlated_disturbances():
    names = {"r": 0.6, "q": -0.3, "b": 3.0, "d": 0.4, "s": 0.8, "scale(e)": 1.0, "scale(w[1])": 1.0}
    times = np.linspace(0.0, 1.0, 4)
    given = {"realizations": 20, "step": 0.1, "rtol": 1e-3, "reduce": ["mean", "variance"]}
    found = gr.simulate(Several(), times, sensitivities=list(names), **given)
    for k, (name, value) in enumerate(names.items()):
        ends = [gr.simulate(Several(), times, parameters={name: value + h}, **given) for h in (1e-5, -1e-5)]
        for variable in ("x_mean", "y_mean", "x_variance", "y_variance"):
            difference = (ends[0][variable] - ends[1][variable]) / 2e-5
            np.testing.assert_allclose(
                found[f"d({variable})"][:, k], difference, rtol=1e-6, atol=1e-7, err_msg=f"{variable} by {name}"
            )
    assert np.abs(found["d(x_mean)"][-1]).min() > 1e-5
