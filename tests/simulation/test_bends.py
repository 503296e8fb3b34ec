"""Bends inside implicit blocks: monotone equations in straight pieces have one root, however unequal the slopes are.

References: the pieces enumerated one by one, and SciPy's LSODA on top of that.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise, product
from typing import Any

import casadi as ca
import numpy as np
import pytest
from scipy.integrate import solve_ivp
from simulation.reduced import kernel_of
from tasks import task_of

import grisaille as gr
from grisaille import der
from grisaille.compilation import Kernel, Status
from grisaille.compilation.schemes import schemes_of
from grisaille.numerics import reach
from grisaille.simulation import integrate
from grisaille.simulation.roots import Anchor, Newton

Floats = np.ndarray


@dataclass
class Network:
    """A y + Bᵀ φ(B y − o) = G x + w sin t, x' = −x − 0.3 Gᵀ y, each φ in two straight pieces.

    Equations are multiplied by R, and the unknowns are z = C y.
    """

    B: Floats
    low: Floats
    high: Floats
    o: Floats
    A: Floats
    R: Floats
    C: Floats
    G: Floats
    w: Floats

    def __post_init__(self) -> None:
        self.patterns = np.array(list(product([False, True], repeat=len(self.o))))
        slopes = np.where(self.patterns, self.high, self.low)
        self.inverses = np.linalg.inv(self.A + np.einsum("ki,mk,kj->mij", self.B, slopes, self.B))
        self.offsets = slopes * self.o @ self.B

    def y(self, u: Floats) -> Floats:
        """The solution of the piece that agrees with it."""
        y = np.einsum("mij,mj->mi", self.inverses, u + self.offsets)
        gaps = y @ self.B.T - self.o
        misfit = np.where(self.patterns, -gaps, gaps).max(axis=1)
        best = int(np.argmin(misfit))
        assert misfit[best] <= 1e-6 * (1 + np.abs(y[best]).max())
        return np.asarray(y[best])

    def driven(self, t: float, x: Floats) -> Floats:
        return self.y(self.G @ x + self.w * np.sin(t))

    @property
    def p(self) -> Floats:
        parts = (self.B, self.low, self.high, self.o, self.A, self.R, self.C, self.G, self.w)
        return np.concatenate([np.ravel(part, order="F") for part in parts])


def random_network(random: np.random.Generator, n: int) -> Network:
    k = n + 2
    B = random.standard_normal((k, n)) * (random.random((k, n)) < 0.6)
    if random.random() < 0.5:  # branches between nodes, several of which may bend at once
        rows = np.eye(n)[random.integers(n, size=(2, k))]
        B = rows[0] - rows[1] * (random.random((k, 1)) < 0.7)
    B[np.abs(B).sum(axis=1) == 0, 0] = 1.0
    ratio, flip = 10 ** random.uniform(-6, 0, k), random.random(k) < 0.5
    o = random.standard_normal(k) * (random.random(k) < 0.6)
    M = random.standard_normal((n, n))
    A = 10 ** random.uniform(-3, 0) * (np.eye(n) + 0.3 * (M - M.T))
    R, C = 10 ** random.uniform(-6, 6, (2, n))
    low, high = np.where(flip, ratio, 1.0), np.where(flip, 1.0, ratio)
    return Network(B, low, high, o, A, R, C, random.standard_normal((n, 2)), 3 * random.standard_normal(n))


@lru_cache
def network_kernel(n: int) -> Kernel:
    k, sym = n + 2, ca.SX.sym
    x, z, t, u = sym("x", 2), sym("z", n), sym("t"), sym("u", n)
    shapes = ((k, n), (k, 1), (k, 1), (k, 1), (n, n), (n, 1), (n, 1), (n, 2), (n, 1))
    B, low, high, o, A, R, C, G, w = parts = [sym("p", *shape) for shape in shapes]
    y = z / C
    v = ca.mtimes(B, y) - o
    bends = {
        0: lambda: ca.if_else(v > 0, high * v, low * v),
        1: lambda: (low + high) / 2 * v + (high - low) / 2 * ca.fabs(v),
        2: lambda: high * ca.fmax(v, 0) + low * ca.fmin(v, 0),
    }
    left = ca.mtimes(A, y) + ca.mtimes(B.T, bends[n % 3]())
    residual = R * (left - ca.mtimes(G, x) - w * ca.sin(t) - u)
    p = ca.vertcat(*map(ca.vec, parts))
    rhs = -x - 0.3 * ca.mtimes(G.T, y)
    return kernel_of(rhs, x, t=t, z=z, residual=residual, u=u, p=p, sensitive=False)


@pytest.mark.parametrize("n", [2, 3, 4, 5])
def test_a_jump_over_many_bends_ends_at_the_root(n: int) -> None:
    random, kernel = np.random.default_rng(n), network_kernel(n)
    for _ in range(15):
        net = random_network(random, n)
        before, after = random.standard_normal((2, n)) * 10 ** random.uniform(-1, 2)
        start, goal = net.y(before), net.y(after)
        size = np.abs([start, goal]).max()
        task = task_of(
            kernel, 0.0, 1.0, p=net.p, x=np.zeros(2), z=start * net.C, rtol=1e-9, fixed_step=1.0,
            atol=np.append([1e-9] * 2, 1e-9 * net.C * size), breaks=np.array([0.0, 1.0]), coef=np.zeros((1, n, 1)),
        )  # fmt: skip
        known = Anchor(0.0, np.zeros(2), start * net.C, u=before)
        z, _ = Newton(kernel, task).solve(0.0, np.zeros(2), start * net.C, after, known)
        assert np.abs(z / net.C - goal).max() < 1e-6 * size
        assert task.evaluations < 60


@pytest.mark.parametrize("method", ["explicit", "implicit"])
def test_runs_pass_bends_of_any_ratio(method: str) -> None:
    random, kernel, times = np.random.default_rng(1), network_kernel(3), np.linspace(0, 4, 9)
    for _ in range(12):
        net = random_network(random, 3)
        x0 = np.array([0.3, 0.3])
        exact = solve_ivp(lambda t, x, n=net: -x - 0.3 * n.G.T @ n.driven(t, x), (0, 4), x0, "LSODA", times,
                          rtol=1e-10, atol=1e-12, max_step=0.02).y.T  # fmt: skip
        task = task_of(
            kernel, 0.0, 4.0, p=net.p, x=x0, z=net.driven(0.0, x0) * net.C, times=times, rtol=1e-8,
            atol=np.append([1e-9] * 2, 1e-9 * net.C), breaks=np.array([0.0, 4.0]), coef=np.zeros((1, 3, 1)),
        )  # fmt: skip
        integrate(kernel, task, schemes_of(method))
        assert task.status == Status.DONE
        y = np.array([net.driven(t, x) for t, x in zip(times, exact, strict=True)])
        assert np.abs(task.y[:, :2] - exact).max() < 1e-5 * np.abs(exact).max()
        assert np.abs(task.y[:, 2:] / net.C - y).max() < 1e-4 * np.abs(y).max()


def diode(ratio: float, v: Any) -> Any:
    return gr.where(v > 0, 10.0 * v, 10.0 / ratio * v)


@pytest.mark.parametrize("method", ["explicit", "implicit"])
@pytest.mark.parametrize("ratio", [1e2, 1e4, 1e6])
def test_one_bend(ratio: float, method: str) -> None:
    class Bend(gr.Model):
        z, x = gr.Variable(), gr.Variable(0.0)
        equations = [gr.where(z > 0, ratio * z, z) + 0.1 * z == gr.sin(gr.time), der(x) == z - x]

    def root(t: Any) -> Any:
        return np.sin(t) / np.where(np.sin(t) > 0, ratio + 0.1, 1.1)

    times = np.linspace(0, 10, 21)
    got = gr.simulate(Bend(), times, rtol=1e-8, method=method)
    exact = [0.0]
    for a, b in pairwise(times):
        exact.append(
            solve_ivp(lambda t, x: root(t) - x, (a, b), exact[-1:], rtol=1e-11, atol=1e-13, max_step=0.01).y[0, -1]
        )
    assert np.abs(got["x"].values - exact).max() < 1e-6
    assert np.abs(got["z"].values - root(times)).max() < 1e-7


@pytest.mark.parametrize("method", ["explicit", "implicit"])
@pytest.mark.parametrize("unit", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize("ratio", [1e2, 1e6])
def test_bridge_whose_diodes_bend_in_pairs(ratio: float, unit: float, method: str) -> None:
    class Bridge(gr.Model):
        a, b, x = gr.Variable(nominal=unit), gr.Variable(nominal=unit), gr.Variable(5.0 * unit, nominal=unit)
        supply = 10 * unit * gr.sin(gr.time) - (a - b)
        equations = [
            supply == diode(ratio, a - x) - diode(ratio, -a),
            -supply == diode(ratio, b - x) - diode(ratio, -b),
            der(x) == -0.1 * x,
        ]

    times = np.linspace(0, 10, 41)
    got = gr.simulate(Bridge(), times, rtol=1e-8, method=method)
    a, b, x = (got[name].values / unit for name in "abx")
    assert np.abs(x - 5 * np.exp(-0.1 * times)).max() < 1e-6

    def current(v: Floats) -> Floats:
        return np.where(v > 0, 10.0, 10.0 / ratio) * v

    supply = 10 * np.sin(times) - (a - b)
    for residual in (supply - current(a - x) + current(-a), supply + current(b - x) - current(-b)):
        assert np.abs(residual).max() < 1e-6


def test_a_static_model_passes_bends_from_row_to_row() -> None:
    class Static(gr.Model):
        a, b, u = gr.Variable(), gr.Variable(), gr.Input()
        equations = [u == a + diode(1e6, a - b), diode(1e6, a - b) == 1e-3 * b + gr.maximum(b - 1, 0.0)]

    u = np.array([-50.0, 3.0, -1e-3, 40.0, 0.0, 200.0])
    got = gr.simulate(Static(), np.arange(6.0), inputs={"u": u})
    a, b = got["a"].values, got["b"].values
    flow = np.where(a > b, 10.0, 1e-5) * (a - b)
    assert np.abs(u - a - flow).max() < 1e-9
    assert np.abs(flow - 1e-3 * b - np.maximum(b - 1, 0)).max() < 1e-9


def test_a_line_ends_just_beyond_its_first_switch() -> None:
    def gaps(s: float) -> Floats:
        return np.array([0.3 - s, 1.5 - s, (s - 0.1) ** 3 - 8e-3])

    share = reach(gaps, gaps(0.0))
    assert 0.3 < share < 0.3 * (1 + 1e-11)
    assert reach(lambda s: np.array([1.0 - s / 2]), np.array([1.0])) == 1.0
    steep = reach(lambda s: np.array([1e-14 - s]), np.array([1e-14]))
    assert 1e-14 < steep < 2e-14
