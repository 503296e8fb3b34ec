"""The correlation of residuals as that of a stationary process, freed of what the fit has taken from them.

    e_t = Φ_1 e_{t−1} + … + Φ_p e_{t−p} + ε_t,        Γ(k) = E e_t e_{t+k}ᵀ

for all outputs together, p by Akaike's criterion. What is seen are residuals r = (I − UUᵀ) e, in which the correlation
that the unknowns can follow is missing: sums of products c(k) = Σ r_t r_{t+k}ᵀ are compared with what they are expected
to be under a process, and the process is moved until the two agree,

    Γ ← Γ + (c − E c) / pairs,        E rrᵀ = Σ − UUᵀΣ − ΣUUᵀ + U(UᵀΣU)Uᵀ.

Where no stationary process does, the record is too short to tell. References: H. Lütkepohl, New Introduction to
Multiple Time Series Analysis (2005), chapters 2–4; D. W. K. Andrews, J. C. Monahan, Econometrica 60 (1992) 953, for
correlation that is taken out by an autoregression first.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from grisaille.estimation.hac.series import Floats, SampleGrid

ROUNDS, SETTLED = 60, 1e-4
MAX_TIME_CONSTANT = 2.0
"""Time constant of a process, in lengths of the longest record, that still counts as stationary."""
DECAYED_CORRELATION = 1e-5
MOMENT_TOLERANCE = 0.02
"""Of the variance: what may be left between sums of products and their expectation where no step improves it."""


@dataclass(frozen=True, eq=False)
class AutoregressiveProcess:
    """Autoregressions, one for each of a stack: Φ (…, p, m, m) and the covariance of ε (…, m, m)."""

    phi: Floats
    noise: Floats

    @property
    def order(self) -> int:
        return int(self.phi.shape[-3])

    @property
    def root(self) -> float:
        """Return the largest root of a single one; 0 of white noise."""
        p, m = self.order, self.noise.shape[-1]
        if not p:
            return 0.0
        companion = np.eye(p * m, k=-m)
        companion[:m] = np.concatenate(list(self.phi), axis=1)
        return float(np.abs(np.linalg.eigvals(companion)).max())

    @property
    def memory(self) -> int:
        """Lags after which nothing is left of a single one."""
        root = min(self.root, 1 - 1e-6)
        return (
            int(np.ceil(np.log(DECAYED_CORRELATION) / np.log(root))) + self.order + 1 if root > 1e-3 else self.order + 2
        )

    def transfer(self, size: int) -> NDArray[np.complex128]:
        """Return (…, frequencies, m, m): from ε to e."""
        m = self.noise.shape[-1]
        one = np.broadcast_to(np.eye(m), (*self.phi.shape[:-3], 1, m, m))
        denominator = np.fft.rfft(np.concatenate([one, -self.phi], axis=-3), size, axis=-3)
        return np.asarray(np.linalg.inv(denominator))

    def covariances(self, lags: int, size: int) -> Floats:
        """Return Γ(0 … lags − 1), (…, lags, m, m), from a spectrum at ``size`` frequencies."""
        H = self.transfer(size)
        spectrum = np.conj(H) @ self.noise[..., None, :, :] @ np.swapaxes(H, -1, -2)
        return np.asarray(np.fft.irfft(spectrum, size, axis=-3)[..., :lags, :, :])


def yule_walker(gamma: Floats, order: int) -> tuple[AutoregressiveProcess, NDArray[np.bool_]]:
    """Return the process with the covariances Γ(0 … p) of each of a stack, (…, lags, m, m); and whether there is
    one.
    """
    p, m = order, gamma.shape[-1]
    if not p:
        noise = np.asarray(gamma[..., 0, :, :])
        return AutoregressiveProcess(np.zeros((*gamma.shape[:-3], 0, m, m)), noise), np.linalg.eigvalsh(noise)[
            ..., 0
        ] > 0
    back = np.swapaxes(gamma, -1, -2)
    rows = [
        np.concatenate([gamma[..., k - j, :, :] if k >= j else back[..., j - k, :, :] for j in range(p)], axis=-1)
        for k in range(p)
    ]
    T = np.concatenate(rows, axis=-2)
    right = np.concatenate([gamma[..., k, :, :] for k in range(1, p + 1)], axis=-2)
    is_positive = np.linalg.eigvalsh((T + np.swapaxes(T, -1, -2)) / 2)[..., 0] > 0
    safe = np.where(is_positive[..., None, None], T, np.eye(p * m))
    X = np.linalg.solve(safe, right).reshape(*right.shape[:-2], p, m, m)
    phi = np.swapaxes(X, -1, -2)
    noise = gamma[..., 0, :, :] - np.sum(phi @ gamma[..., 1 : p + 1, :, :], axis=-3)
    noise = (noise + np.swapaxes(noise, -1, -2)) / 2
    return AutoregressiveProcess(phi, noise), is_positive & (np.linalg.eigvalsh(noise)[..., 0] > 0)


class ResidualMoments:
    """Sums of products over lags of what a fit leaves, and their expectation under a process.

    U : (N, k), with UUᵀ the part of the errors that the unknowns take
    """

    def __init__(self, grid: SampleGrid, U: Floats) -> None:
        self.grid, self.U = grid, U
        self.size = 1 << int(np.ceil(np.log2(2 * grid.shape[1])))
        self.reached = grid.reached
        self.lags = self._most_lags()
        self.taken = self._transformed(grid.completed(U))
        pairs = self._products(self._transformed(self.reached[..., None]), None)
        self.pairs = np.where(pairs > 0.5, pairs, np.inf)
        self.whole = np.sqrt(np.outer(np.diag(pairs[0]), np.diag(pairs[0])))

    def _most_lags(self) -> int:
        """Return 10 log₁₀ n, and an eighth of what there is for each coefficient."""
        n, m = self.grid.instants, self.grid.shape[2]
        return max(0, min(int(10 * np.log10(max(n, 1.0))), int(n / (8 * m)), self.grid.shape[1] - 1))

    def _transformed(self, values: Floats) -> NDArray[np.complex128]:
        return np.asarray(np.fft.rfft(values, self.size, axis=1))

    def _products(
        self, first: NDArray[np.complex128], second: NDArray[np.complex128] | None, lags: int | None = None
    ) -> Floats:
        """Return Σ_t A_a(t) B_b(t + k) over experiments and columns: (lags + 1, m, m)."""
        second = first if second is None else second
        found = np.fft.irfft(np.einsum("efac,efbc->fab", np.conj(first), second), self.size, axis=0)
        return np.asarray(found[: (self.lags if lags is None else lags) + 1])

    def observed(self, residuals: Floats) -> Floats:
        """Return c(0 … lags) of each column of residuals, (N, D): (D, lags + 1, m, m)."""
        found = []
        for first in range(0, residuals.shape[1], 16):
            part = self._transformed(self.grid.completed(residuals[:, first : first + 16]))
            power = np.fft.irfft(np.einsum("efad,efbd->dfab", np.conj(part), part), self.size, axis=1)
            found.append(power[:, : self.lags + 1])
        return np.concatenate(found)

    def weights(self, A: Floats, lags: int) -> Floats:
        """Return (columns, lags, m, m): aᵀΣa = Σ weights · Γ for each column a of A."""
        found = [self._products(self._transformed(self.grid.spread(a[:, None])), None, lags - 1) for a in A.T]
        stacked = np.array(found)
        stacked[:, 1:] *= 2
        return stacked

    def applied(self, gamma: Floats, values: Floats) -> Floats:
        """Return Σ times columns (N, k), with the covariances Γ(0 …): (N, k)."""
        return self.grid.gathered(self._everywhere(gamma, values))

    def _everywhere(self, gamma: Floats, values: Floats) -> Floats:
        lags = min(len(gamma), self.grid.shape[1])
        both = np.zeros((self.size, *gamma.shape[1:]))
        both[:lags] = gamma[:lags]
        both[self.size - lags + 1 :] = np.swapaxes(gamma[1:lags][::-1], -1, -2)
        spectrum = np.conj(np.fft.rfft(both, axis=0))
        moved = np.einsum("fab,efbc->efac", spectrum, self._transformed(self.grid.spread(values)))
        return np.asarray(np.fft.irfft(moved, self.size, axis=1)[:, : self.grid.shape[1]])

    def expected(self, gamma: Floats, lags: int) -> Floats:
        """Return E c(0 … lags)."""
        S = self._everywhere(gamma, self.U) * self.reached[..., None]
        W = self.U.T @ self.grid.gathered(S)
        moved, twice = self._transformed(S), self.taken @ W
        cross = self._products(self.taken, moved, lags) + self._products(moved, self.taken, lags)
        pairs = np.where(np.isfinite(self.pairs), self.pairs, 0.0)[: lags + 1]
        return pairs * gamma[: lags + 1] - cross + self._products(self.taken, twice, lags)

    def first(self, c: Floats, order: int) -> tuple[AutoregressiveProcess, NDArray[np.bool_]]:
        """Return processes of sums of products, (…, lags, m, m), as if nothing had been taken."""
        return yule_walker(c / self.whole, order)

    def order_of(self, c: Floats) -> int:
        """Return the order with the least of Akaike's criterion."""
        n, m, values = self.grid.instants, self.grid.shape[2], []
        for p in range(self.lags + 1):
            process, exists = self.first(c, p)
            if not exists:
                break
            values.append(n * float(np.linalg.slogdet(process.noise)[1]) + 2 * m * m * p)
        return int(np.argmin(values)) if values else 0

    def process_of(self, c: Floats) -> tuple[AutoregressiveProcess, bool]:
        """Return the process under which sums of products are expected as they are; False where that is not reached.

        It is then as near to one that is not stationary as the record can tell.
        """
        order = self.order_of(c)
        process, exists = self.first(c, order)
        if not exists:
            return process, False
        size = float(np.abs(np.diag(c[0] / self.whole)).max())
        for _ in range(ROUNDS):
            gamma = self.gamma(process)
            step = (c[: order + 1] - self.expected(gamma, order)) / self.pairs[: order + 1]
            if np.abs(step).max() < SETTLED * size:
                return process, True
            moved = self._moved(gamma[: order + 1], step, order)
            if moved is None:
                break
            process = moved
        return process, bool(np.abs(step).max() < MOMENT_TOLERANCE * size)

    def _moved(self, gamma: Floats, step: Floats, order: int) -> AutoregressiveProcess | None:
        """Return the process after a step, shortened until it is a process."""
        for share in (1.0, 0.5, 0.25, 0.125, 0.03):
            process, exists = yule_walker(gamma + share * step, order)
            if exists and process.root < np.exp(-1 / (MAX_TIME_CONSTANT * self.grid.shape[1])):
                return process
        return None

    def gamma(self, process: AutoregressiveProcess) -> Floats:
        """Return Γ of one process as far as it reaches, or the records do."""
        reach = min(max(process.memory, self.lags + 1), self.grid.shape[1])
        return process.covariances(reach, spectral_size(process, reach))

    def draw(self, process: AutoregressiveProcess, count: int) -> Floats:
        """Return (N, count) errors of a process, always the same numbers."""
        E, cells, m = self.grid.shape
        size = 1 << int(np.ceil(np.log2(cells + min(process.memory, 8 * cells))))
        white = np.random.default_rng(0).standard_normal((E, size, m, count))
        moved = np.einsum("fab,bc,efcd->efad", process.transfer(size), _root(process.noise), np.fft.rfft(white, axis=1))
        return self.grid.gathered(np.fft.irfft(moved, size, axis=1)[:, :cells])


def _root(covariance: Floats) -> Floats:
    """Return a root of a covariance, also of one that is singular: outputs that say the same have no noise between
    them.
    """
    try:
        return np.asarray(np.linalg.cholesky(covariance))
    except np.linalg.LinAlgError:
        size, axes = np.linalg.eigh(covariance)
        return np.asarray(axes * np.sqrt(np.clip(size, 0.0, None)))


def spectral_size(process: AutoregressiveProcess, reach: int) -> int:
    """Return frequencies at which aliases of the covariances have died out."""
    return 1 << int(np.ceil(np.log2(2 * max(reach, process.memory, 8))))
