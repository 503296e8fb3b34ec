"""From a model and data to a problem on elements: cases, start values, the program with what is known of unknowns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import casadi as ca
import numpy as np

from grisaille.collocation.direct.direct import DirectOptions, DirectProgram
from grisaille.errors import EstimationError
from grisaille.estimation.cases import Case, start_guesses, trial_of
from grisaille.estimation.unknowns import joint_priors
from grisaille.estimators.collocation.elements import Elements
from grisaille.estimators.collocation.problem import CollocationProblem
from grisaille.estimators.collocation.refusals import (
    level_parameters,
    refuse_levels,
    refuse_open_noise,
    refuse_zero_noise,
)
from grisaille.model.classes import Model
from grisaille.model.priors import LogNormal, Normal
from grisaille.structure.reduction import Structure
from grisaille.trial import Point
from grisaille.trial.refusals import refuse_few_instants, refuse_moving_instants, refuse_static
from grisaille.trial.unknown import Unknown

SPLINES_ONLY = {"order": 4, "knots": "auto", "kinks": "auto", "quadrature": "gauss", "trajectories": None}
"""Options that direct collocation does not read, and what they are when not given."""


def pose_elements(
    model: Model, structure: Structure, data: Sequence[Any], unknowns: Sequence[Unknown], options: DirectOptions,
    criterion: str = "amle", reason: str = "",
) -> CollocationProblem:  # fmt: skip
    """The problem of a model and its data; ``reason`` says why splines are not taken."""
    bounds = {n: v.bounds for n, v in structure.model.variables.items() if v.bounds is not None}
    limits = {
        n: (-np.inf if a is None else float(a), np.inf if b is None else float(b)) for n, (a, b) in bounds.items()
    }
    chosen = replace(options, state_bounds={**limits, **dict(options.state_bounds)})
    if criterion == "amle":
        outputs = list(dict.fromkeys(o for e in data for o in e.outputs))
        refuse_open_noise(structure, data)
        refuse_levels(unknowns, level_parameters(structure, unknowns, outputs))
    posed, cases = direct_cases(model, data, unknowns)
    points = points_at_guess(cases, posed)
    program = DirectProgram(points, posed, chosen, _priors(posed))
    refuse_zero_noise(program, points)
    return CollocationProblem(posed, cases, Elements(program, reason=reason), criterion)


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


def points_at_guess(cases: Sequence[Case], unknowns: Sequence[Unknown]) -> list[Point]:
    """Where ranks, units and starts are decided."""
    guess = np.array([u.guess for u in unknowns])
    points = [c.trial.at(c.own(guess)) for c in cases]
    for point in points:
        refuse_moving_instants(point.trial, point.form, "collocation")
    return points


def _priors(unknowns: Sequence[Unknown]) -> Callable[[ca.SX], ca.SX] | None:
    """−log prior up to a constant, as a formula of θ."""
    if all(u.prior is None for u in unknowns):
        return None
    rows, offset = joint_priors(unknowns)

    def formula(theta: ca.SX) -> ca.SX:
        total = ca.SX(0)
        for k, u in enumerate(unknowns):
            if isinstance(u.prior, Normal):
                total += ((theta[k] - u.prior.mean) / u.prior.std) ** 2 / 2
            elif isinstance(u.prior, LogNormal):
                total += (ca.log(theta[k] / u.prior.median) / u.prior.log_std) ** 2 / 2
        return total + ca.sumsqr(ca.DM(rows) @ theta + ca.DM(offset)) / 2

    return formula


def direct_options(method: Any, reason: str) -> DirectOptions:
    """What the options of ``gr.Collocation`` mean here; ``reason`` says why splines are not taken."""
    why = f"{reason[0].upper()}{reason[1:]}" if reason else "Direct collocation was asked for"
    if method.criterion not in ("amle", "laplace"):
        raise EstimationError(
            f"{why}, and direct collocation has no criterion={method.criterion!r}: use 'amle' or 'laplace'."
        )
    unread = [n for n, usual in SPLINES_ONLY.items() if getattr(method, n) != usual]
    if unread:
        raise EstimationError(
            f"{why}: {unread[0]}={getattr(method, unread[0])!r} belongs to splines and says nothing here. Leave it "
            f"out: elements are halved until the estimates stop moving."
        )
    solver: Any = "ipopt" if method.optimizer == "ipopt" else "auto"
    return DirectOptions(solver=solver, max_iterations=method.max_iterations)
