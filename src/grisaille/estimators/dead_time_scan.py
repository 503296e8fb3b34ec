"""Estimated dead times: what they need, and where a search for them begins.

A criterion has many minima along a dead time, one for each way in which an input resembles itself later. So each dead
time is looked at between its bounds before a search: the model is simulated without disturbances at values of it, the
other unknowns go as far as the linearised model lets them, and the value begins the search that leaves least,

    min over Δ of Σ (y − ŷ(tau) − J(tau) Δ)²,

unless the guess leaves hardly more. This is the same for all estimators.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from grisaille.bound_experiment import BoundExperiment
from grisaille.bound_experiment.unknown import Unknown
from grisaille.errors import EstimationError, GrisailleError
from grisaille.estimation.estimate import Estimate
from grisaille.estimation.estimator import Estimator
from grisaille.estimation.problem import EstimationProblem
from grisaille.experiment.piecewise_polynomials import MOVING_KINK
from grisaille.optimization.journal import SearchJournal
from grisaille.simulation.runner import Runner
from grisaille.simulation.simulation_steps import SimulationSteps

Floats = NDArray[np.float64]
MAX_SCANNED_VALUES = 48
"""Values of a dead time that are looked at, at most."""
MIN_SCANNED_VALUES = 12
MIN_IMPROVEMENT = 0.8
"""Sum of squares, relative to that at the guess, below which another value begins the search."""
SCAN_RTOL = 1e-4
CORNER_TOLERANCE = 1e-6
"""Part of the sampling interval by which a jump is at a sample."""


def refuse_open_dead_times(trials: Sequence[BoundExperiment], unknowns: Sequence[Unknown]) -> None:
    """Refuse unknowns whose bounds leave open how short or how long a dead time may be."""
    for trial in trials:
        system = trial.structure.system
        symbols = ca.vertsplit(system.p) if system.np else []
        places = {s.element_hash(): n for s, n in zip(symbols, system.parameter_names, strict=True)}
        for delay in system.delays:
            inside = {places[s.element_hash()] for s in ca.symvar(delay.tau)}
            for u in unknowns:
                if u.kind != "parameter" or not u.applies_to(trial.name):
                    continue
                is_it = delay.text == u.target
                if not (is_it or u.target in inside or _reaches(trial, u.target, inside)):
                    continue
                if np.isfinite(u.lower) and np.isfinite(u.upper) and (u.lower > 0 or not is_it):
                    continue
                shortest = u.lower if np.isfinite(u.lower) and u.lower > 0 else None
                raise EstimationError(
                    f"'{u.name}' is estimated, and {delay.name} is delayed by it: its bounds must say how short, above "
                    f"zero, and how long the delay may be; they are ({u.lower:g}, {u.upper:g}). Give them, as in "
                    f"gr.Parameter({u.guess:g}, bounds=({shortest or 0.1 * abs(u.guess) or 0.1:g}, "
                    f"{3 * abs(u.guess) or 1:g})) or gr.fit(…, bounds={{'{u.target}': (…, …)}})."
                )


def _reaches(trial: BoundExperiment, target: str, inside: set[str]) -> bool:
    if target not in trial.moves.targets("parameter"):
        return False
    row = trial.reach[trial.moves.names.index(target)]
    return any(row[trial.formulas.names.index(n)] for n in inside)


def dead_times(problem: EstimationProblem) -> list[int]:
    """Return unknowns that are dead times themselves, by their places."""
    names = {d.text for c in problem.cases for d in c.trial.structure.system.delays}
    return [
        k
        for k, u in enumerate(problem.unknowns)
        if u.kind == "parameter" and u.target in names and np.isfinite(u.upper - u.lower)
    ]


def begin_at_dead_times(problem: EstimationProblem, places: Sequence[int]) -> list[str]:
    """Moves the guess of a problem to where dead times leave least; what was done, in words."""
    notes = []
    for k in places:
        u, theta = problem.unknowns[k], np.array(problem.guess, dtype=float)
        scan = _DeadTimeScan(problem, k)
        values = np.unique(np.append(np.linspace(u.lower, u.upper, scan.count), theta[k]))
        left = np.array([scan.left(theta, v) for v in values])
        at_guess, best = left[values == theta[k]][0], int(np.argmin(left))
        if np.isfinite(left[best]) and not left[best] >= MIN_IMPROVEMENT * at_guess:
            theta[k] = values[best]
            problem.go_on_from(theta)
            notes.append(
                f"the search began at {u.name} = {values[best]:.4g} instead of {u.guess:.4g}: of {len(values)} values "
                f"between its bounds, simulated beforehand, it left least of the data unexplained."
            )
    return notes


class _DeadTimeScan:
    """What a dead time leaves of the data."""

    def __init__(self, problem: EstimationProblem, place: int) -> None:
        self.problem, self.place = problem, place
        self.runners = [(c, Runner(c.trial, c.trial.data.outputs, rtol=SCAN_RTOL)) for c in problem.cases]
        u = problem.unknowns[place]
        spacing = min(float(np.median(np.diff(c.trial.times))) for c in problem.cases if len(c.trial.times) > 1)
        self.count = int(np.clip(np.ceil((u.upper - u.lower) / spacing) + 1, MIN_SCANNED_VALUES, MAX_SCANNED_VALUES))
        self.sizes = {s.output: float(np.std(s.values)) or 1.0 for c in problem.cases for s in c.samples}
        self.steps: dict[int, SimulationSteps] = {}

    def left(self, theta: Floats, value: float) -> float:
        """Return the sum of squares that the linearised model leaves."""
        theta = theta.copy()
        theta[self.place] = value
        errors, slopes = [], []
        for i, (case, runner) in enumerate(self.runners):
            own = case.own(theta)
            try:
                if i not in self.steps:
                    self.steps[i] = runner.discretise(own)
                found = runner.predict(own, self.steps[i], sensitive=True)
            except GrisailleError:
                return np.inf
            if not found.completed:
                return np.inf
            for s in case.samples:
                column = case.trial.data.outputs.index(s.output)
                rows = np.zeros((len(s.values), len(theta)))
                rows[:, list(case.unknowns)] = found.sy[s.rows, column]
                factor = s.weights / self.sizes[s.output]
                errors.append(factor * (s.values - found.y[s.rows, column]))
                slopes.append(factor[:, None] * rows)
        e, J = np.concatenate(errors), np.concatenate(slopes)
        others = [k for k in range(len(theta)) if k != self.place and J[:, k].any()]
        change = np.linalg.lstsq(J[:, others], e, rcond=1e-8)[0] if others else np.zeros(0)
        r = e - J[:, others] @ change
        return float(r @ r)


def settled_at_corner(
    problem: EstimationProblem, places: Sequence[int], method: Estimator, found: Estimate, journal: SearchJournal
) -> Estimate:
    """Return what a search found that ended where jumps pass samples: the criterion has a corner there, and a minimum
    in it.

    The search is repeated on both sides of the corner. Where one leads away from it, that is the answer; where both
    stay, the corner is the minimum, with the curvature of its right side.
    """
    for k in places:
        if not _is_at_corner(problem, found.theta, k):
            continue
        sides = [_beside(problem, method, found, k, side, journal) for side in (1, -1)]
        away = [s for s in sides if s is not None and s.converged and s.free[k]]
        if away:
            return min(away, key=lambda s: s.objective)
        right = sides[0]
        if right is None or not all(s is not None and s.converged for s in sides):
            continue
        information = right.evaluation.information
        if not np.isfinite(information).all():
            continue
        name = problem.unknowns[k].name
        return replace(
            right,
            free=found.free | right.free,
            covariance=_widened(right.covariance, information, k),
            status=f"converged: in a corner of the criterion, where jumps delayed by {name} pass samples",
            notes=tuple(n for n in right.notes if "bound" not in n),
        )
    return found


def _is_at_corner(problem: EstimationProblem, theta: Floats, place: int) -> bool:
    for case in problem.cases:
        if place not in case.unknowns:
            continue
        point, times = case.trial.at(case.own(theta)), case.trial.times
        moving = point.table.breaks[point.table.kink == MOVING_KINK]
        inside = moving[(moving > times[0]) & (moving < times[-1])]
        right = np.clip(np.searchsorted(times, inside), 1, len(times) - 1)
        apart = np.minimum(np.abs(times[right] - inside), np.abs(inside - times[right - 1]))
        if (apart < CORNER_TOLERANCE * float(np.median(np.diff(times)))).any():
            return True
    return False


def _beside(
    problem: EstimationProblem, method: Estimator, found: Estimate, place: int, side: int, journal: SearchJournal
) -> Estimate | None:
    u, value = problem.unknowns[place], float(found.theta[place])
    gap = CORNER_TOLERANCE * max(abs(value), 1e-12)
    edge = value + side * gap
    if not u.lower < edge < u.upper:
        return None
    lower, upper = (edge, u.upper) if side > 0 else (u.lower, edge)
    unknowns = [v.starting_from(t) for v, t in zip(problem.unknowns, found.theta, strict=True)]
    unknowns[place] = replace(u.starting_from(edge), lower=lower, upper=upper, logit=False, logarithmic=u.lower > 0)
    theta = found.theta.copy()
    theta[place] = edge
    other = problem.replace(unknowns=tuple(unknowns))
    other.go_on_from(theta)
    try:
        return method.estimate(other, journal)
    except GrisailleError:
        return None


def _widened(covariance: Floats, information: Floats, place: int) -> Floats:
    """Return the covariance with the dead time free again: its Schur complement and what that adds to the others."""
    others = [
        k for k in range(len(information)) if k != place and covariance[k, k] > 0 and np.isfinite(covariance[k, k])
    ]
    scale = 1.0
    block = information[np.ix_(others, others)]
    if others:
        scale = float(np.mean(np.diag(covariance)[others] / np.diag(np.linalg.inv(block))))
    kept = sorted([*others, place])
    wider = np.array(covariance, dtype=float)
    wider[np.ix_(kept, kept)] = scale * np.linalg.inv(information[np.ix_(kept, kept)])
    return wider
