"""Rotational mechanics about one axis.

A ``Shaft`` has the absolute angle phi and the torque tau that acts on the component there, positive about the axis. Two
connected shafts turn together, and the torques on all components sum to zero. A component between a and b has the twist
phi_rel = b.phi − a.phi and transmits tau = b.tau = −a.tau: a spring twisted forward at b has a positive tau. A
``Torque`` with positive u accelerates what it is connected to. An unconnected shaft is free: its torque is zero.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from grisaille.components.electrical import OnePort
from grisaille.components.friction import lugre
from grisaille.components.translational import Flange
from grisaille.model.classes import Model
from grisaille.model.connectors import Connector, Flow, Potential
from grisaille.model.declarations import Input, Parameter, Variable
from grisaille.model.functions import der

Equations = Iterator[Any]


class Shaft(Connector):
    """A place that turns about the axis."""

    phi = Potential("rad", "angle")
    tau = Flow("N.m", "torque that acts on the component")


class Inertia(Model):
    """J dw/dt = shaft.tau with w = dphi/dt, phi = shaft.phi."""

    shaft = Shaft()
    J = Parameter(unit="kg.m2", description="moment of inertia")
    phi = Variable(unit="rad", description="angle")
    w = Variable(unit="rad/s", description="angular velocity")

    def equations(self) -> Equations:
        yield self.phi == self.shaft.phi
        yield der(self.phi) == self.w
        yield self.J * der(self.w) == self.shaft.tau


class Fixed(Model):
    """A clamped end: shaft.phi = phi0."""

    shaft = Shaft()
    phi0 = Parameter(0.0, "rad", "angle")

    def equations(self) -> Equations:
        yield self.shaft.phi == self.phi0


class Compliant(Model):
    """Two shafts, no inertia between: phi_rel = b.phi − a.phi, tau = b.tau = −a.tau. The base of what follows."""

    a, b = Shaft(), Shaft()
    phi_rel = Variable(unit="rad", description="twist, b.phi - a.phi")
    tau = Variable(unit="N.m", description="torque transmitted from b to a")

    def equations(self) -> Equations:
        yield self.phi_rel == self.b.phi - self.a.phi
        yield self.tau == self.b.tau
        yield self.a.tau + self.b.tau == 0


class Spring(Compliant):
    """tau = c (phi_rel − phi0)."""

    c = Parameter(unit="N.m/rad", description="stiffness")
    phi0 = Parameter(0.0, "rad", "twist at rest")

    def equations(self) -> Equations:
        yield from super().equations()
        yield self.tau == self.c * (self.phi_rel - self.phi0)


class HardeningSpring(Compliant):
    """tau = c x + c3 x³ with x = phi_rel − phi0; a negative c3 softens."""

    c = Parameter(unit="N.m/rad", description="stiffness at rest")
    c3 = Parameter(unit="N.m/rad3", description="cubic stiffness")
    phi0 = Parameter(0.0, "rad", "twist at rest")

    def equations(self) -> Equations:
        yield from super().equations()
        x = self.phi_rel - self.phi0
        yield self.tau == self.c * x + self.c3 * x**3


class Dissipative(Compliant):
    """A compliant component that knows its velocity w_rel = d(b.phi − a.phi)/dt. The base of what follows."""

    w_rel = Variable(unit="rad/s", description="angular velocity of b against a")

    def equations(self) -> Equations:
        yield from super().equations()
        # not der(self.phi_rel): absolute coordinates stay the states, whatever the order of declaration
        yield self.w_rel == der(self.b.phi - self.a.phi)


class Damper(Dissipative):
    """tau = d w_rel."""

    d = Parameter(unit="N.m.s/rad", description="damping")

    def equations(self) -> Equations:
        yield from super().equations()
        yield self.tau == self.d * self.w_rel


class SpringDamper(Dissipative):
    """tau = c (phi_rel − phi0) + d w_rel."""

    c = Parameter(unit="N.m/rad", description="stiffness")
    d = Parameter(unit="N.m.s/rad", description="damping")
    phi0 = Parameter(0.0, "rad", "twist at rest")

    def equations(self) -> Equations:
        yield from super().equations()
        yield self.tau == self.c * (self.phi_rel - self.phi0) + self.d * self.w_rel


class LuGreFriction(Dissipative):
    """Dynamic friction between a and b, as in a bearing, by the twist z of elastic bristles; see ``friction.py``."""

    sigma0 = Parameter(unit="N.m/rad", description="stiffness of the bristles")
    sigma1 = Parameter(unit="N.m.s/rad", description="damping of the bristles")
    b_viscous = Parameter(0.0, "N.m.s/rad", "viscous friction")
    tau_C = Parameter(unit="N.m", description="sliding (Coulomb) friction")
    tau_S = Parameter(unit="N.m", description="static friction, the torque of breaking away")
    w_S = Parameter(unit="rad/s", description="Stribeck velocity")
    z = Variable(unit="rad", description="twist of the bristles", nominal=1e-5)

    def equations(self) -> Equations:
        yield from super().equations()
        rate, torque = lugre(
            self.w_rel, self.z, self.sigma0, self.sigma1, self.b_viscous, self.tau_C, self.tau_S, self.w_S
        )
        yield der(self.z) == rate
        yield self.tau == torque


class Gear(Model):
    """Ideal gear in a fixed housing: a.phi = ratio · b.phi, ratio · a.tau + b.tau = 0."""

    a, b = Shaft(), Shaft()
    ratio = Parameter(description="turns of a for one turn of b")

    def equations(self) -> Equations:
        yield self.a.phi == self.ratio * self.b.phi
        yield self.ratio * self.a.tau + self.b.tau == 0


class Torque(Model):
    """shaft.tau = −u: the torque u acts on what is connected; its reaction goes to the housing."""

    shaft = Shaft()
    u = Input("N.m", "torque on what is connected")

    def equations(self) -> Equations:
        yield self.shaft.tau == -self.u


class Position(Model):
    """shaft.phi = u. Where it drives an inertia, u is differentiated twice and must be given smoothly enough."""

    shaft = Shaft()
    u = Input("rad", "angle")

    def equations(self) -> Equations:
        yield self.shaft.phi == self.u


class Speed(Model):
    """dphi/dt = u with phi = shaft.phi. Where it drives an inertia, u is differentiated once."""

    shaft = Shaft()
    u = Input("rad/s", "angular velocity")
    phi = Variable(unit="rad", description="angle")

    def equations(self) -> Equations:
        yield self.phi == self.shaft.phi
        yield der(self.phi) == self.u


class RackAndPinion(Model):
    """A pinion of radius r rolls on a rack: flange.s = r · shaft.phi, shaft.tau + r · flange.f = 0."""

    shaft, flange = Shaft(), Flange()
    r = Parameter(unit="m", description="radius of the pinion")

    def equations(self) -> Equations:
        yield self.flange.s == self.r * self.shaft.phi
        yield self.shaft.tau + self.r * self.flange.f == 0


class MotorConstant(OnePort):
    """The ideal part of a direct-current motor: v = k dphi/dt, shaft.tau = −k i.

    Add a ``Resistor`` and an ``Inductor`` for the winding and an ``Inertia`` for the rotor.
    """

    shaft = Shaft()
    k = Parameter(unit="N.m/A", description="torque per current, and voltage per angular velocity")
    w = Variable(unit="rad/s", description="angular velocity")

    def equations(self) -> Equations:
        yield from super().equations()
        yield self.w == der(self.shaft.phi)
        yield self.v == self.k * self.w
        yield self.shaft.tau == -self.k * self.i
