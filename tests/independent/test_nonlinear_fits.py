"""Fits of nonlinear stochastic models beside the exact likelihood, which a grid of states has.

The density of the state moves by the Fokker–Planck equation on a grid (fluxes of Scharfetter and Gummel, whose
stationary density is exact), and is multiplied by that of each measurement: NumPy and SciPy alone.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import expm
from scipy.optimize import minimize_scalar

import grisaille as gr
from grisaille import der


class Bent(gr.Model):
    """One well or two: x' = a x − b x³ + w."""

    a = gr.Parameter(-0.5, bounds=(-5.0, 5.0))
    b = gr.Parameter(0.3)
    x = gr.Variable(0.8)
    w = gr.Disturbance(gr.spectra.white(), scale=0.6)
    y = gr.Output(x, noise=0.2)
    equations = [der(x) == a * x - b * x**3 + w]


def simulated(a: float, b: float, interval: float, count: int, seed: int) -> np.ndarray:
    """Measurements by Euler's scheme in very short steps."""
    rng, fine, x, path = np.random.default_rng(seed), 40, 0.8, []
    step = interval / fine
    for kicks in 0.6 * np.sqrt(step) * rng.normal(size=(count, fine)):
        path.append(x)
        for kick in kicks:
            x += step * (a * x - b * x**3) + kick
    return np.array(path) + 0.2 * rng.normal(size=count)


def exact(a: float, b: float, interval: float, y: np.ndarray) -> float:
    """Minus the log-likelihood on a grid."""
    grid = np.linspace(-2.6, 2.6, 131)
    h, middle = grid[1] - grid[0], (grid[:-1] + grid[1:]) / 2
    ratio = (a * middle - b * middle**3) * h / 0.18
    bernoulli = [np.where(np.abs(z) < 1e-8, 1.0, z / np.expm1(z)) for z in (-ratio, ratio)]
    rates = 0.18 / h**2 * (np.diag(bernoulli[0], -1) + np.diag(bernoulli[1], 1))
    moved = expm(interval * (rates - np.diag(rates.sum(axis=0))))
    density, total = np.zeros(len(grid)), 0.0
    density[np.argmin(np.abs(grid - 0.8))] = 1.0
    for k, value in enumerate(y):
        density = (moved @ density if k else density) * np.exp(-0.5 * ((value - grid) / 0.2) ** 2)
        total -= np.log(density.sum() / (0.2 * np.sqrt(2 * np.pi)))
        density /= density.sum()
    return float(total)


def fitted(a: float, b: float, interval: float, count: int, seed: int, kind: str = "auto") -> tuple[gr.Fit, float]:
    """A fit with a known start, and how far it is from the exact maximum, in its standard errors."""
    y = simulated(a, b, interval, count, seed)
    data = gr.Experiment(interval * np.arange(count), outputs={"y": y})
    fit = gr.fit(Bent(b=b), data, ["a"], gr.KalmanML(filter=kind, initial_covariance={"x": 0.0}), guess={"a": a})
    found = minimize_scalar(lambda v: exact(v, b, interval, y), bounds=(a - 1.5, a + 1.5), method="bounded")
    return fit, float((fit["a"] - found.x) / fit["a"].std_error)


@pytest.mark.parametrize("seed", [1, 2])
def test_one_well_is_fitted_as_the_exact_likelihood_has_it(seed):
    fit, off = fitted(-0.5, 0.3, 0.4, 120, seed)
    assert abs(off) < 0.2 and not fit.doubts


@pytest.mark.parametrize(("interval", "count"), [(0.8, 120), (0.2, 400)])
def test_where_two_wells_are_off_the_table_is_marked(interval, count):
    fit, off = fitted(1.0, 1.0, interval, count, 3, "extended")
    assert abs(off) > 0.8
    assert any(d.startswith("approximation") for d in fit.doubts) and "std. error!" in str(fit)
