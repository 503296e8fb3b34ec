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

from grisaille.estimators.simulated_pem.criterion import MeanCriterion, MeanValue
from grisaille.estimators.simulated_pem.problem import disturbance_parameters
from grisaille.estimators.simulated_pem.search import MeanSearch, gauss_newton
from grisaille.optimization.journal import Journal
from grisaille.trial.unknown import Unknown

FAR = 4.0
"""Mean square of the whitened errors from which on a guess is far."""
ROUGH = 1e-2
"""Predicted gain at which a mean is near enough."""
ROUNDS = 2
"""Minima, each with the weight that belongs to the one before."""


def approach(search: MeanSearch, guess: MeanValue) -> np.ndarray:
    """θ to start from: the guess, or the minimum for the mean."""
    criterion = search.criterion
    if not (guess.completed and guess.level > FAR):
        return guess.theta
    search.accept(guess)
    mean = criterion.of_means(_held(criterion, guess.theta))
    value = mean.at(guess.theta)
    for _ in range(ROUNDS):
        mean.update_levels(value)
        steps = MeanSearch(mean, Journal(), search.left, iterations=search.iterations)
        value = gauss_newton(steps, value.theta, tolerance=ROUGH).value
        search.iterations = steps.iterations
    found = criterion.renew(value)
    return value.theta if found.completed and found.objective < guess.objective else guess.theta


def _held(criterion: MeanCriterion, theta: np.ndarray) -> tuple[Unknown, ...]:
    """The unknowns, those that only variances tell as they are guessed."""
    inside = disturbance_parameters(criterion.problem.cases[0].trial.structure.model)
    return tuple(
        replace(u, lower=float(t), upper=float(t), logit=False)
        if u.kind in ("scale", "noise") or u.local_name in inside else u
        for u, t in zip(criterion.unknowns, theta, strict=True)
    )  # fmt: skip
