"""A pendulum in Cartesian coordinates, shaken by a wind that nobody measured."""

import grisaille as gr
from grisaille import atan2, der


class Pendulum(gr.Model):
    """Newton's law in two directions and a rod of constant length: a system of index 3."""

    m = gr.Parameter(0.3, "kg")
    g = gr.Parameter(9.81, "m/s2")
    L = gr.Parameter(6.25, "m")
    k = gr.Parameter(5.0, "kg/m", "drag", bounds=(0.5, 20.0))

    x, y = gr.Variable(start=0.0, unit="m"), gr.Variable(start=-L, unit="m")
    vx, vy = gr.Variable(start=0.0, unit="m/s"), gr.Variable(start=0.0, unit="m/s")
    tension = gr.Variable(unit="N/m")

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
