"""Tanks, thermostats, characteristics in pieces, several roots."""

from __future__ import annotations

import numpy as np

import grisaille as gr
from grisaille import der
from independent.cases import Case
from independent.electrical import relaxed
from independent.pieces import held, increasing_root, integrate

ALL = frozenset({"auto", "explicit", "implicit", "frozen"})


def sign_over(unit: float = 1.0) -> Case:
    """z + 0.5 sign(z) = ±2: the root jumps over the gap with the input."""
    at, level = np.array([0.0, 1.0, 3.0, 4.5]), np.array([2.0, -2.0, 0.9, -3.0]) * unit

    class Sign(gr.Model):
        c = gr.Parameter(0.5 * unit)
        u, z, x = gr.Input(), gr.Variable(nominal=unit), gr.Variable(0.0, nominal=unit)
        equations = [z + c * gr.sign(z) == u, der(x) == z - x]

    def exact(t: np.ndarray) -> dict[str, np.ndarray]:
        roots = level - 0.5 * unit * np.sign(level)
        return {"z": held(at, roots, t), "x": relaxed(at, list(roots), t)}

    return Case(Sign, np.linspace(0, 6, 25), exact, {"u": (at, level)}, words=("sign(z)",))


def sign_gap() -> Case:
    """The same with u = 3 cos t, which passes through the gap: there is no solution at arccos(1/6)."""

    class Gap(gr.Model):
        z, x = gr.Variable(), gr.Variable(0.0)
        equations = [z + 0.5 * gr.sign(z) == 3 * gr.cos(gr.time), der(x) == z - x]

    return Case(Gap, np.linspace(0, 6, 25), None, words=("sign(z)",), refused=ALL)


def floor_gap() -> Case:
    """2 z + floor(z) = t: none between 2 and 3."""

    class Gap(gr.Model):
        z, x = gr.Variable(), gr.Variable(0.0)
        equations = [2 * z + gr.floor(z) == gr.time, der(x) == z - x]

    return Case(Gap, np.linspace(0.5, 4, 25), None, words=("floor(z)",), refused=ALL)


def floor_over() -> Case:
    """2 z + floor(z) = u for levels that have a root."""
    at, roots = np.array([0.0, 1.0, 2.0, 3.0, 4.0]), np.array([0.8, -1.38, 2.59, 0.25, -0.6])
    level = 2 * roots + np.floor(roots)

    class Floor(gr.Model):
        u, z, x = gr.Input(), gr.Variable(), gr.Variable(0.0)
        equations = [2 * z + gr.floor(z) == u, der(x) == z - x]

    def exact(t: np.ndarray) -> dict[str, np.ndarray]:
        return {"z": held(at, roots, t), "x": relaxed(at, list(roots), t)}

    return Case(Floor, np.linspace(0, 5, 21), exact, {"u": (at, level)}, words=("floor(z)",))


def three_pieces() -> Case:
    """A valve in three straight pieces, driven through both bends."""

    class Valve(gr.Model):
        z, x = gr.Variable(), gr.Variable(0.0)
        equations = [
            z + gr.where(z > 1, 3 * (z - 1), gr.where(z < -1, 2 * (z + 1), 0.0)) == 4 * gr.sin(gr.time),
            der(x) == z - x,
        ]

    def root(t: np.ndarray) -> np.ndarray:
        u = 4 * np.sin(t)
        return np.where(u > 1, (u + 3) / 4, np.where(u < -1, (u - 2) / 3, u))

    def exact(t: np.ndarray) -> dict[str, np.ndarray]:
        x = integrate(lambda t, y, mode: root(t) - y, [0.0], t, lambda t, y: [4 * np.sin(t) - 1, 4 * np.sin(t) + 1])[
            :, 0
        ]
        return {"z": root(t), "x": x}

    return Case(
        Valve,
        np.linspace(0, 8, 33),
        exact,
        frozen_margin=1e-3,
        words=("where(",),
        refused=frozenset({"implicit"}),
    )


def thermostat() -> Case:
    """A relay without hysteresis, heated beyond its switch: the limit of ever faster switching is T = 20."""

    class Thermostat(gr.Model):
        T = gr.Variable(15.0)
        equations = [der(T) == -0.2 * (T - 10) + gr.where(T < 20.0, 3.0, 0.0)]

    def exact(t: np.ndarray) -> dict[str, np.ndarray]:
        return {"T": np.minimum(25 - 10 * np.exp(-0.2 * t), 20.0)}

    return Case(
        Thermostat, np.linspace(0, 8, 33), exact, margin=1e-4, implicit_margin=5e-5, frozen_margin=1e-2,
        words=("T < 20", "relation of T"), refused=ALL,
    )  # fmt: skip


def pump() -> Case:
    """A tank whose pump starts above a level that the inflow passes from both sides."""

    class Tank(gr.Model):
        h = gr.Variable(0.5)
        equations = [der(h) == 1.2 + 1.1 * gr.sin(gr.time) - 0.6 * h - gr.where(h > 1.0, 0.4, 0.0)]

    def exact(t: np.ndarray) -> dict[str, np.ndarray]:
        def rates(t: float, y: np.ndarray, mode: tuple[bool, ...]) -> np.ndarray:
            return 1.2 + 1.1 * np.sin(t) - 0.6 * y - (0.4 if mode[0] else 0.0)

        return {"h": integrate(rates, [0.5], t, lambda t, y: [y[0] - 1.0])[:, 0]}

    return Case(Tank, np.linspace(0, 10, 41), exact, frozen_margin=3e-3, words=("where(h > 1",))


def saturations() -> Case:
    """minimum, maximum and abs of states."""

    class Saturations(gr.Model):
        x, y = gr.Variable(1.0), gr.Variable(0.0)
        equations = [
            der(x) == 2 * gr.minimum(gr.maximum(y, -0.5), 0.5) - 0.2 * x,
            der(y) == -3 * x + 0.5 * abs(x - 0.3),
        ]

    def exact(t: np.ndarray) -> dict[str, np.ndarray]:
        def rates(t: float, s: np.ndarray, mode: tuple[bool, ...]) -> np.ndarray:
            x, y = s
            limited = 0.5 if mode[0] else (y if mode[1] else -0.5)
            return np.array([2 * limited - 0.2 * x, -3 * x + (0.5 if mode[2] else -0.5) * (x - 0.3)])

        s = integrate(rates, [1.0, 0.0], t, lambda t, s: [s[1] - 0.5, s[1] + 0.5, s[0] - 0.3])
        return {"x": s[:, 0], "y": s[:, 1]}

    return Case(Saturations, np.linspace(0, 10, 41), exact, frozen_margin=1e-3, words=("minimum", "abs"))


def sine_root() -> Case:
    """sin z = u after u has jumped: the root next to the old one, not some turns away."""
    at, level = np.array([0.0, 1.0, 2.5]), np.array([0.2, 0.995, -0.9])

    class Sine(gr.Model):
        u, z, x = gr.Input(), gr.Variable(start=0.2), gr.Variable(0.0)
        equations = [gr.sin(z) == u, der(x) == z - x]

    def exact(t: np.ndarray) -> dict[str, np.ndarray]:
        roots = np.arcsin(level)
        return {"z": held(at, roots, t), "x": relaxed(at, list(roots), t)}

    return Case(Sine, np.linspace(0, 4, 17), exact, {"u": (at, level)}, words=("sin(z)",))


def cubic(level: float) -> Case:
    """z + z³ on a square wave."""
    at = np.arange(5.0)
    values = np.where(np.arange(5) % 2, -level, level)

    class Cubic(gr.Model):
        u, z, x = gr.Input(), gr.Variable(), gr.Variable(0.0)
        equations = [z + z**3 == u, der(x) == z - x]

    def exact(t: np.ndarray) -> dict[str, np.ndarray]:
        roots = [increasing_root(lambda z: z + z**3, u) for u in values]
        return {"z": held(at, roots, t), "x": relaxed(at, roots, t)}

    return Case(Cubic, np.linspace(0, 5, 21), exact, {"u": (at, values)}, words=("z**3",))


def cascade() -> Case:
    """Five tanks in a row with one-way valves: a vector of maxima; the feed goes on and off."""

    class Cascade(gr.Model):
        h = gr.Variable(size=5, start=[2.0, 0.0, 1.0, 0.0, 0.5])

        def equations(self) -> object:
            h = self.h
            over = [gr.maximum(h[k] - h[k + 1], 0.0) for k in range(4)]
            feed = gr.where(gr.sin(gr.time) > 0, 1.0, 0.0)
            yield der(h[0]) == feed - over[0]
            for k in range(1, 4):
                yield der(h[k]) == over[k - 1] - over[k]
            yield der(h[4]) == over[3] - 0.5 * h[4]

    def exact(t: np.ndarray) -> dict[str, np.ndarray]:
        def rates(t: float, h: np.ndarray, mode: tuple[bool, ...]) -> np.ndarray:
            over = np.where(mode[:4], h[:4] - h[1:], 0.0)
            feed = 1.0 if mode[4] else 0.0
            return np.concatenate([[feed], over]) - np.concatenate([over, [0.5 * h[4]]])

        h = integrate(rates, [2.0, 0.0, 1.0, 0.0, 0.5], t, lambda t, h: [*(h[:4] - h[1:]), np.sin(t) if t else 1.0])
        return {f"h[{k}]": h[:, k] for k in range(5)}

    return Case(Cascade, np.linspace(0, 10, 41), exact, frozen_margin=1e-3, words=("maximum",))
