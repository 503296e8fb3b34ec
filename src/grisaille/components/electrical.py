"""Electrical circuits.

A ``Pin`` has the voltage v against ground and the current i into the component. A one-port has two pins p and n, the
voltage v = p.v − n.v and the current i that flows through it from p to n, so that v·i is the power it takes up: a
resistor has v = R i, and a voltage source that feeds a load has a negative current. Every circuit needs a ``Ground``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from grisaille.components import waveforms
from grisaille.model.classes import Model
from grisaille.model.connectors import Connector, Flow, Potential
from grisaille.model.declarations import Input, Parameter, Variable
from grisaille.model.functions import der, exp, maximum, minimum

if TYPE_CHECKING:
    from grisaille.model.expression import Expression

Equations = Iterator[Any]


class Pin(Connector):
    """An electrical terminal."""

    v = Potential("V", "voltage against ground")
    i = Flow("A", "current into the component")


class Ground(Model):
    """The node against which voltages count: p.v = 0."""

    p = Pin()

    def equations(self) -> Equations:
        yield self.p.v == 0


class OnePort(Model):
    """Two pins, one current through: v = p.v − n.v, i = p.i = −n.i. The base of what follows."""

    p, n = Pin(), Pin()
    v = Variable(unit="V", description="voltage from n to p")
    i = Variable(unit="A", description="current from p through the component to n")

    def equations(self) -> Equations:
        yield self.v == self.p.v - self.n.v
        yield self.i == self.p.i
        yield self.p.i + self.n.i == 0


class Resistor(OnePort):
    """v = R i."""

    R = Parameter(unit="ohm", description="resistance")

    def equations(self) -> Equations:
        yield from super().equations()
        yield self.v == self.R * self.i


class Capacitor(OnePort):
    """C dv/dt = i."""

    C = Parameter(unit="F", description="capacitance")

    def equations(self) -> Equations:
        yield from super().equations()
        yield self.C * der(self.v) == self.i


class Inductor(OnePort):
    """L di/dt = v."""

    L = Parameter(unit="H", description="inductance")

    def equations(self) -> Equations:
        yield from super().equations()
        yield self.L * der(self.i) == self.v


class Transformer(Model):
    """Ideal transformer: v1 = ratio · v2, ratio · i1 + i2 = 0, without loss or magnetising current."""

    p1, n1, p2, n2 = Pin(), Pin(), Pin(), Pin()
    ratio = Parameter(description="turns of side 1 over turns of side 2")

    def equations(self) -> Equations:
        yield self.p1.v - self.n1.v == self.ratio * (self.p2.v - self.n2.v)
        yield self.ratio * self.p1.i + self.p2.i == 0
        yield self.p1.i + self.n1.i == 0
        yield self.p2.i + self.n2.i == 0


class VoltageSource(OnePort):
    """v = u."""

    u = Input("V", "voltage from n to p")

    def equations(self) -> Equations:
        yield from super().equations()
        yield self.v == self.u


class ConstantVoltage(OnePort):
    """v = V."""

    V = Parameter(unit="V", description="voltage from n to p")

    def equations(self) -> Equations:
        yield from super().equations()
        yield self.v == self.V


class SineVoltage(VoltageSource):
    """v = offset + amplitude · sin(2π frequency t + phase)."""

    amplitude = Parameter(unit="V")
    frequency = Parameter(unit="Hz")
    phase, offset = Parameter(0.0, "rad"), Parameter(0.0, "V")
    u = waveforms.sine(amplitude, frequency, phase, offset)


class StepVoltage(VoltageSource):
    """v = offset before ``delay``, offset + amplitude from then on."""

    amplitude = Parameter(unit="V")
    offset, delay = Parameter(0.0, "V"), Parameter(0.0, "s")
    u = waveforms.step(amplitude, offset, delay)


class TrapezoidVoltage(VoltageSource):
    """Pulses of height ``amplitude`` with straight flanks, repeated every ``period``."""

    amplitude = Parameter(unit="V")
    rise, width, fall, period = (Parameter(unit="s") for _ in range(4))
    offset, delay = Parameter(0.0, "V"), Parameter(0.0, "s")
    u = waveforms.trapezoid(amplitude, rise, width, fall, period, offset, delay)


class CurrentSource(OnePort):
    """i = u: the current u flows inside the source from p to n, outside from n to p."""

    u = Input("A", "current inside the source from p to n")

    def equations(self) -> Equations:
        yield from super().equations()
        yield self.i == self.u


class ConstantCurrent(OnePort):
    """i = I."""

    I = Parameter(unit="A", description="current inside the source from p to n")  # noqa: E741 (the textbook's letter)

    def equations(self) -> Equations:
        yield from super().equations()
        yield self.i == self.I


class SineCurrent(CurrentSource):
    """i = offset + amplitude · sin(2π frequency t + phase)."""

    amplitude = Parameter(unit="A")
    frequency = Parameter(unit="Hz")
    phase, offset = Parameter(0.0, "rad"), Parameter(0.0, "A")
    u = waveforms.sine(amplitude, frequency, phase, offset)


class StepCurrent(CurrentSource):
    """i = offset before ``delay``, offset + amplitude from then on."""

    amplitude = Parameter(unit="A")
    offset, delay = Parameter(0.0, "A"), Parameter(0.0, "s")
    u = waveforms.step(amplitude, offset, delay)


class TrapezoidCurrent(CurrentSource):
    """Pulses of height ``amplitude`` with straight flanks, repeated every ``period``."""

    amplitude = Parameter(unit="A")
    rise, width, fall, period = (Parameter(unit="s") for _ in range(4))
    offset, delay = Parameter(0.0, "A"), Parameter(0.0, "s")
    u = waveforms.trapezoid(amplitude, rise, width, fall, period, offset, delay)


class OpAmp(Model):
    """Ideal operational amplifier: plus.v = minus.v, no input currents, any output voltage and current.

    The output current comes from an implied supply against ground, so the currents of the three pins do not sum to
    zero. It needs feedback from ``out`` to ``minus``; without one the circuit is structurally singular.
    """

    plus, minus, out = Pin(), Pin(), Pin()

    def equations(self) -> Equations:
        yield self.plus.v == self.minus.v
        yield self.plus.i == 0
        yield self.minus.i == 0


_STEEPEST = 40.0
"""Exponents beyond this one are continued by the tangent; exp(40) = 2e17 lies far beyond every junction's range."""


def junction(x: Expression) -> Expression:
    """Return exp(x) − 1, continued by its tangent above x = 40 so that a trial voltage cannot overflow."""
    return exp(minimum(x, _STEEPEST)) * (1 + maximum(x - _STEEPEST, 0.0)) - 1


class Diode(OnePort):
    """i = Is (exp(v / (N VT)) − 1) + G v, conducting from p to n (Shockley's equation with a leakage G)."""

    Is = Parameter(1e-14, "A", "saturation current")
    N = Parameter(1.0, "", "emission coefficient")
    VT = Parameter(0.025852, "V", "thermal voltage kT/q, at 300 K")
    G = Parameter(1e-12, "S", "leakage; keeps the slope positive where the exponential vanishes")

    def equations(self) -> Equations:
        yield from super().equations()
        yield self.i == self.Is * junction(self.v / (self.N * self.VT)) + self.G * self.v


class NPN(Model):
    """Bipolar transistor in its forward range, the one of the transistor amplifier of the IVP test set.

    ::

        g = beta (exp((b.v − e.v) / UF) − 1),   e.i = −g,   c.i = alpha g,   b.i = (1 − alpha) g

    Not modelled: the reverse junction (saturation), capacitances.
    """

    b, c, e = Pin(), Pin(), Pin()
    alpha = Parameter(0.99, "", "share of the emitter current that reaches the collector")
    beta = Parameter(1e-6, "A", "saturation current of the emitter junction")
    UF = Parameter(0.026, "V", "thermal voltage")
    polarity = 1.0
    """+1 for NPN; −1 turns all voltages and currents round."""

    def equations(self) -> Equations:
        junction_voltage = self.polarity * (self.b.v - self.e.v)
        g = self.polarity * self.beta * junction(junction_voltage / self.UF)
        yield self.c.i == self.alpha * g
        yield self.b.i == (1 - self.alpha) * g
        yield self.b.i + self.c.i + self.e.i == 0


class PNP(NPN):
    """As NPN with all voltages and currents turned round."""

    polarity = -1.0


class NMOS(Model):
    """Field-effect transistor of Shichman and Hodges, bulk at the source, symmetric in drain and source.

    ::

        d.i = K/2 (F(g.v − s.v)² − F(g.v − d.v)²) (1 + lam |d.v − s.v|),   F(v) = max(v − VT, 0),   g.i = 0

    which is K ((v_gs − VT) v_ds − v_ds²/2) in the triode range and K/2 (v_gs − VT)² in saturation. Continuously
    differentiable. Not modelled: capacitances (add ``Capacitor``), body effect, subthreshold current.
    """

    d, g, s = Pin(), Pin(), Pin()
    K = Parameter(unit="A/V2", description="transconductance")
    VT = Parameter(unit="V", description="threshold; positive for the enhancement type, in PMOS as well")
    lam = Parameter(0.0, "1/V", "channel-length modulation")
    polarity = 1.0
    """+1 for the N channel; −1 turns all voltages and currents round."""

    def equations(self) -> Equations:
        source_side = maximum(self.polarity * (self.g.v - self.s.v) - self.VT, 0.0)
        drain_side = maximum(self.polarity * (self.g.v - self.d.v) - self.VT, 0.0)
        modulation = 1 + self.lam * abs(self.d.v - self.s.v)
        yield self.d.i == self.polarity * self.K / 2 * (source_side**2 - drain_side**2) * modulation
        yield self.g.i == 0
        yield self.d.i + self.s.i == 0


class PMOS(NMOS):
    """As NMOS with all voltages and currents turned round."""

    polarity = -1.0
