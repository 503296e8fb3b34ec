"""A delta robot as a mechanism of three legs and a plate, in Cartesian coordinates: index 3.

Each leg is a driven upper arm that turns about a horizontal axis of the base, and a rod from its elbow to the plate.
The rod is a straight rigid body, so its energy is a form with constant coefficients in the velocities of its ends e, p,

    T = ½ (a |ė|² + 2 b ė·ṗ + d |ṗ|²),   a = M (1 − α)² + J/L²,   b = M α (1 − α) − J/L²,   d = M α² + J/L²,

with its centre at the share α of its length and its inertia J about it; its length is a constraint, |e − p| = L. The
plate does not turn. Each motor holds a reference angle by a servo, and is disturbed by the square of a coloured signal;
the three signals are correlated.

Not every number can be found from motion. A rod whose inertia is α(1 − α) L² M moves like two point masses at its ends,
so M2 is exchanged for M1, J1, J2 and M3 without a trace: it has to be weighed. Radii of base and plate act by their
difference only.

The robot, its lengths and its masses follow R. Bereza, O. Eriksson, M. Abdalmoaty, D. Broman, H. Hjalmarsson,
Stochastic approximation for identification of non-linear differential-algebraic equations with process disturbances
(2022), and its program, which leave out gravity and write the motion in joint angles.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

import grisaille as gr
from grisaille import cos, der, sin

if TYPE_CHECKING:
    from grisaille.model.given import Statement

DOWN = np.array([0.0, 0.0, -1.0])
START = 0.85
"""Angle of the upper arms at first [rad]."""


class Leg(gr.Model):
    """An upper arm with its motor, and the rod from its elbow to the plate."""

    azimuth = gr.Parameter(0.0, "rad", "where the leg stands on the base")
    base = gr.Parameter(0.5, "m", "radius of the base less that of the plate")
    L1 = gr.Parameter(1.5, "m", "upper arm")
    L2 = gr.Parameter(2.0, "m", "rod")
    M1 = gr.Parameter(0.1, "kg", "upper arm")
    centre1 = gr.Parameter(0.75, "m", "of the upper arm, from its axis")
    J1 = gr.Parameter(0.4, "kg m2", "of the upper arm, about its centre")
    M2 = gr.Parameter(0.1, "kg", "rod")
    share = gr.Parameter(0.5, "", "of the rod's length, where its centre is")
    J2 = gr.Parameter(0.4, "kg m2", "of the rod, about its centre")
    friction = gr.Parameter(1.0, "N m s", "of the motor")
    joint_friction = gr.Parameter(1.0, "N m s", "of the rod's joints")
    stiffness = gr.Parameter(60.0, "N m", "of the servo")
    damping = gr.Parameter(3.0, "N m s", "of the servo")
    g = gr.Parameter(9.81, "m/s2")

    angle, rate = gr.Variable(START, "rad", "below the horizontal", fixed=True), gr.Variable(0.0, "rad/s", fixed=True)
    elbow, elbow_velocity = gr.Variable(unit="m", size=3), gr.Variable(unit="m/s", size=3)
    push = gr.Variable(unit="N", size=3, description="of the upper arm on the rod")
    pull = gr.Variable(unit="N", size=3, description="of the plate on the rod")
    thrust = gr.Variable(unit="N/m", description="in the rod, per length")

    reference = gr.Input("rad")
    load = gr.Input("N m", default=0.0)
    plate = gr.Input("m", size=3)
    plate_velocity = gr.Input("m/s", size=3)
    plate_acceleration = gr.Input("m/s2", size=3)

    def equations(self) -> Iterator[Statement]:
        out = np.array([cos(self.azimuth), sin(self.azimuth), 0.0])
        weight = self.M2 * self.g * DOWN
        lever = self.L1 * (-sin(self.angle) * out + cos(self.angle) * DOWN)
        turn = self.J2 / self.L2**2
        a = self.M2 * (1 - self.share) ** 2 + turn
        b = self.M2 * self.share * (1 - self.share) - turn
        d = self.M2 * self.share**2 + turn
        along, drag = self.elbow - self.plate, self.joint_friction / self.L2**2
        rub = drag * (self.elbow_velocity - self.plate_velocity)
        speedup = np.array([der(v) for v in self.elbow_velocity])
        yield der(self.angle) == self.rate
        yield self.elbow == (self.base + self.L1 * cos(self.angle)) * out + self.L1 * sin(self.angle) * DOWN
        yield [der(x) == v for x, v in zip(self.elbow, self.elbow_velocity, strict=True)]
        yield (self.J1 + self.M1 * self.centre1**2) * der(self.rate) == (
            self.stiffness * (self.reference - self.angle)
            - (self.damping + self.friction) * self.rate
            + self.load
            + self.M1 * self.centre1 * self.g * cos(self.angle)
            - self.push @ lever
        )
        yield a * speedup + b * self.plate_acceleration == (
            self.push + (1 - self.share) * weight + self.thrust * along - rub
        )
        yield b * speedup + d * self.plate_acceleration == self.pull + self.share * weight - self.thrust * along + rub
        yield along @ along == self.L2**2


class DeltaRobot(gr.Model):
    """Three legs that carry a plate."""

    base = gr.Parameter(0.5, "m", bounds=(0.1, 2.0))
    L1, L2 = gr.Parameter(1.5, "m", bounds=(0.5, 5.0)), gr.Parameter(2.0, "m", bounds=(0.5, 5.0))
    M1, J1 = gr.Parameter(0.1, "kg", bounds=(0.0, 5.0)), gr.Parameter(0.4, "kg m2", bounds=(0.0, 5.0))
    M2, J2 = gr.Parameter(0.1, "kg"), gr.Parameter(0.4, "kg m2", bounds=(0.0, 5.0))
    M3 = gr.Parameter(0.9, "kg", "plate", bounds=(0.01, 10.0))
    friction = gr.Parameter(1.0, "N m s", bounds=(0.0, 10.0), size=3)
    joint_friction = gr.Parameter(1.0, "N m s", bounds=(0.0, 10.0))
    gain = gr.Parameter(1.0, "", "of the disturbances", bounds=(0.0, 5.0))
    g = gr.Parameter(9.81, "m/s2")

    plate = gr.Variable([0.0, 0.0, -2.46], "m", "its centre, below the base", size=3)
    velocity = gr.Variable(unit="m/s", size=3)
    acceleration = gr.Variable(unit="m/s2", size=3)
    w = gr.Disturbance(
        gr.spectra.resonance(frequency=3.0, damping=0.3),
        scale=3.0, size=3, correlation=[[1, 0.5, 0], [0.5, 1, 0.5], [0, 0.5, 1]],
    )  # fmt: skip
    legs = gr.copies(
        Leg(
            base=base, L1=L1, L2=L2, M1=M1, J1=J1, M2=M2, J2=J2, joint_friction=joint_friction, g=g, plate=plate,
            plate_velocity=velocity, plate_acceleration=acceleration,
        ), 3, azimuth=[0.0, 2 * np.pi / 3, 4 * np.pi / 3], friction=list(friction), load=list((gain * w) ** 2),
    )  # fmt: skip
    x = gr.Output(plate[0], noise=0.002, unit="m")
    y = gr.Output(plate[1], noise=0.002, unit="m")
    z = gr.Output(plate[2], noise=0.002, unit="m")
    q0 = gr.Output(legs[0].angle, noise=0.002, unit="rad")
    q1 = gr.Output(legs[1].angle, noise=0.002, unit="rad")
    q2 = gr.Output(legs[2].angle, noise=0.002, unit="rad")

    def equations(self) -> Iterator[Statement]:
        for k in range(3):
            yield der(self.plate[k]) == self.velocity[k]
            yield der(self.velocity[k]) == self.acceleration[k]
        total = sum(leg.pull for leg in self.legs)
        yield self.M3 * self.acceleration == self.M3 * self.g * DOWN - total
