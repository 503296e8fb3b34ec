"""Another start where a search ended in a minimum that explains nothing: a quick scan of other points, then descents.

The criterion of a mean may have many minima: trajectories that switch, oscillate or overflow match a record piece by
piece. Points that fill the space between the bounds are compared with few realizations and without derivatives, and
rough descents begin at the best of them. Where one of these ends clearly lower, the search is done again from there.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from grisaille.bound_experiment.unknown import Unknown
from grisaille.errors import EstimationError
from grisaille.estimators.simulated_pem.mean_criterion import MeanCriterion, MeanValue
from grisaille.estimators.simulated_pem.mean_search import MeanSearch, gauss_newton
from grisaille.optimization.journal import SearchJournal

FIRST_REALIZATIONS = 32
"""Realizations of the first look, at most."""
POINTS, EACH = 16, 8
"""Points that are compared: so many, and as many more for each unknown."""
MAX_POINTS = 64
DESCENTS, STEPS, ROUGH = 4, 15, 1e-2
"""Points from which a descent begins; its steps, at most; and the predicted gain at which it ends."""
NEAR, WIDE = 0.5, 1.5
"""Logarithms of factors: by which points near the guess may be larger or smaller, and unknowns without bounds."""
MIN_GAIN_PER_SAMPLE = 0.05
"""Of the number of measurements: a gain that is worth another search (a sum of squares that is a tenth smaller)."""


@dataclass(frozen=True)
class RestartPlace:
    """Where a search may be done again."""

    theta: np.ndarray
    points: int
    """How many were compared."""


def look_elsewhere(
    search: MeanSearch, here: MeanValue, guess: np.ndarray, *, descend: bool = True
) -> RestartPlace | None:
    """Return a point from which a search may end lower than ``here``; None where there is none.

    descend : whether there are derivatives for descents
    """
    criterion = search.criterion
    few = criterion.with_runners(min(criterion.realizations, FIRST_REALIZATIONS))
    before, journal = len(criterion.journal.failures), SearchJournal()
    points = space_filling_points(criterion.unknowns, guess, criterion.realizations)
    compared = [(_compared(few, theta), k) for k, theta in enumerate([here.theta, *points])]
    (now, _), others = compared[0], sorted(compared[1:])
    found: list[tuple[float, np.ndarray]] = []
    for _, k in others[:DESCENTS]:
        theta = points[k - 1]
        if descend:
            theta = _descended(few, theta, journal, search.left)
        found.append((_compared(few, theta), theta))
    del criterion.journal.failures[before:]
    lowest, theta = min(found, key=lambda pair: pair[0])
    gain = (
        MIN_GAIN_PER_SAMPLE * criterion.problem.count
        if criterion.given is None or criterion.with_variance
        else 0.1 * abs(now)
    )
    return RestartPlace(theta, len(points)) if lowest < now - gain else None


def _compared(criterion: MeanCriterion, theta: np.ndarray) -> float:
    """Return the criterion with Λ at its best for this point; infinite where the model cannot be simulated."""
    value = criterion.at(theta, sensitive=False)
    if not value.completed:
        return float("inf")
    criterion.update_levels(value)
    value = criterion.renew(value)
    return criterion.comparable(value) if value.completed else float("inf")


def _descended(criterion: MeanCriterion, theta: np.ndarray, journal: SearchJournal, left: int) -> np.ndarray:
    """Return where a rough descent from a point ends; the point itself where there is none."""
    if not np.isfinite(_compared(criterion, theta)):
        return theta
    try:
        steps = MeanSearch(criterion, journal, min(left, 10 * STEPS), iterations=STEPS)
        return gauss_newton(steps, theta, tolerance=ROUGH).value.theta
    except EstimationError:
        return theta


def space_filling_points(unknowns: tuple[Unknown, ...], guess: np.ndarray, seed: int) -> list[np.ndarray]:
    """Return points that fill the space between the bounds, and as many the neighbourhood of the guess."""
    from scipy.stats import qmc

    n = len(unknowns)
    half = min(POINTS + EACH * n, MAX_POINTS) // 2
    shares = qmc.Sobol(n, seed=seed).random(1 << int(np.ceil(np.log2(2 * half))))
    found: list[np.ndarray] = []
    for fill, part in ((_between, shares[:half]), (_around, shares[half : 2 * half])):
        columns = [fill(u, float(v), part[:, k]) for k, (u, v) in enumerate(zip(unknowns, guess, strict=True))]
        found += list(np.stack(columns, axis=1))
    return found


def _around(unknown: Unknown, value: float, shares: np.ndarray) -> np.ndarray:
    """Return values near the guess."""
    moved = value * np.exp(NEAR * (2 * shares - 1)) if value else unknown.size * NEAR * (2 * shares - 1)
    return np.clip(moved, unknown.lower, unknown.upper)


def _between(unknown: Unknown, value: float, shares: np.ndarray) -> np.ndarray:
    """Return values between the bounds, in logarithms where these span decades."""
    lower, upper, size = unknown.lower, unknown.upper, max(abs(value), unknown.size)
    if not lower < upper:
        return np.full(len(shares), value)
    if unknown.logarithmic or lower >= 0:
        middle = value if value > 0 else size
        low = lower if lower > 0 and np.isfinite(upper) else max(lower, middle * np.exp(-WIDE))
        high = upper if np.isfinite(upper) else middle * np.exp(WIDE)
        if low > 0 and high > 10 * low:
            return np.asarray(low * (high / low) ** shares)
        return np.asarray(low + (high - low) * shares)
    low = lower if np.isfinite(lower) else value - 3 * size
    high = upper if np.isfinite(upper) else value + 3 * size
    return np.asarray(low + (high - low) * shares)
