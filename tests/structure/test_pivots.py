"""What formulas divide by: numbers that are not small beside others of their row and column, and no rounding."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import casadi as ca
import numpy as np
from scipy.linalg import expm

import grisaille as gr
from grisaille import der
from grisaille.model import flatten
from grisaille.structure import BlockUnknown, lower_equations
from grisaille.structure.singular import without_rounded_slopes


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


def test_rounding_beside_an_exponential_that_overflows_is_no_slope() -> None:
    """Of a, 0.1 + 0.2 − 0.3 is left; at c = 1, where slopes are looked at first, the exponential has no value."""

    class Beside(gr.Model):
        a, b, c = gr.Variable(), gr.Variable(), gr.Variable()
        equations = [0.1 * a + 0.2 * a - 0.3 * a + b + gr.exp(1e5 * c) == 3.0, a + b == 2.0, c == 1e-5 * b]

    equations = lower_equations(flatten(Beside()))
    unknowns = [BlockUnknown(equations.jets.symbol(name, 0), name) for name in "abc"]
    written = [row.residual for row in equations.rows]
    assert ca.depends_on(written[0], unknowns[0].symbol)
    found = without_rounded_slopes(equations, written, written, [], unknowns)
    assert not ca.depends_on(found[0], unknowns[0].symbol)
    assert ca.depends_on(found[0], unknowns[1].symbol) and ca.depends_on(found[1], unknowns[0].symbol)
