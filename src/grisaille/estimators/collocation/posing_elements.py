"""From a model and data to a problem on elements: cases, start values, the program with what is known of unknowns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import casadi as ca
import numpy as np

from grisaille.collocation.direct.direct import DirectOptions, DirectProgram
from grisaille.errors import EstimationError
from grisaille.estimation.question import Question
from grisaille.estimation.unknowns import joint_priors
from grisaille.estimators.collocation.elements import Elements
from grisaille.estimators.collocation.posing import cases_of
from grisaille.estimators.collocation.problem import CollocationProblem
from grisaille.estimators.collocation.refusals import (
    level_parameters,
    refuse_levels,
    refuse_open_noise,
    refuse_zero_noise,
)
from grisaille.model.priors import LogNormal, Normal
from grisaille.trial.refusals import refuse_moving_switches
from grisaille.trial.unknown import Unknown

SPLINES_ONLY = {"order": 4, "knots": "auto", "kinks": "auto", "quadrature": "gauss", "trajectories": None}
"""Options that direct collocation does not read, and what they are when not given."""


def pose_elements(
    question: Question, options: DirectOptions, criterion: str = "amle", reason: str = ""
) -> CollocationProblem:
    """The problem of a model and its data; ``reason`` says why splines are not taken."""
    structure, data, unknowns = question.structure, question.data, question.unknowns
    bounds = {n: v.bounds for n, v in structure.model.variables.items() if v.bounds is not None}
    limits = {
        n: (-np.inf if a is None else float(a), np.inf if b is None else float(b)) for n, (a, b) in bounds.items()
    }
    chosen = replace(options, state_bounds={**limits, **dict(options.state_bounds)})
    if criterion == "amle":
        refuse_open_noise(structure, data)
        refuse_levels(unknowns, level_parameters(structure, unknowns, question.outputs))
    cases, posed = cases_of(question), question.with_starts()
    points = posed.points()
    for point in points:
        refuse_moving_switches(point.trial, point.form, "collocation")
    places = [mine for _, mine in posed.trials]
    program = DirectProgram(points, posed.unknowns, chosen, _priors(posed.unknowns), places)
    refuse_zero_noise(program, points)
    return CollocationProblem(posed.unknowns, cases, Elements(program, reason=reason), criterion)


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
