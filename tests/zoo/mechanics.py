"""Mechanical models of known index."""

from __future__ import annotations

import grisaille as gr
from grisaille import atan2, cos, der, sin


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


class RedundantArm(gr.Model):
    """A planar two-link arm whose end follows a circle: positions prescribed, torques unknown (index 3)."""

    l1, l2, r = gr.Parameter(1.0), gr.Parameter(0.8), gr.Parameter(0.3)
    q1, q2 = gr.Variable(0.4), gr.Variable(1.0)
    w1, w2 = gr.Variable(), gr.Variable()
    tau1, tau2 = gr.Variable(), gr.Variable()
    equations = [
        der(q1) == w1,
        der(q2) == w2,
        der(w1) == tau1 - 0.1 * w1,
        der(w2) == tau2 - 0.1 * w2,
        l1 * cos(q1) + l2 * cos(q1 + q2) == 1.0 + r * cos(gr.time),
        l1 * sin(q1) + l2 * sin(q1 + q2) == 0.9 + r * sin(gr.time),
    ]


class DisguisedIndex(gr.Model):
    """Two equations whose derivatives cancel in their sum: structurally index 0, truly index 1."""

    c = gr.Parameter(2.0)
    a, b = gr.Variable(1.0), gr.Variable()
    equations = [
        c * (der(a) - der(b)) == -a,
        -c * (der(a) - der(b)) == b - a**2,
    ]


class StateDependentDependence(gr.Model):
    """λ depends on the state: a·(first) − (second) loses both derivatives."""

    a, b = gr.Variable(1.5), gr.Variable()
    equations = [
        der(a) + der(b) == -a,
        a * der(a) + a * der(b) == b - 2 * a,
    ]
