"""Heat in lumped bodies.

A ``HeatPort`` has the absolute temperature T and the heat flow Q into the component. A component between a and b passes
the flow Q = a.Q = −b.Q from a to b. Temperatures are in kelvin; radiation needs them absolute, the rest is content with
any origin.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from grisaille.model.classes import Model
from grisaille.model.connectors import Connector, Flow, Potential
from grisaille.model.declarations import Input, Parameter, Variable
from grisaille.model.functions import der

Equations = Iterator[Any]

STEFAN_BOLTZMANN = 5.670374419e-8
"""W/(m² K⁴), exact in the SI of 2019 up to its printed digits."""


class HeatPort(Connector):
    """A surface of one temperature."""

    T = Potential("K", "temperature")
    Q = Flow("W", "heat flow into the component")


class HeatCapacity(Model):
    """C dT/dt = port.Q; starts at 293.15 K unless told otherwise."""

    port = HeatPort()
    C = Parameter(unit="J/K", description="heat capacity")
    T = Variable(293.15, "K", "temperature", nominal=300.0)

    def equations(self) -> Equations:
        yield self.T == self.port.T
        yield self.C * der(self.T) == self.port.Q


class Element(Model):
    """Two ports without capacity between them: Q = a.Q = −b.Q. The base of what follows."""

    a, b = HeatPort(), HeatPort()
    Q = Variable(unit="W", description="heat flow from a to b")

    def equations(self) -> Equations:
        yield self.Q == self.a.Q
        yield self.a.Q + self.b.Q == 0


class Conductance(Element):
    """Q = G (a.T − b.T)."""

    G = Parameter(unit="W/K", description="thermal conductance, the inverse of the thermal resistance")

    def equations(self) -> Equations:
        yield from super().equations()
        yield self.Q == self.G * (self.a.T - self.b.T)


class Radiation(Element):
    """Q = A σ (a.T⁴ − b.T⁴) with σ = 5.670374419e-8 W/(m² K⁴)."""

    A = Parameter(unit="m2", description="effective area: area times emissivity and view factor")

    def equations(self) -> Equations:
        yield from super().equations()
        yield self.Q == self.A * STEFAN_BOLTZMANN * (self.a.T**4 - self.b.T**4)


class PrescribedTemperature(Model):
    """port.T = u."""

    port = HeatPort()
    u = Input("K", "temperature")

    def equations(self) -> Equations:
        yield self.u == self.port.T


class PrescribedFlow(Model):
    """port.Q = −u: the flow u enters what is connected."""

    port = HeatPort()
    u = Input("W", "heat flow into what is connected")

    def equations(self) -> Equations:
        yield self.port.Q + self.u == 0


class Ambient(Model):
    """Surroundings of constant temperature: port.T = T."""

    port = HeatPort()
    T = Parameter(293.15, "K", "temperature")

    def equations(self) -> Equations:
        yield self.port.T == self.T
