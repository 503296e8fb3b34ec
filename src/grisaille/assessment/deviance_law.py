"""The law of a deviance under a hypothesis: one rule for profiles, intervals, regions, ``fit.test`` and ``gr.compare``.

With D = 2 (log L − log L with d unknowns held) and ν degrees of freedom left to the noise,

    noise known                             D ~ χ²(d)
    noise from residuals (least squares)    ν (exp(κ D/ν) − 1) ~ d F(d, ν),     κ = tr(C⁻¹ C_ML) / d
    levels among the unknowns (likelihoods) D ~ d F(d, ν)

C is the covariance of the d unknowns with the reported noise, C_ML with that of the joint maximum. For one output
without priors κ = ν/N, and the left side is the growth of the sum of squares by s²: F exactly for linear models.
Priors and several outputs have the ν and κ of their own leverages (``determination/freedom``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from grisaille.estimation.fitted import Fitted
from grisaille.estimation.uncertainty import gauss_newton_covariance

MAX_EXPONENT = 600.0
"""Exponent."""


@dataclass(frozen=True)
class DevianceLaw:
    """How deviances are compared with quantiles."""

    freedom: float = np.inf
    """ν; infinite where all noise is known."""
    factor: float = np.nan
    """κ; NaN where the deviance is compared as it is."""

    @property
    def bends(self) -> bool:
        """Return whether the statistic is another function of the deviance than itself."""
        return bool(np.isfinite(self.freedom) and not np.isnan(self.factor))

    def statistic(self, deviance: float) -> float:
        """Return the statistic that is compared with d F(d, ν), or χ²(d)."""
        if not self.bends:
            return float(deviance)
        return float(self.freedom * np.expm1(min(self.factor * deviance / self.freedom, MAX_EXPONENT)))

    def deviance(self, statistic: float) -> float:
        """Return the deviance at which the statistic has this value."""
        if not self.bends:
            return float(statistic)
        return float(self.freedom / self.factor * np.log1p(statistic / self.freedom))

    def quantile(self, level: float, dimension: int = 1) -> float:
        """Return the quantile of the statistic."""
        from scipy.stats import chi2, f

        if not np.isfinite(self.freedom):
            return float(chi2.ppf(level, dimension))
        return float(dimension * f.ppf(level, dimension, self.freedom))

    def threshold(self, level: float, dimension: int = 1) -> float:
        """Return the deviance at the end of a region of the given confidence."""
        return self.deviance(self.quantile(level, dimension))

    def p(self, deviance: float, dimension: int) -> float:
        """Return the probability of a larger deviance where the hypothesis holds."""
        from scipy.stats import chi2, f

        if dimension == 0:
            return float(deviance <= 0)
        statistic = max(self.statistic(deviance), 0.0)
        if not np.isfinite(self.freedom):
            return float(chi2.sf(statistic, dimension))
        return float(f.sf(statistic / dimension, dimension, self.freedom))

    @property
    def said(self) -> str:
        """Return which law it is, in words."""
        return "" if not np.isfinite(self.freedom) else f", F with {self.freedom:.4g} of the residuals"


def law_of(fit: Fitted, k: Sequence[int] | None = None) -> DevianceLaw:
    """Return the law of a fit's deviances with the unknowns of some indices held; of all of them by default."""
    e = fit.estimate
    if not (e.noise and e.evaluation.is_least_squares):
        nu = float(np.min(fit.student))
        return DevianceLaw(max(nu, 1.0) if np.isfinite(nu) else np.inf)
    freedom = e.freedom
    nu = freedom.of_unknowns(k)
    if not np.isfinite(nu):
        return DevianceLaw()
    counts = {n: float(np.sum(freedom.outputs == n)) for n in freedom.open}
    if len(set(freedom.outputs.tolist())) == 1 and len(freedom.jacobian) == freedom.count:
        return DevianceLaw(max(nu, 1.0), freedom.left(freedom.open[0]) / counts[freedom.open[0]])
    wanted = np.flatnonzero(freedom.determined) if k is None else np.asarray(k, dtype=int)
    determined = freedom.determined.copy()
    determined[wanted] = True
    at_most = freedom.rescaled({n: float(np.sqrt(freedom.left(n) / counts[n])) for n in counts})
    C, C_ml = (gauss_newton_covariance(f.jacobian, determined) for f in (freedom, at_most))
    wanted = wanted[np.isfinite(np.diag(C)[wanted]) & (np.diag(C)[wanted] > 0)]
    if not len(wanted):
        return DevianceLaw(max(nu, 1.0), 1.0)
    size = np.sqrt(np.diag(C)[wanted])
    here, there = (c[np.ix_(wanted, wanted)] / np.outer(size, size) for c in (C, C_ml))
    return DevianceLaw(max(nu, 1.0), float(np.trace(np.linalg.pinv(here, hermitian=True) @ there)) / len(wanted))
