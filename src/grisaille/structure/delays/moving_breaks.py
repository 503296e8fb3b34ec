"""Breaks of signals that move with parameters: the equations on a time that moves with them.

A delayed input jumps at b + tau. For the derivative by tau the run is looked at on another clock s, on which every
break keeps its place while tau moves away from the value τ̂ that the signals were made at:

    t = s + φ(s),    φ = Σ_j (tau_j − τ̂_j) w_j(s),    w_j = 1 at the breaks of delay j, 0 at all others and at rows,

linear in between. On it the equations are

    dx/ds = (1 + φ') rhs(s + φ, x, z, u(s + φ), p),    u(s + φ) = u + φ u',
    v_j = u(t − tau_j) = v̂_j + (φ − tau_j + τ̂_j) v̂_j'.

At tau = τ̂ this is the model itself, step by step, so that integrators, filters and all others that differentiate by
parameters find the derivative by tau, the share of the jumps in it (saltation), and that of steps which scale with the
stretches between breaks. Rows keep their times. τ̂_j, w_j, w_j' and u' are further signals.

Where steps stay (``on_standing_steps``), signals are projected on them (``bent_jumps`` has those that jump and do not
enter linearly).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

import casadi as ca

from grisaille.errors import EstimationError
from grisaille.structure.delays.bent_jumps import bent_signals, blended_rates, refused_jumps
from grisaille.structure.reduction import Structure, with_system
from grisaille.structure.system import FORMULA_FIELDS, MovingBreaks, Signal, System

NOW, HAT, RATE = "now", "hat", "rate"
COUNT, LEFT, RIGHT = "count", "left", "right"
"""Jumps so far (projected: the share of a step behind the jump in it; its rate is of order one), and the values of a
signal before and behind it."""
OF_OTHERS = (NOW, HAT, RATE, COUNT, LEFT, RIGHT)
"""Kinds of signals that tell of another one."""


def with_moving_breaks(structure: Structure, moved: Collection[str], held: Collection[str]) -> Structure:
    """Return the structure on a clock that moves with some dead times.

    moved : texts of those dead times
    held : inputs that are constant between their breaks
    """
    system = structure.system
    taus = {d.text: d.tau for d in system.delays if d.text in moved}
    if not taus:
        return structure
    signals: list[Signal] = []
    for text in taus:
        signals += [Signal(text, 0, NOW), Signal(text, 0, HAT), Signal(text, 1, HAT)]
    text_of = {d.name: d.text for d in system.delays}
    lagging = [k for k, s in enumerate(system.signals) if s.kind == "delayed" and text_of[s.name] in taus]
    varying = [k for k, s in enumerate(system.signals) if k in lagging or _varies(system, s, held)]
    signals += [Signal(system.signals[k].name, system.signals[k].order, RATE) for k in varying]
    jumping = [k for k in lagging if not _varies(system, system.signals[k], held)]
    bent = bent_signals(system, jumping)
    groups = {text: [k for k in bent if text_of[system.signals[k].name] == text] for text in taus}
    groups = {text: own for text, own in groups.items() if own}
    first = len(signals)
    for text, together in groups.items():
        signals += [Signal(text, 0, COUNT), Signal(text, 1, COUNT)]
        signals += [
            Signal(system.signals[k].name, system.signals[k].order, side) for k in together for side in (LEFT, RIGHT)
        ]
    extra = ca.SX.sym("m", len(signals))
    apart = {text: tau - extra[3 * j] for j, (text, tau) in enumerate(taus.items())}
    shift = _total([apart[text] * extra[3 * j + 1] for j, text in enumerate(taus)])
    stretch = 1 + _total([apart[text] * extra[3 * j + 2] for j, text in enumerate(taus)])
    u, standing = ca.SX(system.u), ca.SX(system.u)
    for i, k in enumerate(varying):
        own, rate = system.signals[k], extra[3 * len(taus) + i]
        lag = apart.get(text_of[own.name], ca.SX(0)) if own.kind == "delayed" else ca.SX(0)
        standing[k] -= lag * rate
        if _varies(system, own, held):
            u[k] += (shift - lag) * rate
    layout = {"u": ca.vertcat(system.u, extra), "signals": (*system.signals, *signals)}
    moving = MovingBreaks(system, tuple(taus), system.t + shift, u, stretch, True)
    still = MovingBreaks(
        system, tuple(taus), system.t, standing, ca.SX(1), False, refused=refused_jumps(system, jumping, groups)
    )
    made = replace(system, **layout, **_formulas(moving), moving=moving)
    other = replace(system, **layout, **_formulas(still), moving=still)
    if groups:
        other = replace(other, rhs=blended_rates(still, groups, extra[first:], apart))
    return with_system(structure, replace(made, moving=replace(moving, standing=other)))


def on_standing_steps(structure: Structure) -> Structure:
    """Return the same for signals that are projected on steps that stay (``experiment/projected_signals.py``)."""
    moving = structure.system.moving
    if moving is None or moving.standing is None:
        return structure
    still = moving.standing.moving
    if still is not None and still.refused:
        raise EstimationError(f"{structure.model.name}: {still.refused}")
    return with_system(structure, moving.standing)


def _formulas(moving: MovingBreaks) -> dict[str, ca.SX]:
    found = dict(zip(FORMULA_FIELDS, moving.put([getattr(moving.plain, n) for n in FORMULA_FIELDS]), strict=True))
    if moving.plain.nx and moving.follows:
        found["rhs"] = ca.densify(moving.stretch * found["rhs"])
    return found


def _varies(system: System, signal: Signal, held: Collection[str]) -> bool:
    """Return whether a signal moves between breaks."""
    if signal.kind == "input":
        return signal.name not in held
    if signal.kind != "delayed":
        return False
    source = next(d for d in system.delays if d.name == signal.name)
    return source.kind in ("time", "unknown") or (source.kind == "input" and source.source not in held)


def _total(terms: Sequence[ca.SX]) -> ca.SX:
    return sum(terms[1:], start=terms[0])
