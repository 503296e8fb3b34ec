"""What a long step would pass over: bumps of tables, conditions that hold shortly, switches at one instant."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from scipy.interpolate import PchipInterpolator

import grisaille as gr
from grisaille import der
from independent.cases import Case
from independent.pieces import integrate


def road(scale: float = 1.0) -> Case:
    """A bump two metres long on a road of 200 m at 20 m/s: its energy is the integral of the table."""
    knots, heights = np.array([0.0, 100, 101, 102, 200]) * scale, np.array([0.0, 0, 2, 0, 0]) * scale

    class Road(gr.Model):
        s, E = gr.Variable(0.0), gr.Variable(0.0)
        equations = [der(s) == 20.0 * scale, der(E) == gr.table(s, knots, heights)]

    def exact(t: np.ndarray) -> dict[str, np.ndarray]:
        s = 20 * np.asarray(t)
        up, down = np.clip(s - 100, 0, 1), np.clip(s - 101, 0, 1)
        return {"s": s * scale, "E": (up**2 + 2 * down - down**2) / 20 * scale}

    return Case(Road, np.array([0.0, 4.0, 8.0]), exact)


def smooth_bump() -> Case:
    """A monotone cubic table of a decaying state, flat but for two narrow bumps."""
    knots = [-1.0, 0.3, 0.31, 0.33, 0.6, 0.61, 0.62, 2.0]
    values = [0.0, 0.0, 5.0, 0.0, 0.0, -8.0, 0.0, 0.0]

    class Bumps(gr.Model):
        x, z = gr.Variable(1.0), gr.Variable(0.0)
        equations = [der(x) == -0.2 * x, der(z) == gr.table(x, knots, values, kind="monotone")]

    def exact(t: np.ndarray) -> dict[str, np.ndarray]:
        x = np.exp(-0.2 * np.asarray(t))
        pieces, (nodes, weights) = PchipInterpolator(knots, values), np.polynomial.legendre.leggauss(40)
        z = np.zeros(x.size)
        for k, end in enumerate(x):  # z = ∫ table(ξ) / (0.2 ξ) dξ from x to 1, piece by piece
            ends = np.unique(np.clip([end, *knots, 1.0], end, 1.0))
            for low, high in pairwise(ends):
                at = (low + high) / 2 + (high - low) / 2 * nodes
                z[k] += (high - low) / 2 * np.sum(weights * pieces(at) / (0.2 * at))
        return {"x": x, "z": z}

    return Case(Bumps, np.linspace(0, 10, 5), exact)


def pulses() -> Case:
    """sin(50 t) > 0.99 holds for 5.7 ms, eighty times in ten seconds."""

    class Pulses(gr.Model):
        x = gr.Variable(0.0)
        equations = [der(x) == gr.where(gr.sin(50 * gr.time) > 0.99, 1.0, 0.0)]

    def exact(t: np.ndarray) -> dict[str, np.ndarray]:
        half = np.arccos(0.99) / 50
        tops = (np.pi / 2 + 2 * np.pi * np.arange(100)) / 50
        return {"x": np.clip(np.asarray(t)[:, None] - tops + half, 0, 2 * half).sum(axis=1)}

    return Case(Pulses, np.array([0.0, 3.0, 10.0]), exact, frozen_margin=1e-3)


def wheel() -> Case:
    """Teeth of a wheel that slows down pass a sensor: a short condition of a state."""

    class Wheel(gr.Model):
        a, count = gr.Variable(0.0), gr.Variable(0.0)
        equations = [der(a) == 6.0 - 0.3 * a, der(count) == gr.where(gr.sin(5 * a) > 0.95, 10.0, 0.0)]

    def exact(t: np.ndarray) -> dict[str, np.ndarray]:
        half = np.arccos(0.95) / 5
        tops = (np.pi / 2 + 2 * np.pi * np.arange(40)) / 5
        low, high = (-np.log(1 - np.minimum((tops + s * half) / 20, 1 - 1e-12)) / 0.3 for s in (-1, 1))
        on = np.clip(np.asarray(t)[:, None], low, high) - low
        return {"a": 20 * (1 - np.exp(-0.3 * np.asarray(t))), "count": 10 * on.sum(axis=1)}

    return Case(Wheel, np.linspace(0, 10, 6), exact, frozen_margin=1e-3)


def together() -> Case:
    """Three decoupled relays with one threshold, which part there: all switch at t = 0.5."""

    class Relays(gr.Model):
        x, y, z = gr.Variable(0.0), gr.Variable(0.0), gr.Variable(0.0)
        equations = [
            der(x) == gr.where(x > 0.5, 3.0, 1.0),
            der(y) == gr.where(y > 0.5, 5.0, 1.0),
            der(z) == gr.where(2 * z > 1.0, 0.25, 1.0),
        ]

    def exact(t: np.ndarray) -> dict[str, np.ndarray]:
        t = np.asarray(t)
        return {n: np.where(t < 0.5, t, 0.5 + r * (t - 0.5)) for n, r in (("x", 3.0), ("y", 5.0), ("z", 0.25))}

    return Case(Relays, np.array([0.0, 0.2, 0.6, 0.9]), exact, frozen_margin=1e-3)


def viscous_and_dry() -> Case:
    """Dry friction beside |v| of the same speed, under a held force: it slips, sticks and slips the other way."""
    at, force = np.arange(0.0, 6.0, 0.5), np.array([3.0, 3, 0.5, 0.5, 0.5, -3, -3, -0.8, -0.8, 2.5, 2.5, 0.0])

    class Drive(gr.Model):
        v, u = gr.Variable(0.0), gr.Input()
        equations = [der(v) == u - 2 * v + 0.4 * abs(v) - gr.sign(v)]

    def exact(t: np.ndarray) -> dict[str, np.ndarray]:
        def speed(v: float, u: float, h: float) -> float:
            """After h seconds of a constant force; at rest while the force does not overcome the friction."""
            side = np.sign(v) if v else (np.sign(u) if abs(u) > 1 else 0.0)
            if side == 0:
                return 0.0
            rate = 2 - 0.4 * side
            final = (u - side) / rate
            if final * side < 0:
                stop = np.log(1 - v / final) / rate
                if stop < h:
                    return speed(0.0, u, h - stop)
            return float(final + (v - final) * np.exp(-rate * h))

        rows, v = [], 0.0
        for k, begin in enumerate(at):
            rows += [speed(v, force[k], s - begin) for s in t if begin <= s < begin + 0.5]
            v = speed(v, force[k], 0.5)
        return {"v": np.array(rows)}

    return Case(Drive, np.arange(0.0, 5.9, 0.1), exact, {"u": (at, force)}, frozen_margin=1e-3, words=("sign(v)",))


def washboard() -> Case:
    """A table that repeats itself every 5 cm, crossed by an oscillator that turns between its knots."""
    knots, values = np.array([0.0, 0.01, 0.02, 0.05]), np.array([0.0, 0.2, -0.1, 0.0])

    class Washboard(gr.Model):
        x, v = gr.Variable(0.213), gr.Variable(0.0)
        equations = [der(x) == v, der(v) == -4 * x + gr.table(x, knots, values, outside="repeat")]

    def exact(t: np.ndarray) -> dict[str, np.ndarray]:
        every = np.arange(-10, 10)[:, None] * 0.05 + knots[:-1]
        every = np.sort(every.ravel())

        def rates(t: float, y: np.ndarray, mode: tuple[bool, ...]) -> np.ndarray:
            k = sum(mode) - 1
            low, high = every[k], every[k + 1]
            heights = values[k % 3], values[k % 3 + 1]
            return np.array([y[1], -4 * y[0] + heights[0] + (heights[1] - heights[0]) * (y[0] - low) / (high - low)])

        y = integrate(rates, [0.213, 0.0], t, lambda t, y: list(y[0] - every), step=2e-3)
        return {"x": y[:, 0], "v": y[:, 1]}

    return Case(Washboard, np.linspace(0, 4, 9), exact, frozen_margin=1e-3)
