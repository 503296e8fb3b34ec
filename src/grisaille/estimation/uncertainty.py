"""How far to trust estimates: covariance, standard errors, intervals.

    Gauss–Newton   C = (JᵀJ)⁻¹                     residuals independent, of unit variance after weighting
    sandwich       C = (JᵀJ)⁻¹ (Σ rᵢ² JᵢJᵢᵀ) (JᵀJ)⁻¹    right also where the variances are not what was assumed;
                   priors have the variances that they state: their rows are in JᵀJ and, with r² = 1, in the sum

in the unknowns themselves, never through a transform; unknowns on a bound are left out (zero column). Directions
that the data do not see have infinite variance and are named in the diagnosis.
"""

from __future__ import annotations

import numpy as np

RANK_TOLERANCE = 1e-10


def gauss_newton_covariance(jacobian: np.ndarray, free: np.ndarray) -> np.ndarray:
    """Return (JᵀJ)⁻¹ of the free unknowns, zero elsewhere; J is made of weighted residuals."""
    return without_undetermined(*_inverse(jacobian, free))


def sandwich_covariance(
    jacobian: np.ndarray, residuals: np.ndarray, free: np.ndarray, beliefs: np.ndarray
) -> np.ndarray:
    """Return the sandwich with its small-sample factor N/(N − n); ``beliefs``: the rows of priors in the Jacobian."""
    bread, undetermined = _inverse(np.vstack([jacobian, beliefs]), free)
    covariance = sandwich_product(bread, jacobian * residuals[:, None], beliefs, int(free.sum()))
    return without_undetermined(covariance, undetermined)


def sandwich_product(bread: np.ndarray, scored: np.ndarray, beliefs: np.ndarray, n: int) -> np.ndarray:
    """Return the sandwich of an inverse around the scores of samples; priors are as they say.

    n : unknowns, of which the data have determined n − tr(bread · priors)
    """
    N, believed = len(scored), beliefs.T @ beliefs
    taken = n - float(np.sum(bread * believed))
    middle = scored.T @ scored * (N / max(N - taken, 1)) + believed
    return np.asarray(bread @ middle @ bread)


def without_undetermined(covariance: np.ndarray, undetermined: np.ndarray) -> np.ndarray:
    """Return the covariance with infinite variances for unknowns in a direction without information."""
    covariance = np.array(covariance)
    covariance[undetermined], covariance[:, undetermined] = 0.0, 0.0
    covariance[undetermined, undetermined] = np.inf
    return covariance


def inverse_information(information: np.ndarray, free: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the inverse of JᵀJ on the free unknowns, in units of its diagonal; and which unknowns it does not
    determine.
    """
    part = information[np.ix_(free, free)]
    scale = np.sqrt(np.clip(np.diag(part), 0.0, None))
    scale[scale == 0] = 1.0
    values, vectors = np.linalg.eigh(part / np.outer(scale, scale))
    kept = values > RANK_TOLERANCE * max(values.max(initial=0.0), 1e-300)
    root = (vectors[:, kept] / np.sqrt(values[kept])) / scale[:, None]
    return _spread(root @ root.T, vectors[:, ~kept], free)


def root_of(information: np.ndarray) -> np.ndarray:
    """Return J with JᵀJ = information; of a filter on the way to break down, diagonals may be nonsense."""
    size = np.sqrt(np.abs(np.diag(information)))
    size = np.where(size > 0, size, 1.0)
    values, vectors = np.linalg.eigh(information / np.outer(size, size))
    return np.asarray(np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T * size)


def root_of_covariance(covariance: np.ndarray) -> np.ndarray:
    """Return R with RRᵀ = covariance, whatever the units; rows of zeros where nothing is determined."""
    known = np.isfinite(np.diag(covariance))
    safe = np.where(np.outer(known, known), covariance, 0.0)
    size = np.sqrt(np.clip(np.diag(safe), 0.0, None))
    scale = np.where(size > 0, size, 1.0)
    values, vectors = np.linalg.eigh(safe / np.outer(scale, scale))
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0)) * scale[:, None])


def _inverse(jacobian: np.ndarray, free: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return (JᵀJ)⁻¹ from the singular values of J, which lose half as many digits as those of JᵀJ."""
    J = jacobian[:, free]
    scale = np.linalg.norm(J, axis=0)
    scale[scale == 0] = 1.0
    _, s, vt = np.linalg.svd(J / scale, full_matrices=False)
    kept = s > RANK_TOLERANCE * s.max(initial=0.0)
    root = (vt[kept].T / s[kept]) / scale[:, None]
    return _spread(root @ root.T, vt[~kept].T, free)


def _spread(inner: np.ndarray, lost: np.ndarray, free: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    n = len(free)
    covariance, undetermined = np.zeros((n, n)), np.zeros(n, dtype=bool)
    covariance[np.ix_(free, free)] = inner
    undetermined[free] = np.abs(lost).max(axis=1, initial=0.0) > 1e-6
    return covariance, undetermined


def correlation_of(covariance: np.ndarray) -> np.ndarray:
    """Return correlations; zero beside an unknown without variance."""
    deviation = np.sqrt(np.clip(np.diag(covariance), 0.0, None))
    safe = np.where(deviation > 0, deviation, 1.0)
    with np.errstate(invalid="ignore"):
        matrix = np.nan_to_num(covariance / np.outer(safe, safe))
    np.fill_diagonal(matrix, 1.0)
    return np.asarray(matrix)


def half_width(standard_error: np.ndarray, level: float, degrees_of_freedom: float | np.ndarray) -> np.ndarray:
    """Return half the length of two-sided intervals: Student's t times the standard error."""
    from scipy.stats import t

    return np.asarray(t.ppf(0.5 + level / 2, np.maximum(degrees_of_freedom, 1)) * standard_error)


def level_limits(sigma: float, level: float, degrees_of_freedom: float) -> tuple[float, float]:
    """Return the interval of a standard deviation that was estimated with so many degrees of freedom: ν s²/σ² is
    χ²(ν).
    """
    from scipy.stats import chi2

    nu = max(degrees_of_freedom, 1e-3)
    low, high = chi2.ppf([0.5 + level / 2, 0.5 - level / 2], nu)
    return float(sigma * np.sqrt(nu / low)), float(sigma * np.sqrt(nu / high)) if high > 0 else np.inf


def t_test(
    estimate: np.ndarray, standard_error: np.ndarray, degrees_of_freedom: float | np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return t = estimate / standard error and its two-sided p value; NaN without a standard error."""
    from scipy.stats import t as student

    with np.errstate(divide="ignore", invalid="ignore"):
        t = np.where(standard_error > 0, estimate / standard_error, np.nan)
    return t, 2 * student.sf(np.abs(t), np.maximum(degrees_of_freedom, 1))
