"""Two bodies joined by a rigid link, each under a force of its own, the forces correlated: index 3.

    m₁ ẍ₁ = −k x₁ − b ẋ₁ − f + u + w₁,     m₂ ẍ₂ = f + w₂,     x₂ − x₁ = l

The position shows the sum of the two forces, the link's force f their difference, so that the spreads of both tell the
correlation of w₁ and w₂; their means do not depend on it.
"""

from __future__ import annotations

import grisaille as gr
from grisaille import der


class TwoMasses(gr.Model):
    """A body on a spring that pushes another; w disturbs both."""

    m1, m2 = gr.Parameter(1.0, "kg"), gr.Parameter(0.5, "kg")
    k = gr.Parameter(4.0, "N/m", bounds=(0.5, 30.0))
    b = gr.Parameter(0.8, "kg/s")
    length = gr.Parameter(0.3, "m")
    rho = gr.Parameter(0.6, "", "correlation of the forces", bounds=(-0.95, 0.95))
    omega = gr.Parameter(3.0, "rad/s", "frequency of the forces", bounds=(0.5, 12.0))
    x1, x2 = gr.Variable(0.0, "m"), gr.Variable(length, "m")
    v1, v2 = gr.Variable(0.0, "m/s"), gr.Variable(0.0, "m/s")
    f = gr.Variable(unit="N")
    u = gr.Input("N")
    w = gr.Disturbance(
        gr.spectra.resonance(frequency=omega, damping=0.3), scale=4.0, size=2, correlation=[[1, rho], [rho, 1]]
    )
    position = gr.Output(x1, noise=0.01, unit="m")
    force = gr.Output(f, noise=0.02, unit="N")
    equations = [
        der(x1) == v1,
        der(x2) == v2,
        m1 * der(v1) == -k * x1 - b * v1 - f + u + w[0],
        m2 * der(v2) == f + w[1],
        x2 - x1 == length,
    ]
