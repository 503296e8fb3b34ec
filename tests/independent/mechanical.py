"""Mechanisms with friction, contact forces and several assemblies."""

from __future__ import annotations

import numpy as np

import grisaille as gr
from grisaille import der
from independent.cases import Case
from independent.pieces import integrate


def crank(rod: float, fed_back: bool, outputs: int) -> Case:
    """A slider on a turning crank: s = cos θ + √(l² − sin² θ) is one of two assemblies."""

    class Crank(gr.Model):
        rod_length, share = gr.Parameter(rod), gr.Parameter(float(fed_back))
        th, om, s, q = gr.Variable(0.0), gr.Variable(3.0), gr.Variable(start=1 + rod_length), gr.Variable(0.0)
        equations = [
            der(th) == om,
            der(om) == -0.3 * gr.sin(th),
            (s - gr.cos(th)) ** 2 + gr.sin(th) ** 2 == rod_length**2,
            der(q) == share * s - q,
        ]

    def slider(th: np.ndarray) -> np.ndarray:
        return np.cos(th) + np.sqrt(rod**2 - np.sin(th) ** 2)

    def exact(t: np.ndarray) -> dict[str, np.ndarray]:
        def rates(t: float, y: np.ndarray, mode: tuple[bool, ...]) -> np.ndarray:
            return np.array([y[1], -0.3 * np.sin(y[0]), (slider(y[0]) if fed_back else 0.0) - y[2]])

        y = integrate(rates, [0.0, 3.0, 0.0], t, step=4e-3)
        return {"th": y[:, 0], "s": slider(y[:, 0]), "q": y[:, 2]}

    return Case(Crank, np.linspace(0, 12, outputs), exact, words=("(s - cos(th))",))


def coulomb() -> Case:
    """Ring-down with dry friction: half swings about ±F/4, as long as the spring overcomes it."""
    friction = 0.2
    half = np.pi / 2

    class Coulomb(gr.Model):
        x, v = gr.Variable(1.0), gr.Variable(0.0)
        equations = [der(x) == v, der(v) == -4 * x - friction * gr.sign(v)]

    def exact(t: np.ndarray) -> dict[str, np.ndarray]:
        swing = np.floor(t / half).astype(int)
        side = np.where(swing % 2, -1.0, 1.0)
        amplitude = side * (1.0 - friction / 4 * (2 * swing + 1))
        x = side * friction / 4 + amplitude * np.cos(2 * (t - swing * half))
        return {"x": x, "v": -2 * amplitude * np.sin(2 * (t - swing * half))}

    return Case(
        Coulomb, np.linspace(0, 12, 41), exact, frozen_margin=2e-3, words=("sign(v)",)
    )  # fmt: skip


def acceleration() -> Case:
    """A jump in the derivative itself: v' + 0.5 sign(v') = ±2, so v' = ±1.5."""
    at, level = (0.0, 2.0, 5.0), (2.0, -2.0, 2.0)

    class Acceleration(gr.Model):
        u, v = gr.Input(), gr.Variable(0.0)
        equations = [der(v) + 0.5 * gr.sign(der(v)) == u]

    def exact(t: np.ndarray) -> dict[str, np.ndarray]:
        return {"v": np.interp(t, [0.0, 2.0, 5.0, 8.0], [0.0, 3.0, -1.5, 3.0])}

    return Case(Acceleration, np.linspace(0, 8, 33), exact, {"u": (at, level)}, words=("sign(der(v))",))


def pendulum() -> Case:
    """Index 3: a pendulum in x and y with wind on one side only. Reference: its angle."""

    class Pendulum(gr.Model):
        x, y = gr.Variable(1.0), gr.Variable(0.0)
        vx, vy, pull = gr.Variable(0.0), gr.Variable(0.0), gr.Variable()
        equations = [
            der(x) == vx,
            der(y) == vy,
            der(vx) == -pull * x + gr.where(x > 0.2, 0.5, 0.0),
            der(vy) == -pull * y - 9.81,
            x**2 + y**2 == 1.0,
        ]

    def exact(t: np.ndarray) -> dict[str, np.ndarray]:
        def rates(t: float, s: np.ndarray, mode: tuple[bool, ...]) -> np.ndarray:
            return np.array([s[1], -9.81 * np.sin(s[0]) + (0.5 * np.cos(s[0]) if mode[0] else 0.0)])

        s = integrate(rates, [np.pi / 2, 0.0], t, lambda t, s: [np.sin(s[0]) - 0.2], step=2e-3)
        a, w = s[:, 0], s[:, 1]
        x, y = np.sin(a), -np.cos(a)
        wind = np.where(x > 0.2, 0.5, 0.0)
        return {"x": x, "y": y, "vx": w * np.cos(a), "pull": w**2 + 9.81 * np.cos(a) + wind * x}

    return Case(
        Pendulum,
        np.linspace(0, 5, 41),
        exact,
        margin=5e-6,
        frozen_margin=5e-3,
        words=("where(x > 0.2",),
    )


def coupled_masses() -> Case:
    """Index 2: two masses at one speed, friction of one and a switched spring; the rod's force jumps."""

    class Masses(gr.Model):
        x, v, w, force = gr.Variable(1.0), gr.Variable(0.0), gr.Variable(0.0), gr.Variable()
        equations = [
            der(x) == v,
            der(v) == -4 * x + force,
            2 * der(w) == -force - gr.where(x > 0, 1.5, 0.5) + 0.8,
            v == w,
        ]

    def exact(t: np.ndarray) -> dict[str, np.ndarray]:
        def acceleration(x: np.ndarray, above: np.ndarray) -> np.ndarray:
            return (-4 * x - np.where(above, 1.5, 0.5) + 0.8) / 3

        y = integrate(
            lambda t, y, mode: np.array([y[1], acceleration(y[0], mode[0])]), [1.0, 0.0], t, lambda t, y: [y[0]]
        )
        x = y[:, 0]
        return {"x": x, "v": y[:, 1], "w": y[:, 1], "force": acceleration(x, x > 0) + 4 * x}

    return Case(Masses, np.linspace(0, 10, 41), exact, frozen_margin=5e-3, words=("where(x > 0",))


def preload() -> Case:
    """A preloaded spring without inertia: F = 2 x + sign(x), forces beyond the preload."""
    F = np.array([-5.0, -3.0, -1.2, 1.5, 4.0, -2.0, 5.0])

    class Preload(gr.Model):
        F, x = gr.Input(), gr.Variable()
        equations = [F == 2 * x + gr.sign(x)]

    def exact(t: np.ndarray) -> dict[str, np.ndarray]:
        at = F[np.round(t).astype(int)]
        return {"x": (at - np.sign(at)) / 2}

    return Case(Preload, np.arange(7.0), exact, {"F": (np.arange(7.0), F)}, words=("sign(x)",))
