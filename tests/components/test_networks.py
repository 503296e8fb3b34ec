"""What connecting components does to the structure: index, freedom, and words for circuits that cannot work."""

from __future__ import annotations

import numpy as np
import pytest
from components.running import largest_error, run

import grisaille as gr
from grisaille.components import rotational, translational
from grisaille.components.electrical import (
    Capacitor,
    ConstantCurrent,
    ConstantVoltage,
    Ground,
    Inductor,
    OpAmp,
    Pin,
    Resistor,
    VoltageSource,
)
from grisaille.components.rotational import Gear, Inertia, Torque
from grisaille.components.thermal import Ambient, Conductance, HeatCapacity, HeatPort
from grisaille.components.translational import Fixed, Mass, Spring
from grisaille.errors import ModelError, StructureError


class Geared(gr.Model):
    drive, motor, gear, load = Torque(), Inertia(J=0.1), Gear(ratio=3.0), Inertia(J=2.0)
    equations = [gr.connect(drive.shaft, motor.shaft, gear.a), gr.connect(gear.b, load.shaft)]


def test_gear_leaves_one_pair_of_states_free() -> None:
    analysis = gr.analyze(Geared())
    assert analysis.index == 3
    assert analysis.degrees_of_freedom == 2


def test_gear_keeps_both_sides_together() -> None:
    times = np.linspace(0, 2, 9)
    result = run(Geared(start={"load.phi": 0.5}), times, inputs={"drive.u": 0.4})
    assert largest_error(result["load.phi"], 0.5 + 3 * 0.4 / (2.0 + 9 * 0.1) * times**2 / 2) < 1e-10
    np.testing.assert_allclose(result["motor.phi"], 3 * result["load.phi"], rtol=1e-10)


def test_capacitors_in_parallel_add() -> None:
    class Parallel(gr.Model):
        source, ground = ConstantCurrent(I=-1e-3), Ground()
        a, b = Capacitor(C=1e-3), Capacitor(C=3e-3, start={"v": 2.0})
        equations = [gr.connect(source.p, a.p, b.p), gr.connect(source.n, a.n, b.n, ground.p)]

    analysis = gr.analyze(Parallel())
    assert analysis.index == 2 and analysis.degrees_of_freedom == 1
    times = np.linspace(0, 4, 9)
    result = run(Parallel(), times)
    assert largest_error(result["a.v"], 2.0 + times / 4) < 1e-10
    assert largest_error(result["b.i"], np.full(9, 0.75e-3)) < 1e-10


def test_inductors_in_series_add() -> None:
    class Series(gr.Model):
        source, a, b, r, ground = ConstantVoltage(V=2.0), Inductor(L=0.1), Inductor(L=0.3), Resistor(R=8.0), Ground()
        equations = [
            gr.connect(source.p, a.p),
            gr.connect(a.n, b.p),
            gr.connect(b.n, r.p),
            gr.connect(r.n, source.n, ground.p),
        ]

    assert gr.analyze(Series()).degrees_of_freedom == 1
    times = np.linspace(0, 0.2, 9)
    assert largest_error(run(Series(), times)["b.i"], 0.25 * (1 - np.exp(-20 * times))) < 1e-9


def test_capacitor_across_a_source_follows_its_derivative() -> None:
    class Across(gr.Model):
        source, c, ground = VoltageSource(), Capacitor(C=2.0), Ground()
        equations = [gr.connect(source.p, c.p), gr.connect(source.n, c.n, ground.p)]

    times = np.linspace(0, 3, 7)
    result = run(Across(), times, inputs={"source.u": (times, times**2 / 2)}, hold={"source.u": "spline"})
    assert largest_error(result["c.i"], 2 * times) < 1e-9


class Floating(gr.Model):
    source, r = ConstantVoltage(V=1.0), Resistor(R=1.0)
    equations = [gr.connect(source.p, r.p), gr.connect(source.n, r.n)]


class FloatingMesh(gr.Model):
    source, r, c, coil = ConstantVoltage(V=1.0), Resistor(R=1.0), Capacitor(C=1.0), Inductor(L=1.0)
    equations = [
        gr.connect(source.p, r.p),
        gr.connect(r.n, c.p, coil.p),
        gr.connect(source.n, c.n, coil.n),
    ]


@pytest.mark.parametrize("circuit", [Floating, FloatingMesh])
def test_circuit_without_ground_is_refused(circuit: type[gr.Model]) -> None:
    """Its last balance of currents follows from the others: the message names it."""
    with pytest.raises(StructureError, match=r"source\.n\.i.* == 0"):
        gr.analyze(circuit())


def test_sources_that_contradict_each_other_are_named() -> None:
    class Short(gr.Model):
        a, b, ground = ConstantVoltage(V=1.0), ConstantVoltage(V=2.0), Ground()
        equations = [gr.connect(a.p, b.p), gr.connect(a.n, b.n, ground.p)]

    with pytest.raises(StructureError, match="Overdetermined"):
        gr.analyze(Short())


def test_op_amp_without_feedback_is_refused() -> None:
    class Open(gr.Model):
        source, r, amp, ground = ConstantVoltage(V=1.0), Resistor(R=1.0), OpAmp(), Ground()
        equations = [
            gr.connect(source.p, amp.minus),
            gr.connect(amp.out, r.p),
            gr.connect(source.n, r.n, amp.plus, ground.p),
        ]

    with pytest.raises(StructureError, match=r"Underdetermined: .*(amp\.out|r\.)"):
        gr.analyze(Open())


def test_open_flange_is_free() -> None:
    class Dangling(gr.Model):
        mass, spring = Mass(m=1.0, start={"s": 0.5, "v": 2.0}), Spring(c=100.0, s0=0.2)
        equations = [gr.connect(mass.flange, spring.a)]

    result = run(Dangling(), [0.0, 1.0])
    np.testing.assert_allclose(result["spring.b.f"], 0.0)
    np.testing.assert_allclose(result["mass.s"], [0.5, 2.5])
    np.testing.assert_allclose(result["spring.b.s"], [0.7, 2.7])


def test_masses_on_a_rod_between_walls_are_overdetermined() -> None:
    class Stuck(gr.Model):
        left, right, mass = Fixed(s0=0.0), Fixed(s0=1.0), Mass(m=1.0)
        equations = [gr.connect(left.flange, mass.flange, right.flange)]

    with pytest.raises(StructureError, match="Overdetermined"):
        gr.analyze(Stuck())


def test_different_domains_do_not_connect() -> None:
    with pytest.raises(ModelError, match=r"is a Flange and .* is a Shaft"):

        class Mixed(gr.Model):
            mass, wheel = translational.Mass(m=1.0), rotational.Inertia(J=1.0)
            equations = [gr.connect(mass.flange, wheel.shaft)]


def test_missing_parameter_is_named() -> None:
    class Incomplete(gr.Model):
        source, r, ground = ConstantVoltage(V=1.0), Resistor(), Ground()
        equations = [gr.connect(source.p, r.p), gr.connect(source.n, r.n, ground.p)]

    with pytest.raises(ModelError, match=r"r\.R"):
        run(Incomplete(), [0.0, 1.0])


class HeatingResistor(Resistor):
    """A resistor of the library, extended by the heat it gives off."""

    port = HeatPort()

    def equations(self):
        yield from super().equations()
        yield self.port.Q + self.v * self.i == 0


def test_components_are_extended_by_inheritance() -> None:
    class Heater(gr.Model):
        source, r, ground = ConstantVoltage(V=20.0), HeatingResistor(R=8.0), Ground()
        body, loss, room = HeatCapacity(C=100.0), Conductance(G=0.5), Ambient()
        equations = [
            gr.connect(source.p, r.p),
            gr.connect(source.n, r.n, ground.p),
            gr.connect(r.port, body.port, loss.a),
            gr.connect(loss.b, room.port),
        ]

    times = np.linspace(0, 600, 7)
    exact = 293.15 + 100.0 * (1 - np.exp(-times / 200))
    assert largest_error(run(Heater(), times)["body.T"], exact) < 1e-9


def test_sensitivities_pass_through_components() -> None:
    class Charging(gr.Model):
        source, r, c, ground = ConstantVoltage(V=3.0), Resistor(R=2.0), Capacitor(C=0.5), Ground()
        equations = [gr.connect(source.p, r.p), gr.connect(r.n, c.p), gr.connect(c.n, source.n, ground.p)]

    times = np.linspace(0, 3, 7)
    result = run(Charging(), times, sensitivities=["r.R", "source.V"])
    by_resistance = result["d(c.v)"].sel(parameter="r.R")
    assert largest_error(by_resistance, -3.0 * times / (2.0 * 1.0) * np.exp(-times)) < 1e-8
    assert largest_error(result["d(c.v)"].sel(parameter="source.V"), 1 - np.exp(-times)) < 1e-8


class Divider(gr.Model):
    """A composite with pins of its own."""

    top, tap, bottom = Pin(), Pin(), Pin()
    upper, lower = Resistor(R=1e3), Resistor(R=3e3)
    equations = [
        gr.connect(top, upper.p),
        gr.connect(upper.n, lower.p, tap),
        gr.connect(lower.n, bottom),
    ]


def test_composites_nest() -> None:
    class Outer(gr.Model):
        source, first, second, ground = ConstantVoltage(V=8.0), Divider(), Divider(upper=Resistor(R=2e3)), Ground()
        equations = [
            gr.connect(source.p, first.top),
            gr.connect(first.tap, second.top),
            gr.connect(source.n, first.bottom, second.bottom, ground.p),
        ]

    result = run(Outer(), [0.0, 1.0]).isel(time=0)
    parallel = 1 / (1 / 3e3 + 1 / 5e3)
    tap = 8.0 * parallel / (1e3 + parallel)
    assert float(result["first.tap.v"]) == pytest.approx(tap)
    assert float(result["second.tap.v"]) == pytest.approx(tap * 3 / 5)
    assert float(result["first.tap.i"]) == pytest.approx(-tap / 5e3)
