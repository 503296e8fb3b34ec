"""A disturbance as a linear stochastic process: filters side by side, driven by correlated white noise.

::

    dx = A x dt + B dv        w = C x        E dv dvᵀ = I dt

The theory that paths are compared with is here too: covariance functions, spectral densities, variances. White noise
has no states: w = D dv/dt. Matrices hold numbers, or CasADi ``SX`` when parameters are left as symbols. Reference:
K. J. Åström, Introduction to Stochastic Control Theory (1970), chapter 3.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike, NDArray

from grisaille.disturbance.discretization import discretize
from grisaille.disturbance.stationarity import stationary_covariance
from grisaille.errors import ModelError

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Process:
    """One or several correlated disturbances; matrices of numbers (NumPy) or of formulas (``SX``)."""

    names: tuple[str, ...]
    """Of the components of w; the first names the stream of random numbers."""
    A: Any
    B: Any
    C: Any
    D: Any
    """(m, m) for white noise, otherwise zero."""
    blocks: tuple[int, ...]
    """Number of states of each component."""
    starts: tuple[str, ...]
    """"stationary" or "zero", for each component."""

    @property
    def order(self) -> int:
        """Number of states."""
        return sum(self.blocks)

    @property
    def is_white(self) -> bool:
        return self.order == 0

    @property
    def intensity(self) -> ca.SX:
        """W = B Bᵀ."""
        return self.B @ self.B.T

    @property
    def label(self) -> str:
        return f"disturbance {', '.join(self.names)}"

    def output_map(self, derivative: int = 0) -> np.ndarray | ca.SX:
        """Return C Aᵈ: derivative d of w from the states, or ``ModelError`` where it has no finite variance."""
        rows = self.C
        for d in range(derivative):
            if not _vanishes(rows @ self.B):
                raise ModelError(
                    f"{self.label} can be differentiated {d} times, but derivative {derivative} is needed: it would "
                    "have infinite variance. Use a spectrum with a higher pole excess, such as lowpass(b, order=2)."
                )
            rows = rows @ self.A
        return rows

    def start_covariance(self) -> Floats:
        """Return covariance of the states at the first instant: stationary, with zero rows for what starts at zero."""
        chosen = np.concatenate([np.full(n, s == "stationary") for n, s in zip(self.blocks, self.starts, strict=True)])
        P = np.zeros((self.order, self.order))
        inside = np.ix_(chosen, chosen)
        P[inside] = stationary_covariance(self.A[inside], self.intensity[inside], self.label)
        return P

    def covariance(self, t: float, s: float) -> Floats:
        """Return E w(t) w(s)ᵀ for times after the first instant 0, from the start that was chosen."""
        if t < s:
            return self.covariance(s, t).T
        F, Q = discretize(self.A, self.intensity, s)
        P = F @ self.start_covariance() @ F.T + Q
        return np.asarray(self.C @ discretize(self.A, self.intensity, t - s)[0] @ P @ self.C.T)

    def covariance_function(self, tau: ArrayLike) -> Floats:
        """Return E w(t + τ) w(t)ᵀ of the stationary process, (…, m, m) for lags (…)."""
        lags = np.asarray(tau, dtype=float)
        P = stationary_covariance(self.A, self.intensity, self.label)
        forward = self.C @ discretize(self.A, self.intensity, np.abs(lags))[0] @ P @ self.C.T
        return np.asarray(np.where((lags < 0)[..., None, None], np.swapaxes(forward, -1, -2), forward))

    def spectral_density(self, omega: ArrayLike) -> NDArray[np.complex128]:
        """Return Φ(ω) = G(iω) G(iω)ᴴ, two-sided, (…, m, m): E w(t+τ)w(t)ᵀ = (1/2π) ∫ Φ(ω) e^{iωτ} dω."""
        w = np.asarray(omega, dtype=float)[..., None, None]
        G = self.D + self.C @ np.linalg.solve(1j * w * np.eye(self.order) - self.A, self.B + 0j)
        return np.asarray(G @ np.conj(np.swapaxes(G, -1, -2)))

    def stationary_variance(self) -> Floats:
        """Return E w wᵀ, (m, m); infinite on the diagonal for white noise."""
        if self.is_white:
            return np.diag(np.full(len(self.names), np.inf))
        return np.asarray(self.covariance_function(0.0))


def _vanishes(product: np.ndarray | ca.SX) -> bool:
    return product.nnz() == 0 if isinstance(product, ca.SX) else not np.any(product)
