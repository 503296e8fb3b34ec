"""Numbers with their uncertainty, as people read them."""

from __future__ import annotations

import pytest

from grisaille.estimation.printing import with_error


@pytest.mark.parametrize(
    ("value", "error", "text"),
    [
        (6.27, 0.21, "6.27 ± 0.21"),
        (8330.1, 120.0, "8330 ± 120"),
        (1.991e-5, 2e-7, "(1.991 ± 0.020)e-05"),
        (-3.2e-5, 1e-6, "(-3.20 ± 0.10)e-05"),
        (3e8, 2e6, "(3.000 ± 0.020)e+08"),
        (0.0, 1e-7, "0 ± 1.0e-07"),
        (1e-9, 5e-3, "0.0000 ± 0.0050"),
        (2.5, float("inf"), "2.5"),
    ],
)
def test_digits_end_at_the_second_of_the_error(value: float, error: float, text: str) -> None:
    assert with_error(value, error) == text
