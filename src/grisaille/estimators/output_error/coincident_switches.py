"""A guess at which two switches are reached at one instant, and their order decides what follows.

There the criterion has a derivative for each order and none of its own. Equal guesses for like parts are the usual way
to such a point. Every unknown is moved by another part of 1e-6 of itself, so that the instants come apart.
"""

from __future__ import annotations

import numpy as np

from grisaille.estimators.output_error.least_squares_minimum import Squares

RELATIVE_GUESS_CHANGES = (1e-6, 1e-5, 1e-4)
"""Largest relative changes of a guess, tried one after the other."""


def move_guess_apart(search: Squares) -> list[str]:
    """Let a search begin beside a guess at which the order of events decides; return a note, none where it does not."""
    guess = search.guess.copy()
    here = search.evaluate(guess, quietly=True)
    reached = next((p.coincidence for p in here.predictions if p.coincidence), "")
    if not reached:
        return []
    for apart in RELATIVE_GUESS_CHANGES:
        beside = _moved(search, guess, apart)
        if search.evaluate(beside, quietly=True).completed:
            search.restart(beside)
            return [
                f"events: the guess was moved by up to {apart:.0e} of itself: there {reached}, what follows depends on "
                f"which comes first, and derivatives exist for each order only."
            ]
    return []


def _moved(search: Squares, guess: np.ndarray, apart: float) -> np.ndarray:
    """Return unknowns each moved by a different part of itself, away from a bound at which it is."""
    lower, upper = search.bounds
    sizes = np.array([u.size for u in search.unknowns])
    by = apart * np.where(guess != 0, np.abs(guess), sizes) * np.arange(1, len(guess) + 1) / len(guess)
    return np.clip(np.where(guess + by <= upper, guess + by, guess - by), lower, upper)
