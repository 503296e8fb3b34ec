"""The no-U-turn sampler: Hamiltonian trajectories that are doubled until they turn back, and draws from their points.

In coordinates z in which the metric is the identity (``metric``), with momenta r ~ N(0, 1) and the energy

    H(z, r) = −log p(z) + ½ |r|²

steps of the leapfrog method of length ε go forwards and backwards in time, 1, 2, 4, … of them, until the ends of the
trajectory, or of one of its halves, move towards each other:  r_end · Σ r ≤ 0. The next point is drawn from those of
the trajectory with weights exp(−H), newer halves preferred. A change of H above ``MAX_ENERGY_ERROR`` is a divergence:
the curvature there is too large for the step.

References: M. D. Hoffman, A. Gelman, "The No-U-Turn Sampler", JMLR 15, 2014; M. Betancourt, "A conceptual introduction
to Hamiltonian Monte Carlo", arXiv:1701.02434, appendix A (weights, the criterion by Σ r); the criterion across halves
is that of Stan since version 2.21.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from grisaille.posteriors.kernel import Point, Transition

MAX_ENERGY_ERROR = 1000.0
MAX_DEPTH = 10
"""Doublings of a trajectory."""

Density = Callable[[np.ndarray], tuple[float, np.ndarray]]
"""The log-density of z and its gradient."""


@dataclass(slots=True, eq=False)
class _State:
    """A point of a trajectory with its momentum and energy."""

    point: Point
    r: np.ndarray
    energy: float


@dataclass(slots=True, eq=False)
class _Tree:
    """A part of a trajectory that does not turn back.

    first, last : its ends, the first nearer to where the trajectory began
    rho : Σ r
    log_weight : log Σ exp(H₀ − H)
    chosen : drawn with these weights
    """

    first: _State
    last: _State
    rho: np.ndarray
    log_weight: float
    chosen: Point


class _Trajectory:
    """One trajectory while it grows."""

    def __init__(self, density: Density, step: float, energy: float, rng: np.random.Generator) -> None:
        self.density, self.step, self.energy, self.rng = density, step, energy, rng
        self.evaluations, self.acceptance = 0, 0.0
        self.diverged: np.ndarray | None = None

    def leap(self, state: _State, step: float) -> _State | None:
        """Return the state one step later; None where it diverges."""
        point = state.point
        half = state.r + (0.5 * step) * point.gradient
        z = point.z + step * half
        value, gradient = self.density(z)
        self.evaluations += 1
        if value == -math.inf:
            self.diverged = z
            return None
        r = half + (0.5 * step) * gradient
        energy = 0.5 * float(r @ r) - value
        error = energy - self.energy
        if not error <= MAX_ENERGY_ERROR:
            self.diverged = z
            return None
        self.acceptance += 1.0 if error <= 0 else math.exp(-error)
        return _State(Point(z, value, gradient), r, energy)

    def grow(self, state: _State, step: float, depth: int) -> _Tree | None:
        """Return the 2^depth states after one; None where they diverge or turn back."""
        if depth == 0:
            found = self.leap(state, step)
            return None if found is None else _Tree(found, found, found.r, self.energy - found.energy, found.point)
        near = self.grow(state, step, depth - 1)
        if near is None:
            return None
        far = self.grow(near.last, step, depth - 1)
        if far is None or _turns_back(near, far):
            return None
        total = _log_sum(near.log_weight, far.log_weight)
        takes_far = self.rng.random() < math.exp(far.log_weight - total)
        chosen = far.chosen if takes_far else near.chosen
        return _Tree(near.first, far.last, near.rho + far.rho, total, chosen)


def transition(
    density: Density, point: Point, step: float, rng: np.random.Generator, max_depth: int = MAX_DEPTH
) -> Transition:
    """Return the next point of a chain.

    point : the present one
    step : of the leapfrog method
    """
    r = rng.standard_normal(len(point.z))
    start = _State(point, r, 0.5 * float(r @ r) - point.log_density)
    way = _Trajectory(density, step, start.energy, rng)
    # the first and the last state are the ends in time, whichever grew later
    whole, depth = _Tree(start, start, r, 0.0, point), 0
    while depth < max_depth:
        forwards = rng.random() < 0.5
        end = whole.last if forwards else whole.first
        new = way.grow(end, step if forwards else -step, depth)
        depth += 1
        if new is None:
            break
        chosen = whole.chosen
        if new.log_weight >= whole.log_weight or rng.random() < math.exp(new.log_weight - whole.log_weight):
            chosen = new.chosen
        old = whole if forwards else _Tree(whole.last, whole.first, whole.rho, whole.log_weight, chosen)
        total, rho = _log_sum(whole.log_weight, new.log_weight), whole.rho + new.rho
        first, last = (whole.first, new.last) if forwards else (new.last, whole.last)
        whole = _Tree(first, last, rho, total, chosen)
        if _turns_back(old, new):
            break
    acceptance = way.acceptance / max(way.evaluations, 1)
    return Transition(whole.chosen, acceptance, start.energy, way.evaluations, depth, way.diverged)


def _turns_back(near: _Tree, far: _Tree) -> bool:
    """Return whether two halves that follow each other, or one with the next state of the other, turn back."""
    a, b, c, d = near.first.r, near.last.r, far.first.r, far.last.r
    rho = near.rho + far.rho
    if a @ rho <= 0 or d @ rho <= 0:
        return True
    rho = near.rho + c
    if a @ rho <= 0 or c @ rho <= 0:
        return True
    rho = far.rho + b
    return bool(b @ rho <= 0 or d @ rho <= 0)


def _log_sum(a: float, b: float) -> float:
    """Return log(e^a + e^b)."""
    return a + math.log1p(math.exp(b - a)) if a >= b else b + math.log1p(math.exp(a - b))
