"""More spectra, each a filter of unit white noise with a line on when to use it.

::

    ornstein_uhlenbeck(r)            1 / (s + r)
    matern12, matern32, matern52(τ)  covariance 1, 1 + a, 1 + a + a²/3 times e^{−a}, a = √(2ν) |t| / τ
    double_integrated()              1 / s²
    periodic(T)                      ω / (s² + ω²),  ω = 2π/T
    quasi_periodic(T, τ)             covariance e^{−|t|/τ} cos ωt
    from_spectral_density(num, den)  |G(iω)|² = num(ω²) / den(ω²)

Those given by a covariance have stationary variance 1, so that ``scale`` is the standard deviation. Reference: C. E.
Rasmussen, C. K. I. Williams, Gaussian Processes for Machine Learning (2006), section 4.2; J. Hartikainen, S. Särkkä,
"Kalman filtering and smoothing solutions to temporal Gaussian process regression models", MLSP 2010.
"""

from __future__ import annotations

from math import comb, pi
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from grisaille.errors import ModelError
from grisaille.model.expression import Constant, as_expression
from grisaille.model.functions import sqrt
from grisaille.model.spectra import Spectrum, _positive, rational, state_space

if TYPE_CHECKING:
    from grisaille.model.declarations import Parameter
    from grisaille.model.expression import Expression

__all__ = [
    "double_integrated",
    "from_spectral_density",
    "matern12",
    "matern32",
    "matern52",
    "ornstein_uhlenbeck",
    "periodic",
    "quasi_periodic",
]

ROOT_TOLERANCE = 1e-6
"""Roots of a spectrum this close to the real axis, relative to their size, are taken as zeros that it touches."""


def ornstein_uhlenbeck(rate: float | Expression, *, start: str = "stationary") -> Spectrum:
    """1/(s + r), that is dw = −r w dt + dv; ``scale`` is the diffusion.

    Use it when an error forgets exponentially and its diffusion is known or wanted: the mean-reverting process.

    rate : r, above zero; a number or a formula of parameters
    start : ``"stationary"``, drawn from its stationary distribution, or ``"zero"``
    """
    return rational([1.0], [1.0, _plain("ornstein_uhlenbeck", "rate", rate)], start=start)


def matern12(timescale: float, *, start: str = "stationary") -> Spectrum:
    """Return covariance e^{−|t|/τ}: continuous, nowhere differentiable; pole excess 1.

    Use it when an error is rough: it forgets over the time τ and has no rate of change.

    timescale : τ, above zero; a number or a formula of parameters
    start : ``"stationary"``, drawn from its stationary distribution, or ``"zero"``
    """
    return _matern("matern12", timescale, 1, 1.0, 2.0, start)


def matern32(timescale: float | Parameter, *, start: str = "stationary") -> Spectrum:
    """Return covariance (1 + a) e^{−a}, a = √3 |t|/τ: one derivative; pole excess 2.

    Use it when an unknown force or flow changes gradually and its rate of change matters.

    timescale : τ, above zero; a number or a formula of parameters
    start : ``"stationary"``, drawn from its stationary distribution, or ``"zero"``
    """
    return _matern("matern32", timescale, 2, 3.0, 4.0, start)


def matern52(timescale: float | Expression, *, start: str = "stationary") -> Spectrum:
    """Return covariance (1 + a + a²/3) e^{−a}, a = √5 |t|/τ: two derivatives; pole excess 3.

    Use it when an unknown signal is smooth, or when index reduction differentiates it twice.

    timescale : τ, above zero; a number or a formula of parameters
    start : ``"stationary"``, drawn from its stationary distribution, or ``"zero"``
    """
    return _matern("matern52", timescale, 3, 5.0, 16.0 / 3.0, start)


def double_integrated() -> Spectrum:
    """1/s²: the integral of a Wiener process; starts at zero because it has no stationary distribution.

    Use it when a quantity drifts with a slope that itself wanders: trends, slowly changing parameters.
    """
    return state_space([[0, 1], [0, 0]], [0, 1], [1, 0], start="zero")


def periodic(period: float | Expression) -> Spectrum:
    """ω/(s² + ω²), ω = 2π/T: an undamped oscillation whose amplitude grows like √(t/2) from zero.

    Use it when a cycle of known period has an amplitude and a phase that wander and do not return. For a cycle that
    forgets, take ``quasi_periodic``; for harmonics, several disturbances.

    period : T, above zero; a number or a formula of parameters
    """
    omega = 2 * pi / _plain("periodic", "period", period)
    return state_space([[0, omega], [-omega, 0]], [0, 1], [1, 0], start="zero")


def quasi_periodic(period: float | Expression, timescale: float | Expression, *, start: str = "stationary") -> Spectrum:
    """Return covariance e^{−|t|/τ} cos(2πt/T): √(2λ) (s + √(λ² + ω²)) / (s² + 2λs + λ² + ω²), λ = 1/τ; pole excess 1.

    Use it when a disturbance repeats with a period but forgets its phase over the time τ: daily loads, engine orders.

    period : T, above zero; a number or a formula of parameters
    timescale : τ, above zero; a number or a formula of parameters
    start : ``"stationary"``, drawn from its stationary distribution, or ``"zero"``
    """
    omega = 2 * pi / _plain("quasi_periodic", "period", period)
    rate = 1 / _plain("quasi_periodic", "timescale", timescale)
    square, gain = rate**2 + omega**2, sqrt(2 * rate)
    return rational([gain, gain * sqrt(square)], [1.0, 2 * rate, square], start=start)


def from_spectral_density(num: ArrayLike, den: ArrayLike, *, start: str = "stationary") -> Spectrum:
    """Return the stable filter whose spectral density is num(ω²)/den(ω²); numbers, from the highest power of ω² down.

    Use it when a spectrum was measured or fitted and its filter is wanted: it is found by spectral factorisation.

    num, den : coefficients of numerator and denominator
    start : ``"stationary"``, drawn from its stationary distribution, or ``"zero"``
    """
    numerator, denominator = _coefficients("num", num), _coefficients("den", den)
    _refuse_improper(numerator, denominator)
    _refuse_negative(numerator, denominator)
    gain = np.sqrt(numerator[0] / denominator[0])
    return rational(gain * _stable_factor(numerator), _stable_factor(denominator), start=start)


def _matern(
    name: str, timescale: float | Expression, order: int, twice_nu: float, intensity: float, start: str
) -> Spectrum:
    # (s + λ)^order with λ = √(2ν)/τ; the intensity that makes the variance one is c λ^(2 order − 1)
    rate = twice_nu**0.5 / _plain(name, "timescale", timescale)
    denominator = [comb(order, k) * rate**k if k else 1.0 for k in range(order + 1)]
    return rational([intensity**0.5 * rate ** (order - 0.5)], denominator, start=start)


def _plain(owner: str, name: str, value: Any) -> float | Expression:
    """Return the number, where the formula is one, so that what is made of it prints as numbers."""
    expression = _positive(owner, name, value)
    return expression.value if isinstance(expression, Constant) else expression


def _coefficients(name: str, values: ArrayLike) -> NDArray[np.float64]:
    entries = [as_expression(entry) for entry in np.atleast_1d(np.array(values, dtype=object)).ravel()]
    numbers = np.trim_zeros(np.array([entry.value for entry in entries if isinstance(entry, Constant)]), "f")
    if not all(isinstance(entry, Constant) for entry in entries):
        raise ModelError(
            f"from_spectral_density: {name} must hold numbers, because its roots are needed. With parameters inside, "
            "write the filter itself: rational(num, den)."
        )
    if not numbers.size:
        raise ModelError(f"from_spectral_density: {name} has no coefficient that differs from zero.")
    return numbers


def _refuse_improper(num: NDArray[np.float64], den: NDArray[np.float64]) -> None:
    if num.size >= den.size:
        raise ModelError(
            f"from_spectral_density: the spectrum does not vanish at high frequencies (degree {num.size - 1} over "
            f"{den.size - 1} in ω²), so its variance is infinite. Add poles, or use white() for white noise itself."
        )


def _refuse_negative(num: NDArray[np.float64], den: NDArray[np.float64]) -> None:
    pole = _touching(_roots(den))
    if pole.size:
        raise ModelError(
            f"from_spectral_density: the spectrum is infinite at ω = {np.sqrt(pole[0]):.4g}: no stationary process has "
            "it. Damp that pole, or use periodic() or integrated()."
        )
    edges = np.concatenate([[0.0], _touching(_roots(num))])
    probes = np.append((edges[1:] + edges[:-1]) / 2, 2 * edges[-1] + 1)
    value = np.polyval(num, probes) * np.sign(np.polyval(den, probes))
    negative = value < -1e-9 * np.polyval(np.abs(num), probes)
    if negative.any():
        raise ModelError(
            f"from_spectral_density: the spectrum is negative, for example at ω = {np.sqrt(probes[negative][0]):.4g}. "
            "Spectral densities are nowhere negative; check signs, and that powers of ω² run from the highest down."
        )


def _stable_factor(polynomial: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the monic p(s) without roots right of the axis with |p(iω)|² = the polynomial over its leading
    coefficient.
    """
    inside = np.trim_zeros(polynomial, "b")
    roots = _roots(inside)
    real = _is_touching(roots)
    factor = np.atleast_1d(np.poly(-np.sqrt(-roots[~real])).real)
    touching = _touching(roots)
    for low, high in zip(touching[::2], touching[1::2], strict=True):
        factor = np.polymul(factor, [1.0, 0.0, np.sqrt(low * high)])
    return np.append(factor, np.zeros(polynomial.size - inside.size))


def _roots(polynomial: NDArray[np.float64]) -> NDArray[np.complex128]:
    return np.roots(polynomial).astype(complex)


def _touching(roots: NDArray[np.complex128]) -> NDArray[np.float64]:
    """Return the roots ω² on the real axis from zero up, sorted."""
    return np.sort(roots[_is_touching(roots)].real)


def _is_touching(roots: NDArray[np.complex128]) -> NDArray[np.bool_]:
    return np.asarray((np.abs(roots.imag) <= ROOT_TOLERANCE * np.abs(roots)) & (roots.real >= 0))
