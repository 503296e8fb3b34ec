"""Translational mechanics along one axis.

A ``Flange`` has the absolute position s and the force f that acts on the component there, positive along the axis. Two
connected flanges move together, and the forces on all components sum to zero. A two-flange component between a and b
has the length s_rel = b.s − a.s and the tension f = b.f = −a.f: a stretched spring has a positive f. A ``Force`` with
positive u pushes what it is connected to in the positive direction. An unconnected flange is free: its force is zero.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from grisaille.components.friction import lugre
from grisaille.model.classes import Model
from grisaille.model.connectors import Connector, Flow, Potential
from grisaille.model.declarations import Input, Parameter, Variable
from grisaille.model.functions import der

Equations = Iterator[Any]


class Flange(Connector):
    """A place that moves along the axis."""

    s = Potential("m", "position")
    f = Flow("N", "force that acts on the component")


class Mass(Model):
    """m dv/dt = flange.f with v = ds/dt, s = flange.s."""

    flange = Flange()
    m = Parameter(unit="kg", description="mass")
    s = Variable(unit="m", description="position")
    v = Variable(unit="m/s", description="velocity")

    def equations(self) -> Equations:
        yield self.s == self.flange.s
        yield der(self.s) == self.v
        yield self.m * der(self.v) == self.flange.f


class Fixed(Model):
    """A wall: flange.s = s0."""

    flange = Flange()
    s0 = Parameter(0.0, "m", "position")

    def equations(self) -> Equations:
        yield self.flange.s == self.s0


class Compliant(Model):
    """Two flanges, no mass between: s_rel = b.s − a.s, f = b.f = −a.f. The base of what follows."""

    a, b = Flange(), Flange()
    s_rel = Variable(unit="m", description="length, b.s - a.s")
    f = Variable(unit="N", description="tension")

    def equations(self) -> Equations:
        yield self.s_rel == self.b.s - self.a.s
        yield self.f == self.b.f
        yield self.a.f + self.b.f == 0


class Spring(Compliant):
    """f = c (s_rel − s0)."""

    c = Parameter(unit="N/m", description="stiffness")
    s0 = Parameter(0.0, "m", "unstretched length")

    def equations(self) -> Equations:
        yield from super().equations()
        yield self.f == self.c * (self.s_rel - self.s0)


class HardeningSpring(Compliant):
    """f = c x + c3 x³ with x = s_rel − s0; a negative c3 softens (Duffing's spring)."""

    c = Parameter(unit="N/m", description="stiffness at rest")
    c3 = Parameter(unit="N/m3", description="cubic stiffness")
    s0 = Parameter(0.0, "m", "unstretched length")

    def equations(self) -> Equations:
        yield from super().equations()
        x = self.s_rel - self.s0
        yield self.f == self.c * x + self.c3 * x**3


class Dissipative(Compliant):
    """A compliant component that knows its velocity v_rel = d(b.s − a.s)/dt. The base of what follows."""

    v_rel = Variable(unit="m/s", description="velocity of b against a")

    def equations(self) -> Equations:
        yield from super().equations()
        # not der(self.s_rel): absolute coordinates stay the states, whatever the order of declaration
        yield self.v_rel == der(self.b.s - self.a.s)


class Damper(Dissipative):
    """f = d v_rel."""

    d = Parameter(unit="N.s/m", description="damping")

    def equations(self) -> Equations:
        yield from super().equations()
        yield self.f == self.d * self.v_rel


class SpringDamper(Dissipative):
    """f = c (s_rel − s0) + d v_rel."""

    c = Parameter(unit="N/m", description="stiffness")
    d = Parameter(unit="N.s/m", description="damping")
    s0 = Parameter(0.0, "m", "unstretched length")

    def equations(self) -> Equations:
        yield from super().equations()
        yield self.f == self.c * (self.s_rel - self.s0) + self.d * self.v_rel


class LuGreFriction(Dissipative):
    """Dynamic friction between a and b by the deflection z of elastic bristles; equations in ``friction.py``.

    For Coulomb friction F_C = mu F_N and F_S = mu0 F_N; critical damping of the bristles under a mass m is
    sigma1 = 2 sqrt(sigma0 m).
    """

    sigma0 = Parameter(unit="N/m", description="stiffness of the bristles")
    sigma1 = Parameter(unit="N.s/m", description="damping of the bristles")
    b_viscous = Parameter(0.0, "N.s/m", "viscous friction")
    F_C = Parameter(unit="N", description="sliding (Coulomb) friction")
    F_S = Parameter(unit="N", description="static friction, the force of breaking away")
    v_S = Parameter(unit="m/s", description="Stribeck velocity")
    z = Variable(unit="m", description="deflection of the bristles", nominal=1e-5)

    def equations(self) -> Equations:
        yield from super().equations()
        rate, force = lugre(self.v_rel, self.z, self.sigma0, self.sigma1, self.b_viscous, self.F_C, self.F_S, self.v_S)
        yield der(self.z) == rate
        yield self.f == force


class Force(Model):
    """flange.f = −u: the force u acts on what is connected; its reaction goes to the surroundings."""

    flange = Flange()
    u = Input("N", "force on what is connected")

    def equations(self) -> Equations:
        yield self.flange.f == -self.u


class Position(Model):
    """flange.s = u. Where it drives a mass, u is differentiated twice and must be given smoothly enough."""

    flange = Flange()
    u = Input("m", "position")

    def equations(self) -> Equations:
        yield self.flange.s == self.u


class Speed(Model):
    """ds/dt = u with s = flange.s. Where it drives a mass, u is differentiated once."""

    flange = Flange()
    u = Input("m/s", "velocity")
    s = Variable(unit="m", description="position")

    def equations(self) -> Equations:
        yield self.s == self.flange.s
        yield der(self.s) == self.u


class Lever(Model):
    """Two arms about a fixed pivot: a.s = ratio · b.s, ratio · a.f + b.f = 0; a negative ratio reverses."""

    a, b = Flange(), Flange()
    ratio = Parameter(description="travel of a for one unit of b")

    def equations(self) -> Equations:
        yield self.a.s == self.ratio * self.b.s
        yield self.ratio * self.a.f + self.b.f == 0
