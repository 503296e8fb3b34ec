"""Delayed signals: the polynomials of their sources, later, and where their breaks move with the dead time.

::

    v(t) = u(t − tau),    constant at the first known value of u before that is reached

Breaks at which v or its slope jumps move with tau. Beside rows and breaks that stay they keep a distance, so that they
never meet: one that falls on a row lies just behind it, which moves the jump by less than 1e-10 of the record and makes
the derivative that from the right.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from grisaille.errors import DataError
from grisaille.experiment.piecewise_polynomials import Pieces, PiecewisePolynomial, constant
from grisaille.structure.delays.delay import Delay
from grisaille.structure.delays.moving_breaks import COUNT, HAT, NOW, RATE
from grisaille.structure.system import Signal, System

Floats = NDArray[np.float64]
MIN_BREAK_DISTANCE = 4e-11
"""Least distance of breaks that move from others, as a part of the record; cells and steps are told apart by 1e-11."""
MAX_SLOPE_AT_REST = 1e-9
"""Slope at the start, relative to the steepest, up to which a signal begins at rest."""
FEW_DIGITS = 64
"""The same in units of the last digit of a time."""


@dataclass(frozen=True, eq=False)
class DelayedSignals:
    """Makes the delayed signals of one system from its inputs and switches, at given dead times.

    origin : when the record begins, of which a table may describe a part
    past : delayed unknowns, as far as they are known
    """

    system: System
    taus: Sequence[float]
    origin: float
    past: Mapping[str, PiecewisePolynomial] = field(default_factory=dict)

    def __call__(self, known: Pieces, fixed: Floats) -> tuple[Pieces, Floats]:
        """Return further signals, and the instants of theirs that move; ``fixed`` are rows and kinks that stay."""
        system, last = self.system, float(fixed[-1])
        sources = {name: s for (name, order), s in known.items() if order == 0}
        base = {**delayed_signals(system.delays, self.taus, sources, self.origin, last), **self.past}
        moving = system.moving
        instants = np.zeros(0)
        values = dict(zip((d.text for d in system.delays), self.taus, strict=True))
        pieces: Pieces = {}
        if moving is not None:
            groups = {d.name: d.text for d in system.delays if d.text in moving.taus and d.name in base}
            fixed = np.union1d(fixed, _inside([s for n, s in base.items() if n not in groups], fixed))
            base, kinks = separate_breaks(base, groups, fixed)
            for text, hat in hat_functions({t: kinks.get(t, np.zeros(0)) for t in moving.taus}, fixed).items():
                pieces[f"{HAT} {text}", 0], pieces[f"{HAT} {text}", 1] = hat, hat.derivative()
                pieces[f"{NOW} {text}", 0] = constant(values[text], (float(fixed[0]), last))
            pieces |= {
                (f"{COUNT} {s.name}", 0): _counted(kinks.get(s.name, np.zeros(0)), float(fixed[0]), last)
                for s in system.signals if s.kind == COUNT and s.order == 0
            }  # fmt: skip
            instants = np.concatenate([np.zeros(0), *kinks.values()])
        for s in system.signals:
            if s.kind == "delayed" and s.name in base:
                _refuse_corner(s, base[s.name])
                pieces[s.name, s.order] = _derived(base[s.name], s.order)
        for s in system.signals:
            if s.kind == RATE:
                own = pieces.get((s.name, s.order)) or known[s.name, s.order]
                pieces[f"{RATE} {s.name}", s.order] = replace(own.derivative(), kinks=np.zeros(0))
        return pieces, instants


def _refuse_corner(signal: Signal, delayed: PiecewisePolynomial) -> None:
    """Refuse a second derivative of what begins with a corner at the end of the dead time."""
    if signal.order < 2 or _is_constant(delayed):
        return
    scale = np.abs(delayed.coefficients).max(axis=0)
    rising = delayed.coefficients[1, 1 : signal.order]
    if (np.abs(rising) > MAX_SLOPE_AT_REST * scale[1 : signal.order]).any():
        raise DataError(
            f"Index reduction differentiates {signal.name} {signal.order} times, but it begins to move with a corner "
            f"at t = {delayed.breaks[1]:g}, the end of the dead time (slope {rising[0]:.3g}): the derivative would be "
            f"an impulse. Let the source begin at rest, give samples of it from before the start, or pass it through a "
            f"filter in the model."
        )


def _counted(kinks: Floats, first: float, last: float) -> PiecewisePolynomial:
    """Return how many kinks have passed."""
    breaks = np.concatenate([[first], kinks, [last + max(1.0, last - first)]])
    return PiecewisePolynomial(breaks, np.arange(len(kinks) + 1.0)[:, None], kinks)


def _inside(signals: Sequence[PiecewisePolynomial], fixed: Floats) -> Floats:
    kinks = np.concatenate([np.zeros(0), *(s.kinks for s in signals)])
    return np.asarray(kinks[(kinks > fixed[0]) & (kinks < fixed[-1])])


def _derived(signal: PiecewisePolynomial, order: int) -> PiecewisePolynomial:
    for _ in range(order):
        signal = signal.derivative()
    return signal


def delayed_signals(
    delays: Sequence[Delay],
    taus: Sequence[float],
    sources: Mapping[str, PiecewisePolynomial],
    origin: float,
    last: float,
) -> dict[str, PiecewisePolynomial]:
    """Return signals from those they repeat; of unknowns there is nothing yet.

    sources : polynomials of inputs and switches
    origin, last : when the record begins and ends
    """
    found: dict[str, PiecewisePolynomial] = {}
    for delay, tau in zip(delays, taus, strict=True):
        if not (np.isfinite(tau) and tau > 0):
            raise DataError(
                f"{delay.name}: the dead time {delay.text} is {tau:g}; it must be above zero. Give it bounds, "
                f"gr.Parameter(bounds=(shortest, longest)), with a shortest one above zero."
            )
        far = np.array([origin, origin + tau, max(last, origin + tau) + max(1.0, abs(last), last - origin)])
        if delay.kind == "passed":
            found[delay.name] = PiecewisePolynomial(far, np.array([[0.0], [1.0]]), far[1:2])
        elif delay.kind == "time":
            found[delay.name] = PiecewisePolynomial(far, np.array([[origin, 0.0], [origin, 1.0]]), far[1:2])
        elif delay.kind in ("input", "switch"):
            found[delay.name] = _later(sources[delay.source], float(tau), origin, last)
    return found


def _later(source: PiecewisePolynomial, tau: float, origin: float, last: float) -> PiecewisePolynomial:
    """Return the source repeated tau later, with its first value before."""
    first, c = source.breaks[0], source.coefficients
    if _is_constant(source):
        return source
    until = max(int(np.searchsorted(source.breaks, last - tau, side="right")) + 1, 2)
    breaks, c = source.breaks[:until] + tau, c[: until - 1]
    if c.shape[1] == 1:
        changes = np.append(0, 1 + np.flatnonzero(np.diff(c[:, 0])))
        breaks, c = np.append(breaks[changes], breaks[-1]), c[changes]
    head = np.zeros((1, c.shape[1]))
    head[0, 0] = c[0, 0]
    kinks = source.kinks[source.kinks < last - tau] + tau
    if c[0, 1:].any():
        kinks = np.append(first + tau, kinks)
    return PiecewisePolynomial(np.append(min(origin, first), breaks), np.concatenate([head, c]), kinks)


def _is_constant(signal: PiecewisePolynomial) -> bool:
    return len(signal.breaks) == 2 and not signal.coefficients[:, 1:].any()


def _instants(signal: PiecewisePolynomial) -> Floats:
    """Return breaks that move with the dead time: all but the first, which is the start."""
    return signal.breaks[:0] if _is_constant(signal) else signal.breaks[1:]


def separate_breaks(
    signals: Mapping[str, PiecewisePolynomial], groups: Mapping[str, str], fixed: Floats
) -> tuple[dict[str, PiecewisePolynomial], dict[str, Floats]]:
    """Return signals whose breaks keep a distance from ``fixed`` instants and from those of other groups.

    groups : signal → the dead time it moves with
    Gives the breaks of each group that lie inside, too, which become kinks.
    """
    gap = MIN_BREAK_DISTANCE * (fixed[-1] - fixed[0]) + FEW_DIGITS * np.spacing(np.abs(fixed[[0, -1]]).max())
    order = [(float(k), groups[n]) for n, s in signals.items() if n in groups for k in _instants(s)]
    places: dict[tuple[float, str], float] = {}
    behind = -np.inf
    for kink, group in sorted(set(order)):
        if (kink, group) in places:
            continue
        place = max(kink, behind)
        near = int(np.searchsorted(fixed, place - gap, side="left"))
        while near < len(fixed) and fixed[near] < place + gap:
            place, near = float(fixed[near]) + gap, near + 1
        places[kink, group] = place
        behind = place + gap
    moved: dict[str, PiecewisePolynomial] = {}
    kinks: dict[str, set[float]] = {group: set() for group in groups.values()}
    for name, s in signals.items():
        if name not in groups:
            moved[name] = s
            continue
        own = {k: p for (k, g), p in places.items() if g == groups[name]}
        here = np.array([own[float(k)] for k in _instants(s)])
        moved[name] = replace(s, breaks=np.concatenate([s.breaks[: len(s.breaks) - len(here)], here]), kinks=here)
        kinks[groups[name]] |= set(here[(here > fixed[0]) & (here < fixed[-1])].tolist())
    return moved, {group: np.array(sorted(found)) for group, found in kinks.items()}


def hat_functions(kinks: Mapping[str, Floats], fixed: Floats) -> dict[str, PiecewisePolynomial]:
    """Return for each group the function that is one at its kinks, zero at all others, and linear in between."""
    knots = np.unique(np.concatenate([fixed, *kinks.values()]))
    found = {}
    for group, own in kinks.items():
        at = np.isin(knots, own).astype(float)
        slopes = np.diff(at) / np.diff(knots)
        c = np.append(np.column_stack([at[:-1], slopes]), [[0.0, 0.0]], axis=0)
        bends = knots[1:][np.diff(slopes, append=0.0) != 0]
        end = knots[-1] + max(1.0, knots[-1] - knots[0])
        found[group] = PiecewisePolynomial(np.append(knots, end), c, bends)
    return found
