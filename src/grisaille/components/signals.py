"""Causal blocks: inputs u, outputs y, joined by ``gr.connect(a.y, b.u)``.

A block without a state is a formula, put in its place when the model is flattened: chains of them cost nothing, and a
closed loop of them becomes one equation. Signals carry no unit, so a block can drive any input. ``Sum`` and ``Table``
are functions that make a block for the given numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from grisaille.components import waveforms
from grisaille.errors import ModelError
from grisaille.model.classes import Model
from grisaille.model.declarations import Input, Output, Parameter, Variable
from grisaille.model.functions import der, maximum, minimum, smooth_abs
from grisaille.model.table_functions import table

Equations = Iterator[Any]


class Constant(Model):
    """y = k."""

    k = Parameter()
    y = Output(k)


class Sine(Model):
    """y = offset + amplitude · sin(2π frequency t + phase)."""

    amplitude, frequency = Parameter(1.0), Parameter(unit="Hz")
    phase, offset = Parameter(0.0, "rad"), Parameter(0.0)
    y = Output(waveforms.sine(amplitude, frequency, phase, offset))


class Step(Model):
    """y = offset before ``delay``, offset + amplitude from then on."""

    amplitude, offset, delay = Parameter(1.0), Parameter(0.0), Parameter(0.0, "s")
    y = Output(waveforms.step(amplitude, offset, delay))


class Ramp(Model):
    """From offset to offset + amplitude in a straight line within ``duration``, beginning at ``delay``."""

    amplitude, duration = Parameter(1.0), Parameter(unit="s")
    offset, delay = Parameter(0.0), Parameter(0.0, "s")
    y = Output(waveforms.ramp(amplitude, duration, offset, delay))


class Trapezoid(Model):
    """Pulses of height ``amplitude`` with straight flanks, repeated every ``period``."""

    amplitude = Parameter(1.0)
    rise, width, fall, period = (Parameter(unit="s") for _ in range(4))
    offset, delay = Parameter(0.0), Parameter(0.0, "s")
    y = Output(waveforms.trapezoid(amplitude, rise, width, fall, period, offset, delay))


class Gain(Model):
    """y = k u."""

    k = Parameter()
    u = Input()
    y = Output(k * u)


def Sum(gains: Sequence[float] = (1.0, 1.0)) -> Model:
    """Return y = Σ k[j] u[j], with one input ``u[j]`` for each gain: ``Sum((1, -1))`` is the comparator of a control
    loop.
    """
    n = len(gains)
    if n == 0:
        raise ModelError("Sum: give at least one gain, as in Sum((1, -1)).")

    class Sum(Model):
        """y = Σ k[j] u[j]."""

        k = Parameter(list(gains), size=n)
        u = Input(size=n)
        y = Output(k @ u)

    return Sum()


class Product(Model):
    """y = u1 u2."""

    u1, u2 = Input(), Input()
    y = Output(u1 * u2)


class Integrator(Model):
    """dx/dt = k u, y = x; x starts at zero unless told otherwise."""

    k = Parameter(1.0, "1/s")
    u = Input()
    x = Variable(0.0)
    y = Output(x)

    def equations(self) -> Equations:
        yield der(self.x) == self.k * self.u


class FirstOrder(Model):
    """T dx/dt + x = k u, y = x: the lag k/(T s + 1); x starts at zero unless told otherwise."""

    k, T = Parameter(1.0), Parameter(unit="s", description="time constant")
    u = Input()
    x = Variable(0.0)
    y = Output(x)

    def equations(self) -> Equations:
        yield self.T * der(self.x) + self.x == self.k * self.u


class SecondOrder(Model):
    """y = x with d²x/dt² + 2 D w dx/dt + w² x = k w² u; both states start at zero unless told otherwise."""

    k, D = Parameter(1.0), Parameter(description="damping ratio; oscillating below 1")
    w = Parameter(unit="rad/s", description="natural angular frequency")
    u = Input()
    x, v = Variable(0.0), Variable(0.0)
    y = Output(x)

    def equations(self) -> Equations:
        yield der(self.x) == self.v
        yield der(self.v) + 2 * self.D * self.w * self.v + self.w**2 * self.x == self.k * self.w**2 * self.u


class Limiter(Model):
    """y = u within [low, high], the nearer limit outside; kinks at both limits."""

    low, high = Parameter(-1.0), Parameter(1.0)
    u = Input()
    y = Output(minimum(maximum(u, low), high))


class SmoothLimiter(Model):
    """y = (low + high + |u − low| − |u − high|)/2 with |x| = sqrt(x² + width²).

    A limiter without kinks: strictly between the limits, off the hard one by at most width/2, at its kinks.
    """

    low, high, width = Parameter(-1.0), Parameter(1.0), Parameter(0.05)
    u = Input()
    y = Output((low + high + smooth_abs(u - low, width) - smooth_abs(u - high, width)) / 2)


def Table(xs: Sequence[float], ys: Sequence[float], kind: str = "linear", outside: str = "hold") -> Model:
    """Return y(u) through the points (xs, ys), linear or cubic; outside the end value is held or the end slope
    extended.
    """

    class Table(Model):
        """y(u) through given points."""

        u = Input()
        y = Output(table(u, xs, ys, kind, outside))

    return Table()


class PID(Model):
    """y = k (u + x + N (u − x_d)), T_I dx/dt = u, T_D dx_d/dt = N (u − x_d), u being the control error.

    k (1 + 1/(T_I s) + T_D s/(1 + T_D s/N)): the derivative acts below the frequency N/T_D. Both states start at zero
    unless told otherwise. Not modelled: limits of the actuator and anti-windup.
    """

    k = Parameter()
    T_I, T_D = Parameter(unit="s", description="integral time"), Parameter(unit="s", description="derivative time")
    N = Parameter(10.0, "", "gain limit of the derivative part")
    u = Input()
    x, x_d = Variable(0.0), Variable(0.0)
    y = Output(k * (u + x + N * (u - x_d)))

    def equations(self) -> Equations:
        yield self.T_I * der(self.x) == self.u
        yield self.T_D * der(self.x_d) == self.N * (self.u - self.x_d)
