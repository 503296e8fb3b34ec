"""Drive trains with known answers."""

from __future__ import annotations

import numpy as np
import pytest
from components.running import largest_error, run
from scipy.linalg import expm

import grisaille as gr
from grisaille.components import translational
from grisaille.components.electrical import ConstantVoltage, Ground, Inductor, Resistor
from grisaille.components.rotational import (
    Damper,
    Fixed,
    Gear,
    HardeningSpring,
    Inertia,
    LuGreFriction,
    MotorConstant,
    Position,
    RackAndPinion,
    Speed,
    Spring,
    SpringDamper,
    Torque,
)

RATIO, MOTOR, LOAD, END = 5.0, 0.02, 0.8, 0.3


class DriveTrain(gr.Model):
    """Motor, gear, load, flexible shaft, end: two inertias that a gear makes one, and a third on a spring."""

    motor, gear = Inertia(J=MOTOR), Gear(ratio=RATIO)
    load, flexible, end = Inertia(J=LOAD), SpringDamper(c=60.0, d=0.7), Inertia(J=END)
    drive = Torque()
    equations = [
        gr.connect(drive.shaft, motor.shaft, gear.a),
        gr.connect(gear.b, load.shaft, flexible.a),
        gr.connect(flexible.b, end.shaft),
    ]


def test_drive_train_equals_the_matrix_exponential() -> None:
    times = np.linspace(0, 2, 21)
    result = run(DriveTrain(start={"load.phi": 0.4, "end.w": 3.0}), times, inputs={"drive.u": 0.5})
    J = np.array([LOAD + RATIO**2 * MOTOR, END])
    L = np.array([[1.0, -1.0], [-1.0, 1.0]])
    A = np.zeros((5, 5))  # angles, velocities, and 1 for the constant torque
    A[:2, 2:4] = np.eye(2)
    A[2:4, :2], A[2:4, 2:4] = -60.0 * L / J[:, None], -0.7 * L / J[:, None]
    A[2, 4] = RATIO * 0.5 / J[0]
    exact = np.array([expm(A * t) @ [0.4, 0.0, 0.0, 3.0, 1.0] for t in times])
    assert largest_error(result["load.phi"], exact[:, 0]) < 1e-8
    assert largest_error(result["end.phi"], exact[:, 1]) < 1e-8
    assert largest_error(result["motor.w"], RATIO * exact[:, 2]) < 1e-8


def test_gear_passes_power() -> None:
    result = run(DriveTrain(), np.linspace(0, 1, 6), inputs={"drive.u": 0.5})
    power = result["gear.a.tau"] * result["motor.w"] + result["gear.b.tau"] * result["load.w"]
    np.testing.assert_allclose(power, 0.0, atol=1e-10)


def test_torsion_pendulum() -> None:
    class Pendulum(gr.Model):
        clamp, wire, damper, bob = Fixed(phi0=0.1), Spring(c=8.0), Damper(d=0.2), Inertia(J=0.5, start={"phi": 1.1})
        equations = [
            gr.connect(clamp.shaft, wire.a, damper.a),
            gr.connect(wire.b, damper.b, bob.shaft),
        ]

    times = np.linspace(0, 5, 26)
    a, w = 0.2, np.sqrt(16.0 - 0.2**2)
    exact = 0.1 + np.exp(-a * times) * (np.cos(w * times) + a / w * np.sin(w * times))
    assert largest_error(run(Pendulum(), times)["bob.phi"], exact) < 1e-8


def test_hardening_spring_keeps_energy() -> None:
    class Wound(gr.Model):
        clamp, spring, wheel = Fixed(), HardeningSpring(c=2.0, c3=5.0, phi0=0.2), Inertia(J=0.1, start={"phi": 1.0})
        equations = [gr.connect(clamp.shaft, spring.a), gr.connect(spring.b, wheel.shaft)]

    result = run(Wound(), np.linspace(0, 3, 16))
    x = result["wheel.phi"] - 0.2
    energy = 0.05 * result["wheel.w"] ** 2 + x**2 + 1.25 * x**4
    np.testing.assert_allclose(energy, energy[0], rtol=1e-8)


@pytest.mark.parametrize("w", [0.02, -0.3])
def test_bearing_friction_slides_on_the_stribeck_curve(w: float) -> None:
    class Turning(gr.Model):
        housing, drive = Fixed(), Speed(u=gr.Input("rad/s"))
        bearing = LuGreFriction(sigma0=2e3, sigma1=3.0, b_viscous=0.1, tau_C=0.2, tau_S=0.35, w_S=0.05)
        equations = [gr.connect(housing.shaft, bearing.a), gr.connect(bearing.b, drive.shaft)]

    final = run(Turning(), [0.0, 2.0], inputs={"drive.u": w}, hold="foh")["bearing.tau"][-1]
    assert float(final) == pytest.approx(np.sign(w) * (0.2 + 0.15 * np.exp(-((w / 0.05) ** 2))) + 0.1 * w, rel=1e-8)


def test_rack_and_pinion_add_inertia_to_mass() -> None:
    class Rack(gr.Model):
        drive, wheel, rack, cart = Torque(u=0.6), Inertia(J=0.02), RackAndPinion(r=0.05), translational.Mass(m=4.0)
        equations = [gr.connect(drive.shaft, wheel.shaft, rack.shaft), gr.connect(rack.flange, cart.flange)]

    times = np.linspace(0, 1, 5)
    acceleration = (0.6 / 0.05) / (4.0 + 0.02 / 0.05**2)
    assert largest_error(run(Rack(), times)["cart.s"], acceleration * times**2 / 2) < 1e-10


def test_prescribed_angle_twists_a_spring() -> None:
    class Twisted(gr.Model):
        drive, spring, clamp = Position(u=0.3 * gr.sin(2 * gr.time)), Spring(c=10.0), Fixed()
        equations = [gr.connect(drive.shaft, spring.b), gr.connect(spring.a, clamp.shaft)]

    times = np.linspace(0, 3, 7)
    result = run(Twisted(), times)
    assert largest_error(result["spring.tau"], 3.0 * np.sin(2 * times)) < 1e-12
    assert largest_error(result["drive.shaft.tau"], -3.0 * np.sin(2 * times)) < 1e-12


def test_motor_runs_up_as_the_matrix_exponential() -> None:
    class Motor(gr.Model):
        supply, r, coil, ground = ConstantVoltage(V=24.0), Resistor(R=1.5), Inductor(L=0.01), Ground()
        motor, rotor, bearing, housing = MotorConstant(k=0.2), Inertia(J=1e-3), Damper(d=1e-3), Fixed()
        equations = [
            gr.connect(supply.p, r.p),
            gr.connect(r.n, coil.p),
            gr.connect(coil.n, motor.p),
            gr.connect(motor.n, supply.n, ground.p),
            gr.connect(motor.shaft, rotor.shaft, bearing.b),
            gr.connect(bearing.a, housing.shaft),
        ]

    times = np.linspace(0, 0.3, 16)
    A = np.array([[-150.0, -20.0, 2400.0], [200.0, -1.0, 0.0], [0.0, 0.0, 0.0]])
    exact = np.array([expm(A * t) @ [0.0, 0.0, 1.0] for t in times])
    result = run(Motor(), times)
    assert largest_error(result["coil.i"], exact[:, 0]) < 1e-8
    assert largest_error(result["rotor.w"], exact[:, 1]) < 1e-8
