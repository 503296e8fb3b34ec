"""How many degrees of freedom a fit leaves to its residuals, and to the standard error of each unknown.

With J_j the rows of output j in units of its noise σ_j, Λ the precision of the priors, C = (Σ_j J_jᵀJ_j + Λ)⁻¹ and the
matrix A = J C Jᵀ with its blocks A_jk,

    leverage_j = tr A_jj                what the N_j samples of an output have given to the unknowns
    ν_j = N_j − leverage_j              what is left of them:  σ_j² = SSE_j / ν_j
    n_eff = Σ_j leverage_j              unknowns that the data determined: n without priors, 0 where priors did it all

**How well σ is known.** The information on log σ_j² is ½ G, G_jk = tr((I − A)_jk (I − A)_kj), so that σ_j is known as
well as by sure_j = 1/(G⁻¹)_jj degrees of freedom: ν_j for one output without priors, fewer where priors and data have a
part in the same unknowns.

**How well an unknown's variance is known.** C_kk contains each open σ_j² with the share s_kj = (C J_jᵀJ_j C)_kk / C_kk:
1/ν_k = Σ_j (s_kj / s_k)² / sure_j, s_k = Σ_j s_kj. Where the open outputs have less than a tenth of the variance, that
tenth takes the place of s_k: normal where a prior, or known noise, decides alone.

References: D. J. C. MacKay, Neural Computation 4 (1992) 415 (n_eff); F. E. Satterthwaite, Biometrics Bulletin 2 (1946)
110; coverage: ``benchmarks/prior_coverage.py``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from grisaille.estimation.uncertainty import RANK_TOLERANCE, gauss_newton_covariance

ROUNDS, STAYS = 100, 1e-13
"""Of levels that leverages and levels settle in turn, and when they have."""
MIN_DEGREES_OF_FREEDOM = 1e-6
"""Degrees of freedom that an output has at least."""
SMALL_VARIANCE_SHARE = 0.1
"""Of a variance: with less of it, the noise that was estimated matters less and less."""


@dataclass(frozen=True, eq=False)
class DegreesOfFreedom:
    """What residuals leave, from the Jacobian of weighted residuals."""

    jacobian: np.ndarray
    """Rows of the data, then of priors."""
    outputs: np.ndarray
    """The output of each row of the data."""
    open: tuple[str, ...]
    """Outputs whose noise was estimated."""
    determined: np.ndarray
    """Unknowns that no bound holds and that something determines."""

    @property
    def count(self) -> int:
        return len(self.outputs)

    @cached_property
    def covariance(self) -> np.ndarray:
        """C of the unknowns that are determined, zero elsewhere."""
        return self.over(self.determined)

    def over(self, determined: np.ndarray) -> np.ndarray:
        """Return the covariance C of other unknowns; zero where they are not determined."""
        found = gauss_newton_covariance(self.jacobian, determined)
        return np.where(np.isfinite(found), found, 0.0)

    @cached_property
    def _directions(self) -> np.ndarray:
        """Orthonormal columns that span what data and priors see."""
        J = self.jacobian[:, self.determined]
        scale = np.linalg.norm(J, axis=0)
        u, s, _ = np.linalg.svd(J / np.where(scale > 0, scale, 1.0), full_matrices=False)
        return np.asarray(u[:, s > RANK_TOLERANCE * s.max(initial=0.0)])

    @cached_property
    def leverages(self) -> np.ndarray:
        """Of each sample, J_i C J_iᵀ."""
        return np.asarray(np.sum(self._directions[: self.count] ** 2, axis=1))

    @cached_property
    def unknowns(self) -> float:
        """n_eff: unknowns that the data determined."""
        determined, beliefs = self._directions.shape[1], self._directions[self.count :]
        return float(determined) - float(np.sum(beliefs**2)) if len(beliefs) else float(determined)

    def left(self, output: str) -> float:
        """Return ν of an output."""
        mine = self.outputs == output
        if len(set(self.outputs.tolist())) == 1:
            return max(self.count - self.unknowns, MIN_DEGREES_OF_FREEDOM)
        return max(float(mine.sum() - self.leverages[mine].sum()), MIN_DEGREES_OF_FREEDOM)

    @cached_property
    def sure(self) -> dict[str, float]:
        """Degrees of freedom with which the noise of each open output is known."""
        if len(set(self.outputs.tolist())) == 1 and len(self.jacobian) == self.count:
            return {n: self.left(n) for n in self.open}
        rows = {n: self._directions[: self.count][self.outputs == n] for n in self.open}
        inner = {n: q.T @ q for n, q in rows.items()}
        G = np.array([[float(np.sum(inner[a] * inner[b])) for b in self.open] for a in self.open])
        G += np.diag([len(rows[n]) - 2 * float(np.trace(inner[n])) for n in self.open])
        with np.errstate(divide="ignore"):
            known_with = 1 / np.clip(np.diag(np.linalg.pinv(G, hermitian=True)), 1e-300, None)
        return {
            n: float(np.clip(v, MIN_DEGREES_OF_FREEDOM, self.left(n)))
            for n, v in zip(self.open, known_with, strict=True)
        }

    def of_unknowns(self, k: Sequence[int] | None = None) -> float:
        """Return ν of the joint confidence region of some unknowns; of all that are determined by default."""
        wanted = np.flatnonzero(self.determined) if k is None else np.asarray(k, dtype=int)
        determined = self.determined.copy()
        determined[wanted] = True
        C = self.covariance if np.array_equal(determined, self.determined) else self.over(determined)
        wanted = wanted[np.diag(C)[wanted] > 0]
        if not self.open or not len(wanted):
            return np.inf
        size = np.sqrt(np.diag(C)[wanted])
        inverse = np.linalg.pinv(C[np.ix_(wanted, wanted)] / np.outer(size, size), hermitian=True)
        shares = {}
        for output in self.open:
            J = self.jacobian[: self.count][self.outputs == output]
            moved = J @ C[:, wanted] / size
            shares[output] = float(np.einsum("ik,kl,il->", moved, inverse, moved)) / len(wanted)
        whole = max(sum(shares.values()), SMALL_VARIANCE_SHARE)
        uncertain = sum((share / whole) ** 2 / self.sure[output] for output, share in shares.items())
        return 1 / uncertain if uncertain > 1e-12 else np.inf

    def of_each(self) -> np.ndarray:
        """Return ν of every unknown's standard error."""
        return np.array([self.of_unknowns([k]) for k in range(len(self.determined))])

    def rescaled(self, factors: Mapping[str, float]) -> DegreesOfFreedom:
        """Return the same where the noise of some outputs is so many times as large."""
        jacobian = self.jacobian.copy()
        for output, factor in factors.items():
            jacobian[: self.count][self.outputs == output] /= factor
        return DegreesOfFreedom(jacobian, self.outputs, self.open, self.determined)


def settled_levels(
    freedom: DegreesOfFreedom, squares: Mapping[str, float], levels: Mapping[str, float]
) -> dict[str, float]:
    """Return σ_j = √(SSE_j / ν_j) of every open output, with the ν_j that belong to these σ.

    freedom : at the levels ``levels``
    squares : SSE of each open output
    """
    found = dict(levels)
    for _ in range(ROUNDS):
        at = freedom.rescaled({n: found[n] / levels[n] for n in found})
        renewed = {n: float(np.sqrt(max(squares[n], 1e-300) / at.left(n))) for n in found}
        moved = max((abs(renewed[n] / found[n] - 1) for n in found), default=0.0)
        found = renewed
        if moved < STAYS:
            break
    return found
