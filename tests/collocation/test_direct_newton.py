"""The last, small problem of a step: a quadratic form between bounds."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import lsq_linear

from grisaille.collocation.direct import newton as direct_newton
from grisaille.collocation.direct.newton import bounded_step


@pytest.mark.parametrize("seed", range(40))
def test_bounded_step_is_the_least_of_the_quadratic_form(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(seed)
    n = int(random.integers(1, 8))
    J, r = random.normal(size=(n + 2, n)) * 10.0 ** random.uniform(-3, 3, n), random.normal(size=n + 2)
    size = 1 / np.sqrt((J**2).sum(axis=0))
    lower, upper = -random.exponential(size=n) * size, random.exponential(size=n) * size
    lower[random.random(n) < 0.3], upper[random.random(n) < 0.3] = -np.inf, np.inf
    fixed = random.random(n) < 0.1
    lower[fixed], upper[fixed] = 0.0, 0.0
    found = bounded_step(J.T @ J, J.T @ r, lower, upper, 0.0, strict=True)
    assert np.all((found >= lower) & (found <= upper))
    monkeypatch.setattr(direct_newton, "_boxed", lambda *_: None)
    slower = bounded_step(J.T @ J, J.T @ r, lower, upper, 0.0, strict=True)
    np.testing.assert_allclose(found / size, slower / size, atol=1e-6)
    inside = lower < upper
    other = lsq_linear(J[:, inside] * size[inside], -r, (lower[inside] / size[inside], upper[inside] / size[inside])).x
    np.testing.assert_allclose((found / size)[inside], other, atol=1e-4)
