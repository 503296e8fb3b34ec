"""Newton steps over splines and unknowns together, by the arrow structure of the curvature.

For experiments c with coefficients β_c and common unknowns ξ a step solves

    ⎡A_c   B_c⎤ ⎡dβ_c⎤     ⎡g_c⎤          S dξ = −(g_ξ − Σ B_cᵀA_c⁻¹g_c),    S = C − Σ B_cᵀ A_c⁻¹ B_c,
    ⎣B_cᵀ   C ⎦ ⎣ dξ ⎦ = − ⎣g_ξ⎦,         dβ_c = −A_c⁻¹(g_c + B_c dξ),

each A_c a band. Levenberg's damping multiplies the diagonals by 1 + λ. A step that fails may be corrected by a second
one over trajectories alone. Near the minimum the exact Hessian takes the place of Gauss–Newton's matrix where it is
positive definite. Bounds hold an unknown, or a coefficient, as long as the gradient pushes it out. Reference:
J. Nocedal, S. Wright, Numerical Optimization (2006), sections 10.3 and 16.7.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from grisaille.collocation import banded
from grisaille.collocation.array_types import Better, Floats, Mask
from grisaille.collocation.banded import BandedFactor, NotPositiveDefinite
from grisaille.collocation.spline_program import LinearisedProgram, ParameterQuadratic, SplineProgram
from grisaille.collocation.trajectory_newton import ENOUGH, GOOD, SearchEnd, StepSource, descend
from grisaille.collocation.trial_record import RecordValues
from grisaille.laws.term import PriorTerm
from grisaille.numerics.quadratic import OWN_UNITS, HessianQuadratic, bounded_step, is_definite

EXACT_CURVATURE_GAIN = 1e-2
"""Predicted gain, relative to 1 + J, below which the exact Hessian is tried."""
FIRST_DAMPING = 1e-3
"""Damping to begin with."""
MAX_CORRECTED_GAIN = 0.1
"""Predicted gain, relative to 1 + J, below which a step that fails may be corrected."""


@dataclass
class DescentTask:
    """A minimisation: programs, which of the n unknowns each depends on, their scale and bounds, and priors."""

    programs: Sequence[SplineProgram]
    moved: Sequence[Sequence[int]]
    outer: Callable[[Floats], Floats]
    """θ of ξ."""
    inner: Callable[[Floats], Floats]
    """ξ of θ."""
    slopes: Callable[[Floats], Floats]
    """dθ/dξ at θ."""
    lower: Floats
    upper: Floats
    """Bounds of ξ."""
    priors: Callable[[Floats], PriorTerm]
    """Of θ."""
    prior_formula: Callable[[Any], Any] | None = None
    """The same as a formula of CasADi's θ; None without priors."""
    free_starts: bool = False
    """Estimated starts belong to the trajectories."""
    limits: Sequence[tuple[Floats, Floats]] = ()
    """Bounds of the coefficients of every program; empty: none."""
    evaluations: int = 0

    def given(self, theta: Floats) -> list[RecordValues]:
        """Return numbers for every program at θ."""
        return [
            p.record.at(theta[list(mine)], self.free_starts) for p, mine in zip(self.programs, self.moved, strict=True)
        ]

    def linearised(self, xi: Floats, betas: Sequence[Floats], exact: bool = False) -> ArrowQuadratic:
        """Return the quadratic model at a point."""
        theta = self.outer(xi)
        given = self.given(theta)
        parts = [p.linearised(b, g, exact=exact) for p, b, g in zip(self.programs, betas, given, strict=True)]
        self.evaluations += 1
        with np.errstate(all="ignore"):  # a trial may be so far off that its derivatives overflow: it is refused
            return ArrowQuadratic(self, xi, theta, given, parts, exact)

    def on_trajectories(self, xi: Floats, betas: Sequence[Floats]) -> ReducedCriterion:
        """Return the same by the unknowns alone, at trajectories that stay."""
        theta = self.outer(xi)
        zipped = zip(self.programs, betas, self.given(theta), strict=True)
        return ReducedCriterion(self, xi, theta, [p.on_trajectory(b, g) for p, b, g in zipped])


class ReducedCriterion:
    """J at one point and its derivatives by ξ."""

    away = residual = 0.0

    def __init__(self, task: DescentTask, xi: Floats, theta: Floats, parts: Sequence[ParameterQuadratic]) -> None:
        self.task, self.xi, self.theta = task, xi, theta
        self.prior = prior = task.priors(theta)
        scale = task.slopes(theta)
        self.cost = prior.value + sum(p.objective for p in parts)
        self.slope, self.corner = prior.gradient * scale, prior.search_curvature * np.outer(scale, scale)
        for part, mine in zip(parts, map(list, task.moved), strict=True):
            self.slope[mine] += part.slope * scale[mine]
            self.corner[np.ix_(mine, mine)] += part.corner * np.outer(scale[mine], scale[mine])

    @property
    def objective(self) -> float:
        return self.cost

    def free(self, wanted: Mask) -> Mask:
        """Return the wanted unknowns that no bound holds."""
        t = self.task
        out = ((self.xi <= t.lower) & (self.slope > 0)) | ((self.xi >= t.upper) & (self.slope < 0))
        # what moves nothing has no curvature and stays
        return np.asarray(wanted & ~out & (np.diag(self.corner) > 0))


class ArrowQuadratic(ReducedCriterion):
    """J at one point and its derivatives by ξ and β."""

    def __init__(
        self,
        task: DescentTask,
        xi: Floats,
        theta: Floats,
        given: Sequence[RecordValues],
        parts: Sequence[LinearisedProgram],
        exact: bool,
    ) -> None:
        super().__init__(task, xi, theta, parts)
        self.given, self.parts, self.exact = given, parts, exact
        if exact:
            self.corner = self.corner + self.prior.correction * np.outer(task.slopes(theta), task.slopes(theta))
        self.borders, scale = [], task.slopes(theta)
        for part, mine in zip(parts, map(list, task.moved), strict=True):
            border = np.zeros((len(part.beta), len(xi)))
            border[:, mine] = part.border * scale[mine]
            self.borders.append(border)
        self.held = [
            p.held(g) | self.on_bounds(k, part)
            for k, (p, g, part) in enumerate(zip(task.programs, given, parts, strict=True))
        ]
        self.gradients = [np.where(h, 0.0, p.gradient) for h, p in zip(self.held, parts, strict=True)]

    @cached_property
    def by_gauss(self) -> ArrowQuadratic:
        """Return the same with Gauss and Newton's curvature."""
        return self.task.linearised(self.xi, self.betas) if self.exact else self

    @property
    def betas(self) -> list[Floats]:
        return [p.beta for p in self.parts]

    def on_bounds(self, k: int, part: LinearisedProgram) -> Mask:
        """Return which coefficients their bounds hold."""
        if not self.task.limits:
            return np.zeros(len(part.beta), dtype=bool)
        low, high = self.task.limits[k]
        return np.asarray(
            ((part.beta <= low) & (part.gradient > 0)) | ((part.beta >= high) & (part.gradient < 0)), dtype=bool
        )

    def factors(self, damping: float = 0.0) -> list[BandedFactor]:
        """Return Cholesky factors of the bands without what is held."""
        found = []
        for part, held in zip(self.parts, self.held, strict=True):
            band = banded.without_held(part.band, held)
            band[0] *= 1 + damping
            found.append(BandedFactor(band))
        return found

    def reduced(
        self, factors: Sequence[BandedFactor], among: Mask | None = None
    ) -> tuple[Floats, Floats, list[Floats], list[Floats]]:
        """Return S, its right-hand side, A⁻¹B and A⁻¹g of every program; unknowns not ``among`` these are left out."""
        S, right, carried, own = self.corner.copy(), self.slope.copy(), [], []
        for f, moved, held, border, g in zip(
            factors, self.task.moved, self.held, self.borders, self.gradients, strict=True
        ):
            mine = [k for k in moved if among is None or among[k]]
            B, V = np.where(held[:, None], 0.0, border[:, mine]), np.zeros_like(border)
            solved = f.solve(np.column_stack([B, g]))
            S[np.ix_(mine, mine)] -= B.T @ solved[:, :-1]
            right[mine] -= B.T @ solved[:, -1]
            V[:, mine] = solved[:, :-1]
            carried.append(V)
            own.append(solved[:, -1])
        return S, right, carried, own


@dataclass(frozen=True)
class ArrowStep:
    """A proposed step and the gain that the quadratic model predicts of it."""

    xi: Floats
    betas: list[Floats]
    predicted: float
    is_last: ClassVar[bool] = False

    @property
    def slope(self) -> float:
        return -abs(self.predicted)


class ArrowDescent(StepSource[ArrowQuadratic, ArrowStep]):
    """Steps of a task; ``better`` is called with θ of every accepted point."""

    def __init__(
        self, task: DescentTask, wanted: Mask, progress: Callable[[int, float], None] | None, better: Better
    ) -> None:
        self.task, self.wanted, self.progress, self.better = task, wanted, progress, better
        self.trace: list[dict[str, float]] = []

    @property
    def may_stall(self) -> bool:
        return not any(p.record.stochastic.jumps for p in self.task.programs)

    def propose(self, now: ArrowQuadratic, damping: float) -> ArrowStep | None:
        step = None if "by_gauss" in vars(now) else _propose(now, self.wanted, damping)
        return _propose(now.by_gauss, self.wanted, damping) if step is None and now.exact else step

    def after_share_of_step(self, now: ArrowQuadratic, step: ArrowStep, share: float, small: bool) -> ArrowQuadratic:
        closing = step.predicted < EXACT_CURVATURE_GAIN * (1 + now.cost)
        trial = self.task.linearised(step.xi, step.betas, closing and not small)
        if self.wanted.any() and not small and step.predicted < MAX_CORRECTED_GAIN * (1 + now.cost):
            return _corrected(self.task, step, trial, now.cost)
        return trial

    def gain_scale(self, now: ArrowQuadratic) -> float:
        return 1 + now.cost

    def note_accepted(self, now: ArrowQuadratic) -> None:
        self.trace.append({"evaluation": float(self.task.evaluations), "objective": now.cost})
        if self.progress is not None:
            self.progress(self.task.evaluations, now.cost)
        if self.better is not None and len(self.trace) > 1:
            self.better(now.theta)


def minimize(
    task: DescentTask,
    xi: Floats,
    betas: Sequence[Floats],
    *,
    wanted: Mask | None = None,
    near: bool = False,
    tolerance: float = 1e-11,
    most: int = 200,
    progress: Callable[[int, float], None] | None = None,
    better: Better = None,
) -> SearchEnd[ArrowQuadratic]:
    """Minimise J over the unknowns ``wanted`` (all by default) and the coefficients; ``near``: from close by."""
    wanted = np.ones(len(xi), dtype=bool) if wanted is None else wanted
    now = task.linearised(np.clip(xi, task.lower, task.upper), _inside(task, betas), near)
    if not np.isfinite(now.cost):
        return SearchEnd(now, False, "the model has no value on the starting trajectory", 0)
    steps = ArrowDescent(task, wanted, progress, better)
    found = descend(steps, now, damping=0.0 if near else FIRST_DAMPING, tolerance=tolerance, most=most)
    return replace(found, at=found.at.by_gauss, trace=steps.trace)


def _corrected(task: DescentTask, step: ArrowStep, trial: ArrowQuadratic, before: float) -> ArrowQuadratic:
    """Return the trial, or one with trajectories brought after the unknowns, where a step that fails promises to
    succeed then.

    Unknowns times states make a valley that bends away from joint steps; at given unknowns it is nearly a parabola.
    """
    if before - trial.cost > GOOD * step.predicted or not np.isfinite(trial.cost):
        return trial
    after = _propose(trial, np.zeros(len(step.xi), dtype=bool), 0.0)
    if after is None or before - (trial.cost - after.predicted) < ENOUGH * step.predicted:
        return trial
    other = task.linearised(step.xi, after.betas, trial.exact)
    return other if other.cost < trial.cost else trial


def _propose(now: ArrowQuadratic, wanted: Mask, damping: float) -> ArrowStep | None:
    try:
        free = now.free(wanted)
        S, right, carried, own = now.reduced(now.factors(damping), free)
        dxi, predicted = unknowns_step(now, S, right, free, damping)
    except (NotPositiveDefinite, np.linalg.LinAlgError):
        return None
    betas = []
    for part_now, held, g, V, v in zip(now.parts, now.held, now.gradients, carried, own, strict=True):
        betas.append(part_now.beta + np.where(held, 0.0, -v - V @ dxi))
        predicted += 0.5 * float(g @ np.where(held, 0.0, v))
    return ArrowStep(now.xi + dxi, _inside(now.task, betas), predicted) if np.isfinite(predicted) else None


def unknowns_step(now: ReducedCriterion, S: Floats, right: Floats, free: Mask, damping: float) -> tuple[Floats, float]:
    """Return dξ between bounds and its gain; raises ``NotPositiveDefinite``, or ``LinAlgError``."""
    dxi = np.zeros_like(now.xi)
    if not free.any():
        return dxi, 0.0
    part = S[np.ix_(free, free)].copy()
    part[np.diag_indices(len(part))] += damping * np.diag(now.corner)[free]
    if not is_definite(part):
        raise NotPositiveDefinite
    model = HessianQuadratic(right[free], part, OWN_UNITS)
    low, high = now.task.lower[free] - now.xi[free], now.task.upper[free] - now.xi[free]
    dxi[free] = inside = bounded_step(model, low, high, 0.0)
    return dxi, -float(right[free] @ inside + 0.5 * model.bend(inside))


def _inside(task: DescentTask, betas: Sequence[Floats]) -> list[Floats]:
    if not task.limits:
        return list(betas)
    return [np.clip(b, *limits) for b, limits in zip(betas, task.limits, strict=True)]
