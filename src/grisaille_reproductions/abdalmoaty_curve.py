"""Many data sets of one plan fitted with one ensemble: mean and variance of the output as polynomials of the unknown.

All data sets of a plan share the input and the random numbers of the model, so ``gr.SimulatedPEM`` compares each with
the same ȳ(k), s²(k). Both are simulated once at Chebyshev points k_j and interpolated, ȳ(k) = Σ_j ℓ_j(k) ȳ_j, which
makes a criterion a small quadratic form,

    J(k) = yᵀy − 2 ℓᵀc + ℓᵀGℓ − ℓᵀs/M,      c_j = ȳ_jᵀy,   G_ij = ȳ_iᵀȳ_j,   s_j = Σ_k s²_j,k,

and Gauss–Newton a matter of microseconds. ``CostCurve.distance`` says how far the interpolant is from a simulation
between the points. Points are spaced in log k.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from grisaille.bound_experiment import BoundExperiment, EstimatedQuantities
from grisaille.simulation.ensembles.ensemble_options import EnsembleOptions
from grisaille.simulation.ensembles.ensemble_runner import EnsembleRunner
from grisaille_reproductions.abdalmoaty import SPACING, Settings, times

RTOL = 1e-4
"""Of the steps: one per cell of the paths."""
SPAN = (1.0, 30.0)
COUNT = 20
"""Points; between them the interpolated mean then is some 1e-5 of the output's standard deviation off."""
STEPS = 60
"""Most Gauss–Newton steps."""


@dataclass(frozen=True, eq=False)
class CostCurve:
    """ȳ and s² at points of the unknown, without the start: (points, samples)."""

    points: np.ndarray
    mean: np.ndarray
    variance: np.ndarray
    realizations: int
    seed: int = 1

    def weights(self, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """ℓ_j(θ) and ∂ℓ_j/∂θ: (θ, points)."""
        n, span = len(self.points), (self.points[0], self.points[-1])
        V = np.polynomial.chebyshev.chebvander(_unit(self.points, span), n - 1)
        x = _unit(theta, span)
        rows = np.polynomial.chebyshev.chebvander(x, n - 1)
        turned = [np.polynomial.chebyshev.chebval(x, np.polynomial.chebyshev.chebder(e)) for e in np.eye(n)]
        slopes = np.array(turned).T * (2 / np.log(span[1] / span[0]) / theta)[:, None]
        inverse = np.linalg.inv(V)
        return rows @ inverse, slopes @ inverse

    def at(self, theta: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """ȳ, s² and ∂ȳ/∂θ."""
        values, slopes = self.weights(np.array([theta]))
        return values[0] @ self.mean, values[0] @ self.variance, slopes[0] @ self.mean

    def fit(self, y: np.ndarray, used: slice, *, corrected: bool = True) -> np.ndarray:
        """The estimate of every data set, (data sets,): best of a fine grid, then Gauss–Newton."""
        Y = self.mean[:, used]
        c, G = y[:, used] @ Y.T, Y @ Y.T
        s = self.variance[:, used].sum(axis=1) / self.realizations if corrected else np.zeros(len(Y))
        grid = np.exp(np.linspace(np.log(self.points[0]), np.log(self.points[-1]), 2001))
        L, _ = self.weights(grid)
        costs = np.einsum("tj,jk,tk->t", L, G, L) - L @ s - 2 * c @ L.T
        return self._polish(grid[np.argmin(costs, axis=1)], c, G, s)

    def _polish(self, theta: np.ndarray, c: np.ndarray, G: np.ndarray, s: np.ndarray) -> np.ndarray:
        """Gauss–Newton from the best point of a grid, all data sets abreast; a grid step at most in each step."""
        low, high = self.points[0], self.points[-1]
        for _ in range(STEPS):
            L, D = self.weights(theta)
            g = np.einsum("tj,tj->t", D, L @ G - c - s / 2)
            H = np.einsum("tj,jk,tk->t", D, G, D)
            step = np.clip(-g / H, -0.01 * theta, 0.01 * theta)
            theta = np.clip(theta + step, low, high)
            if np.max(np.abs(step) / theta) < 1e-10:
                break
        return theta

    def distance(self, settings: Settings, theta: float) -> float:
        """Largest deviation of the interpolated mean from a simulated one, over the output's standard deviation."""
        mean, variance = simulate_at(settings, self.mean.shape[1], self.realizations, np.array([theta]), self.seed)
        found, _, _ = self.at(theta)
        return float(np.abs(found - mean[0]).max() / np.sqrt(variance[0].mean()))


def trace_curve(
    settings: Settings, samples: int, realizations: int, *, count: int = COUNT, span: tuple[float, float] = SPAN,
    seed: int = 1,
) -> CostCurve:  # fmt: skip
    """Simulate at ``count`` points from one end of ``span`` to the other."""
    x = -np.cos(np.pi * np.arange(count) / (count - 1))
    points = np.exp(0.5 * np.log(span[1] * span[0]) + 0.5 * np.log(span[1] / span[0]) * x)
    return CostCurve(points, *simulate_at(settings, samples, realizations, points, seed), realizations, seed)


def simulate_at(
    settings: Settings, samples: int, realizations: int, thetas: np.ndarray, seed: int = 1
) -> tuple[np.ndarray, np.ndarray]:
    """Mean and variance of φ after the start, with the random numbers of ``gr.SimulatedPEM(seed=…)``."""
    options = EnsembleOptions(realizations, seed=seed, step=SPACING, rtol=RTOL)
    trial = BoundExperiment(
        settings.model(), times(samples), moves=EstimatedQuantities.named([settings.unknown]),
        inputs=settings.inputs(samples),
        hold="foh",
    )  # fmt: skip
    runner = EnsembleRunner(trial, ["phi"], options)
    runner = runner.on(runner.discretise(thetas[:1]))
    means, variances = [], []
    for theta in thetas:
        found = runner.predict(np.array([theta]), sensitive=False)
        means.append(found.mean[1:, 0])
        variances.append(found.variance[1:, 0])
    return np.array(means), np.array(variances)


def _unit(theta: np.ndarray, span: tuple[float, float]) -> np.ndarray:
    """log θ on [−1, 1]."""
    x = 2 * np.log(theta / span[0]) / np.log(span[1] / span[0]) - 1
    return np.asarray(np.clip(x, -1, 1))
