"""Bumps and short conditions that the steps of realizations pass without meeting them, in words for a fit.

What an unknown does inside such a bump is not in the mean: it seems to have no effect, or another one.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from grisaille.estimators.simulated_pem.mean_criterion import MeanCriterion

DEAD = "dead: no output depends on "


def skipped_notes(criterion: MeanCriterion, theta: np.ndarray) -> list[str]:
    """Return a note on the first record whose realizations skip something; none where no record has any."""
    for case, runner in zip(criterion.problem.cases, criterion.runners, strict=True):
        skipped = runner.skipped(case.own(theta))
        if skipped:
            return [f"discretisation: in '{case.name}' {skipped}. Estimates ignore what is missed."]
    return []


def without_dead(notes: Sequence[str], skipped: Sequence[str]) -> list[str]:
    """Return notes in which unknowns are not called dead where steps skip what they may belong to."""
    if not skipped:
        return list(notes)
    unseen = "not seen: with these steps no output depends on "
    told = [unseen + n.removeprefix(DEAD).split(";")[0] + "." if n.startswith(DEAD) else n for n in notes]
    return [*skipped, *told]
