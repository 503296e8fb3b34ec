"""Newton steps of direct collocation (sequential quadratic programming), each by elimination along time.

Curvature is exact where the reduced Hessian is positive definite, Gauss–Newton's elsewhere. Bounds of θ are kept in the
last, small problem of every step, a quadratic one in dθ alone.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

import numpy as np

from grisaille.collocation.array_types import Better, Floats, Mask
from grisaille.collocation.direct.element_elimination import (
    BackwardSweep,
    CondensedWithDerivatives,
    IndefiniteError,
    condense,
    multipliers,
    substitute,
    sweep,
)
from grisaille.collocation.direct.transcription import Costs, Transcription, TranscriptionPoint
from grisaille.collocation.trajectory_newton import SearchEnd, StepSource, descend
from grisaille.numerics.quadratic import OWN_UNITS, HessianQuadratic, bounded_step, is_definite

FULL_STEP = 1e-4
"""Decrement below which whole steps are taken: the merit function could refuse them for curvature of equations."""
CURVATURE_SHIFT = 1e-9
"""Damping of Gauss–Newton's curvature, which unknowns that hardly anything moves with leave singular."""
MIN_RELATIVE_CURVATURE = 1e-20
"""Curvature of an unknown, relative to the largest it had in a solve: below, nothing moves with it any more."""
Multipliers = tuple[Floats, Floats]
"""Of first points and of elements."""


@dataclass(frozen=True, eq=False)
class PathPoint:
    """A path with its unknowns, on its elements."""

    program: Transcription
    point: TranscriptionPoint
    multipliers: Multipliers
    costs: Costs

    @property
    def theta(self) -> Floats:
        return self.point.theta

    @property
    def objective(self) -> float:
        """Σ (y − ŷ)²/2σ² + ∫ |v|²/2 dt, and what was known of θ."""
        return self.costs.objective

    @property
    def cost(self) -> float:
        return self.costs.total if self.costs.is_finite else np.inf

    @cached_property
    def residual(self) -> float:
        """Return the largest residual of the equations, relative to the size of what it is an equation for."""
        program, costs, n = self.program, self.costs, self.program.model.n
        blocks, states = program.nodes(costs.inner), program.nodes(self.point.inner)
        size = np.abs(states).max(axis=0, initial=0.0) + 1e-12
        worst = np.abs(blocks[:, :n] / size[:n]).max(initial=0.0)
        jumped = np.abs(costs.inner[:, : program.functions.after]).max(initial=0.0)
        algebraic = max(np.abs(blocks[:, n:]).max(initial=0.0), jumped) / (1.0 + np.abs(states[:, n:]).max(initial=0.0))
        return float(max(worst, algebraic, np.abs(costs.first).max(initial=0.0) / self._first))

    @cached_property
    def away(self) -> float:
        """Sum of residuals of the equations, each relative to the size of its state, per element."""
        program, inner, after = self.program, self.costs.inner, self.program.functions.after
        size = np.abs(program.nodes(self.point.inner)).max(axis=0, initial=0.0) + 1e-12
        jumped = np.abs(inner[:, :after]) / size[program.model.n :][:after]
        total = (
            (np.abs(program.nodes(inner)) / size).sum() + jumped.sum() + np.abs(self.costs.first).sum() / self._first
        )
        return float(total / len(inner))

    @property
    def _first(self) -> float:
        return float(1.0 + np.abs(self.point.first).max(initial=0.0))


def place(program: Transcription, point: TranscriptionPoint, multipliers: Multipliers | None = None) -> PathPoint:
    """Return a point with its criterion; multipliers of zero where none are known."""
    zero = np.zeros((len(point.first), program.functions.start.sizes.inner)), np.zeros_like(point.inner)
    return PathPoint(program, point, multipliers or zero, program.evaluate(point))


@dataclass(frozen=True, eq=False)
class LinearizedPath:
    """The quadratic model at a point, eliminated down to θ."""

    program: Transcription
    start: CondensedWithDerivatives
    elements: CondensedWithDerivatives
    swept: list[BackwardSweep]
    gradient: Floats
    curvature: Floats
    """Of the criterion as a function of θ alone, to second order."""
    constant: float
    exact: bool
    information: Floats | None = None
    """Gradient of what is known of θ beside the records."""


def linearize(at: PathPoint, *, exact: bool, damping: float = 0.0) -> LinearizedPath:
    """Return derivatives, elimination and the sum over records; raises ``IndefiniteError``, or ``LinAlgError``."""
    program, point, lam = at.program, at.point, at.multipliers
    a0, a = program.arguments(point)
    f, n, nz = program.functions, program.model.n, program.model.nz
    with np.errstate(all="ignore"):
        of_start, of_elements = program.data(point, 2, exact)
        d0 = f.start.derivatives(a0, of_start, lam[0], exact=exact)
        d = f.element.derivatives(a, of_elements, lam[1], exact=exact)
    if not (np.isfinite(d.hessian).all() and np.isfinite(d.jacobian).all() and np.isfinite(d0.jacobian).all()):
        raise IndefiniteError
    start = condense(d0, f.start.sizes, n, nz, damping * np.ones_like(point.zeta))
    elements = condense(d, f.element.sizes, n, nz, damping * program.noise_weights)
    nt, known = len(point.theta), None
    g, H, constant = np.zeros(nt), np.zeros((nt, nt)), 0.0
    swept = []
    for r in range(len(program.records)):
        swept.append(sweep(start.part(r, r + 1), elements.part(*program.span(r))))
        whole = swept[-1].first
        program.slots.add_to(g, r, whole[0, 1:])
        program.slots.add_to(H, r, whole[1:, 1:])
        constant += whole[0, 0]
    if program.information is not None:
        _, slope, bend, search = (np.array(x.full()) for x in program.information(point.theta))
        known = slope.ravel()
        g, H = g + known, H + (bend if exact else search)
    return LinearizedPath(program, start, elements, swept, g, H, constant, exact, known)


@dataclass(frozen=True, eq=False)
class PathStep:
    """Of all unknowns, the multipliers after it, and the gain: how far the cost is above that of the quadratic model's
    minimum, the part of the residuals taken out."""

    point: TranscriptionPoint
    multipliers: Multipliers
    predicted: float
    slope: float
    exact: bool

    @property
    def is_last(self) -> bool:
        return self.predicted < FULL_STEP and self.exact


class ElementSteps(StepSource[PathPoint, PathStep]):
    """Steps of a path and of θ between bounds; ``better`` is called with θ of every accepted point.

    Unknowns that nothing moves with are held. Where something did before (a rate went to zero, and with it all that
    tells its constants), holding them may keep the rate at zero, far from a minimum that another way leads to: they are
    ``lost``, even where they are found again.
    """

    shortest: ClassVar[float] = 2.0**-14
    least: ClassVar[float] = 1e-2

    def __init__(self, bounds: tuple[Floats, Floats], better: Better) -> None:
        self.bounds, self.better = bounds, better
        self.most = np.zeros_like(bounds[0])
        """The largest curvature of each unknown so far."""
        self.lost = np.zeros(len(bounds[0]), dtype=bool)

    def propose(self, now: PathPoint, damping: float) -> PathStep:
        """Propose a step with exact curvature where that has a minimum."""
        for exact in (True, False):
            try:
                model = linearize(now, exact=exact, damping=damping)
                void = self._void(model)
                return _step(now, model, theta_step(model, now.theta, self.bounds, damping, void, strict=exact))
            except (IndefiniteError, np.linalg.LinAlgError):
                continue
        raise np.linalg.LinAlgError("the equations of an element became singular")

    def _void(self, model: LinearizedPath) -> Mask:
        """Return unknowns that affect nothing here."""
        bend = np.abs(np.diag(model.curvature))
        self.most = np.maximum(self.most, bend)
        void = bend <= MIN_RELATIVE_CURVATURE * self.most
        self.lost |= void & (self.most > 0) & (self.bounds[0] < self.bounds[1])
        return np.asarray(void)

    def after_share_of_step(self, now: PathPoint, step: PathStep, share: float, small: bool) -> PathPoint:
        first, rest = (a + share * (b - a) for a, b in zip(now.multipliers, step.multipliers, strict=True))
        return place(now.program, now.point.moved(step.point, share), (first, rest))

    def note_accepted(self, now: PathPoint) -> None:
        if self.better is not None:
            self.better(now.theta)


def solve_newton(
    now: PathPoint, bounds: tuple[Floats, Floats], *, tolerance: float = 1e-9, max_iterations: int = 100,
    better: Better = None,
) -> SearchEnd[PathPoint]:  # fmt: skip
    """Minimise from a starting point; equal bounds hold θ. ``lost``: unknowns that affected nothing on the way."""
    if not now.costs.is_finite:
        return SearchEnd(now, False, "the criterion is not finite at the start", 0)
    steps = ElementSteps(bounds, better)
    found = descend(steps, now, damping=0.0, tolerance=tolerance, most=max_iterations)
    return replace(found, lost=now.program.slots.local_names(steps.lost))


def theta_step(
    model: LinearizedPath, theta: Floats, bounds: tuple[Floats, Floats], damping: float, held: Mask, strict: bool
) -> Floats:
    """Return dθ within its bounds; raises ``IndefiniteError`` where the curvature is not positive definite and
    ``strict``.
    """
    if not np.any(bounds[0] < bounds[1]):
        return np.zeros_like(theta)
    low, high = bounds[0] - theta, bounds[1] - theta
    inside = (low < 0) & (high > 0) & ~held
    if strict and not is_definite(model.curvature[np.ix_(inside, inside)] * (1 + damping * np.eye(inside.sum()))):
        raise IndefiniteError
    shifted = damping if strict else damping + CURVATURE_SHIFT
    return bounded_step(HessianQuadratic(model.gradient, model.curvature, OWN_UNITS), low, high, shifted, held)


def _step(now: PathPoint, model: LinearizedPath, dtheta: Floats) -> PathStep:
    program = now.program
    padded, nz = np.append(dtheta, 0.0), program.model.nz
    steps = []
    for r, swept in enumerate(model.swept):
        head = np.append(1.0, padded[program.slots.index[r]])[:, None]
        steps.append(substitute(swept, head))
    start = np.stack([s.start[:, 0] for s in steps])
    elements = np.vstack([s.elements[:, :, 0] for s in steps])
    first = multipliers(model.start, start, np.stack([s.costates[0, :, 0] for s in steps]), nz)
    rest = multipliers(model.elements, elements, np.vstack([s.costates[1:, :, 0] for s in steps]), nz)
    value = 0.5 * model.constant + model.gradient @ dtheta + 0.5 * dtheta @ model.curvature @ dtheta
    linear = float((first * now.costs.first).sum() + (rest * now.costs.inner).sum())
    slope = 0.0 if model.information is None else float(model.information @ dtheta)
    for condensed, moved in ((model.start, start), (model.elements, elements)):
        slope += float((condensed.derivatives.gradient * moved).sum())
    point = program.as_point(dtheta, start, elements)
    return PathStep(point, (first, rest), abs(float(value) - linear), slope, model.exact)
