"""Two tanks in a row, the second with a leak that nobody has measured."""

import grisaille as gr
from grisaille import der, sqrt


class TwoTanks(gr.Model):
    """A pump fills the upper tank; water runs through a pipe into the lower one and out of it, and leaks.

    Torricelli's law: what runs out of a hole is proportional to the square root of the level above it.
    """

    area = gr.Parameter(0.1, "m2", "of each tank")
    pipe = gr.Parameter(4e-4, "m2.5/s", "of the pipe between the tanks")
    outlet = gr.Parameter(3e-4, "m2.5/s", "of the outlet of the lower tank")
    leak = gr.Parameter(5e-5, "m2.5/s", "of the leak in the lower tank")

    upper = gr.Variable(start=0.10, unit="m", description="level")
    lower = gr.Variable(start=0.15, unit="m", description="level")

    pump = gr.Input("m3/s")
    y_upper = gr.Output(upper, unit="m")
    y_lower = gr.Output(lower, unit="m")

    equations = [
        area * der(upper) == pump - pipe * sqrt(upper),
        area * der(lower) == pipe * sqrt(upper) - (outlet + leak) * sqrt(lower),
    ]
