"""Equations that are solved one after the other must not make rounding grow."""

from __future__ import annotations

import casadi as ca
import numpy as np
import pytest

import grisaille as gr
from grisaille import der
from grisaille.structure import MAX_FACTORS, Elimination, eliminate, structure_of


def chain(length: int, factor: float) -> Elimination:
    """x_{k+1} = factor x_k − x_{k−1}, closed by the last two: one unknown torn, others grow from one to the next."""
    rows = {k: {k, k + 1, k + 2} for k in range(length)} | {length: {0, 1}, length + 1: {length, length + 1}}
    values = {(k, k): 1.0 for k in range(length)} | {(k, k + 1): -factor for k in range(length)}
    values |= {(k, k + 2): 1.0 for k in range(length)}
    values |= {(length, 0): 1.0, (length, 1): -0.5, (length + 1, length): 1.0, (length + 1, length + 1): 0.5}
    nominal = dict.fromkeys(range(length + 2), 1.0)
    return Elimination(rows, rows, tuple(values), ca.SX(ca.DM(list(values.values()))), ca.SX(0, 1), nominal)


@pytest.mark.parametrize(("factor", "grows"), [(1.0, False), (3.0, True)])
def test_recursions_that_grow_are_interrupted(factor: float, grows: bool) -> None:
    block = chain(30, factor)
    refused, _ = block.refused_pivots(np.zeros(0))
    assert bool(refused) is grows


def test_factors_are_those_of_the_matrix() -> None:
    """W = −T⁻¹ C of a small triangular part, and the pivot that makes a row of it large."""
    rows = {0: {0, 1}, 1: {1, 2}, 2: {0, 2}}
    entries = {(0, 0): 1.0, (0, 1): -2.0, (1, 1): 4.0, (1, 2): 1.0, (2, 0): 1.0, (2, 2): 1.0}
    factors, growing = eliminate(rows, [(0, 1), (1, 2)], [0], entries)
    assert factors == {0: {0: 1.0}, 1: {0: 0.5}, 2: {0: -2.0}} and not growing
    entries[1, 2] = 1.0 / MAX_FACTORS
    factors, growing = eliminate(rows, [(0, 1), (1, 2)], [0], entries)
    assert growing == {(1, 2)} and factors[2] == {2: 1.0}


class Grid(gr.Model):
    """Four by four nodes, one of which stores."""

    G = gr.Parameter(np.ones(24), size=24)
    v, i = gr.Variable(size=16), gr.Variable(size=24)
    c = gr.Variable(start=0.0)

    def equations(self):  # type: ignore[no-untyped-def]
        edges = [(4 * a + b, 4 * a + b + 1) for a in range(4) for b in range(3)]
        edges += [(4 * a + b, 4 * a + b + 4) for a in range(3) for b in range(4)]
        inflow = [1.0 if k == 0 else -self.v[5] if k == 5 else 0.0 for k in range(16)]
        for k, (a, b) in enumerate(edges):
            yield self.i[k] == self.G[k] * (self.v[a] - self.v[b])
            inflow[a], inflow[b] = inflow[a] - self.i[k], inflow[b] + self.i[k]
        yield self.v[15] == self.c
        for k in range(16):
            yield der(self.c) == inflow[k] if k == 15 else inflow[k] == 0


def test_values_of_parameters_decide_what_is_torn() -> None:
    model = Grid()
    even, spread = np.ones(24), 10.0 ** np.random.default_rng(2).uniform(-5, 5, 24)
    plain = structure_of(model, even)
    assert structure_of(model, 2.0 * even) is plain, "nothing grows where all are alike"
    other = structure_of(model, spread)
    assert other.system.nz > plain.system.nz


def test_a_run_does_not_depend_on_units_of_its_nets() -> None:
    """Currents that cancel at every node, in a net of ten powers of ten: the balance of all of them is met."""
    spread = 10.0 ** np.random.default_rng(2).uniform(-5, 5, 24)
    run = gr.simulate(Grid(), [0.0, 0.5, 1.0], parameters={f"G[{k}]": g for k, g in enumerate(spread)}, rtol=1e-8)
    assert run.attrs["steps"] < 200
    rate = (run["c"][2] - run["c"][1]).item() / 0.5
    assert abs(rate - (1.0 - 0.5 * (run["v[5]"][1] + run["v[5]"][2]).item())) < 0.05


def test_nodes_that_are_tied_by_little_are_tied() -> None:
    """Ten powers of ten less to others than to each other: no constraint between them, no start that gives way."""

    class Tied(gr.Model):
        a, b, c = gr.Variable(start=0.0), gr.Variable(), gr.Variable()
        equations = [
            der(a) == 1e-5 * (b - a) - a,
            1e5 * (c - b) == 1e-5 * (b - a),
            1e5 * (c - b) == 1.0 - 1e-5 * c,
        ]  # fmt: skip

    model = Tied()
    assert structure_of(model).repairs == 0
    run = gr.simulate(model, [0.0, 1.0], rtol=1e-8)
    # 1e-5 (b − a) = 1 − 1e-5 c, b and c alike but for 1e-10: b = (a + 1e5)/2; a rounded b leaves 1e-6 of the currents
    a = run["a"].values
    assert a[0] == 0.0
    np.testing.assert_allclose(run["b"].values, 0.5 * (a + 1e5), rtol=1e-6)
