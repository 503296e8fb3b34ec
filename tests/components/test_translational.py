"""Mechanisms along one axis with known answers."""

from __future__ import annotations

import numpy as np
import pytest
from components.running import largest_error, run
from scipy.integrate import solve_ivp
from scipy.linalg import expm
from scipy.special import ellipj

import grisaille as gr
from grisaille.components.signals import Constant, Gain
from grisaille.components.translational import (
    Damper,
    Fixed,
    Force,
    HardeningSpring,
    Lever,
    LuGreFriction,
    Mass,
    Position,
    Speed,
    Spring,
    SpringDamper,
)


class Oscillator(gr.Model):
    """Mass, spring and damper against a wall, pushed by a force."""

    wall, mass, push = Fixed(), Mass(m=2.0), Force()
    spring, damper = Spring(c=50.0, s0=0.3), Damper(d=4.0)
    equations = [
        gr.connect(wall.flange, spring.a, damper.a),
        gr.connect(spring.b, damper.b, mass.flange, push.flange),
    ]


def test_oscillator_swings_as_the_closed_form_says() -> None:
    times = np.linspace(0, 4, 41)
    result = run(Oscillator(mass=Mass(m=2.0, start={"s": 0.8, "v": -1.0})), times, inputs={"push.u": 10.0})
    a, w0 = 4.0 / (2 * 2.0), np.sqrt(50.0 / 2.0)
    wd, rest = np.sqrt(w0**2 - a**2), 0.3 + 10.0 / 50.0
    x0, v0 = 0.8 - rest, -1.0
    exact = rest + np.exp(-a * times) * (x0 * np.cos(wd * times) + (v0 + a * x0) / wd * np.sin(wd * times))
    assert largest_error(result["mass.s"], exact) < 1e-8
    np.testing.assert_allclose(result["spring.f"], 50 * (result["mass.s"] - 0.3), atol=1e-12)


def test_forces_at_a_flange_sum_to_zero() -> None:
    result = run(Oscillator(), np.linspace(0, 1, 5), inputs={"push.u": 3.0})
    total = result["mass.flange.f"] + result["spring.f"] + result["damper.f"] + result["push.flange.f"]
    np.testing.assert_allclose(total, 0.0, atol=1e-12)
    np.testing.assert_allclose(result["push.flange.f"], -3.0)


class Chain(gr.Model):
    """Three masses joined by spring-dampers, free in space."""

    masses = gr.copies(Mass(), 3, m=[1.0, 2.0, 0.5])
    links = gr.copies(SpringDamper(), 2, c=[100.0, 40.0], d=[0.5, 0.2], s0=[1.0, 2.0])

    def equations(self):
        for k, link in enumerate(self.links):
            yield gr.connect(self.masses[k].flange, link.a)
            yield gr.connect(link.b, self.masses[k + 1].flange)


def test_chain_of_masses_equals_the_matrix_exponential() -> None:
    times = np.linspace(0, 2, 11)
    begin = {"masses[0].s": 0.0, "masses[1].s": 1.2, "masses[2].s": 2.9}
    result = run(Chain(start=begin), times)
    D = np.array([[-1.0, 1.0, 0.0], [0.0, -1.0, 1.0]])
    M = np.diag(1 / np.array([1.0, 2.0, 0.5]))
    K, B = M @ D.T @ np.diag([100.0, 40.0]) @ D, M @ D.T @ np.diag([0.5, 0.2]) @ D
    A = np.block([[np.zeros((3, 3)), np.eye(3)], [-K, -B]])
    rest = np.array([0.0, 1.0, 3.0, 0.0, 0.0, 0.0])
    exact = [rest + expm(A * t) @ (np.array([0.0, 1.2, 2.9, 0.0, 0.0, 0.0]) - rest) for t in times]
    found = [[float(result[f"masses[{k}].s"][i]) for k in range(3)] for i in range(len(times))]
    assert largest_error(found, np.array(exact)[:, :3]) < 1e-8


def test_hardening_spring_swings_by_an_elliptic_function() -> None:
    """m x'' + c x + c3 x³ = 0 from rest: x = A cn(w t | k²), w² = (c + c3 A²)/m, k² = c3 A²/(2 m w²)."""

    class Duffing(gr.Model):
        wall, spring, mass = Fixed(), HardeningSpring(c=4.0, c3=3.0), Mass(m=0.5, start={"s": 1.2})
        equations = [gr.connect(wall.flange, spring.a), gr.connect(spring.b, mass.flange)]

    times = np.linspace(0, 5, 26)
    w2 = (4.0 + 3.0 * 1.2**2) / 0.5
    exact = 1.2 * ellipj(np.sqrt(w2) * times, 3.0 * 1.2**2 / (2 * 0.5 * w2))[1]
    assert largest_error(run(Duffing(), times)["mass.s"], exact) < 1e-8


class Sliding(gr.Model):
    """A body on a rough surface, pushed to and fro: the numbers of the usual example of bristle friction."""

    m = gr.Parameter(1.0, "kg")
    normal = 9.81 * m
    ground, body, push = Fixed(), Mass(m=m), Force()
    friction = LuGreFriction(
        sigma0=1e5, sigma1=2 * gr.sqrt(1e5 * m), b_viscous=0.4, F_C=0.10 * 9.81 * m, F_S=0.15 * 9.81 * m, v_S=0.01
    )
    equations = [gr.connect(ground.flange, friction.a), gr.connect(friction.b, body.flange, push.flange)]


@pytest.mark.parametrize("amplitude", [0.7, 3.0], ids=["pre-sliding", "sliding"])
def test_bristle_friction_agrees_with_an_independent_solver(amplitude: float) -> None:
    def right_hand_side(t: float, y: np.ndarray) -> list[float]:
        _, v, z = y
        load = 0.981 + 0.4905 * np.exp(-((v / 0.01) ** 2))
        rate = v - 1e5 * abs(v) / load * z
        return [v, amplitude * np.sin(4 * t) - (1e5 * z + 2 * np.sqrt(1e5) * rate + 0.4 * v), rate]

    times = np.linspace(0, 1.0, 6)
    exact = solve_ivp(right_hand_side, (0, 1), [0, 0, 0], "Radau", times, rtol=1e-10, atol=1e-14).y
    options = {"rtol": 1e-8, "atol": 1e-10}
    result = run(Sliding(), times, inputs={"push.u": lambda t: amplitude * np.sin(4 * t)}, **options)
    assert largest_error(result["body.s"], exact[0]) < 1e-5
    assert largest_error(result["friction.z"], exact[2]) < 1e-5


@pytest.mark.parametrize("v", [0.005, 0.05, -0.02])
def test_bristle_friction_slides_on_the_stribeck_curve(v: float) -> None:
    class Dragged(gr.Model):
        ground, drive = Fixed(), Speed()
        friction = LuGreFriction(sigma0=1e4, sigma1=10.0, b_viscous=2.0, F_C=1.0, F_S=1.5, v_S=0.01)
        equations = [gr.connect(ground.flange, friction.a), gr.connect(friction.b, drive.flange)]

    final = run(Dragged(), [0.0, 1.0], inputs={"drive.u": v}, hold="foh")["friction.f"][-1]
    assert float(final) == pytest.approx(np.sign(v) * (1 + 0.5 * np.exp(-((v / 0.01) ** 2))) + 2 * v, rel=1e-8)


def test_lever_exchanges_travel_for_force() -> None:
    class Lifting(gr.Model):
        lever, load, push = Lever(ratio=4.0), Mass(m=8.0), Force(u=6.0)
        equations = [gr.connect(push.flange, lever.a), gr.connect(lever.b, load.flange)]

    times = np.linspace(0, 1, 5)
    result = run(Lifting(), times)
    assert largest_error(result["load.s"], 0.5 * (4 * 6.0 / 8.0) * times**2) < 1e-10
    np.testing.assert_allclose(result["lever.a.s"], 4 * result["load.s"])


def test_prescribed_position_needs_the_inertial_force() -> None:
    class Shaken(gr.Model):
        drive, mass = Position(u=0.1 * gr.sin(7 * gr.time)), Mass(m=3.0)
        equations = [gr.connect(drive.flange, mass.flange)]

    analysis = gr.analyze(Shaken())
    assert analysis.index == 3 and analysis.degrees_of_freedom == 0
    times = np.linspace(0, 2, 9)
    result = run(Shaken(), times)
    assert largest_error(result["mass.flange.f"], -3.0 * 0.1 * 49 * np.sin(7 * times)) < 1e-9


def test_prescribed_speed_integrates_to_the_position() -> None:
    class Driven(gr.Model):
        drive, mass = Speed(u=gr.cos(5 * gr.time)), Mass(m=2.0)
        equations = [gr.connect(drive.flange, mass.flange)]

    times = np.linspace(0, 2, 9)
    result = run(Driven(), times, start={"mass.s": 1.0})
    assert largest_error(result["mass.s"], 1 + np.sin(5 * times) / 5) < 1e-9
    assert largest_error(result["drive.flange.f"], 2 * 5 * np.sin(5 * times)) < 1e-9


def test_signals_drive_forces() -> None:
    class Pushed(gr.Model):
        level, gain, push, mass = Constant(k=2.0), Gain(k=-3.0), Force(), Mass(m=6.0)
        equations = [
            gr.connect(level.y, gain.u),
            gr.connect(gain.y, push.u),
            gr.connect(push.flange, mass.flange),
        ]

    times = np.linspace(0, 2, 5)
    assert largest_error(run(Pushed(), times)["mass.v"], -times) < 1e-12
