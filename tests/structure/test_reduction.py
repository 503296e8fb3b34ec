"""Index reduction: counts, states, hidden constraints, and reduced systems that say the same as the original."""

from __future__ import annotations

import casadi as ca
import numpy as np
import pytest
from zoo.mechanics import DisguisedIndex, Pendulum, RedundantArm, StateDependentDependence

import grisaille as gr
from grisaille import der
from grisaille.model import flatten
from grisaille.structure import reduce_model, structure_of


def reduced(model: gr.Model):
    return reduce_model(flatten(model))


def test_pendulum_of_the_textbook() -> None:
    structure = reduced(Pendulum())
    assert structure.index == 3
    assert structure.degrees_of_freedom == 2
    assert structure.system.state_names == ("x", "y", "vx", "vy")
    assert structure.system.nz == 0, "one linear block, torn at the tension and solved in formulas"
    assert structure.system.constraint_levels == (0, 1)


def test_pendulum_accelerations_satisfy_the_differentiated_constraint() -> None:
    system = reduced(Pendulum()).system
    f = ca.Function("f", [system.t, system.x, system.z, system.u, system.p], [system.rhs])
    x, y, vx, vy = 3.0, -np.sqrt(6.25**2 - 9.0), 0.4, 0.0
    vy = -x * vx / y
    p = [dict(m=0.3, g=9.81, L=6.25, k=5.0)[n] for n in system.parameter_names]
    rate = np.array(f(0.0, [x, y, vx, vy], [], [0.2, 0.0], p)).ravel()
    assert np.allclose(rate[:2], [vx, vy])
    assert abs(x * rate[2] + y * rate[3] + vx**2 + vy**2) < 1e-12


def test_second_order_derivatives_are_allowed() -> None:
    class Oscillator(gr.Model):
        x = gr.Variable(1.0)
        equations = [der(x, 2) == -x]

    structure = reduced(Oscillator())
    assert structure.index == 0
    assert structure.system.state_names == ("x", "der(x)")


def test_derivative_of_a_formula_is_expanded() -> None:
    class Product(gr.Model):
        a, b = gr.Variable(1.0), gr.Variable(2.0)
        equations = [der(a * b) == 1, der(a) == b]

    assert reduced(Product()).index == 0


@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_index_of_chains(order: int) -> None:
    """x0 is prescribed by a function of time; x_k is its k-th derivative."""

    def equations(self):
        x = [getattr(self, f"x{k}") for k in range(order)]
        yield x[0] == gr.sin(gr.time)
        for k in range(order - 1):
            yield der(x[k]) == x[k + 1]

    Chain = type("Chain", (gr.Model,), {**{f"x{k}": gr.Variable() for k in range(order)}, "equations": equations})
    structure = reduced(Chain())
    assert structure.index == order
    assert structure.degrees_of_freedom == 0
    system = structure.system
    g = ca.Function("g", [system.t, system.x, system.z, system.u, system.p], [system.observed])
    found = np.array(g(0.7, [], [], [], [])).ravel()
    exact = [np.sin(0.7), np.cos(0.7), -np.sin(0.7), -np.cos(0.7)][:order]
    values = dict(zip(system.observed_names, found, strict=True))
    assert np.allclose([values[f"x{k}"] for k in range(order)], exact, atol=1e-14)


def test_prescribed_motion_needs_no_states_beyond_its_constraints() -> None:
    structure = reduced(RedundantArm())
    assert structure.index == 3
    assert structure.degrees_of_freedom == 0


def test_cancelling_derivatives_are_found() -> None:
    structure = reduced(DisguisedIndex())
    assert structure.repairs == 1
    assert structure.index == 1
    assert structure.degrees_of_freedom == 1


def test_cancelling_derivatives_with_state_dependent_factors() -> None:
    structure = reduced(StateDependentDependence())
    assert structure.repairs == 1
    assert structure.degrees_of_freedom == 1


def test_rigid_connection_leaves_one_coordinate() -> None:
    class Gear(gr.Model):
        n = gr.Parameter(3.0)
        a, b, wa, wb, ta, tb = (gr.Variable() for _ in range(6))
        equations = [
            der(a) == wa, der(b) == wb, der(wa) == 1 - ta, 2 * der(wb) == tb, a == n * b, tb == n * ta,
        ]  # fmt: skip

    structure = reduced(Gear())
    assert structure.index == 3
    assert len(structure.system.state_names) == structure.degrees_of_freedom == 2
    assert structure.system.nc == 0


def test_large_linear_blocks_stay_implicit() -> None:
    """Six coupled equations without a numeric coefficient: pivoted elimination in every step, nothing torn."""

    def equations(self):
        for i in range(6):
            yield sum(gr.cos(self.s * (i + 1) * (j + 1)) * self.v[j] for j in range(6)) == 1 + i
        yield der(self.s) == self.v[0]

    Coupled = type("Coupled", (gr.Model,), {"s": gr.Variable(0.3), "v": gr.Variable(size=6), "equations": equations})
    structure = reduced(Coupled())
    assert structure.system.nz == 6
    assert [b.kind for b in structure.blocks if len(b.unknowns) > 1] == ["implicit"]


def test_tearing_avoids_pivots_that_are_refused() -> None:
    flat = flatten(Pendulum())
    torn = reduce_model(flat)
    again = reduce_model(flat, frozenset(torn.system.pivot_texts))
    assert len(torn.system.pivot_texts) == 2 and not again.system.pivot_texts


def test_quantities_with_derivatives_are_determined() -> None:
    class Fall(gr.Model):
        s = gr.Variable(0.0)
        v = gr.Variable(0.0)
        power = der(v) * v
        equations = [der(s) == v, der(v) == -9.81]

    system = reduced(Fall()).system
    g = ca.Function("g", [system.t, system.x, system.z, system.u, system.p], [system.observed])
    values = dict(zip(system.observed_names, np.array(g(0, [0, 2.0], [], [], [])).ravel(), strict=True))
    assert values["power"] == pytest.approx(-19.62)


def test_index_is_found_once_for_models_that_differ_in_values() -> None:
    """With merged variables it takes a second index reduction, which must not be repeated in every run."""

    class Merged(gr.Model):
        k = gr.Parameter(1.0)
        x, y, z = gr.Variable(1.0), gr.Variable(), gr.Variable()
        equations = [der(x) == -k * y, y == z, z == x]

    first, second = structure_of(Merged()), structure_of(Merged(k=2.0))
    assert first.written_index is second.written_index
    assert first.index == 1 and first.offsets.index == 0
