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
from typing import Any

from grisaille.model.functions import floor, maximum, minimum, sin, time, where


def sine(amplitude: Any, frequency: Any, phase: Any = 0.0, offset: Any = 0.0, delay: Any = 0.0) -> Any:
    """A sine of ``frequency`` in Hz and ``phase`` in rad that is at rest before ``delay``."""
    elapsed = time - delay if _is_given(delay) else time
    running = maximum(elapsed, 0.0) if _is_given(delay) else elapsed
    return offset + amplitude * sin(2 * pi * frequency * running + phase)


def step(amplitude: Any, offset: Any = 0.0, delay: Any = 0.0) -> Any:
    """A jump by ``amplitude`` at ``delay``; the new value holds at that instant."""
    return offset + amplitude * where(time >= delay, 1.0, 0.0)


def ramp(amplitude: Any, duration: Any, offset: Any = 0.0, delay: Any = 0.0) -> Any:
    """A straight rise by ``amplitude`` within ``duration``, beginning at ``delay``."""
    return offset + amplitude * _clipped((time - delay) / duration)


def trapezoid(
    amplitude: Any, rise: Any, width: Any, fall: Any, period: Any, offset: Any = 0.0, delay: Any = 0.0
) -> Any:
    """Pulses with straight flanks, repeated every ``period``; ``rise`` and ``fall`` must be positive."""
    elapsed = time - delay
    phase = elapsed - period * floor(elapsed / period)
    pulse = _clipped(minimum(phase / rise, (rise + width + fall - phase) / fall))
    return offset + amplitude * where(elapsed >= 0, pulse, 0.0)


def _clipped(x: Any) -> Any:
    return minimum(maximum(x, 0.0), 1.0)


def _is_given(delay: Any) -> bool:
    return not (isinstance(delay, int | float) and delay == 0)
