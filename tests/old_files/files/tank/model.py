"""A heated tank."""

import grisaille as gr
from grisaille import der


class Tank(gr.Model):
    """One state, an input, process noise."""

    k = gr.Parameter(0.8, "1/s", bounds=(0.05, 5.0))
    b = gr.Parameter(1.0, bounds=(0.1, 10.0))
    x = gr.Variable(0.5, "K")
    u = gr.Input("W")
    w = gr.Disturbance(gr.spectra.white(), scale=0.15)
    y = gr.Output(x, noise=0.03, unit="K")
    equations = [der(x) == -k * x + b * u + w]
