"""The discrete Fourier transform of ``Modelica.Math.FastFourierTransform``, of numbers and of formulas.

X_k = Σ_j u_j exp(−2πi jk/n),   k = 0 … n/2

The library's amplitude is |X_k|/(n/2 + 1), its phase atan2(Im X_k, Re X_k); an odd n has no transform (``info`` = 1).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from grisaille.modelica.builtins import BUILTINS
from grisaille.modelica.values import Unfit, add, array, is_number, multiply, total

MAX_SAMPLES = 2_000
"""Samples of one transform; as formulas its terms are n²/2."""


def raw_real_fft(u: Any) -> tuple[Any, Any, Any]:
    """Return information flag, amplitudes and phases of the first n/2 + 1 frequencies."""
    if not isinstance(u, np.ndarray) or u.ndim != 1 or not 2 <= u.size <= MAX_SAMPLES:
        raise Unfit(f"a Fourier transform takes an array of 2 to {MAX_SAMPLES} numbers")
    n, places = u.size, u.size // 2 + 1
    if n % 2:
        return 1, array([0.0] * places), array([0.0] * places)
    cosines, sines = ([_circle(f, k, n) for k in range(n)] for f in (math.cos, math.sin))
    amplitudes, phases = [], []
    for k in range(places):
        real = _combined(u, [cosines[j * k % n] for j in range(n)])
        imaginary = _combined(u, [-sines[j * k % n] for j in range(n)])
        size = BUILTINS["sqrt"](add(multiply(real, real), multiply(imaginary, imaginary)))
        amplitudes.append(multiply(size, 1.0 / places))
        phases.append(BUILTINS["atan2"](imaginary, real))
    return 0, array(amplitudes), array(phases)


def _circle(function: Callable[[float], float], k: int, n: int) -> float:
    """Return a sine or cosine of 2πk/n; those of quarters exactly."""
    value = function(2.0 * math.pi * k / n)
    return float(round(value)) if 4 * k % n == 0 else value


def _combined(items: Any, factors: list[float]) -> Any:
    """Return the sum of products; of numbers as one number."""
    if all(map(is_number, items)):
        return math.fsum(float(item) * factor for item, factor in zip(items, factors, strict=True))
    return total([multiply(item, factor) for item, factor in zip(items, factors, strict=True) if factor])


NATIVE: dict[str, Callable[..., Any]] = {"Modelica.Math.FastFourierTransform.Internal.rawRealFFT": raw_real_fft}
"""By the name of the function, which exports do not bring."""
