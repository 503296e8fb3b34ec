"""Nets of conductances that differ by many powers of ten, against systems from which nodes are eliminated without a
subtraction (star to mesh), and against their eigenvalues."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.integrate import solve_ivp
from scipy.linalg import eigh

import grisaille as gr
from grisaille import der
from independent.cases import Case

TIMES = np.array([0.0, 0.1, 0.5, 1.0, 2.0])


@dataclass(frozen=True)
class Net:
    """Nodes with sources, of which some have a capacity; the first one leaks to ground."""

    edges: list[tuple[int, int]]
    conductance: np.ndarray
    capacity: np.ndarray
    stores: np.ndarray
    source: np.ndarray

    @classmethod
    def grid(cls, side: int, decades: float, seed: int) -> Net:
        rng = np.random.default_rng(seed)
        edges = [(i * side + j, i * side + j + 1) for i in range(side) for j in range(side - 1)]
        edges += [(i * side + j, (i + 1) * side + j) for i in range(side - 1) for j in range(side)]
        return cls._drawn(rng, side**2, edges, decades)

    @classmethod
    def tree(cls, nodes: int, decades: float, seed: int) -> Net:
        rng = np.random.default_rng(seed)
        return cls._drawn(rng, nodes, [(int(rng.integers(k)), k) for k in range(1, nodes)], decades)

    @classmethod
    def _drawn(cls, rng: np.random.Generator, nodes: int, edges: list[tuple[int, int]], decades: float) -> Net:
        conductance, capacity = 10 ** rng.uniform(-decades, decades, len(edges)), rng.uniform(0.5, 2, nodes)
        stores = rng.random(nodes) < 0.5
        stores[-1] = True
        return cls(edges, conductance, capacity, stores, rng.uniform(-1, 1, nodes))

    def potentials(self, t: np.ndarray) -> np.ndarray:
        """Of all nodes, one row for each instant; all that store begin at zero."""
        n = len(self.source)
        mesh, ground, source = np.zeros((n, n)), np.zeros(n), self.source.copy()
        ground[0] = 1.0
        for (i, j), g in zip(self.edges, self.conductance, strict=True):
            mesh[i, j] += g
            mesh[j, i] += g
        eliminated = []
        for k in np.flatnonzero(~self.stores):
            row, total, leak, inflow = mesh[k].copy(), mesh[k].sum() + ground[k], ground[k], source[k]
            eliminated.append((k, row / total, inflow / total))
            mesh += np.outer(row / total, row)
            np.fill_diagonal(mesh, 0.0)
            mesh[k], mesh[:, k] = 0.0, 0.0
            ground, source = ground + row / total * leak, source + row / total * inflow
        kept = np.flatnonzero(self.stores)
        part = mesh[np.ix_(kept, kept)]
        root = np.sqrt(self.capacity[kept])
        rates, modes = eigh((np.diag(part.sum(axis=1) + ground[kept]) - part) / np.outer(root, root))
        driven = modes.T @ (source[kept] / root)
        found = np.zeros((len(t), n))
        found[:, kept] = [modes @ (-np.expm1(-rates * s) / rates * driven) / root for s in t]
        for k, shares, own in reversed(eliminated):
            found[:, k] = own + found @ shares
        return found


def of_resistors(net: Net, *, parameters: bool = False) -> Case:
    """Currents as unknowns: i R == v_a − v_b with numbers, i == G (v_a − v_b) with parameters."""
    n, m = len(net.source), len(net.edges)

    class Resistors(gr.Model):
        v = gr.Variable(start=[0.0 if c else None for c in net.stores], size=n)
        i, G = gr.Variable(size=m), gr.Parameter(net.conductance, size=m)

        def equations(self):  # type: ignore[no-untyped-def]
            inflow = [s - self.v[0] if k == 0 else s for k, s in enumerate(net.source.tolist())]
            for k, (a, b) in enumerate(net.edges):
                drop = self.v[a] - self.v[b]
                yield self.i[k] == self.G[k] * drop if parameters else self.i[k] / net.conductance[k] == drop
                inflow[a], inflow[b] = inflow[a] - self.i[k], inflow[b] + self.i[k]
            for k in range(n):
                yield net.capacity[k] * der(self.v[k]) == inflow[k] if net.stores[k] else inflow[k] == 0

    def exact(t: np.ndarray) -> dict[str, np.ndarray]:
        return {f"v[{k}]": column for k, column in enumerate(net.potentials(t).T)}

    return Case(Resistors, TIMES, exact)


def of_potentials(net: Net) -> Case:
    """The same with potentials alone, where nodes are tied ten powers of ten less to others than among themselves."""
    n = len(net.source)

    class Potentials(gr.Model):
        v = gr.Variable(start=[0.0 if c else None for c in net.stores], size=n)

        def equations(self):  # type: ignore[no-untyped-def]
            inflow = [s - self.v[0] if k == 0 else s for k, s in enumerate(net.source.tolist())]
            for (a, b), g in zip(net.edges, net.conductance, strict=True):
                flow = g * (self.v[a] - self.v[b])
                inflow[a], inflow[b] = inflow[a] - flow, inflow[b] + flow
            for k in range(n):
                yield net.capacity[k] * der(self.v[k]) == inflow[k] if net.stores[k] else inflow[k] == 0

    def exact(t: np.ndarray) -> dict[str, np.ndarray]:
        return {f"v[{k}]": column for k, column in enumerate(net.potentials(t).T)}

    return Case(Potentials, TIMES, exact)


def of_diodes(decades: float) -> Case:
    """A ladder in which every third element lets through a thousandth in one direction; where nothing is stored, the
    currents of two neighbours are equal, which gives the potential in between in closed form."""
    cells, rng = 5, np.random.default_rng(4)
    forth, back = 10 ** rng.uniform(-decades, decades, 2 * cells), np.ones(2 * cells)
    back[::3] = 1e-3
    begin = np.resize([0.1, -0.1, 0.2], cells)

    class Ladder(gr.Model):
        v, w, i = gr.Variable(start=list(begin), size=cells), gr.Variable(size=cells), gr.Variable(size=2 * cells)

        def equations(self):  # type: ignore[no-untyped-def]
            for k in range(cells):
                left = gr.sin(3 * gr.time + 1) if k == 0 else self.v[k - 1]
                for m, drop in ((2 * k, left - self.w[k]), (2 * k + 1, self.w[k] - self.v[k])):
                    yield self.i[m] / forth[m] == gr.where(drop > 0, drop, back[m] * drop)
                yield self.i[2 * k] == self.i[2 * k + 1]
                after = self.i[2 * k + 2] if k < cells - 1 else self.v[k]
                yield der(self.v[k]) == self.i[2 * k + 1] - after

    def currents(t: float, v: np.ndarray) -> np.ndarray:
        across = np.concatenate([[np.sin(3 * t + 1)], v[:-1]]) - v
        side = np.where(across[:, None] > 0, 1.0, back.reshape(cells, 2)) * forth.reshape(cells, 2)
        return np.asarray(across / (1 / side).sum(axis=1))

    def rates(t: float, v: np.ndarray) -> np.ndarray:
        i = currents(t, v)
        return np.asarray(i - np.append(i[1:], v[-1]))

    def exact(t: np.ndarray) -> dict[str, np.ndarray]:
        done = solve_ivp(rates, (0, t[-1]), begin, "Radau", t, rtol=1e-8, atol=1e-12, max_step=0.05)
        return {f"v[{k}]": row for k, row in enumerate(done.y)}

    return Case(Ladder, TIMES, exact, margin=1e-5, implicit_margin=1e-5)
