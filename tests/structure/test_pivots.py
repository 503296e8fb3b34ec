"""What formulas divide by: numbers that are not small beside others of their row and column, and no rounding."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from scipy.linalg import expm

import grisaille as gr
from grisaille import der


def test_a_net_with_conductances_of_eight_powers_of_ten() -> None:
    """Nodes without capacity are eliminated in fractions; tearing divided by the smallest conductances before."""
    n, random = 60, np.random.default_rng(1)
    pairs = {(i, i + 1) for i in range(n - 1)}
    pairs |= {tuple(sorted(map(int, random.choice(n, 2, replace=False)))) for _ in range(n)}  # type: ignore[misc]
    edges = sorted(pairs)
    conductance = 10 ** random.uniform(-4, 4, len(edges))
    stores, capacity = np.arange(n) % 3 == 0, 10 ** random.uniform(-1, 1, n)

    class Net(gr.Model):
        v = gr.Variable(start=0.0, size=n)

        def equations(self) -> Any:
            inflow: list[Any] = [1.0 if m == n - 1 else -self.v[0] if m == 0 else 0.0 for m in range(n)]
            for (a, b), g in zip(edges, conductance.tolist(), strict=True):
                inflow[a] = inflow[a] + g * (self.v[b] - self.v[a])
                inflow[b] = inflow[b] + g * (self.v[a] - self.v[b])
            for m in range(n):
                yield float(capacity[m]) * der(self.v[m]) == inflow[m] if stores[m] else 0 == inflow[m]

    L = [[Fraction(0)] * n for _ in range(n)]
    for (a, b), g in zip(edges, map(Fraction, conductance.tolist()), strict=True):
        L[a][a], L[b][b], L[a][b], L[b][a] = L[a][a] + g, L[b][b] + g, L[a][b] - g, L[b][a] - g
    L[0][0] += 1
    source = [Fraction(int(m == n - 1)) for m in range(n)]
    for m in np.flatnonzero(~stores):
        for i in range(n):
            if i != m and L[i][m]:
                part = L[i][m] / L[m][m]
                L[i] = [x - part * y if y else x for x, y in zip(L[i], L[m], strict=True)]
                source[i] -= part * source[m]
        L[m] = [Fraction(0)] * n
    kept = np.flatnonzero(stores)
    A = np.zeros((len(kept) + 1, len(kept) + 1))
    A[:-1, :-1] = [[-float(L[i][j]) / capacity[i] for j in kept] for i in kept]
    A[:-1, -1] = [float(source[i]) / capacity[i] for i in kept]
    exact = expm(A)[:-1, -1]
    run = gr.simulate(Net(), [0.0, 1.0], rtol=1e-8)
    got = np.array([float(run[f"v[{m}]"][-1]) for m in kept])
    assert np.abs(got - exact).max() < 1e-7 * np.abs(exact).max()
    assert run.attrs["steps"] < 1000


def test_rounding_beside_an_exponential_that_overflows_is_no_pivot() -> None:
    """Of a, 0.1 + 0.2 − 0.3 is left; at c = 1, where slopes are looked at first, the exponential has no value."""

    class Beside(gr.Model):
        x = gr.Variable(0.0)
        a, b, c = gr.Variable(), gr.Variable(), gr.Variable()

        def equations(self) -> Any:
            a, b, c = self.a, self.b, self.c
            yield der(self.x) == a
            yield 0.1 * a + 0.2 * a - 0.3 * a + b + gr.exp(1e5 * c) == 3.0
            yield a + b == 2.0 + self.x
            yield c == 1e-5 * (b - 2.0)

    run = gr.simulate(Beside(), [0.0, 1.0])
    np.testing.assert_allclose([run[name][0] for name in "abc"], [0.0, 2.0, 0.0], atol=1e-9)
