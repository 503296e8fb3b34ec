"""When formulas of time switch: the instants, and the switch signals between them.

Every switching formula is piecewise constant in time. Its changes are bracketed on a fine grid (and at the requested
times) and bisected down to neighbouring numbers. What switches back within one cell is found where a gap inside the
formula turns (``experiment/turning_points.py``). Changes of a gap that is rounding for a while, where a loop has found
what it solves for, are none (``experiment/rounded_switches.py``). Clocks are counted: start + k period, whatever k is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import casadi as ca
import numpy as np

from grisaille.errors import DataError, ModelError
from grisaille.experiment.event_schedule import follow_schedule
from grisaille.experiment.piecewise_polynomials import PiecewisePolynomial, SignalTable, constant
from grisaille.experiment.rounded_switches import without_rounded_changes
from grisaille.experiment.turning_points import grid_with_turning_points
from grisaille.structure.reduction import Structure
from grisaille.structure.system import System, Tick

Values = Callable[[np.ndarray], np.ndarray]
SCAN_CELLS = 20_000
MAX_BISECTIONS = 80
MAX_TICKS = 2_000_000


def find_switches(system: System, p: np.ndarray, times: np.ndarray) -> dict[str, PiecewisePolynomial]:
    """Return the switch signals by name."""
    names = [s.name for s in system.signals if s.kind == "switch" and s.order == 0]
    formulas = system.switches
    if formulas.numel() == 0:
        return {}
    if formulas.is_constant():
        levels = np.array(ca.evalf(formulas).full()).ravel()
        span = float(times[0]), float(times[-1])
        return {name: constant(float(level), span) for name, level in zip(names, levels, strict=True)}
    span = float(times[0]), float(times[-1])
    counted = _clocks(system, p, span)
    if system.schedule is not None:
        counted |= follow_schedule(system, system.schedule, p, times, counted)
    if len(counted) == len(names):
        return counted
    of_time = ca.densify(ca.substitute(formulas, system.p, p))
    function = ca.Function("switches", [system.t], [of_time])

    def values(t: np.ndarray) -> np.ndarray:
        return np.array(function(t[None, :]).full())

    unknown = ca.vertcat(*(of_time[k] for k, n in enumerate(names) if n not in counted))
    grid = grid_with_turning_points(
        unknown, system.t, np.unique(np.concatenate([np.linspace(*span, SCAN_CELLS + 1), times]))
    )
    at = values(grid)
    at[[k for k, n in enumerate(names) if n in counted]] = 0.0
    for k in range(len(names)):
        at[k] = without_rounded_changes(of_time[k], system.t, grid, at[k])
    rows, cells = np.nonzero(at[:, 1:] != at[:, :-1])
    instants = _bisect(values, rows, grid[cells], grid[cells + 1], at[rows, cells])
    return {name: _held(values, k, instants[rows == k], span) for k, name in enumerate(names)} | counted


def _ticks(system: System) -> tuple[Tick, ...]:
    events = system.reactions if system.schedule is None else system.schedule.reactions
    return () if events is None else events.ticks


def _clocks(system: System, p: np.ndarray, span: tuple[float, float]) -> dict[str, PiecewisePolynomial]:
    """Return how often each clock has ticked, -1 before its first tick."""
    ticks = [t for t in _ticks(system) if t.signal]
    if not ticks:
        return {}
    formulas = ca.vertcat(*(ca.vertcat(t.period, t.start) for t in ticks))
    numbers = np.array(ca.Function("clocks", [system.p], [ca.densify(formulas)])(p).full()).reshape(-1, 2)
    return {t.signal: _counted(t.text, row[0], row[1], span) for t, row in zip(ticks, numbers.tolist(), strict=True)}


def _counted(text: str, period: float, start: float, span: tuple[float, float]) -> PiecewisePolynomial:
    if not (period > 0 and np.isfinite(period) and np.isfinite(start)):
        raise ModelError(f"{text}: its period is {period:g} and its start {start:g}; a period must be above zero.")
    near = 4e-15 * max(abs(span[0]), abs(start), abs(span[1]))
    first = max(int(np.floor((span[0] - start + near) / period)), -1)
    last = int(np.floor((span[1] - start + near) / period))
    if last - first > MAX_TICKS:
        raise ModelError(
            f"{text} ticks {last - first} times from t = {span[0]:g} to {span[1]:g}, which is more than {MAX_TICKS}: "
            f"is its period in the unit of time of the model?"
        )
    inner = start + period * np.arange(first + 1, last + 1)
    inner = np.minimum(inner[inner > span[0]], span[1])
    breaks = np.concatenate([[span[0]], inner, [span[1] + max(span[1] - span[0], 1.0)]])
    return PiecewisePolynomial(breaks, first + np.arange(len(breaks) - 1.0)[:, None], inner)


def refuse_jumps(system: System, signals: dict[str, PiecewisePolynomial], p: np.ndarray) -> None:
    """Refuse a switch that makes an equation jump which index reduction differentiates."""
    symbols = {s.name: system.u[k] for k, s in enumerate(system.signals) if s.kind == "switch" and s.order == 0}
    for text, residual in system.smooth:
        inside = {n: s for n, s in symbols.items() if ca.depends_on(residual, s)}
        others = [s for s in ca.symvar(residual) if not any(ca.is_equal(s, q) for q in (*inside.values(), system.t))]
        function = ca.Function("r", [system.t, ca.vertcat(*inside.values()), ca.vertcat(*others)], [residual])
        known = {s.element_hash(): v for s, v in zip(ca.vertsplit(system.p), p, strict=True)}
        random = np.random.default_rng(3)
        rest = [known.get(s.element_hash(), random.uniform(0.3, 1.7)) for s in others]
        for name in inside:
            for instant in signals[name].kinks:
                ends = [[_level(signals[n], instant, side) for n in inside] for side in (-1, 1)]
                before, after = (float(function(instant, levels, rest)) for levels in ends)
                if abs(after - before) > 1e-7 * (1 + abs(before) + abs(after)):
                    raise DataError(
                        f"Index reduction differentiates '{text}', but '{name}' makes it jump by {after - before:.3g} "
                        f"at t = {instant:g}: the derivative would be an impulse. Replace the condition by a smooth "
                        f"formula, or pass it through a filter in the model."
                    )


def refuse_moving_jumps(
    system: System,
    signals: dict[str, PiecewisePolynomial],
    p: np.ndarray,
    dp: np.ndarray,
    names: Sequence[str],
    w: np.ndarray,
) -> None:
    """Refuse derivatives by what moves the instant of a jump: the jump's own share of them is not computed.

    ``dp`` holds the derivative of p in each direction, ``w`` a point (x, z) at which the equations are looked at.
    """
    order = [s.name for s in system.signals if s.kind == "switch" and s.order == 0]
    places = {s.name: k for k, s in enumerate(system.signals) if s.kind == "switch" and s.order == 0}
    known = {s.element_hash(): k for k, s in enumerate(ca.vertsplit(system.p))}
    rates = ca.Function("f", [system.t, ca.vertcat(system.x, system.z), system.u, system.p],
                        [ca.vertcat(system.rhs, system.residual)])  # fmt: skip
    clocks = {t.signal for t in _ticks(system)}
    for k, name in enumerate(order):
        if name in clocks:  # whose ticks nothing feels but events, which move with them
            continue
        inside = [known[s.element_hash()] for s in ca.symvar(system.switches[k]) if s.element_hash() in known]
        moving = [n for n, row in zip(names, dp, strict=True) if row[inside].any()]
        for instant in signals[name].kinks if moving else ():
            u = np.zeros(system.nu)
            for other, place in places.items():
                u[place] = _level(signals[other], instant, -1)
            before = np.array(rates(instant, w, u, p).full())
            u[places[name]] = _level(signals[name], instant, 1)
            after = np.array(rates(instant, w, u, p).full())
            if np.abs(after - before).max(initial=0.0) > 1e-7 * (1 + np.abs(before).max(initial=0.0)):
                raise ModelError(
                    f"The derivative by '{moving[0]}' would be wrong: '{name}' makes the equations jump at "
                    f"t = {instant:g}, an instant that depends on it. Replace the condition by a smooth formula (a "
                    f"ramp with gr.minimum and gr.maximum, or gr.smooth_sign), or leave this name out; an instant that "
                    f"is sought can be said as a dead time since the start: on = gr.Input(default=1.0), and "
                    f"gr.delay(on, {moving[0]}, before=0.0) in place of the condition."
                )


def refuse_moving_thresholds(structure: Structure, dp: np.ndarray, names: Sequence[str]) -> None:
    """Refuse derivatives by what moves a threshold that an input passes.

    ``where(u > th, a, b)`` with a held u does not change with th until th reaches a value of u: the derivative is zero
    almost everywhere and says nothing.
    """
    if not len(names) or not structure.jumps.of_inputs:
        return
    known = {s.element_hash(): k for k, s in enumerate(ca.vertsplit(structure.system.p))}
    for jump in structure.jumps.of_inputs:
        inside = [known[s.element_hash()] for s in ca.symvar(jump.gap) if s.element_hash() in known]
        moving = [n for n, row in zip(names, dp, strict=True) if row[inside].any()]
        if moving:
            raise ModelError(
                f"The derivative by '{moving[0]}' would be wrong: it moves the threshold of '{jump.text}', which an "
                f"input passes and at which the model jumps, so that nothing changes with it until it reaches the next "
                f"value of the input. Replace the relation by a smooth formula, such as (1 + tanh((u - threshold) / "
                f"width)) / 2, or compare fits at fixed values of '{moving[0]}'."
            )


def refuse_held_conditions(structure: Structure, table: SignalTable, dp: np.ndarray, names: Sequence[str]) -> None:
    """Refuse derivatives by what moves the threshold of a condition that only held inputs pass.

    They pass it at their own instants, whatever it is, until it reaches the next value.
    """
    for condition in structure.jumps.conditions_of_inputs if len(names) else ():
        moving = [n for n, row in zip(names, dp, strict=True) if row[list(condition.parameters)].any()]
        if moving and not table.coef[:, list(condition.inputs), 1:].any():
            raise ModelError(
                f"The derivative by '{moving[0]}' would be wrong: it moves the threshold of '{condition.text}' in a "
                f"gr.when, which an input that is held between samples passes, so that nothing changes with it until "
                f"it reaches the next value of the input. Give the input by lines (hold='foh'), or compare fits at "
                f"fixed values of '{moving[0]}'."
            )


def _level(signal: PiecewisePolynomial, t: float, side: int) -> float:
    """Return the value of a held signal just before or after t."""
    piece = np.searchsorted(signal.breaks, t, side="left" if side < 0 else "right") - 1
    return float(signal.coefficients[np.clip(piece, 0, len(signal.coefficients) - 1), 0])


def _bisect(values: Values, rows: np.ndarray, low: np.ndarray, high: np.ndarray, before: np.ndarray) -> np.ndarray:
    """Return the first number at which formula ``rows[i]`` has left its old value, for all brackets at once."""
    every = np.arange(rows.size)
    for _ in range(MAX_BISECTIONS if rows.size else 0):
        middle = 0.5 * (low + high)
        if ((middle == low) | (middle == high)).all():
            break
        stays = values(middle)[rows, every] == before
        low, high = np.where(stays, middle, low), np.where(stays, high, middle)
    return np.asarray(high)


def _held(values: Values, k: int, instants: np.ndarray, span: tuple[float, float]) -> PiecewisePolynomial:
    """Return a signal that is constant between its switching instants, read at three points of each piece.

    The middle alone may be where the formula touches its next level without passing it: ``floor(2 + sin(t))`` at π/2.
    """
    inner = instants[(instants > span[0]) & (instants <= span[1])]
    breaks = np.concatenate([[span[0]], inner, [span[1] + max(span[1] - span[0], 1.0)]])
    ends = np.minimum(breaks[1:], max(span[1], np.nextafter(breaks[-2], np.inf)))
    points = [breaks[:-1] + share * (ends - breaks[:-1]) for share in (0.382, 0.5, 0.618)]
    levels = values(np.maximum(np.concatenate(points), np.tile(breaks[:-1], 3)))[k].reshape(3, -1)
    return PiecewisePolynomial(breaks, np.median(levels, axis=0)[:, None], inner)
