"""Experiments and unknowns as direct collocation reads them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import casadi as ca
import numpy as np

from grisaille.collocation.direct.direct import DirectOptions, DirectProgram, DirectRecord
from grisaille.errors import EstimationError
from grisaille.estimation.cases import Case, start_guesses, trial_of
from grisaille.model.classes import Model
from grisaille.trial.refusals import refuse_few_instants, refuse_moving_instants, refuse_static
from grisaille.trial.unknown import Unknown


def direct_cases(
    model: Model, experiments: Sequence[Any], unknowns: Sequence[Unknown]
) -> tuple[tuple[Unknown, ...], list[Case]]:
    """Unknowns with guesses, and the experiments; starts without a guess begin at the consistent ones."""
    cases = []
    for experiment in experiments:
        trial, mine = trial_of(model, experiment, unknowns)
        refuse_static(trial, "collocation")
        refuse_few_instants(trial, "collocation")
        cases.append(Case(experiment, trial, None, tuple(experiment.outputs), mine))
    found = start_guesses(unknowns, cases)
    for u in found:
        if not np.isfinite(u.guess):
            raise EstimationError(f"'{u.name}' has no value to start from: guess={{'{u.name}': …}}.")
    return found, cases


def pose_direct(
    cases: Sequence[Case],
    unknowns: Sequence[Unknown],
    options: DirectOptions | None = None,
    information: Callable[[ca.SX], ca.SX] | None = None,
) -> DirectProgram:
    """The program of experiments, at the guess."""
    outputs = tuple(dict.fromkeys(o for c in cases for o in c.outputs))
    guess = np.array([u.guess for u in unknowns])
    points = [c.trial.at(c.own(guess)) for c in cases]
    for point in points:
        refuse_moving_instants(point.trial, point.form, "collocation")
    records = [DirectRecord(p.trial, outputs, p.table) for p in points]
    return DirectProgram(
        points[0].structure, records, unknowns, outputs, options, guess=guess, information=information
    )  # fmt: skip
