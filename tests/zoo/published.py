"""Estimation problems with measured data and published estimates, as models.

Sources: gas oil and α-pinene, COPS 3.0 (E. Dolan, J. Moré, T. Munson, ANL/MCS-TM-273, 2004); the reactor, Pyomo's
parmest examples; lynx and hare, B. Carpenter's case study of Lotka–Volterra (Stan, 2018); the positioning system,
A. Janot, M. Gautier, M. Brunot, Data set and reference models of EMPS (2019). Data and recomputed optima are reference
files, read by the tests that need them. ``noise=1`` makes the criterion the plain sum of squares. At the end, certified
regression problems of NIST whose formulas solve differential equations, as such.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import grisaille as gr
from grisaille import der, exp, log, sign, tanh


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


class PositioningSystem(gr.Model):
    """EMPS in closed loop: a mass with friction on a drive, a position and a velocity controller around it.

    Driven by the measured voltage alone the position drifts (two integrators, and friction that is not quite
    Coulomb's); with its controllers the model follows the reference, and the voltage shows what that takes. The
    controllers' gains are only nearly those of the data sheet (they are sampled, and the velocity is filtered), so
    they are estimated too.
    """

    M, Fv = gr.Parameter(90.0, "kg"), gr.Parameter(150.0, "N s/m")
    Fc, offset = gr.Parameter(15.0, "N"), gr.Parameter(0.0, "N")
    kp, kv = gr.Parameter(160.18, "1/s", bounds=(50, 500)), gr.Parameter(243.45, "V s/m", bounds=(50, 1000))
    tau = gr.Parameter(1e-3, "s", bounds=(1e-4, 1e-2))
    gtau = gr.Parameter(35.150651882485469, "N/V")
    width = gr.Parameter(2e-3, "m/s")
    reference = gr.Input("m")
    q, v, filtered = gr.Variable(0.0, "m", nominal=0.1), gr.Variable(0.0, "m/s"), gr.Variable(0.0, "m/s")
    voltage = kv * (kp * (reference - q) - filtered)
    vir, qm = gr.Output(voltage, unit="V"), gr.Output(q, unit="m")
    equations = [
        der(q) == v,
        M * der(v) == gtau * voltage - Fv * v - Fc * tanh(v / width) - offset,
        tau * der(filtered) == v - filtered,
    ]


class InversePositioningSystem(gr.Model):
    """EMPS read the other way round: the position is given, and the voltage that it takes is the output."""

    M, Fv = gr.Parameter(90.0, "kg"), gr.Parameter(150.0, "N s/m")
    Fc, offset = gr.Parameter(15.0, "N"), gr.Parameter(0.0, "N")
    gtau = gr.Parameter(35.150651882485469, "N/V")
    position = gr.Input("m")
    q, v, force = gr.Variable(unit="m"), gr.Variable(unit="m/s"), gr.Variable(unit="N")
    vir = gr.Output(force / gtau, unit="V")
    equations = [
        q == position,
        der(q) == v,
        M * der(v) == force - Fv * v - Fc * sign(v) - offset,
    ]


Members = dict[str, Any]


def _misra(power: float) -> Callable[[list[Any]], Members]:
    """z' = −b2 z^power, y = b1 (1 − z): Misra1a to 1d for the powers 1, 3/2, 3, 2."""

    def members(b: list[Any]) -> Members:
        z = gr.Variable(1.0, fixed=True)
        return {"z": z, "y": gr.Output(b[0] * (1 - z)), "equations": [der(z) == -b[1] * z**power]}

    return members


def _rat42(b: list[Any]) -> Members:
    x = gr.Variable(b[0] / (1 + exp(b[1])), fixed=True)
    return {"x": x, "y": gr.Output(x), "equations": [der(x) == b[2] * x * (1 - x / b[0])]}


def _mgh17(b: list[Any]) -> Members:
    """Linear unknowns in the output, rates in the equations."""
    p, q = gr.Variable(1.0, fixed=True), gr.Variable(1.0, fixed=True)
    output = gr.Output(b[0] + b[1] * p + b[2] * q)
    return {"p": p, "q": q, "y": output, "equations": [der(p) == -b[3] * p, der(q) == -b[4] * q]}


def _lanczos(b: list[Any]) -> Members:
    """Amplitudes are starts here: formulas of parameters."""
    u, v, w = (gr.Variable(b[k], fixed=True) for k in (0, 2, 4))
    rates = [der(x) == -b[k] * x for k, x in ((1, u), (3, v), (5, w))]
    return {"u": u, "v": v, "w": w, "y": gr.Output(u + v + w), "equations": rates}


def _chwirut(b: list[Any]) -> Members:
    x = gr.Variable(1 / b[1], fixed=True)
    return {"x": x, "y": gr.Output(x), "equations": [der(x) == -(b[0] + b[2] / (b[1] + b[2] * gr.time)) * x]}


DYNAMIC: dict[str, Callable[[list[Any]], Members]] = {
    "Misra1a": _misra(1), "Misra1b": _misra(1.5), "Misra1c": _misra(3), "Misra1d": _misra(2), "Rat42": _rat42,
    "MGH17": _mgh17, "Lanczos1": _lanczos, "Lanczos2": _lanczos, "Lanczos3": _lanczos, "Chwirut2": _chwirut,
}  # fmt: skip


def dynamic_regression(name: str, start: list[float]) -> gr.Model:
    """A certified regression problem as a model with derivatives; the predictor is time."""
    parameters = {f"b{k + 1}": gr.Parameter(value) for k, value in enumerate(start)}
    return type(name, (gr.Model,), {**parameters, **DYNAMIC[name](list(parameters.values()))})()
