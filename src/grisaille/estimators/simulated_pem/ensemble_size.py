"""How many realizations: what a finite number costs, and when there are enough.

A finite ensemble adds to the variance of the estimates, about 1/M of it, and needs a correction of the criterion of the
same order. Enough are those that leave the correction below a tenth of a standard error and their own share of every
variance (and 1/M) below one per cent.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from grisaille.estimators.simulated_pem.sandwich import Sandwich

FIRST, MOST = 64, 16384
"""Realizations that an automatic choice begins and ends with."""
SHARE, OFFSET = 0.01, 0.1
MAX_ERROR_OF_ERRORS = 0.09
"""Relative standard deviation of a standard error from which on it is told."""


def are_enough(sandwich: Sandwich, realizations: int) -> bool:
    """Return whether more realizations would change nothing that matters."""
    share = max(1.0 / realizations, float(sandwich.shares.max(initial=0.0)))
    return share < SHARE and float(sandwich.correction_errors.max(initial=0.0)) < OFFSET


def describe_size(sandwich: Sandwich, realizations: int, names: Sequence[str], corrected: bool) -> list[str]:
    """Return what the finite number of realizations contributes, in words."""
    notes = []
    share = float(sandwich.shares.max(initial=0.0))
    if share > SHARE:
        name = names[int(np.argmax(sandwich.shares))]
        needed = _round_up(realizations * share / SHARE)
        notes.append(
            f"finite ensemble: {100 * share:.2g} % of the variance of {name} is due to only {realizations} "
            f"realizations; {needed} would leave 1 %."
        )
    offset = float(sandwich.correction_errors.max(initial=0.0))
    if offset > OFFSET:
        name = names[int(np.argmax(sandwich.correction_errors))]
        done = "moves" if corrected else "is switched off; it would move"
        notes.append(
            f"finite ensemble: the correction for {realizations} realizations {done} {name} by {offset:.2g} standard "
            f"errors."
        )
    rough = float(sandwich.uncertainty.max(initial=0.0))
    if rough > MAX_ERROR_OF_ERRORS:
        name = names[int(np.argmax(sandwich.uncertainty))]
        notes.append(
            f"finite ensemble: from {realizations} realizations the standard error of {name} is itself known to "
            f"{100 * rough:.2g} % only."
        )
    return notes


def describe_choice(sandwich: Sandwich, tried: Sequence[int]) -> str:
    """Return what ``realizations="auto"`` did."""
    share, offset = float(sandwich.shares.max(initial=0.0)), float(sandwich.correction_errors.max(initial=0.0))
    why = "enough" if are_enough(sandwich, tried[-1]) else f"not enough, but no more than {MOST} are tried"
    path = ", ".join(map(str, tried))
    return (
        f"realizations: {tried[-1]} ({why}; tried {path}): they make {100 * share:.2g} % of the variance, and the "
        f"correction is {offset:.2g} standard errors."
    )


def _round_up(number: float) -> int:
    digits = 10 ** max(int(np.floor(np.log10(max(number, 1.0)))) - 1, 0)
    return int(np.ceil(number / digits) * digits)
