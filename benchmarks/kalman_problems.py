"""The problems of ``kalman.py``: a fed-batch reactor, a wall and a building, as our models and as plain functions.

Every problem gives the peers ``matrices(theta, xp)`` or ``drift``/``noise`` in any NumPy-like algebra ``xp``, so that
NumPy, JAX and statsmodels solve the same equations; unknowns are logarithms, the same for all programs.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import grisaille as gr
from grisaille import der, exp


@dataclass(frozen=True)
class LinearProblem:
    """dx = (A x + B u) dt + G dw, y = H x + e; u held between samples. ``matrices(theta, xp)`` → A, B, GGᵀ, H, R."""

    name: str
    model: gr.Model
    data: gr.Experiment
    unknowns: tuple[str, ...]
    guess: np.ndarray
    matrices: Callable[[Any, Any], tuple[Any, ...]]
    x0: np.ndarray
    P0: np.ndarray
    step: float
    u: np.ndarray
    y: np.ndarray


@dataclass(frozen=True)
class NonlinearProblem:
    """dx = f(x, u, θ) dt + diag(s(θ)) dw, y = x + e, Var e = diag(R)."""

    name: str
    model: gr.Model
    data: gr.Experiment
    unknowns: tuple[str, ...]
    guess: np.ndarray
    drift: Callable[[Any, Any, Any, Any], Any]
    noise: Callable[[Any, Any], Any]
    variance: Callable[[Any, Any], Any]
    x0: np.ndarray
    P0: np.ndarray
    times: np.ndarray
    u: np.ndarray
    y: np.ndarray
    substeps: int


class FedBatch(gr.Model):
    """Biomass, substrate and volume of a fed-batch fermentation; unknowns as logarithms."""

    mu, k1 = gr.Parameter(0.0), gr.Parameter(float(np.log(0.03)))
    s1, s2, s3 = (gr.Parameter(float(np.log(v))) for v in (0.1, 0.1, 0.1))
    e1, e2, e3 = (gr.Parameter(float(np.log(v))) for v in (0.1, 0.03, 0.1))
    X, S, V = gr.Variable(1.0), gr.Variable(0.2449), gr.Variable(1.0)
    F = gr.Input()
    w1 = gr.Disturbance(gr.spectra.white(), scale=exp(s1))
    w2 = gr.Disturbance(gr.spectra.white(), scale=exp(s2))
    w3 = gr.Disturbance(gr.spectra.white(), scale=exp(s3))
    y1, y2, y3 = gr.Output(X, noise=exp(e1)), gr.Output(S, noise=exp(e2)), gr.Output(V, noise=exp(e3))
    growth = exp(mu) * S / (0.5 * S**2 + S + exp(k1))
    equations = [
        der(X) == growth * X - F * X / V + w1,
        der(S) == -growth * X / 0.5 + F * (10.0 - S) / V + w2,
        der(V) == F + w3,
    ]


def fed_batch() -> NonlinearProblem:
    """101 samples over 3.8 h, eight unknowns."""
    times = np.linspace(0.0, 3.8, 101)
    feed = 0.05 * np.exp(0.45 * times)
    truth = FedBatch(s1=np.log(0.01), s2=np.log(0.01), s3=np.log(0.01))
    run = gr.simulate(truth, times, {"F": feed}, realizations=1, seed=5, noise=True)
    y = np.stack([run[n].values.ravel() for n in ("y1", "y2", "y3")], axis=1)
    model = FedBatch()
    data = gr.Experiment(times, {"F": feed}, {f"y{k + 1}": y[:, k] for k in range(3)}, name="batch")
    unknowns = ("mu", "k1", "s1", "s2", "s3", "e1", "e2", "e3")
    guess = np.log([0.9, 0.04, 0.03, 0.03, 0.03, 0.1, 0.03, 0.1])

    def drift(x: Any, u: Any, theta: Any, xp: Any) -> Any:
        X, S, V = x[0], x[1], x[2]
        growth = xp.exp(theta[0]) * S / (0.5 * S**2 + S + xp.exp(theta[1]))
        return xp.stack([growth * X - u[0] * X / V, -growth * X / 0.5 + u[0] * (10.0 - S) / V, u[0]])

    return NonlinearProblem(
        "fed-batch reactor, 3 states, 101 samples, extended filter", model, data, unknowns, guess, drift,
        lambda theta, xp: xp.exp(2 * theta[2:5]), lambda theta, xp: xp.exp(2 * theta[5:8]),
        np.array([1.0, 0.2449, 1.0]), 1e-4 * np.eye(3), times, feed[:, None], y, 2,
    )  # fmt: skip


class Wall(gr.Model):
    """Two temperatures inside a wall between measured air temperatures; heat flow measured."""

    h1, h2, h3, g1, g2 = (gr.Parameter(float(np.log(v))) for v in (1.0, 2.0, 0.5, 100.0, 50.0))
    s, e = gr.Parameter(float(np.log(0.05))), gr.Parameter(float(np.log(0.1)))
    T1, T2 = gr.Variable(10.0), gr.Variable(18.0)
    Te, Ti = gr.Input(), gr.Input()
    w1, w2 = gr.Disturbance(gr.spectra.white(), scale=exp(s)), gr.Disturbance(gr.spectra.white(), scale=exp(s))
    q = gr.Output(exp(h3) * (T2 - Ti), noise=exp(e))
    equations = [
        der(T1) == (exp(h1) * (Te - T1) + exp(h2) * (T2 - T1)) / exp(g1) + w1,
        der(T2) == (exp(h2) * (T1 - T2) + exp(h3) * (Ti - T2)) / exp(g2) + w2,
    ]


def wall(samples: int = 719) -> LinearProblem:
    """Two states, seven unknowns."""
    times = np.arange(samples, dtype=float)
    random = np.random.default_rng(2)
    Te = 8 + 6 * np.sin(2 * np.pi * times / 24) + np.cumsum(0.2 * random.normal(size=samples))
    Ti = 20 + 1.5 * np.sign(np.sin(2 * np.pi * times / 31))
    run = gr.simulate(Wall(), times, {"Te": Te, "Ti": Ti}, realizations=1, seed=3, noise=True)
    y = run["q"].values.ravel()
    model = Wall()
    data = gr.Experiment(times, {"Te": Te, "Ti": Ti}, {"q": y}, name="wall")

    def matrices(theta: Any, xp: Any) -> tuple[Any, ...]:
        h1, h2, h3, g1, g2 = (xp.exp(theta[k]) for k in range(5))
        A = xp.stack([xp.stack([-(h1 + h2) / g1, h2 / g1]), xp.stack([h2 / g2, -(h2 + h3) / g2])])
        B = xp.stack([xp.stack([h1 / g1, 0 * g1]), xp.stack([0 * g2, h3 / g2])])
        W = xp.exp(2 * theta[5]) * xp.eye(2)
        H, D = xp.stack([0 * h3, h3])[None, :], xp.stack([0 * h3, -h3])[None, :]
        return A, B, W, H, D, xp.exp(2 * theta[6]) * xp.eye(1)

    guess = np.log([0.8, 2.5, 0.6, 80.0, 60.0, 0.1, 0.2])
    return LinearProblem(
        f"wall, 2 states, {samples} samples", model, data, ("h1", "h2", "h3", "g1", "g2", "s", "e"), guess, matrices,
        np.array([10.0, 18.0]), np.eye(2), 1.0, np.stack([Te, Ti], axis=1), y[:, None],
    )  # fmt: skip


ROOMS, LAYERS = 4, 4


class Building(gr.Model):
    """Four rooms, each with four wall layers towards the weather: twenty temperatures."""

    rw, rl, ro, rr = (gr.Parameter(float(np.log(v))) for v in (0.3, 0.2, 0.4, 0.5))
    ca, cl = gr.Parameter(float(np.log(2.0))), gr.Parameter(float(np.log(8.0)))
    aw, sa, sl, e = (gr.Parameter(float(np.log(v))) for v in (0.5, 0.05, 0.02, 0.1))
    Te, G = gr.Input(), gr.Input()
    Q = gr.Input(size=ROOMS)
    Ta = gr.Variable(20.0, size=ROOMS)
    Tl = gr.Variable(15.0, size=(ROOMS, LAYERS))
    wa = gr.Disturbance(gr.spectra.white(), scale=exp(sa), size=ROOMS)
    wl = gr.Disturbance(gr.spectra.white(), scale=exp(sl), size=(ROOMS, LAYERS))
    y0, y1 = gr.Output(Ta[0], noise=exp(e)), gr.Output(Ta[1], noise=exp(e))
    y2, y3 = gr.Output(Ta[2], noise=exp(e)), gr.Output(Ta[3], noise=exp(e))

    def equations(self):  # type: ignore[no-untyped-def]
        for i in range(ROOMS):
            heat = self.Q[i] + exp(self.aw) * self.G / (1 + i) + (self.Tl[i, 0] - self.Ta[i]) / exp(self.rw)
            for j in (i - 1, i + 1):
                if 0 <= j < ROOMS:
                    heat = heat + (self.Ta[j] - self.Ta[i]) / exp(self.rr)
            yield exp(self.ca) * der(self.Ta[i]) == heat + exp(self.ca) * self.wa[i]
            for k in range(LAYERS):
                inside = (self.Ta[i] - self.Tl[i, 0]) / exp(self.rw) if k == 0 else (
                    self.Tl[i, k - 1] - self.Tl[i, k]) / exp(self.rl)  # fmt: skip
                outside = (self.Te - self.Tl[i, k]) / exp(self.ro) if k == LAYERS - 1 else (
                    self.Tl[i, k + 1] - self.Tl[i, k]) / exp(self.rl)  # fmt: skip
                yield exp(self.cl) * der(self.Tl[i, k]) == inside + outside + exp(self.cl) * self.wl[i, k]


def building(samples: int = 10_000) -> LinearProblem:
    """Twenty states, four outputs, ten unknowns, ten-minute samples."""
    times = np.arange(samples) / 6.0
    random = np.random.default_rng(4)
    Te = 5 + 6 * np.sin(2 * np.pi * times / 24) + 2 * np.sin(2 * np.pi * times / 170)
    G = np.maximum(np.sin(2 * np.pi * (times - 8) / 24), 0.0)
    Q = np.repeat(random.integers(0, 2, size=(samples // 18 + 1, ROOMS)) * 30.0, 18, axis=0)[:samples]
    inputs = {"Te": Te, "G": G, **{f"Q[{i}]": Q[:, i] for i in range(ROOMS)}}
    run = gr.simulate(Building(), times, inputs, realizations=1, seed=6, noise=True)
    y = np.stack([run[f"y{i}"].values.ravel() for i in range(ROOMS)], axis=1)
    data = gr.Experiment(times, inputs, {f"y{i}": y[:, i] for i in range(ROOMS)}, name="building")
    pattern = _building_pattern()

    def matrices(theta: Any, xp: Any) -> tuple[Any, ...]:
        rw, rl, ro, rr, ca, cl, aw, sa, sl, e = (xp.exp(theta[k]) for k in range(10))
        weights = xp.stack([1 / (rw * ca), 1 / (rr * ca), 1 / (rw * cl), 1 / (rl * cl), 1 / (ro * cl)])
        A = xp.tensordot(weights, xp.asarray(pattern["A"]), axes=1)
        B = xp.tensordot(xp.stack([1 / (ro * cl), aw / ca, 1 / ca]), xp.asarray(pattern["B"]), axes=1)
        W = sa**2 * xp.asarray(pattern["air"]) + sl**2 * xp.asarray(pattern["layers"])
        return A, B, W, xp.asarray(pattern["H"]), xp.zeros((ROOMS, 2 + ROOMS)), e**2 * xp.eye(ROOMS)

    n = ROOMS * (1 + LAYERS)
    x0 = np.concatenate([np.full(ROOMS, 20.0), np.full(ROOMS * LAYERS, 15.0)])
    names = ("rw", "rl", "ro", "rr", "ca", "cl", "aw", "sa", "sl", "e")
    guess = np.log([0.35, 0.25, 0.35, 0.45, 2.5, 7.0, 0.4, 0.1, 0.05, 0.15])
    return LinearProblem(
        f"building, {n} states, {samples} samples", Building(), data, names, guess, matrices, x0, np.eye(n), 1 / 6,
        np.column_stack([Te, G, Q]), y,
    )  # fmt: skip


def _building_pattern() -> dict[str, np.ndarray]:
    """What each coefficient multiplies; states: air temperatures, then layers room by room."""
    n = ROOMS * (1 + LAYERS)
    A, B = np.zeros((5, n, n)), np.zeros((3, n, 2 + ROOMS))

    def flow(k: int, to: int, source: int) -> None:
        A[k, to, source] += 1
        A[k, to, to] -= 1

    for i in range(ROOMS):
        layers = [ROOMS + i * LAYERS + k for k in range(LAYERS)]
        flow(0, i, layers[0])
        for j in (i - 1, i + 1):
            if 0 <= j < ROOMS:
                flow(1, i, j)
        flow(2, layers[0], i)
        for a, b in itertools.pairwise(layers):
            flow(3, a, b)
            flow(3, b, a)
        A[4, layers[-1], layers[-1]] -= 1
        B[0, layers[-1], 0] = 1
        B[1, i, 1] = 1 / (1 + i)
        B[2, i, 2 + i] = 1
    H = np.eye(ROOMS, n)
    air = np.diag(np.arange(n) < ROOMS).astype(float)
    return {"A": A, "B": B, "H": H, "air": air, "layers": np.eye(n) - air}
