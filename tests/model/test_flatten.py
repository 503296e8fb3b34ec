"""Flattening: what the language hands on to the structural analysis."""

from __future__ import annotations

import time as clock

import numpy as np
import pytest
from model.examples import Ground, Lowpass, Pendulum, Pin, Resistor

import grisaille as gr
from grisaille import der
from grisaille.errors import ModelError
from grisaille.model import Name, flatten, postorder


def texts(model: gr.Model) -> list[str]:
    return [equation.text for equation in flatten(model).equations]


def leaves(*roots) -> set[str]:
    return {node.path for node in postorder(roots) if isinstance(node, Name)}


def test_pendulum_keeps_the_words_of_the_user():
    flat = flatten(Pendulum())
    assert [e.text for e in flat.equations] == [
        "der(x) == vx",
        "der(y) == vy",
        "m*der(vx) == tension*x - k*abs(vx)*vx + u + w**2",
        "m*der(vy) == tension*y - k*abs(vy)*vy - m*g",
        "x**2 + y**2 == L**2",
    ]
    assert list(flat.variables) == ["x", "y", "vx", "vy", "tension"]
    assert str(flat.variables["y"].start) == "-L"
    assert flat.parameters["k"].bounds == (0.5, 20.0)
    assert str(flat.outputs["phi"].definition) == "atan2(x, -y)"
    assert flat.disturbances["w"].spectrum.pole_excess == 2
    assert flat.equations[0].source.startswith("examples.py:")
    assert flatten(model := Pendulum()) is flatten(model)


def test_circuit_equations_and_counts():
    flat = flatten(Lowpass())
    assert len(flat.equations) == len(flat.variables) == 14
    made = [e for e in flat.equations if e.kind != "equation"]
    assert [e.text for e in made] == [
        "source.p.v == r.p.v",
        "source.p.i + r.p.i == 0",
        "r.n.v == c.p.v",
        "r.n.i + c.p.i == 0",
        "c.n.v == source.n.v",
        "c.n.v == ground.p.v",
        "c.n.i + source.n.i + ground.p.i == 0",
    ]
    assert {e.kind for e in made} == {"connection", "flow"}
    assert "connect(r.n, c.p) (examples.py:" in made[2].source
    assert list(flat.inputs) == ["source.u"]


def test_unconnected_flows_are_zero():
    flat = flatten(Resistor(R=1.0))
    assert [e.text for e in flat.equations[2:]] == ["p.i == 0", "n.i == 0"]
    assert flat.equations[2].source == "p is not connected"


def test_own_connectors_count_with_the_opposite_sign_inside():
    class Divider(gr.Model):
        p, n = Pin(), Pin()
        a, b = Resistor(R=1.0), Resistor(R=2.0)
        equations = [gr.connect(p, a.p), gr.connect(a.n, b.p), gr.connect(b.n, n)]

    class Circuit(gr.Model):
        d, ground = Divider(), Ground()
        equations = [gr.connect(d.n, ground.p)]

    found = texts(Circuit())
    assert "d.a.p.i - d.p.i == 0" in found
    assert "d.b.n.i - d.n.i == 0" in found
    assert "d.n.i + ground.p.i == 0" in found
    assert "d.p.i == 0" in found
    flat = flatten(Circuit())
    assert len(flat.equations) == len(flat.variables)


def test_two_own_connectors_joined_inside():
    class Wire(gr.Model):
        p, n = Pin(), Pin()
        equations = [gr.connect(p, n)]

    assert texts(Wire()) == ["p.v == n.v", "-p.i - n.i == 0", "p.i == 0", "n.i == 0"]


def test_sets_merge_across_connections():
    class Star(gr.Model):
        a, b, c = Resistor(R=1.0), Resistor(R=1.0), Resistor(R=1.0)
        equations = [gr.connect(a.p, b.p), gr.connect(b.p, c.p)]

    assert "a.p.i + b.p.i + c.p.i == 0" in texts(Star())


def test_named_formulas_are_printed_by_name_and_put_in_place():
    class Drag(gr.Model):
        c, m = gr.Parameter(0.5), gr.Parameter(2.0)
        vx, vy = gr.Variable(), gr.Variable()
        speed = np.sqrt(vx**2 + vy**2)
        force = c * speed
        equations = [m * der(vx) == -force * vx, m * der(vy) == -force * vy]

    flat = flatten(Drag())
    assert flat.equations[0].text == "m*der(vx) == -force*vx"
    assert leaves(flat.equations[0].right) == {"c", "vx", "vy"}
    assert str(flat.quantities["force"]) == "c*sqrt(vx**2 + vy**2)"
    assert list(flat.quantities) == ["speed", "force"]
    assert set(flat.variables) == {"vx", "vy"}


def test_outputs_with_and_without_definition():
    class Sensor(gr.Model):
        x = gr.Variable(1.0)
        y = gr.Output(noise=0.1, unit="V")
        z = gr.Output(2 * x)
        equations = [der(x) == -z, y == x**2]

    flat = flatten(Sensor())
    assert list(flat.variables) == ["x", "y"]
    assert str(flat.outputs["y"].definition) == "y"
    assert str(flat.equations[0].right) == "-2*x" and flat.equations[0].text == "der(x) == -z"


class Tank(gr.Model):
    A = gr.Parameter(1.0)
    inflow = gr.Input("m3/s")
    h = gr.Variable(0.0)
    level = gr.Output(h)
    equations = [A * der(h) == inflow]


def test_inputs_of_components_are_external_bound_or_connected():
    class Plant(gr.Model):
        k, valve = gr.Parameter(2.0), gr.Input()
        first, second, third = Tank(inflow=k * valve), Tank(), Tank()
        equations = [gr.connect(first.level, second.inflow)]

    flat = flatten(Plant())
    assert list(flat.inputs) == ["valve", "third.inflow"]
    assert [str(e.right) for e in flat.equations] == ["k*valve", "first.h", "third.inflow"]
    assert set(flat.quantities) == {"first.inflow", "second.inflow"}


def test_own_inputs_and_outputs_can_be_connected():
    class Box(gr.Model):
        u, y = gr.Input(), gr.Output()
        tank = Tank()
        equations = [gr.connect(u, tank.inflow), gr.connect(tank.level, y)]

    flat = flatten(Box())
    assert list(flat.inputs) == ["u"] and list(flat.variables) == ["tank.h"]
    assert str(flat.outputs["y"].definition) == "tank.h"


def test_algebraic_loop_through_signals_becomes_an_unknown():
    class Gain(gr.Model):
        k, u = gr.Parameter(0.5), gr.Input()
        y = gr.Output(k * u + 1)

    class Loop(gr.Model):
        a, b = Gain(), Gain()
        equations = [gr.connect(a.y, b.u), gr.connect(b.y, a.u)]

    flat = flatten(Loop())
    assert len(flat.equations) == len(flat.variables) == 1
    (name,) = flat.variables
    assert leaves(flat.equations[0].left, flat.equations[0].right) == {name, "a.k", "b.k"}


def test_parameters_bound_to_formulas_of_the_parent():
    class Leg(gr.Model):
        m = gr.Parameter(1.0)
        x = gr.Variable(start=m)
        equations = [m * der(x) == 0]

    class Robot(gr.Model):
        mass = gr.Parameter(6.0)
        half = mass / 2
        a, b = Leg(m=half), Leg(m=mass + 1)

    class World(gr.Model):
        density = gr.Parameter(2.0)
        robot = Robot(mass=3 * density)

    flat = flatten(World())
    assert str(flat.parameters["robot.a.m"].value) == "robot.mass/2"
    assert str(flat.parameters["robot.mass"].value) == "3*density"
    values = {name: p.value for name, p in World().parameters.items()}
    assert values == {"density": 2.0, "robot.mass": 6.0, "robot.a.m": 3.0, "robot.b.m": 7.0}


def test_formulas_may_skip_levels():
    class Inner(gr.Model):
        k = gr.Parameter()
        x = gr.Variable()
        equations = [der(x) == k]

    class Middle(gr.Model):
        inner = Inner(k=1.0)

    class Outer(gr.Model):
        k = gr.Parameter(4.0)
        middle = Middle(inner=Inner(k=2 * k))

    assert str(flatten(Outer()).parameters["middle.inner.k"].value) == "2*k"
    with pytest.raises(ModelError, match="not one of its members"):
        flatten(Inner(k=2 * Outer.k))


def test_spectra_and_scales_hold_full_names():
    class Wind(gr.Model):
        b, s = gr.Parameter(2.0), gr.Parameter(1.0)
        w = gr.Disturbance(gr.spectra.lowpass(b), scale=s)
        x = gr.Variable()
        equations = [der(x) == w]

    class Farm(gr.Model):
        a = Wind()

    disturbance = flatten(Farm()).disturbances["a.w"]
    assert str(disturbance.spectrum) == "lowpass(bandwidth=a.b)" and str(disturbance.scale) == "a.s"


def test_noise_covariance():
    class Pair(gr.Model):
        s, x = gr.Parameter(0.1), gr.Variable()
        a, b = gr.Output(x), gr.Output(2 * x)
        equations = [der(x) == 0]

        def noise_covariance(self):
            return {("a", "b"): self.s**2}

    class Two(gr.Model):
        pair = Pair()

    assert {k: str(v) for k, v in flatten(Two()).noise_covariance.items()} == {("pair.a", "pair.b"): "pair.s**2"}


def test_a_static_model_has_no_equations():
    class Line(gr.Model):
        a, b, u = gr.Parameter(1.0), gr.Parameter(2.0), gr.Input()
        y = gr.Output(a + b * u)

    assert flatten(Line()).equations == ()


def test_large_models_are_quick():
    class Cell(gr.Model):
        k = gr.Parameter(1.0)
        p, n = Pin(), Pin()
        x = gr.Variable(0.0)
        equations = [der(x) == k * (p.v - n.v) - x**3, p.i + n.i == 0, p.i == x * p.v]

    class Chain(gr.Model):
        cells = gr.copies(Cell(), 120)
        ground = Ground()

        def equations(self):
            for a, b in zip(self.cells, self.cells[1:], strict=False):
                yield gr.connect(a.n, b.p)
            yield gr.connect(self.cells[-1].n, self.ground.p)

    begin = clock.perf_counter()
    flat = flatten(Chain())
    seconds = clock.perf_counter() - begin
    assert len(flat.equations) == len(flat.variables) > 500
    assert seconds < 1.0


def test_deep_formulas_do_not_exhaust_the_stack():
    class Deep(gr.Model):
        x = gr.Variable(0.0)

        def equations(self):
            total = self.x
            for _ in range(5000):
                total = total + self.x
            yield der(self.x) == total

    flat = flatten(Deep())
    assert len(flat.equations[0].text) < 5000
    assert Deep().fingerprint == Deep().fingerprint
