"""Small models that several tests of this folder share."""

from __future__ import annotations

import grisaille as gr
from grisaille import atan2, der


class Pendulum(gr.Model):
    """Pendulum in Cartesian coordinates: an index-3 DAE with drag and a disturbing force."""

    m = gr.Parameter(0.3, "kg")
    g = gr.Parameter(9.81, "m/s2")
    L = gr.Parameter(6.25, "m")
    k = gr.Parameter(5.0, "kg/m", bounds=(0.5, 20.0))

    x, y = gr.Variable(start=0.0, unit="m"), gr.Variable(start=-L, unit="m")
    vx, vy = gr.Variable(start=0.0), gr.Variable(start=0.0)
    tension = gr.Variable()

    u = gr.Input("N")
    w = gr.Disturbance(gr.spectra.resonance(frequency=4.0, damping=0.1), scale=0.6)
    phi = gr.Output(atan2(x, -y), noise=0.002, unit="rad")

    equations = [
        der(x) == vx,
        der(y) == vy,
        m * der(vx) == tension * x - k * abs(vx) * vx + u + w**2,
        m * der(vy) == tension * y - k * abs(vy) * vy - m * g,
        x**2 + y**2 == L**2,
    ]


class Pin(gr.Connector):
    v = gr.Potential("V")
    i = gr.Flow("A")


class Resistor(gr.Model):
    R = gr.Parameter(unit="ohm")
    p, n = Pin(), Pin()
    equations = [p.v - n.v == R * p.i, p.i + n.i == 0]


class Capacitor(gr.Model):
    C = gr.Parameter(unit="F")
    p, n = Pin(), Pin()
    equations = [C * der(p.v - n.v) == p.i, p.i + n.i == 0]


class VoltageSource(gr.Model):
    u = gr.Input("V")
    p, n = Pin(), Pin()
    equations = [p.v - n.v == u, p.i + n.i == 0]


class Ground(gr.Model):
    p = Pin()
    equations = [p.v == 0]


class Lowpass(gr.Model):
    source, r, c, ground = VoltageSource(), Resistor(R=1e3), Capacitor(C=1e-6), Ground()
    equations = [gr.connect(source.p, r.p), gr.connect(r.n, c.p), gr.connect(c.n, source.n, ground.p)]
