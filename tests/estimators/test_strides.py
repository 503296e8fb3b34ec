"""Strides of dead times: short ones that were cut are not taken for settled ones."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from grisaille.estimators.collocation import Strides


def search(wish: Callable[[np.ndarray], np.ndarray], at: list[float], most: int = 40) -> tuple[np.ndarray, bool]:
    """From ``at``, each time as far towards ``wish`` as may be."""
    theta = np.array(at)
    strides = Strides.first(np.ones(len(theta)))
    for _ in range(most):
        step = np.clip(wish(theta) - theta, -strides.within, strides.within)
        theta, strides = theta + step, strides.after(step)
        if strides.have_settled:
            return theta, True
    return theta, False


def test_one_that_turned_back_while_another_moved_goes_on() -> None:
    """The first wavers by less than what counts as still until the second is near its place; then it must move."""

    def wish(theta: np.ndarray) -> np.ndarray:
        b = theta[1]
        waver = 1e-7 * np.cos(np.pi * b)
        return np.array([0.1 * max(0.0, b - 6.0) + (waver if b < 6 else 0.0), 7.0])

    theta, settled = search(wish, [0.0, 0.0])
    assert settled
    np.testing.assert_allclose(theta, [0.1, 7.0], atol=1e-5)


def test_a_corner_is_found_between_strides_that_turn_back() -> None:
    """Far wishes on both sides of a place: neither is ever reached."""
    for corner in np.linspace(0.3, 0.9, 7):
        theta, settled = search(lambda theta, c=corner: np.where(theta < c, 99.0, -99.0), [0.0])
        assert settled and abs(theta[0] - corner) < 2e-5


def test_what_moves_away_for_ever_does_not_settle() -> None:
    assert not search(lambda theta: theta + 1e-3 + 0 * theta, [0.0])[1]
