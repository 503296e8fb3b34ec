"""Signals whose breaks move, on steps that stay: on each step the parabola with the same first moments.

Where steps cannot follow a break (ensembles with a disturbance that has its own grid, elements of a collocation), a
delayed signal v is replaced on every step [a, b] by its projection on polynomials of degree two,

    v̄(t) = Σ_j c_j P_j(s),    c_j = (2j + 1) ∫₀¹ P_j v ds,    s = (t − a)/(b − a),    P_j: Legendre's,

which has the same integrals of v, t v and t² v over the step; the effect on a state differs by the fourth order of the
step's length where v enters linearly. As a break moves through a step c_j is a polynomial of its place: criteria are
smooth, and the derivative by the dead time is that of v̄. Breaks at the end of a step count as behind it. Of a signal
that jumps and does not enter linearly, the share of the step behind the jump is projected, and its values before and
behind it are kept (``structure/delays/bent_jumps.py``).
"""

from __future__ import annotations

from collections.abc import Iterator
from math import comb

import numpy as np
from numpy.typing import NDArray

from grisaille.errors import SimulationError
from grisaille.experiment.piecewise_polynomials import MOVING_KINK, SignalTable, shifted_coefficients
from grisaille.structure.delays.moving_breaks import COUNT, HAT, LEFT, RATE, RIGHT
from grisaille.structure.system import System

Floats = NDArray[np.float64]
LEGENDRE = np.array([[1.0, 0.0, 0.0], [-1.0, 2.0, 0.0], [1.0, -6.0, 6.0]])
"""Coefficients of P₀, P₁, P₂ on [0, 1], row by row."""
SLOPES = np.array([[0.0, 0.0, 0.0], [2.0, 0.0, 0.0], [-6.0, 12.0, 0.0]])
"""Of their derivatives."""
VALUES_AT_ZERO = np.array([1.0, -1.0, 1.0])
"""Their values at 0; at 1 all are one."""
NORMS = np.array([1.0, 3.0, 5.0])


def projected_table(table: SignalTable, system: System, points: Floats) -> SignalTable:
    """Return the table of a system with moving breaks, on steps between increasing ``points`` that cover the run."""
    assert system.moving is not None
    text_of = {d.name: d.text for d in system.delays}
    moved = [
        k
        for k, s in enumerate(system.signals)
        if s.kind == "delayed" and text_of[s.name] in system.moving.taus
    ]  # fmt: skip
    rates = {(s.name, s.order): k for k, s in enumerate(system.signals) if s.kind == RATE}
    stays = (table.kink != MOVING_KINK) & (table.breaks >= points[0])
    breaks = np.unique(np.concatenate([points, table.breaks[stays]]))
    if len(breaks) < 2:
        return table
    degree = max(table.coef.shape[2], 3)
    coef = np.zeros((len(breaks) - 1, table.coef.shape[1], degree))
    coef[:, :, : table.coef.shape[2]] = _expanded(table, breaks)
    for k, s in enumerate(system.signals):
        if s.kind == HAT:
            coef[:, k] = 0.0
    for k in moved:
        signal = system.signals[k]
        value, slope = _moments(table, k, points)
        coef[:, k] = 0.0
        coef[:, k, :3] = shifted_coefficients(points, value, breaks[:-1])
        place = rates.get((signal.name, signal.order))
        if place is not None:
            coef[:, place] = 0.0
            coef[:, place, :3] = shifted_coefficients(points, slope, breaks[:-1])
    for k, s in enumerate(system.signals):
        if s.kind in (LEFT, RIGHT, COUNT) and s.order == 0:
            for place, values in _around_jumps(table, system, k, points):
                coef[:, place] = 0.0
                coef[:, place, :3] = shifted_coefficients(points, values, breaks[:-1])
    kinks = table.breaks[(table.kink == 1) & (table.breaks > points[0]) & (table.breaks < points[-1])]
    return SignalTable(breaks, coef, np.isin(breaks, np.concatenate([points, kinks])).astype(np.uint8))


def longest_step(table: SignalTable, system: System) -> float:
    """Return steps up to which no signal that enters other than linearly jumps twice in one; infinite without such
    signals.
    """
    gaps = [np.inf]
    for k, s in enumerate(system.signals):
        if s.kind == COUNT and s.order == 0:
            jumps = table.breaks[1:-1][np.diff(table.coef[:, k, 0]) != 0]
            gaps += np.diff(jumps).tolist()
    return (1 - 1e-6) * min(gaps)


def _around_jumps(table: SignalTable, system: System, place: int, points: Floats) -> Iterator[tuple[int, Floats]]:
    """Yield signals that say how a signal jumps within each step: places in u, and polynomials (steps, 3)."""
    signal = system.signals[place]
    if signal.kind == COUNT:
        value, slope = _moments(table, place, points)
        so_far = _values(table, place, np.nextafter(points, -np.inf), points[:, None])[:, 0]
        if (np.diff(so_far) > 1.5).any():
            where = float(points[np.argmax(np.diff(so_far))])
            raise SimulationError(
                f"What is delayed by {signal.name} jumps several times in the step at t = {where:.6g} and enters other "
                f"than linearly: give a step= shorter than the time between its jumps."
            )
        value[:, 0] -= so_far[:-1]
        yield place, value
        yield place + 1, slope
        return
    source = next(
        k for k, s in enumerate(system.signals) if (s.name, s.order, s.kind) == (signal.name, signal.order, "delayed")
    )
    at = _values(table, source, np.nextafter(points, -np.inf), points[:, None])[:, 0]
    values = np.zeros((len(points) - 1, 3))
    values[:, 0] = at[:-1] if signal.kind == LEFT else at[1:]
    yield place, values


def _expanded(table: SignalTable, breaks: Floats) -> Floats:
    """Return all signals at the left ends; a piece is that of the middle between two."""
    middle = 0.5 * (breaks[:-1] + breaks[1:])
    segment = np.clip(np.searchsorted(table.breaks, middle, side="right") - 1, 0, len(table.coef) - 1)
    c, by = table.coef[segment], breaks[:-1] - table.breaks[segment]
    moved = np.zeros_like(c)
    for k in range(c.shape[-1]):
        for j in range(k, c.shape[-1]):
            moved[..., k] += comb(j, k) * c[..., j] * by[:, None] ** (j - k)
    return moved


def _moments(table: SignalTable, place: int, points: Floats) -> tuple[Floats, Floats]:
    """Return v̄ and the rate −∂v̄/∂tau on every step, as coefficients of powers of t − a: (steps, 3) each."""
    inner = table.breaks[(table.breaks > points[0]) & (table.breaks < points[-1])]
    ends = np.union1d(points, inner)
    step = np.searchsorted(points, ends[:-1], side="right") - 1
    left, length = points[step], np.diff(points)[step]
    nodes, weights = np.polynomial.legendre.leggauss((table.coef.shape[2] + 3) // 2 + 1)
    width = np.diff(ends)
    t = ends[:-1, None] + width[:, None] * 0.5 * (nodes + 1)
    v = _values(table, place, 0.5 * (ends[:-1] + ends[1:]), t)
    s = (t - left[:, None]) / length[:, None]
    powers = s[..., None] ** np.arange(3)
    w = (0.5 * weights * v) * (width / length)[:, None]
    raw = np.einsum("kn,knp->kp", w, powers)
    moments = np.stack([np.bincount(step, raw[:, p], len(points) - 1) for p in range(3)], axis=1)
    at = _values(table, place, np.nextafter(points, -np.inf), points[:, None])[:, 0]
    L = np.diff(points)
    value = (NORMS * (moments @ LEGENDRE.T)) @ LEGENDRE
    jumped = at[1:, None] - VALUES_AT_ZERO * at[:-1, None] - moments @ SLOPES.T
    slope = ((NORMS * jumped) @ LEGENDRE) / L[:, None]
    scale = L[:, None] ** -np.arange(3.0)
    return value * scale, slope * scale


def _values(table: SignalTable, place: int, inside: Floats, t: Floats) -> Floats:
    """Return values (k, n) of one signal at times t (k, n), by the pieces that contain ``inside`` (k,)."""
    segment = np.clip(np.searchsorted(table.breaks, inside, side="right") - 1, 0, len(table.coef) - 1)
    offset = t - table.breaks[segment][:, None]
    powers = offset[..., None] ** np.arange(table.coef.shape[2])
    return np.asarray(np.einsum("knp,kp->kn", powers, table.coef[segment, place]))
