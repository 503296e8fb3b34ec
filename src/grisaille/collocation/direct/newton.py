"""Sequential quadratic programming for direct collocation, each step by elimination along time.

Curvature is exact where the reduced Hessian is positive definite, Gauss–Newton's elsewhere. Steps are cut until they
bring the path nearer to its equations or lower the cost (a filter: a penalty would make paths creep along their
equations when they start on them, far from the data); where neither happens, steps are damped. Bounds of θ are kept in
the last, small problem of every step, a quadratic one in dθ alone. Reference: A. Wächter, L. T. Biegler, Mathematical
Programming 106 (2006) 25.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from grisaille.collocation.direct.elimination import (
    Condensed,
    IndefiniteError,
    Swept,
    condense,
    multipliers,
    substitute,
    sweep,
)
from grisaille.collocation.direct.mesh import Floats
from grisaille.collocation.direct.transcription import Costs, Point, Transcription
from grisaille.numerics.quadratic import UNITS, Curved, bounded_step, is_definite

FULL_STEP = 1e-4
"""Decrement below which whole steps are taken: the merit function could refuse them for curvature of equations."""
SHORTEST = 2.0**-14
ARMIJO = 1e-4
MARGIN = 1e-5
SHIFT = 1e-9
"""Damping of Gauss–Newton's curvature, which unknowns that nothing moves with leave singular."""
FARTHEST = 1e2
"""Mean relative residual of the equations beyond which no trial is taken."""


@dataclass(frozen=True, eq=False)
class Linearized:
    """The quadratic model at a point, eliminated down to θ."""

    start: Condensed
    elements: Condensed
    swept: list[Swept]
    gradient: Floats
    curvature: Floats
    """Of the criterion as a function of θ alone, to second order."""
    constant: float
    exact: bool
    information: Floats | None = None
    """Gradient of what is known of θ beside the records."""

    @property
    def log_determinant(self) -> float:
        return sum(s.log_determinant for s in self.swept)


@dataclass(frozen=True, eq=False)
class NewtonResult:
    point: Point
    multipliers: tuple[Floats, Floats]
    costs: Costs
    converged: bool
    decrement: float
    infeasibility: float
    iterations: int
    message: str


def linearize(
    program: Transcription, point: Point, lam: tuple[Floats, Floats], *, exact: bool, damping: float = 0.0
) -> Linearized:
    """Derivatives, elimination and the sum over records; raises ``IndefiniteError``."""
    a0, a = program.arguments(point)
    f, n, nz = program.functions, program.model.n, program.model.nz
    with np.errstate(all="ignore"):
        d0 = f.start.derivatives(a0, program.start_data, lam[0], exact=exact)
        d = f.element.derivatives(a, program.element_data, lam[1], exact=exact)
    if not (np.isfinite(d.hessian).all() and np.isfinite(d.jacobian).all() and np.isfinite(d0.jacobian).all()):
        raise IndefiniteError
    start = condense(d0, f.start.sizes, n, nz, damping * np.ones_like(point.zeta))
    elements = condense(d, f.element.sizes, n, nz, damping * program.noise_weights)
    nt, known = len(point.theta), None
    g, H, constant = np.zeros(nt), np.zeros((nt, nt)), 0.0
    swept = []
    for r in range(len(program.records)):
        swept.append(sweep(start, r, elements, *program.span(r)))
        index = program.slots.index[r]
        own = index >= 0
        whole = swept[-1].first
        np.add.at(g, index[own], whole[0, 1:][own])
        np.add.at(H, (index[own][:, None], index[own][None, :]), whole[1:, 1:][np.ix_(own, own)])
        constant += whole[0, 0]
    if program.information is not None:
        _, slope, bend = (np.array(x.full()) for x in program.information(point.theta))
        known = slope.ravel()
        g, H = g + known, H + bend
    return Linearized(start, elements, swept, g, H, constant, exact, known)


def solve_newton(
    program: Transcription, point: Point, bounds: tuple[Floats, Floats], *, free: bool = True, tolerance: float = 1e-9,
    feasible: float = 1e-9, max_iterations: int = 100, multiplier: tuple[Floats, Floats] | None = None,
) -> NewtonResult:  # fmt: skip
    """Minimise from a point; ``free=False`` keeps θ."""
    lam = multiplier or (np.zeros((len(point.first), program.functions.start.m)), np.zeros_like(point.inner))
    filter = Filter()
    costs = program.evaluate(point)
    damping, decrement, message = 0.0, np.inf, "the limit of iterations was reached"
    if not costs.is_finite:
        return NewtonResult(point, lam, costs, False, np.inf, np.inf, 0, "the criterion is not finite at the start")
    for iteration in range(max_iterations + 1):
        try:
            model, dtheta = _model(program, point, lam, bounds, free, damping)
        except np.linalg.LinAlgError:
            message = "the equations of an element became singular"
            break
        step, new = _step(program, model, dtheta)
        decrement = _decrement(model, dtheta, lam, new, costs)
        scale = _scaled(program, point, costs)
        if decrement < tolerance and scale < feasible and damping < 1e-3:
            return NewtonResult(point, new, costs, True, decrement, scale, iteration, "the criterion was met")
        fraction, trial, after = _search(program, point, step, costs, model, decrement, filter)
        if fraction == 0.0:
            if damping > 1e8:
                message = "no step lowers the criterion"
                break
            damping = max(10 * damping, 1e-2)
            continue
        damping = 0.0 if damping < 1e-4 or (fraction == 1.0 and damping < 1e-1) else damping / 10
        lam = tuple(a + fraction * (b - a) for a, b in zip(lam, new, strict=True))  # type: ignore[assignment]
        point, costs = trial, after
    return NewtonResult(point, lam, costs, False, decrement, _scaled(program, point, costs), max_iterations, message)


def _model(
    program: Transcription, point: Point, lam: tuple[Floats, Floats], bounds: tuple[Floats, Floats], free: bool,
    damping: float,
) -> tuple[Linearized, Floats]:  # fmt: skip
    """The quadratic model with exact curvature where that has a minimum, and the step of θ."""
    try:
        model = linearize(program, point, lam, exact=True, damping=damping)
        return model, theta_step(model, point.theta, bounds, free, damping, strict=True)
    except (IndefiniteError, np.linalg.LinAlgError):
        try:
            model = linearize(program, point, lam, exact=False, damping=damping)
        except IndefiniteError:
            raise np.linalg.LinAlgError from None
        return model, theta_step(model, point.theta, bounds, free, damping, strict=False)


def theta_step(
    model: Linearized, theta: Floats, bounds: tuple[Floats, Floats], free: bool, damping: float, strict: bool
) -> Floats:
    """dθ within its bounds; raises ``IndefiniteError`` where the curvature is not positive definite and ``strict``."""
    if not free or not len(theta):
        return np.zeros_like(theta)
    low, high = bounds[0] - theta, bounds[1] - theta
    inside = (low < 0) & (high > 0)
    if strict and not is_definite(model.curvature[np.ix_(inside, inside)] * (1 + damping * np.eye(inside.sum()))):
        raise IndefiniteError
    return bounded_step(
        Curved(model.gradient, model.curvature, UNITS), low, high, damping if strict else damping + SHIFT
    )


def _step(program: Transcription, model: Linearized, dtheta: Floats) -> tuple[Point, tuple[Floats, Floats]]:
    padded, nz = np.append(dtheta, 0.0), program.model.nz
    steps = []
    for r, swept in enumerate(model.swept):
        head = np.append(1.0, padded[program.slots.index[r]])[:, None]
        steps.append(substitute(swept, model.start, r, model.elements, *program.span(r), head))
    start = np.stack([s.start[:, 0] for s in steps])
    elements = np.vstack([s.elements[:, :, 0] for s in steps])
    first = multipliers(model.start, start, np.stack([s.costates[0, :, 0] for s in steps]), nz)
    after = np.vstack([s.costates[1:, :, 0] for s in steps])
    return program.as_point(dtheta, start, elements), (first, multipliers(model.elements, elements, after, nz))


def _decrement(
    model: Linearized, dtheta: Floats, lam: tuple[Floats, Floats], new: tuple[Floats, Floats], costs: Costs
) -> float:
    """How far the cost is above that of the quadratic model's minimum, the part of the residuals taken out."""
    value = 0.5 * model.constant + model.gradient @ dtheta + 0.5 * dtheta @ model.curvature @ dtheta
    linear = sum(float((n * c).sum()) for n, c in zip(new, (costs.first, costs.inner), strict=True))
    return abs(float(value) - linear)


def _scaled(program: Transcription, point: Point, costs: Costs) -> float:
    """The largest residual of the equations, relative to the size of what it is an equation for."""
    n = program.model.n
    blocks, states = program.nodes(costs.inner), program.nodes(point.inner)
    size = np.abs(states).max(axis=0, initial=0.0) + 1e-12
    worst = np.abs(blocks[:, :n] / size[:n]).max(initial=0.0)
    jumped = np.abs(costs.inner[:, : program.functions.after]).max(initial=0.0)
    algebraic = max(np.abs(blocks[:, n:]).max(initial=0.0), jumped) / (1.0 + np.abs(states[:, n:]).max(initial=0.0))
    return float(
        max(worst, algebraic, np.abs(costs.first).max(initial=0.0) / (1.0 + np.abs(point.first).max(initial=0.0)))
    )


def _search(
    program: Transcription, point: Point, step: Point, costs: Costs, model: Linearized, decrement: float, filter: Filter
) -> tuple[float, Point, Costs]:
    """The fraction of a step to take, 0 for none."""
    away, slope = _distance(program, point, costs), _slope(program, step, model)
    fraction = 1.0
    while fraction >= SHORTEST:
        trial = point.moved(step, fraction)
        after = program.evaluate(trial)
        if after.is_finite:
            if fraction == 1.0 and decrement < FULL_STEP and model.exact:
                return fraction, trial, after
            there = _distance(program, trial, after)
            if filter.accepts(away, costs.total, there, after.total, fraction * slope):
                return fraction, trial, after
        fraction *= 0.5
    return 0.0, point, costs


class Filter:
    """Pairs (distance from the equations, cost) that no later point may be worse than in both."""

    def __init__(self) -> None:
        self.pairs: list[tuple[float, float]] = []

    def accepts(self, away: float, cost: float, there: float, after: float, descent: float) -> bool:
        """Whether a trial is better; descent is the slope of the cost along the step that was taken."""
        if not there < FARTHEST or any(there > (1 - MARGIN) * a and after > c - MARGIN * a for a, c in self.pairs):
            return False
        if descent < 0 and (-descent) ** 2.3 > away**1.1 and away < 1e-2:
            return after <= cost + ARMIJO * descent + 1e-12 * abs(cost)
        if there <= (1 - MARGIN) * away or after <= cost - MARGIN * away:
            self.pairs.append((away, cost))
            return True
        return False


def _distance(program: Transcription, point: Point, costs: Costs) -> float:
    """Sum of residuals of the equations, each relative to the size of its state, per element."""
    size = np.abs(program.nodes(point.inner)).max(axis=0, initial=0.0) + 1e-12
    inner = np.abs(program.nodes(costs.inner)) / size
    jumped = np.abs(costs.inner[:, : program.functions.after]) / size[program.model.n :][: program.functions.after]
    first = np.abs(costs.first).sum() / (1.0 + np.abs(point.first).max(initial=0.0))
    return float((inner.sum() + jumped.sum() + first) / len(costs.inner))


def _slope(program: Transcription, step: Point, model: Linearized) -> float:
    """Directional derivative of the cost."""
    zero = Point(*(np.zeros_like(getattr(step, f)) for f in step.__dataclass_fields__))
    origin, moved = program.arguments(zero), program.arguments(step)
    total = 0.0 if model.information is None else float(model.information @ step.theta)
    for condensed, before, after in zip((model.start, model.elements), origin, moved, strict=True):
        total += float((condensed.derivatives.gradient * (after - before)).sum())
    return total
