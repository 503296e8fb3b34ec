"""Circuits whose elements jump or bend."""

from __future__ import annotations

import numpy as np

import grisaille as gr
import grisaille.components.electrical as el
from grisaille import der
from independent.cases import Case
from independent.pieces import held, increasing_root, integrate


def drop(unit: float = 1.0) -> Case:
    """A diode with a constant drop charges a capacitor: v = 4.3 (1 − exp(−t)), i = 4.3 exp(−t)."""

    class Drop(gr.Model):
        U, F = gr.Parameter(5.0 * unit), gr.Parameter(0.7 * unit)
        i, v = gr.Variable(nominal=unit), gr.Variable(start=0.0, nominal=unit)
        equations = [U == i + gr.where(i > 0, F, 0.0) + v, der(v) == i]

    def exact(t: np.ndarray) -> dict[str, np.ndarray]:
        return {"v": 4.3 * unit * (1 - np.exp(-t)), "i": 4.3 * unit * np.exp(-t)}

    return Case(Drop, np.linspace(0, 12, 61), exact, words=("where(i > 0",))


def drop_switched() -> Case:
    """The same from a source that falls to 2 V and rises again: the current jumps over zero twice."""
    at, level = (0.0, 3.0, 7.0), (5.0, 2.0, 5.0)

    class Switched(gr.Model):
        u, i, v = gr.Input(), gr.Variable(), gr.Variable(start=0.0)
        equations = [u == i + gr.where(i > 0, 0.7, 0.0) + v, der(v) == i]

    def exact(t: np.ndarray) -> dict[str, np.ndarray]:
        ends, v0 = [], 0.0
        v = np.zeros_like(t)
        for k, begin in enumerate(at):
            end = at[k + 1] if k + 1 < len(at) else np.inf
            goal = level[k] - (0.7 if level[k] - 0.7 > v0 else 0.0)
            inside = (t >= begin) & (t < end)
            v[inside] = goal + (v0 - goal) * np.exp(-(t[inside] - begin))
            v0 = goal + (v0 - goal) * np.exp(-(end - begin))
            ends.append(goal)
        return {"v": v, "i": held(at, ends, t) - v}

    return Case(Switched, np.linspace(0, 12, 49), exact, {"u": (at, level)}, words=("where(i > 0",))


def bridge() -> Case:
    """Four diodes in two straight pieces each, a source with resistance, a smoothing capacitor.

    Reference: the node voltages by trying the sixteen patterns of conducting diodes, the one before first.
    """
    on, off, source, load = 10.0, 1e-3, 0.5, 5.0

    class Bridge(gr.Model):
        a, b, p = gr.Variable(), gr.Variable(), gr.Variable(start=0.0)

        def equations(self) -> object:
            a, b, p = self.a, self.b, self.p
            supply = (10 * gr.sin(gr.time) - (a - b)) / source
            yield supply == self.diode(a - p) - self.diode(-a)
            yield -supply == self.diode(b - p) - self.diode(-b)
            yield der(p) == self.diode(a - p) + self.diode(b - p) - p / load

        @staticmethod
        def diode(v: object) -> object:
            return gr.where(v > 0, on * v, off * v)

    patterns = [np.where([k >> j & 1 for j in range(4)], on, off) for k in range(16)]
    last = [patterns[0]]

    def nodes(t: float, p: float) -> tuple[float, float, float]:
        u = 10 * np.sin(t)
        for g in (last[0], *patterns):
            ap, na, bp, nb = g
            m = ap + na + 1 / source, -1 / source, -1 / source, bp + nb + 1 / source
            r = u / source + ap * p, -u / source + bp * p
            det = m[0] * m[3] - m[1] * m[2]
            a, b = (r[0] * m[3] - m[1] * r[1]) / det, (m[0] * r[1] - m[2] * r[0]) / det
            across = (a - p, -a, b - p, -b)
            if all((v > 0) == (c == on) or v == 0 for v, c in zip(across, g, strict=True)):
                last[0] = g
                return a, b, ap * (a - p) + bp * (b - p)
        raise AssertionError("no pattern fits")

    def exact(t: np.ndarray) -> dict[str, np.ndarray]:
        p = integrate(lambda t, y, mode: np.array([nodes(t, y[0])[2] - y[0] / load]), [0.0], t, step=4e-3)[:, 0]
        found = np.array([nodes(float(s), float(v)) for s, v in zip(t, p, strict=True)])
        return {"p": p, "a": found[:, 0], "b": found[:, 1]}

    return Case(
        Bridge,
        np.linspace(0, 10, 41),
        exact,
        margin=2e-5,
        frozen_margin=2e-3,
    )


def junction(level: float) -> Case:
    """An exponential diode behind a resistor on a square wave, feeding a filter."""
    at = np.arange(0.0, 6.0)
    values = np.where(np.arange(6) % 2, -level, level)

    class Junction(gr.Model):
        u, v, x = gr.Input(), gr.Variable(), gr.Variable(start=0.0)
        equations = [v + 1e-9 * (gr.exp(v / 0.025) - 1) == u, der(x) == v - x]

    def voltage(u: float) -> float:
        return increasing_root(lambda v: v + 1e-9 * np.expm1(min(v / 0.025, 700.0)), u)

    def exact(t: np.ndarray) -> dict[str, np.ndarray]:
        v = held(at, [voltage(u) for u in values], t)
        return {"v": v, "x": relaxed(at, [voltage(u) for u in values], t)}

    return Case(Junction, np.linspace(0, 6, 31), exact, {"u": (at, values)}, words=("exp(",))


def relaxed(at: np.ndarray, goals: list[float], t: np.ndarray) -> np.ndarray:
    """x' = goal − x with a held goal, x(0) = 0."""
    x, x0 = np.zeros_like(t), 0.0
    for k, begin in enumerate(at):
        end = at[k + 1] if k + 1 < len(at) else np.inf
        inside = (t >= begin) & (t < end)
        x[inside] = goals[k] + (x0 - goals[k]) * np.exp(-(t[inside] - begin))
        x0 = goals[k] + (x0 - goals[k]) * np.exp(-(end - begin))
    return x


def rectifier() -> Case:
    """The library's source, resistors, diode and capacitor on a square wave; the capacitor starts empty.

    Reference: the current solves (R₁ + R₂) i + v_d(i) = u − v by bisection of the diode's voltage.
    """
    at = np.arange(0.0, 0.02, 0.004)
    values = np.where(np.arange(5) % 2, 5.0, -5.0)

    class Rectifier(gr.Model):
        src, r1, d = el.VoltageSource(), el.Resistor(R=1e3), el.Diode()
        r2, c, g = el.Resistor(R=1e3), el.Capacitor(C=1e-6), el.Ground()
        equations = [
            gr.connect(src.p, r1.p),
            gr.connect(r1.n, d.p),
            gr.connect(d.n, r2.p),
            gr.connect(r2.n, c.p),
            gr.connect(c.n, src.n, g.p),
        ]

    def current(across: float) -> float:
        def i_of(v: float) -> float:
            return 1e-14 * np.expm1(min(v / 0.025852, 700.0)) + 1e-12 * v

        return i_of(increasing_root(lambda v: v + 2e3 * i_of(v), across))

    def exact(t: np.ndarray) -> dict[str, np.ndarray]:
        level = [float(values[0])]

        def rates(s: float, y: np.ndarray, mode: tuple[bool, ...]) -> np.ndarray:
            return np.array([current(level[0] - y[0]) / 1e-6])

        v, v0 = np.zeros_like(t), 0.0
        for k, begin in enumerate(at):
            end, level[0] = begin + 0.004, float(values[k])
            inside = (t >= begin - 1e-12) & (t < end - 1e-12)
            path = integrate(rates, [v0], np.unique([begin, *t[inside], end]), step=1e-4)[:, 0]
            v[inside] = path[np.searchsorted(np.unique([begin, *t[inside], end]), t[inside])]
            v0 = path[-1]
        last = t >= at[-1] + 0.004 - 1e-12
        v[last] = v0
        return {"c.v": v}

    return Case(Rectifier, np.linspace(0, 0.02, 21), exact, {"src.u": (at, values)}, margin=1e-5)


def battery() -> Case:
    """A battery that delivers a power: i (4 − 0.015 i) = P has two roots; the discharge follows the small one."""
    at, power = (0.0, 2.0, 5.0), (12.0, 60.0, 5.0)

    class Battery(gr.Model):
        P, V, i, q = gr.Input(), gr.Variable(), gr.Variable(), gr.Variable(start=0.0)
        equations = [V == 4.0 - 0.015 * i, V * i == P, der(q) == i]

    def exact(t: np.ndarray) -> dict[str, np.ndarray]:
        roots = [(4 - np.sqrt(16 - 0.06 * p)) / 0.03 for p in power]
        i = held(at, roots, t)
        passed = np.concatenate([[0.0], np.cumsum(np.diff(at) * roots[:-1])])
        return {"i": i, "V": 4 - 0.015 * i, "q": held(at, passed, t) + i * (t - held(at, at, t))}

    return Case(Battery, np.linspace(0, 8, 33), exact, {"P": (at, power)}, words=("V*i", "V * i"))
