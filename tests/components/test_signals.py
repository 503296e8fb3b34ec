"""Blocks, chains and loops with known answers."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from components.running import largest_error, run
from scipy.linalg import expm

import grisaille as gr
from grisaille.components.signals import (
    PID,
    Constant,
    FirstOrder,
    Gain,
    Integrator,
    Limiter,
    Product,
    Ramp,
    SecondOrder,
    Sine,
    SmoothLimiter,
    Step,
    Sum,
    Table,
    Trapezoid,
)
from grisaille.errors import ModelError


def driven(block: gr.Model, u: float) -> float:
    """The output of a block without states for a constant input."""
    return float(run(block, [0.0, 1.0], inputs={"u": u})["y"][0])


def test_chain_of_blocks() -> None:
    class Chain(gr.Model):
        step, gain, lag, integrator = Step(amplitude=2.0), Gain(k=3.0), FirstOrder(T=0.5), Integrator()
        equations = [
            gr.connect(step.y, gain.u),
            gr.connect(gain.y, lag.u),
            gr.connect(lag.y, integrator.u),
        ]

    times = np.linspace(0, 3, 16)
    result = run(Chain(), times)
    assert largest_error(result["lag.y"], 6 * (1 - np.exp(-times / 0.5))) < 1e-9
    assert largest_error(result["integrator.y"], 6 * (times - 0.5 * (1 - np.exp(-times / 0.5)))) < 1e-9


def test_one_signal_drives_many_inputs() -> None:
    class Fan(gr.Model):
        sine, twice, thrice, product = Sine(frequency=0.5), Gain(k=2.0), Gain(k=3.0), Product()
        equations = [
            gr.connect(sine.y, twice.u, thrice.u),
            gr.connect(twice.y, product.u1),
            gr.connect(thrice.y, product.u2),
        ]

    times = np.linspace(0, 2, 9)
    np.testing.assert_allclose(run(Fan(), times)["product.y"], 6 * np.sin(np.pi * times) ** 2, atol=1e-12)


@pytest.mark.parametrize("damping", [0.2, 1.0, 2.0])
def test_second_order_step_response(damping: float) -> None:
    class Response(gr.Model):
        step, lag = Step(), SecondOrder(w=3.0, D=damping, k=2.0)
        equations = [gr.connect(step.y, lag.u)]

    A = np.array([[0.0, 1.0, 0.0], [-9.0, -6.0 * damping, 18.0], [0.0, 0.0, 0.0]])
    times = np.linspace(0, 4, 21)
    exact = [(expm(A * t) @ [0.0, 0.0, 1.0])[0] for t in times]
    assert largest_error(run(Response(), times)["lag.y"], exact) < 1e-8


def test_control_loop_equals_the_matrix_exponential() -> None:
    class Loop(gr.Model):
        reference, compare = Constant(k=1.0), Sum((1, -1))
        control, plant = PID(k=2.0, T_I=1.5, T_D=0.3), FirstOrder(T=2.0)
        equations = [
            gr.connect(reference.y, compare.u[0]),
            gr.connect(plant.y, compare.u[1]),
            gr.connect(compare.y, control.u),
            gr.connect(control.y, plant.u),
        ]

    # states: plant, integral, derivative filter, 1; e = 1 − plant; control = 2 (e + x + 10 (e − x_d))
    e = np.array([-1.0, 0.0, 0.0, 1.0])
    rows = np.eye(4)
    control = 2 * (e + rows[1] + 10 * (e - rows[2]))
    A = np.array([(control - rows[0]) / 2.0, e / 1.5, 10 * (e - rows[2]) / 0.3, np.zeros(4)])
    times = np.linspace(0, 5, 26)
    exact = np.array([expm(A * t) @ [0.0, 0.0, 0.0, 1.0] for t in times])
    result = run(Loop(), times)
    assert largest_error(result["plant.y"], exact[:, 0]) < 1e-8
    assert largest_error(result["control.y"], exact @ control) < 1e-8


def test_loop_without_states_is_solved() -> None:
    class Loop(gr.Model):
        sine, compare, gain = Sine(frequency=1.0), Sum((1, -1)), Gain(k=9.0)
        equations = [
            gr.connect(sine.y, compare.u[0]),
            gr.connect(gain.y, compare.u[1]),
            gr.connect(compare.y, gain.u),
        ]

    times = np.linspace(0, 1, 9)
    np.testing.assert_allclose(run(Loop(), times)["gain.y"], 0.9 * np.sin(2 * np.pi * times), atol=1e-12)


@pytest.mark.parametrize(("u", "y"), [(-5.0, -1.0), (-0.3, -0.3), (1.5, 1.5), (7.0, 2.0)])
def test_limiter(u: float, y: float) -> None:
    assert driven(Limiter(high=2.0), u) == pytest.approx(y)


@pytest.mark.parametrize("u", [-50.0, -1.0, -0.3, 0.0, 1.4, 2.0, 50.0])
def test_smooth_limiter_is_near_the_hard_one(u: float) -> None:
    y = driven(SmoothLimiter(high=2.0, width=0.1), u)
    assert -1.0 < y < 2.0
    assert abs(y - np.clip(u, -1.0, 2.0)) <= 0.05


def test_table_interpolates_and_holds() -> None:
    block = Table([0.0, 1.0, 3.0], [0.0, 2.0, -2.0])
    assert [driven(block, u) for u in (-1.0, 0.5, 2.0, 9.0)] == pytest.approx([0.0, 1.0, 0.0, -2.0])
    extended = Table([0.0, 1.0, 3.0], [0.0, 2.0, -2.0], outside="extend")
    assert [driven(extended, u) for u in (-1.0, 4.0)] == pytest.approx([-2.0, -4.0])
    xs = np.linspace(0, 2, 21)
    assert driven(Table(xs, xs**3, kind="cubic"), 1.234) == pytest.approx(1.234**3)


def test_sources() -> None:
    class Sources(gr.Model):
        constant, ramp = Constant(k=-4.0), Ramp(amplitude=6.0, duration=3.0, delay=1.0, offset=1.0)
        pulses = Trapezoid(rise=0.5, width=1.0, fall=0.5, period=3.0)

    times = np.array([0.0, 0.25, 1.0, 1.75, 2.5, 3.25, 9.0])
    result = run(Sources(), times)
    np.testing.assert_allclose(result["constant.y"], -4.0)
    np.testing.assert_allclose(result["ramp.y"], 1 + 6 * np.clip((times - 1) / 3, 0, 1), atol=1e-12)
    np.testing.assert_allclose(result["pulses.y"], [0.0, 0.5, 1.0, 0.5, 0.0, 0.5, 0.0], atol=1e-12)


def test_blocks_made_by_functions_are_ordinary_models() -> None:
    block = Sum((1.0, -2.0, 0.5))
    assert pickle.loads(pickle.dumps(block)) == block
    result = run(block.replace({"k[1]": 4.0}), [0.0, 1.0], inputs={"u[0]": 1.0, "u[1]": 1.0, "u[2]": 2.0})
    assert float(result["y"][0]) == pytest.approx(6.0)
    with pytest.raises(ModelError, match="at least one gain"):
        Sum(())
