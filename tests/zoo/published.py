"""Estimation problems with measured data and published estimates, as models.

Sources: gas oil and α-pinene, COPS 3.0 (E. Dolan, J. Moré, T. Munson, ANL/MCS-TM-273, 2004); the reactor, Pyomo's
parmest examples; lynx and hare, B. Carpenter's case study of Lotka–Volterra (Stan, 2018); the positioning system,
A. Janot, M. Gautier, M. Brunot, Data set and reference models of EMPS (2019). Data and recomputed optima are reference
files, read by the tests that need them. ``noise=1`` makes the criterion the plain sum of squares.
"""

from __future__ import annotations

import grisaille as gr
from grisaille import der, exp, log, tanh


class GasOil(gr.Model):
    """Catalytic cracking of gas oil to gasoline."""

    th1, th2, th3 = gr.Parameter(1.0), gr.Parameter(1.0), gr.Parameter(1.0)
    oil, gasoline = gr.Variable(1.0, fixed=True), gr.Variable(0.0, fixed=True)
    y1, y2 = gr.Output(oil, noise=1.0), gr.Output(gasoline, noise=1.0)
    equations = [
        der(oil) == -(th1 + th3) * oil**2,
        der(gasoline) == th1 * oil**2 - th2 * gasoline,
    ]


class Pinene(gr.Model):
    """Thermal isomerisation of α-pinene; rates per minute."""

    k1, k2, k3, k4, k5 = (gr.Parameter(1e-5, "1/min", bounds=(0.0, 1.0)) for _ in range(5))
    pinene, dipentene, ocimene, pyronene, dimer = (gr.Variable(s, "%", nominal=10.0) for s in (100.0, 0, 0, 0, 0))
    y1, y2, y3, y4, y5 = (gr.Output(v, noise=1.0) for v in (pinene, dipentene, ocimene, pyronene, dimer))
    equations = [
        der(pinene) == -(k1 + k2) * pinene,
        der(dipentene) == k1 * pinene,
        der(ocimene) == k2 * pinene - (k3 + k4) * ocimene + k5 * dimer,
        der(pyronene) == k3 * ocimene,
        der(dimer) == k4 * ocimene - k5 * dimer,
    ]


class Reactor(gr.Model):
    """Steady state of a stirred tank with the van de Vusse reactions: four algebraic equations per row of data."""

    k1, k2, k3 = gr.Parameter(0.5, "1/min"), gr.Parameter(1.5, "1/min"), gr.Parameter(1e-4, "m3/gmol/min")
    sv, caf = gr.Input("1/min"), gr.Input("gmol/m3")
    a, b, c, d = (gr.Variable(start=1000.0, unit="gmol/m3", nominal=1000.0) for _ in range(4))
    ca, cb, cc, cd = (gr.Output(v, noise=1.0, unit="gmol/m3") for v in (a, b, c, d))
    equations = [
        0 == sv * caf - (sv + k1) * a - 2 * k3 * a**2,
        0 == k1 * a - (sv + k2) * b,
        0 == k2 * b - sv * c,
        0 == k3 * a**2 - sv * d,
    ]


class LynxHare(gr.Model):
    """Lotka–Volterra: prey u, predator v, in thousands of pelts."""

    alpha, beta = gr.Parameter(0.5, "1/year"), gr.Parameter(0.02)
    gamma, delta = gr.Parameter(0.8, "1/year"), gr.Parameter(0.02)
    u, v = gr.Variable(30.0, nominal=10.0), gr.Variable(4.0, nominal=10.0)
    hare, lynx = gr.Output(u, noise=1.0), gr.Output(v, noise=1.0)
    log_hare, log_lynx = gr.Output(log(u)), gr.Output(log(v))
    equations = [der(u) == (alpha - beta * v) * u, der(v) == (-gamma + delta * u) * v]
