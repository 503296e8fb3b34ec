"""Large hierarchies of wishes with the entries of their matrices: what full matrices give."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from scipy.sparse import csc_array, csr_array, eye_array, vstack

import grisaille as gr
from grisaille import der
from grisaille.structure import evaluate_parameters, explicit_elimination, structure_of, tear, tearing
from grisaille.structure.singular import is_clearly_regular, is_regular
from grisaille.structure.starts import (
    ConsistentStart,
    Initializer,
    large_hierarchy,
    least_squares,
    problem as start_problem,
    solve_large_levels,
    solve_levels,
)


def chain(random: np.random.Generator, n: int, demands: int, redundant: bool) -> list[tuple[csr_array, np.ndarray]]:
    """Hard rows along a chain of unknowns in any order, wishes in three levels, and closeness."""
    columns = [
        np.unique(np.clip([3 * i, 3 * i + 3, *(3 * i + random.integers(0, 6, 3))], 0, n - 1)) for i in range(n // 3)
    ]
    row = np.repeat(np.arange(n // 3), [c.size for c in columns])
    entries = random.normal(size=row.size)
    hard = csr_array((entries, (row, random.permutation(n)[np.concatenate(columns)])), shape=(n // 3, n))
    if redundant:
        hard = csr_array(vstack([hard, hard[:2] + hard[1:3]]))
    fixed = random.choice(n, demands, replace=False)
    hard = csr_array(vstack([hard, csr_array(eye_array(n))[fixed]]))
    levels = [(hard, random.normal(size=(hard.shape[0], 2)))]
    level = random.integers(0, 3, n)
    level[fixed] = -1
    for k in range(3):
        named = np.flatnonzero(level == k)
        rows = csr_array((random.uniform(0.5, 2.0, named.size), (np.arange(named.size), named)), shape=(named.size, n))
        levels.append((rows, random.normal(size=(named.size, 2))))
    return [*levels, (csr_array(eye_array(n)), random.normal(size=(n, 2)))]


@pytest.mark.parametrize(("demands", "redundant"), [(0, False), (3, False), (0, True)])
def test_large_parts_are_solved_as_small_ones_are(
    demands: int, redundant: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With what rows that depend on each other contradict shared out among them."""
    sparse = []
    once = large_hierarchy._Apart.found.__func__  # type: ignore[attr-defined]
    monkeypatch.setattr(
        large_hierarchy._Apart, "found", classmethod(lambda cls, *a: sparse.append(once(cls, *a)) or sparse[-1])
    )
    random = np.random.default_rng(5)
    for _ in range(12):
        n = int(random.integers(60, 90))
        levels = chain(random, n, demands, redundant)
        expected = solve_levels(((a.toarray(), b) for a, b in levels), n)
        assert np.abs(solve_large_levels(levels, n) - expected).max() < 1e-9 * np.abs(expected).max()
    assert sum(found is not None for found in sparse) >= 10


def test_least_squares_part_by_part() -> None:
    random = np.random.default_rng(2)
    for shape in ((70, 70), (90, 60), (60, 90)):
        full = np.where(random.uniform(size=shape) < 0.1, random.normal(size=shape), 0.0)
        full[np.arange(60), np.arange(60)] = 3.0
        right = random.normal(size=(shape[0], 2))
        expected = np.linalg.lstsq(full, right, rcond=None)[0]
        assert least_squares(csr_array(full), right) == pytest.approx(expected, abs=1e-9)


def test_factors_tell_regular_matrices_and_nothing_of_others() -> None:
    random = np.random.default_rng(2)
    full = (
        np.diag(10.0 ** random.uniform(-9, 9, 80))
        @ (2 * np.eye(80) + np.eye(80, k=1))
        @ np.diag(random.uniform(1, 2, 80))
    )
    assert is_clearly_regular(csc_array(full)) and is_regular(full)
    full[40] = full[41] + full[42]
    assert not is_clearly_regular(csc_array(full)) and not is_regular(full)


def naive(rows: dict[int, set[int]], divisible: dict[int, set[int]]) -> tuple[list[int], list[tuple[int, int]]]:
    left, known, order, torn = dict(rows), set[int](), [], []
    inside = set().union(*rows.values())
    while known < inside:
        ready = next(
            ((i, *e - known) for i, e in left.items() if len(e - known) == 1 and e - known <= divisible[i]), None
        )
        if ready is not None:
            order.append(ready)
            del left[ready[0]]
            known.add(ready[1])
            continue
        uses = Counter(j for e in left.values() for j in e)
        solvable = Counter(j for i in left for j in divisible[i])
        torn.append(min(inside - known, key=lambda j: (solvable[j], -uses[j], j)))
        known.add(torn[-1])
    return torn, order


def test_unknowns_are_torn_in_an_order_that_does_not_depend_on_how_it_is_found() -> None:
    random = np.random.default_rng(1)
    for _ in range(200):
        n = int(random.integers(2, 14))
        rows = {
            int(i): set(random.choice(n, random.integers(1, min(4, n) + 1), replace=False).tolist())
            for i in random.permutation(50)[:n]
        }
        divisible = {i: {j for j in e if random.uniform() < 0.5} for i, e in rows.items()}
        assert tear(rows, divisible) == naive(rows, divisible)


def pipes(side: int) -> gr.Model:
    """A square net of incompressible pipes, index 2."""
    nodes = [(i, j) for i in range(side) for j in range(side)]
    ends = [(a, (a[0] + d, a[1] + 1 - d)) for a in nodes for d in (0, 1) if (a[0] + d, a[1] + 1 - d) in set(nodes)]

    class Net(gr.Model):
        r = gr.Parameter(1.0)
        c = gr.Input(default=0.5)
        q = gr.Variable(size=len(ends))
        inflow = gr.Variable()
        p = gr.Variable(size=len(nodes))

        def equations(self) -> list[gr.Equation]:
            at = {node: k for k, node in enumerate(nodes)}
            into = [-self.c / len(nodes) for _ in nodes]
            into[0] = into[0] + self.inflow
            flows = []
            for k, (a, b) in enumerate(ends):
                q = self.q[k]
                flows.append(der(q) == self.p[at[a]] - self.p[at[b]] - self.r * q * gr.sqrt(q**2 + 0.01))
                into[at[a]], into[at[b]] = into[at[a]] - q, into[at[b]] + q
            return [*flows, *(total == 0 for total in into), self.p[0] == 1.0]

    return Net()


def test_formulas_of_large_networks_stay_short(monkeypatch: pytest.MonkeyPatch) -> None:
    """And the same model with the same start comes out of them, as with flows put into each other at will."""
    times = np.linspace(0.0, 0.5, 4)
    given = {"c": 1.0 + times}
    long = structure_of(pipes(5)).system
    expected = gr.simulate(pipes(5), times, given, hold="spline", rtol=1e-8, atol=1e-10)
    for module in (explicit_elimination, tearing):
        monkeypatch.setattr(module, "MIN_LARGE_SIZE", 10)
        monkeypatch.setattr(module, "MANY_UNKNOWNS", 2)
        monkeypatch.setattr(module, "MAX_UNKNOWNS", 4)

    class Other(type(pipes(5))):  # type: ignore[misc]
        more = gr.Parameter(1.0)

    short = structure_of(Other()).system
    assert long.nc < short.nc and short.nx > long.nx and short.nz > long.nz
    found = gr.simulate(Other(), times, given, hold="spline", rtol=1e-8, atol=1e-10)
    for name in ("q[0]", "q[30]", "p[24]"):
        assert found[name].values == pytest.approx(expected[name].values, abs=1e-6)


def rope(n: int) -> gr.Model:
    """Links of length L, laid out along a slope."""

    class Rope(gr.Model):
        L = gr.Parameter(1.0 / n)
        x = gr.Variable(start=[0.9 * (k + 1) / n for k in range(n)], nominal=1.0 / n, size=n)
        y = gr.Variable(start=[0.4 * (k + 1) / n for k in range(n)], nominal=1.0 / n, size=n)
        v = gr.Variable(start=0.0, size=n)
        w = gr.Variable(start=0.0, size=n)
        F = gr.Variable(size=n)

        def equations(self) -> list[gr.Equation]:
            x, y = ([0.0, *(a[k] for k in range(n))] for a in (self.x, self.y))
            pull = [(self.F[k] * (x[k + 1] - x[k]), self.F[k] * (y[k + 1] - y[k])) for k in range(n)] + [(0.0, 0.0)]
            found = []
            for k in range(n):
                found += [
                    der(self.x[k]) == self.v[k],
                    der(self.y[k]) == self.w[k],
                    der(self.v[k]) == pull[k + 1][0] - pull[k][0],
                    der(self.w[k]) == pull[k + 1][1] - pull[k][1] - 9.81,
                    (x[k + 1] - x[k]) ** 2 + (y[k + 1] - y[k]) ** 2 == self.L**2,
                ]
            return found

    return Rope()


@pytest.mark.parametrize("demands", [{}, {"v[3]": 0.1, "w[10]": 0.2}])
def test_starts_of_ropes_and_their_derivatives(demands: dict[str, float], monkeypatch: pytest.MonkeyPatch) -> None:
    """Too short links move all declared starts: with the entries of all equations as with full matrices, which take
    minutes with demands, and derivatives are those of the starts themselves."""
    structure = structure_of(rope(22))
    values = evaluate_parameters(structure.model).values
    k = list(structure.system.parameter_names).index("L")

    def at(length: float) -> tuple[Initializer, np.ndarray, ConsistentStart]:
        p = values.copy()
        p[k] = length
        initializer = Initializer(structure)
        return initializer, p, initializer.solve(0.0, np.zeros(0), p, demands)

    initializer, p, start = at(1.0 / 22)
    assert start_problem.MIN_LARGE_SIZE <= len(start.x) + len(start.z) and len(start.guesses_missed) >= 44
    found = initializer.sensitivity(0.0, np.zeros(0), p, start, np.eye(len(p))[k : k + 1], demands).sx[0]
    e = 1e-4 / 22
    one, two = ((at(1.0 / 22 + s * e)[2].x - at(1.0 / 22 - s * e)[2].x) / (2 * s * e) for s in (1, 2))
    assert np.abs(found - (4 * one - two) / 3).max() < 1e-6 * np.abs(found).max()
    if demands:
        return
    monkeypatch.setattr(start_problem, "MIN_LARGE_SIZE", 10**9)
    full = at(1.0 / 22)[2]
    assert start.x == pytest.approx(full.x, abs=1e-9) and start.z == pytest.approx(full.z, rel=1e-7)
