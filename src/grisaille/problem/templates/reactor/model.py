"""A batch reactor at several temperatures: A turns into B, B decays to C."""

import grisaille as gr
from grisaille import der, exp

R = 8.314e-3  # kJ/(mol K)


class Reactor(gr.Model):
    """Two first-order reactions in series, with rates that follow Arrhenius around 350 K."""

    T = gr.Parameter(350.0, "K", "temperature of the run")
    k1 = gr.Parameter(0.05, "1/min", "rate of A to B at 350 K", bounds=(1e-3, 1.0))
    k2 = gr.Parameter(0.02, "1/min", "rate of B to C at 350 K", bounds=(1e-3, 1.0))
    E1 = gr.Parameter(60.0, "kJ/mol", bounds=(10.0, 200.0))
    E2 = gr.Parameter(60.0, "kJ/mol", bounds=(10.0, 200.0))

    A = gr.Variable(start=1.0, unit="mol/L")
    B = gr.Variable(start=0.0, unit="mol/L")

    yA = gr.Output(A, unit="mol/L")
    yB = gr.Output(B, unit="mol/L")

    rate1 = k1 * exp(-E1 / R * (1 / T - 1 / 350.0))
    rate2 = k2 * exp(-E2 / R * (1 / T - 1 / 350.0))
    equations = [der(A) == -rate1 * A, der(B) == rate1 * A - rate2 * B]
