"""Ideal diodes with capacitors and inductors, against circuits that are linear between the switching of their diodes.

The reference solves the linear circuit of each mode by matrix exponentials and finds the instants at which the
quantity that decides about a diode (its current, or its voltage where it blocks) passes zero.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest
from scipy.linalg import expm
from scipy.optimize import brentq

import grisaille as gr

ON, LEAK = 1e-5, 1e-5
DIODE = """
  Real s{k}; Real v{k}; Real i{k}; Boolean off{k};
equation
  off{k} = s{k} < 0;
  v{k} = s{k} * (if off{k} then 1 else 1e-5);
  i{k} = s{k} * (if off{k} then 1e-5 else 1);
"""


def diode(k: int) -> str:
    return DIODE.format(k=k)


def circuit(name: str, declared: str, equations: str, diodes: int) -> gr.Model:
    parts = "".join(diode(k).replace("equation", "", 1).split("\n  off")[0] for k in range(1, diodes + 1))
    laws = "".join("\n  off" + diode(k).split("\n  off")[1] for k in range(1, diodes + 1))
    return gr.read_modelica(f"model {name}\n{declared}{parts}\nequation\n{equations}{laws}\nend {name};\n")


HALF_WAVE = circuit(
    "HalfWave",
    "  parameter Real C = 1e-3; parameter Real R = 100; Real vc(start = 0, fixed = true); Real vs;\n",
    "  vs = 10 * sin(100 * 3.141592653589793 * time); vs = v1 + vc; C * der(vc) = i1 - vc / R;\n",
    1,
)
SUPPLY = circuit(
    "Supply",
    """  parameter Real C = 1e-3; parameter Real R = 100; Real vc(start = 0, fixed = true);
  Real vp; Real ip; Real vs; Real is; Real va; Real sw; Real vw; Boolean open;
""",
    """  open = time < 0.01; vw = sw * (if open then 1 else 1e-5); ip = sw * (if open then 0 else 1);
  100 * sin(100 * 3.141592653589793 * time) = vw + vp; vp = 10 * vs; is = -10 * ip;
  v1 = va - vc; v2 = va - vs - vc; v3 = -va; v4 = vs - va;
  is = i3 - i1; i2 - i4 = is; C * der(vc) = i1 + i2 - vc / R;
""",
    4,
)
BUCK = circuit(
    "Buck",
    "  parameter Real R = 40; Real iL(start = 0, fixed = true); Real vc(start = 0, fixed = true); Real vx; Real ix;\n",
    """  ix = (12 - vx) * (if time * 1000 - floor(time * 1000) < 0.3 then 1e5 else 1e-5);
  v1 = -vx; ix + i1 = iL; 1e-3 * der(iL) = vx - vc; 1e-5 * der(vc) = iL - vc / R;
""",
    1,
)
BOOST = circuit(
    "Boost",
    "  parameter Real R = 20; Real iL(start = 0, fixed = true); Real vc(start = 0, fixed = true); Real vx;\n",
    """  1e-3 * der(iL) = 5 - vx; iL = i1 + vx * (if time * 5000 - floor(time * 5000) < 0.5 then 1e5 else 1e-5);
  v1 = vx - vc; 1e-4 * der(vc) = i1 - vc / R;
""",
    1,
)

Linear = tuple[np.ndarray, np.ndarray]


def switched(
    matrix: Callable[[bool, float], Linear], start: Sequence[float], kinks: np.ndarray, times: np.ndarray, step: float
) -> np.ndarray:
    """States at ``times``; ``matrix(on, t)`` gives x' = A x and the row of what decides about the diode."""
    x, now, on = np.array(start, dtype=float), 0.0, False
    found = np.zeros((len(times), len(x)))
    ends = np.unique([*kinks, *times, times[-1]])
    for end in ends[ends > 0]:
        while now < end - 1e-15:
            middle = 0.5 * (now + end)
            for _ in range(2):
                a, row = matrix(on, middle)
                if (row @ (expm(a * 1e-13) @ x) >= 0) == on:
                    break
                on = not on
            h = min(step, end - now)
            if h <= 0:
                break
            sign = 1.0 if on else -1.0

            def gap(s: float, a: np.ndarray = a, row: np.ndarray = row, x: np.ndarray = x, sign: float = sign) -> float:
                return float(sign * (row @ (expm(a * s) @ x)))

            if gap(h) < 0:
                low = 1e-13 if gap(1e-13) > 0 else 0.0
                h = brentq(gap, low, h, xtol=1e-16) if low else 1e-13
                x, on = expm(a * h) @ x, not on
            else:
                x = expm(a * h) @ x
            now += h
        now = end
        found[np.abs(times - end) < 1e-15] = x
    return found


def rectifier(drop: float, both: bool, c: float = 1e-3) -> Callable[[np.ndarray], np.ndarray]:
    """The capacitor behind diodes whose resistance is ``drop``; ``both`` half-waves charge it."""
    omega, load = 100 * np.pi, 1 / 100

    def matrix(on: bool, t: float) -> Linear:
        sign = 1.0 if not both or np.sin(omega * t) > 0 else -1.0
        g = 1 / drop if on else 0.5 * LEAK if both else LEAK
        a = np.zeros((3, 3))
        a[0, 1], a[1, 0] = omega, -omega
        a[2, 0], a[2, 2] = g * sign * 10 / c, -(g + load) / c
        if both:
            a[2] = [a[2, 0] if on else 0.0, 0.0, -((g if on else LEAK) + load) / c]
        return a, np.array([sign * 10, 0.0, -1.0])

    return lambda t: switched(matrix, [0, 1, 0], np.arange(1, 13) * 0.01, t, 2e-5)[:, 2]


def converter(kind: str) -> Callable[[np.ndarray], np.ndarray]:
    """Current and voltage of a converter whose switch is driven."""
    period, duty, load = (1e-3, 0.3, 1 / 40) if kind == "buck" else (2e-4, 0.5, 1 / 20)
    c = 1e-5 if kind == "buck" else 1e-4

    def matrix(on: bool, t: float) -> Linear:
        closed = t / period - np.floor(t / period) < duty
        switch, g = 1e5 if closed else 1e-5, 1 / ON if on else LEAK
        a = np.zeros((3, 3))  # iL, vc, 1
        if kind == "buck":  # vx (switch + g) = 12 switch - iL
            vx = np.array([-1.0, 0.0, 12 * switch]) / (switch + g)
            a[0], gap = (vx - [0, 1, 0]) / 1e-3, -vx
            a[1] = np.array([1.0, -load, 0.0]) / c
        else:  # iL = g (vx - vc) + switch vx
            vx = np.array([1.0, g, 0.0]) / (switch + g)
            gap = vx - [0, 1, 0]
            a[0] = (np.array([0.0, 0.0, 5.0]) - vx) / 1e-3
            a[1] = (g * gap - [0, load, 0]) / c
        return a, gap

    edges = np.arange(0, 40) * period
    return lambda t: switched(matrix, [0, 0, 1], np.sort([*edges, *(edges + duty * period)]), t, period / 40)[:, :2]


@pytest.mark.parametrize("capacity", [1e-3, 100.0])
def test_a_capacitor_behind_a_diode_is_charged_at_every_peak(capacity: float) -> None:
    # a charge of 1 mF lasts a thousandth of a period; 100 F hardly feel one, and steps are long
    t = np.linspace(0, 0.1, 64)
    run = gr.simulate(HALF_WAVE, t, parameters={"C": capacity}, rtol=1e-8)
    assert run.vc.values == pytest.approx(rectifier(ON, both=False, c=capacity)(t), abs=2e-6)


@pytest.mark.parametrize("capacity", [1e-3, 0.1, 100.0])
def test_a_supply_with_a_switch_a_transformer_and_a_bridge(capacity: float) -> None:
    # currents of rounding: 10 V times 2e-16 behind 20 micro-ohms
    t = np.linspace(0.0103, 0.11, 40)
    run = gr.simulate(SUPPLY, [0.0, *(t + 0.01)], parameters={"C": capacity}, rtol=1e-8)
    want = rectifier(2 * ON + 1e-7, both=True, c=capacity)(t)
    # the reference leaves out what the blocking diodes leak beside the conducting ones
    assert run.vc.values[1:] == pytest.approx(want, abs=5e-4 if capacity < 0.1 else 2e-6)


@pytest.mark.parametrize(("kind", "model", "end"), [("buck", BUCK, 0.01), ("boost", BOOST, 0.004)])
def test_converters_whose_inductors_run_empty(kind: str, model: gr.Model, end: float) -> None:
    t = np.linspace(0, end, 64)
    want = converter(kind)(t)
    run = gr.simulate(model, t, rtol=1e-7)
    assert run.iL.values == pytest.approx(want[:, 0], abs=1e-5)
    assert run.vc.values == pytest.approx(want[:, 1], abs=1e-5)
