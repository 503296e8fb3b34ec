"""A direct-current motor: an electric circuit and a rotor that share a torque."""

import grisaille as gr
from grisaille import der, tanh


class Motor(gr.Model):
    """Winding and rotor. The same constant k turns current into torque and speed into voltage."""

    R = gr.Parameter(2.0, "ohm", "of the winding", bounds=(0.1, 20.0))
    L = gr.Parameter(5e-3, "H", "of the winding")
    k = gr.Parameter(0.05, "N.m/A", "torque per current", bounds=(5e-3, 0.5))
    J = gr.Parameter(1e-4, "kg.m2", "inertia", bounds=(1e-6, 1e-2))
    b = gr.Parameter(1e-5, "N.m.s", "viscous friction", bounds=(0.0, 1e-3))
    c = gr.Parameter(1e-3, "N.m", "dry friction", bounds=(0.0, 0.1))

    i = gr.Variable(start=0.0, unit="A")
    speed = gr.Variable(start=0.0, unit="rad/s")
    torque = gr.Variable(unit="N.m")

    voltage = gr.Input("V")
    current = gr.Output(i, unit="A")
    tacho = gr.Output(speed, unit="rad/s")

    equations = [
        L * der(i) == voltage - R * i - k * speed,
        torque == k * i,
        J * der(speed) == torque - b * speed - c * tanh(speed / 0.5),
    ]
