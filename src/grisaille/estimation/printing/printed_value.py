"""An estimate that prints with its uncertainty and works as a float."""

from __future__ import annotations

import numpy as np


class Value(float):
    """``fit["k"]``: prints ``6.27 ± 0.21 kg/m``; arithmetic is that of the number."""

    std_error: float
    unit: str
    name: str
    is_approximate: bool
    """The standard error is not to be taken at its word; the fit's notes say why."""

    def __new__(
        cls, value: float, std_error: float, unit: str = "", name: str = "", is_approximate: bool = False
    ) -> Value:
        made = super().__new__(cls, value)
        made.std_error, made.unit, made.name = float(std_error), unit, name
        made.is_approximate = is_approximate
        return made

    def __str__(self) -> str:
        text = with_error(float(self), self.std_error)
        text = f"{text} {self.unit}" if self.unit else text
        return f"{text} (approximate error)" if self.is_approximate else text

    __repr__ = __str__

    def __reduce__(self) -> tuple[type[Value], tuple[float, float, str, str, bool]]:
        return Value, (float(self), self.std_error, self.unit, self.name, self.is_approximate)


def with_error(value: float, std_error: float) -> str:
    """Return digits down to the second significant one of the standard error; small and large numbers with an
    exponent.
    """
    if not np.isfinite(std_error) or std_error <= 0:
        return f"{value:.6g}"
    decimals = 1 - int(np.floor(np.log10(std_error)))
    if -6 <= decimals <= 9 and (1e-4 <= abs(value) or std_error >= 1e-4) and abs(value) < 1e7:
        shown = max(decimals, 0)
        return f"{value:.{shown}f} ± {std_error:.{shown}f}"
    if value == 0:
        return f"0 ± {std_error:.1e}"
    digits = max(int(np.floor(np.log10(abs(value)))) + decimals, 1)
    mantissa, power = f"{value:.{digits}e}".split("e")
    spread = std_error / 10.0 ** int(power)
    if abs(spread) >= 1e4:
        return f"{value:.2e} ± {std_error:.1e}"
    return f"({mantissa} ± {spread:.{digits}f})e{power}"
