"""Models that are large, or written in units of 1e±9, against integrations of the same plant in units of one."""

from __future__ import annotations

import numpy as np
from scipy.integrate import solve_ivp
from scipy.linalg import expm

import grisaille as gr
from grisaille import der
from independent.cases import Case


def net(scale: float, nodes: int = 60) -> Case:
    """Conductances and capacitors between nodes of which half have none: the others are algebraic."""
    rng = np.random.default_rng(8)
    edges = [(int(rng.integers(k)), k) for k in range(1, nodes)] + [
        tuple(int(v) for v in rng.choice(nodes, 2, replace=False)) for _ in range(nodes // 2)
    ]
    G, C = rng.uniform(0.5, 2, len(edges)), rng.uniform(0.5, 2, nodes)
    has_capacity, source = rng.random(nodes) < 0.5, rng.uniform(-1, 1, nodes)

    class Net(gr.Model):
        v = gr.Variable(start=[0.0 if c else None for c in has_capacity], size=nodes)

        def equations(self):  # type: ignore[no-untyped-def]
            inflow = [source[k] * scale for k in range(nodes)]
            inflow[0] = inflow[0] - scale * self.v[0]
            for (i, j), g in zip(edges, G, strict=True):
                flow = g * scale * (self.v[i] - self.v[j])
                inflow[i], inflow[j] = inflow[i] - flow, inflow[j] + flow
            for k in range(nodes):
                yield C[k] * scale * der(self.v[k]) == inflow[k] if has_capacity[k] else inflow[k] == 0

    def exact(t: np.ndarray) -> dict[str, np.ndarray]:
        L = np.zeros((nodes, nodes))
        for (i, j), g in zip(edges, G, strict=True):
            L[i, i] += g
            L[j, j] += g
            L[i, j] -= g
            L[j, i] -= g
        L[0, 0] += 1
        a, b = np.flatnonzero(has_capacity), np.flatnonzero(~has_capacity)
        out = -np.linalg.solve(L[np.ix_(b, b)], L[np.ix_(b, a)])
        S = L[np.ix_(a, a)] + L[np.ix_(a, b)] @ out
        free = np.linalg.solve(L[np.ix_(b, b)], source[b])
        rest = np.linalg.solve(S, source[a] - L[np.ix_(a, b)] @ free)
        x = np.array([rest - expm(-S * s / C[a][:, None]) @ rest for s in t])
        z = x @ out.T + free
        return {f"v[{a[0]}]": x[:, 0], f"v[{a[-1]}]": x[:, -1], f"v[{b[0]}]": z[:, 0], f"v[{b[-1]}]": z[:, -1]}

    return Case(Net, np.linspace(0, 2, 5), exact)


def van_der_pol(scale: float) -> Case:
    """The oscillator of van der Pol, with states of this size and nothing that says so but its start."""

    class Oscillator(gr.Model):
        x, v = gr.Variable(2.0 * scale), gr.Variable(0.0)
        equations = [der(x) == v, der(v) == 5 * (1 - (x / scale) ** 2) * v - x]

    def exact(t: np.ndarray) -> dict[str, np.ndarray]:
        done = solve_ivp(
            lambda t, y: [y[1], 5 * (1 - y[0] ** 2) * y[1] - y[0]], (0, t[-1]), [2.0, 0.0], "DOP853", t, rtol=1e-12,
            atol=1e-13,
        )  # fmt: skip
        return {"x": done.y[0] * scale, "v": done.y[1] * scale}

    return Case(Oscillator, np.linspace(0, 20, 21), exact, margin=1e-5, implicit_margin=1e-5, frozen_margin=1e-3)


def long_pendulum(length: float) -> Case:
    """Index 3 with a rod of this length; time is counted in units of its period."""

    class Pendulum(gr.Model):
        x, y = gr.Variable(length), gr.Variable(0.0)
        vx, vy, pull = gr.Variable(0.0), gr.Variable(0.0), gr.Variable()
        equations = [
            der(x) == vx,
            der(y) == vy,
            der(vx) == -pull * x,
            der(vy) == -pull * y - length,
            x**2 + y**2 == length**2,
        ]

    def exact(t: np.ndarray) -> dict[str, np.ndarray]:
        done = solve_ivp(
            lambda t, s: [s[1], -np.sin(s[0])], (0, t[-1]), [np.pi / 2, 0.0], "DOP853", t, rtol=1e-12, atol=1e-13
        )
        a, w = done.y
        return {"x": length * np.sin(a), "vy": length * w * np.sin(a), "pull": w**2 + np.cos(a)}

    return Case(Pendulum, np.linspace(0, 10, 21), exact, margin=5e-6, implicit_margin=5e-6, frozen_margin=1e-3)


def ladder(cells: int = 45) -> Case:
    """A ladder whose currents are implicit, i + 0.1 i³ = Δv, from the size on at which matrices are sparse."""

    class Ladder(gr.Model):
        v, i = gr.Variable(start=0.0, size=cells), gr.Variable(size=cells)

        def equations(self):  # type: ignore[no-untyped-def]
            for k in range(cells):
                left = 1.0 if k == 0 else self.v[k - 1]
                yield self.i[k] + 0.1 * self.i[k] ** 3 == left - self.v[k]
                yield der(self.v[k]) == self.i[k] - (self.i[k + 1] if k < cells - 1 else 0)

    def exact(t: np.ndarray) -> dict[str, np.ndarray]:
        def currents(v: np.ndarray) -> np.ndarray:
            drop = np.concatenate([[1.0], v[:-1]]) - v
            half = drop / 0.2  # Cardano: i³ + 10 i = 10 Δv
            root = np.sqrt(half**2 + (10 / 3) ** 3)
            return np.cbrt(half + root) + np.cbrt(half - root)

        def rates(t: float, v: np.ndarray) -> np.ndarray:
            i = currents(v)
            return i - np.append(i[1:], 0.0)

        done = solve_ivp(rates, (0, t[-1]), np.zeros(cells), "DOP853", t, rtol=1e-11, atol=1e-13)
        return {"v[0]": done.y[0], "v[9]": done.y[9], "i[0]": np.array([currents(v)[0] for v in done.y.T])}

    return Case(Ladder, np.linspace(0, 5, 6), exact)


def relays(count: int = 60) -> Case:
    """More relays than a small model has: each integrator jumps to another slope at a threshold of its own."""
    levels = 0.1 + 0.8 * np.arange(count) / count

    class Relays(gr.Model):
        x = gr.Variable(start=0.0, size=count)

        def equations(self):  # type: ignore[no-untyped-def]
            for k in range(count):
                yield der(self.x[k]) == gr.where(self.x[k] > levels[k], 3.0, 1.0)

    def exact(t: np.ndarray) -> dict[str, np.ndarray]:
        t = np.asarray(t)
        return {f"x[{k}]": np.where(t < levels[k], t, levels[k] + 3 * (t - levels[k])) for k in range(count)}

    return Case(Relays, np.array([0.0, 0.33, 1.0]), exact, frozen_margin=1e-2)
