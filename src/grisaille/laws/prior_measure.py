"""A law as a prior: the one place that knows in which measure a density is maximised, and how criteria contain it.

With ℓ(θ) the log-density in the law's measure (``laws.law``) and m its mode, a criterion contains ℓ(m) − ℓ(θ) ≥ 0.
Least squares contains it as a residual r with

    ½ r² = ℓ(m) − ℓ(θ)          r = ±√(2 (ℓ(m) − ℓ(θ))),  r' = −ℓ'/r        (D. M. Bates, D. G. Watts' signed root)

so that objective and gradient are exact for every law, and (θ − mean)/std and its like where the law is normal in some
transform. Where ℓ has a slope at its mode, at a kink or at the end of the support, r' would be infinite there, and one
half is added: ½ r² = ℓ(m) − ℓ(θ) + ½.

**Standard errors** contain the prior's curvature Λ = −ℓ'' at the estimate (for measure "log", −d²ℓ/d(log θ)² / θ²), not
r'². In the tails of Student's and Cauchy's law Λ is negative: it takes from what the data say, and standard errors are
larger than without the prior. Sandwiches, which need the variance of a measurement, have zero there.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from grisaille.errors import EstimationError
from grisaille.laws.joint import MultivariateNormal, Smoothness
from grisaille.laws.law import Law
from grisaille.laws.law_derivatives import symbolic_formula
from grisaille.laws.symbolic_functions import log

if TYPE_CHECKING:
    import casadi as ca

Prior = Law | MultivariateNormal | Smoothness
"""What ``prior=`` may be."""
NEAR_MODE = 1e-4
"""Distance from the mode, in units of the law's width there, within which r is −ℓ'/√−ℓ''(m): it loses digits."""
START_SHARE = 1e-9
"""Of the way from an end of the support where the density vanishes to the mode: a search stays so far away from it."""
TINY_CURVATURE = 1e-300
NEWTON_STEPS = 3
"""Newton's, which make a numerical mode exact."""


@dataclass(frozen=True)
class PriorResidual:
    """A prior as least squares sees it."""

    value: float
    slope: float
    row: float
    """√Λ, which stands for the slope in standard errors; zero where Λ is negative."""
    upward: float = 0.0
    """√−Λ where Λ is negative."""


@dataclass(frozen=True)
class _Mode:
    """Where a prior is largest."""

    at: float
    top: float
    width: float
    """1/√−ℓ''; zero where ℓ has a slope there."""


def prior_residual(law: Law, value: float) -> PriorResidual | None:
    """Return the residual of a prior, infinite outside its support; None where it is flat."""
    if law.is_flat:
        return None
    low, high = law.support
    if not low <= value <= high or (value == 0 and law.measure == "log"):
        return PriorResidual(math.inf, 0.0, 0.0)
    known = law.residual(value)
    if known is not None:
        return PriorResidual(known[0], known[1], known[1])
    mode, (ell, slope, curvature) = _mode(law), log_prior(law, value)
    row, upward = math.sqrt(max(curvature, 0.0)), math.sqrt(max(-curvature, 0.0))
    away = value - mode.at
    if mode.width and abs(away) < NEAR_MODE * mode.width:
        return PriorResidual(-slope * mode.width, 1 / mode.width, row, upward)
    r = math.sqrt(max(2 * (mode.top - ell), 0.0) + (0.0 if mode.width else 1.0))
    r = math.copysign(r, away) if mode.width else r
    return PriorResidual(r, -slope / r if r else 0.0, row, upward)


def log_prior(law: Law, value: float) -> tuple[float, float, float]:
    """Return ℓ, dℓ/dθ and the curvature Λ."""
    ell, slope, bend = (float(v) for v in _differentiated(law)(value))
    if law.measure == "log":
        return ell + math.log(value), slope + 1 / value, -(bend + slope / value)
    return ell, slope, -bend


def log_priors(laws: tuple[Law, ...], values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return ℓ and dℓ/dθ of several laws, each at its value; −∞ and zero outside of a support."""
    function, is_flat, by_log, low, high = _together(laws)
    found, slopes = (np.array(part, dtype=float).ravel() for part in function(values))
    if by_log.any():
        with np.errstate(invalid="ignore", divide="ignore"):
            found, slopes = found + np.where(by_log, np.log(values), 0.0), slopes + np.where(by_log, 1 / values, 0.0)
    outside = ~((low <= values) & (values <= high)) | ~np.isfinite(found)
    slopes[outside | is_flat] = 0.0
    found[outside] = -np.inf
    return found, slopes


def minus_log_prior(law: Law, symbol: ca.SX) -> ca.SX:
    """Return ½ r² as a formula of CasADi's symbol."""
    if law.is_flat:
        return 0.0
    standard = law.standardised(symbol)
    if standard is not None:
        return standard**2 / 2
    mode = _mode(law)
    ell = symbolic_formula(law, symbol) + (log(symbol) if law.measure == "log" else 0.0)
    return mode.top - ell + (0.0 if mode.width else 0.5)


def search_curvature(law: Law, symbol: ca.SX) -> ca.SX:
    """Return the curvature to search with as a formula of CasADi's symbol: Λ where it is positive, else r'²."""
    import casadi as ca

    term = minus_log_prior(law, symbol)
    slope = ca.gradient(term, symbol)
    bend = ca.gradient(slope, symbol)
    if law.is_flat or law.standardised(symbol) is not None:
        return bend
    return ca.if_else(bend > 0, bend, slope**2 / (2 * term + TINY_CURVATURE))


def support_to_search(law: Law) -> tuple[float, float]:
    """Return the support without ends at which the density vanishes: ℓ is finite on it."""
    low, high = law.support
    mode = _mode(law).at if not law.is_flat else law.mode
    ends = []
    for end in (low, high):
        vanishes = math.isfinite(end) and not math.isfinite(float(law.log_density(end)))
        ends.append(end + START_SHARE * (mode - end) if vanishes else end)
    return ends[0], ends[1]


def is_searched_by_logarithm(law: Law) -> bool:
    """Return whether a law is of positive values, with a density that vanishes at zero."""
    return law.support == (0.0, np.inf) and law.mode > 0


def refuse_without_maximum(name: str, law: Law) -> None:
    """Refuse a prior whose density grows without limit, which a fit cannot maximise."""
    law.refuse_open()
    if not law.is_flat:
        mode = law.mode
        if not math.isfinite(float(law.log_density(mode))):
            raise EstimationError(
                f"The prior of '{name}' is {law!r}, whose density is infinite at {mode:g}: a fit, which takes the most "
                f"likely value, would go there whatever the data say. Choose a law with a finite density, such as "
                f"gr.Gamma with shape ≥ 1, gr.LogNormal or gr.HalfNormal."
            )


@lru_cache(maxsize=1024)
def _differentiated(law: Law) -> ca.Function:
    """Return the function ℓ, ℓ', ℓ'' per unit of θ."""
    import casadi as ca

    x = ca.SX.sym("x")
    formula = symbolic_formula(law, x)
    slope = ca.gradient(formula, x)
    return ca.Function("prior", [x], [formula, ca.densify(slope), ca.densify(ca.gradient(slope, x))])


@lru_cache(maxsize=256)
def _together(laws: tuple[Law, ...]) -> tuple[ca.Function, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return the function ℓ, ℓ' of several laws per unit of θ; which are flat, count by logarithm; their supports."""
    import casadi as ca

    x = ca.SX.sym("x", len(laws))
    formulas = [ca.densify(ca.SX(symbolic_formula(law, x[k]))) for k, law in enumerate(laws)]
    slopes = [ca.densify(ca.gradient(formula, x[k])) for k, formula in enumerate(formulas)]
    function = ca.Function("priors", [x], [ca.vertcat(*formulas), ca.vertcat(*slopes)])
    is_flat = np.array([w.is_flat for w in laws], dtype=bool)
    by_log = np.array([w.measure == "log" for w in laws], dtype=bool)
    low, high = np.array([w.support for w in laws], dtype=float).T
    return function, is_flat, by_log, low, high


@lru_cache(maxsize=1024)
def _mode(law: Law) -> _Mode:
    at, (low, high) = float(law.mode), law.support
    ell, slope, curvature = log_prior(law, at)
    for _ in range(NEWTON_STEPS):
        if not (curvature > 0 and low < at < high and abs(slope) < 0.01 * math.sqrt(curvature)):
            break
        at += slope / curvature
        ell, slope, curvature = log_prior(law, at)
    is_smooth = curvature > 0 and abs(slope) < 1e-6 * math.sqrt(curvature)
    return _Mode(at, ell, 1 / math.sqrt(curvature) if is_smooth else 0.0)
