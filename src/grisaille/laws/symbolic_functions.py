"""The functions that log-densities are written in, of arrays and of CasADi's symbols, which differentiate them.

log Γ of a symbol is Stirling's series at z + 8, from which Γ(z + 8) = Γ(z) z (z + 1) … (z + 7) leads back; the first
term that is left out is below 1e-17.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from grisaille.laws.values import Formula


STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156, -3617 / 122400)
GAMMA_SHIFT = 8
HALF_LOG_TWO_PI = 0.9189385332046727


def is_symbolic(value: object) -> bool:
    """Return whether a value is one of CasADi's."""
    return type(value).__module__.startswith("casadi")


def log(value: Formula) -> Formula:
    """Return the natural logarithm."""
    return _casadi().log(value) if is_symbolic(value) else np.log(value)


def log1p(value: Formula) -> Formula:
    """Return log(1 + value)."""
    return _casadi().log1p(value) if is_symbolic(value) else np.log1p(value)


def times_log(factor: Formula, value: Formula) -> Formula:
    """Return factor · log(value), zero where both factors are zero and infinite."""
    if is_symbolic(value) or is_symbolic(factor):
        return factor * log(value)
    from scipy.special import xlogy

    return xlogy(factor, value)


def absolute(value: Formula) -> Formula:
    """Return the absolute value."""
    return _casadi().fabs(value) if is_symbolic(value) else np.abs(value)


def log_gamma(value: Formula) -> Formula:
    """Return log Γ of positive values."""
    if not is_symbolic(value):
        from scipy.special import gammaln

        return gammaln(value)
    far = value + GAMMA_SHIFT
    series = sum(c / far ** (2 * k + 1) for k, c in enumerate(STIRLING))
    back = sum((log(value + k) for k in range(1, GAMMA_SHIFT)), log(value))
    return (far - 0.5) * log(far) - far + HALF_LOG_TWO_PI + series - back


def _casadi() -> Any:
    import casadi

    return casadi
