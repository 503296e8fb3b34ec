"""Unknowns as profiles vary them: from the estimates, each on a scale on which it can be varied to both sides."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from grisaille.bound_experiment.unknown import Unknown
from grisaille.estimation.estimate import Estimate


def at_estimates(estimate: Estimate) -> list[Unknown]:
    """Return the unknowns at the estimates; one at a bound, or equal to zero, is not searched by its logarithm.

    Its size is then what the curvature there tells.
    """
    bend = np.diag(estimate.evaluation.information)
    bend = bend if len(bend) == len(estimate.theta) else np.full(len(estimate.theta), np.nan)
    return [
        _moved(u, float(v), bool(free), float(b))
        for u, v, free, b in zip(estimate.unknowns, estimate.theta, estimate.free, bend, strict=True)
    ]


def _moved(unknown: Unknown, value: float, free: bool, bend: float) -> Unknown:
    moved = unknown.starting_from(value)
    if free and value > 0:
        return moved
    reach = min(1 / float(np.sqrt(bend)), unknown.upper - unknown.lower) if bend > 0 else unknown.reach
    return replace(moved, logarithmic=False, reach=unknown.reach if free else reach)
