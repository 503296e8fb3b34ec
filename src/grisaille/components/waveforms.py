"""Formulas of time that sources of every domain share.

Each takes numbers or parameters and gives a formula of ``gr.time``; none has a state. With τ = t − delay:

::

    sine        offset + amplitude · sin(2π frequency τ + phase)   for τ ≥ 0, its value at τ = 0 before
    step        offset + amplitude · [τ ≥ 0]
    ramp        offset + amplitude · clip(τ / duration, 0, 1)
    trapezoid   offset + amplitude · clip(min(σ / rise, (rise + width + fall − σ) / fall), 0, 1)
                with σ = τ modulo period, and 0 before τ = 0
"""

from __future__ import annotations

from math import pi
from typing import TYPE_CHECKING

from grisaille.model.functions import floor, maximum, minimum, sin, time, where

if TYPE_CHECKING:
    from grisaille.model.expression import Expression, Scalar


def sine(
    amplitude: Scalar, frequency: Scalar, phase: Scalar = 0.0, offset: Scalar = 0.0, delay: Scalar = 0.0
) -> Expression:
    """Return a sine of ``frequency`` in Hz and ``phase`` in rad that is at rest before ``delay``."""
    elapsed = time - delay if _is_given(delay) else time
    running = maximum(elapsed, 0.0) if _is_given(delay) else elapsed
    return offset + amplitude * sin(2 * pi * frequency * running + phase)


def step(amplitude: Scalar, offset: Scalar = 0.0, delay: Scalar = 0.0) -> Expression:
    """Return a jump by ``amplitude`` at ``delay``; the new value holds at that instant."""
    return offset + amplitude * where(time >= delay, 1.0, 0.0)


def ramp(amplitude: Scalar, duration: Scalar, offset: Scalar = 0.0, delay: Scalar = 0.0) -> Expression:
    """Return a straight rise by ``amplitude`` within ``duration``, beginning at ``delay``."""
    return offset + amplitude * _clipped((time - delay) / duration)


def trapezoid(
    amplitude: Scalar,
    rise: Scalar,
    width: Scalar,
    fall: Scalar,
    period: Scalar,
    offset: Scalar = 0.0,
    delay: Scalar = 0.0,
) -> Expression:
    """Return pulses with straight flanks, repeated every ``period``; ``rise`` and ``fall`` must be positive."""
    elapsed = time - delay
    phase = elapsed - period * floor(elapsed / period)
    pulse = _clipped(minimum(phase / rise, (rise + width + fall - phase) / fall))
    return offset + amplitude * where(elapsed >= 0, pulse, 0.0)


def _clipped(x: Expression) -> Expression:
    return minimum(maximum(x, 0.0), 1.0)


def _is_given(delay: Scalar) -> bool:
    return not (isinstance(delay, int | float) and delay == 0)
