"""Means first: where a search that matches variances begins, if the guess is far from the data.

    ½ Σ eᵀS⁻¹e + log |S|

falls most easily by a larger S where errors e are many times as large as S says: the search runs to where paths part
(a friction that falls with speed), and ends in a minimum that takes all errors for scatter. With one weight for all
instants the mean alone has no such way out. So its minimum is looked for first, roughly, with what only variances tell
(scales, noise, spectra) as it is guessed, and taken for a start where the whole criterion is lower there.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from grisaille.bound_experiment.unknown import Unknown
from grisaille.estimators.simulated_pem.mean_criterion import MeanCriterion, MeanValue
from grisaille.estimators.simulated_pem.mean_problem import disturbance_parameters
from grisaille.estimators.simulated_pem.mean_search import MeanSearch, gauss_newton
from grisaille.optimization.journal import SearchJournal

MAX_NEAR_ERROR = 4.0
"""Mean square of the whitened errors from which on a guess is far."""
ROUGH_GAIN = 1e-2
"""Predicted gain at which a mean is near enough."""
MAX_MINIMA = 2
"""Minima, each with the weight that belongs to the one before."""


def approach_by_means(search: MeanSearch, guess: MeanValue) -> np.ndarray:
    """Return θ to start from: the guess, or the minimum for the mean."""
    criterion = search.criterion
    if not (guess.completed and guess.level > MAX_NEAR_ERROR):
        return guess.theta
    search.accept(guess)
    mean = criterion.of_means(_held(criterion, guess.theta))
    value = mean.at(guess.theta)
    for _ in range(MAX_MINIMA):
        mean.update_levels(value)
        steps = MeanSearch(mean, SearchJournal(), search.left, iterations=search.iterations)
        value = gauss_newton(steps, value.theta, tolerance=ROUGH_GAIN).value
        search.iterations = steps.iterations
    found = criterion.renew(value)
    return value.theta if found.completed and found.objective < guess.objective else guess.theta


def _held(criterion: MeanCriterion, theta: np.ndarray) -> tuple[Unknown, ...]:
    """Return the unknowns, with those that only variances determine at their guesses."""
    inside = disturbance_parameters(criterion.problem.cases[0].trial.structure.model)
    return tuple(
        replace(u, lower=float(t), upper=float(t), logit=False)
        if u.kind in ("scale", "noise") or u.local_name in inside else u
        for u, t in zip(criterion.unknowns, theta, strict=True)
    )  # fmt: skip
