"""Model classes and instances: inheritance, methods, overrides, immutability."""

from __future__ import annotations

import copy

import numpy as np
import pytest
from model.examples import Capacitor, Lowpass, Pendulum, Pin, Resistor

import grisaille as gr
from grisaille import der
from grisaille.errors import ModelError
from grisaille.model import flatten


def texts(model):
    return [equation.text for equation in flatten(model).equations]


class Mass(gr.Model):
    m, F = gr.Parameter(1.0), gr.Input("N")
    x, v = gr.Variable(0.0), gr.Variable(0.0)
    equations = [der(x) == v, m * der(v) == F]


class Damped(Mass):
    d = gr.Parameter(0.1)

    def equations(self):
        yield from super().equations()


class Sprung(Mass):
    k = gr.Parameter(3.0)
    m = gr.Parameter(2.0, "kg")
    force = -k * Mass.x
    equations = [der(Mass.x) == Mass.v, Mass.m * der(Mass.v) == Mass.F + force]


def test_methods_extend_the_parent():
    assert texts(Damped()) == ["der(x) == v", "m*der(v) == F"]


def test_parent_equations_follow_overridden_members():
    class Heavy(Mass):
        m = gr.Parameter(50.0)

    assert texts(Heavy()) == ["der(x) == v", "m*der(v) == F"]
    assert Heavy().parameters["m"].value == 50.0


def test_members_of_the_parent_can_be_used_in_a_list():
    model = Sprung()
    assert texts(model) == ["der(x) == v", "m*der(v) == F + force"]
    assert list(model.parameters) == ["m", "k"] and model.parameters["m"].unit == "kg"


def test_methods_return_lists_and_nest():
    class Loops(gr.Model):
        x = gr.Variable(size=3)
        a = gr.Variable()

        def equations(self):
            return [[der(x) == i * self.a for i, x in enumerate(self.x)], (self.a == np.sum(self.x),)]

    assert texts(Loops()) == [
        "der(x[0]) == 0*a", "der(x[1]) == a", "der(x[2]) == 2*a", "a == x[0] + x[1] + x[2]",
    ]  # fmt: skip


def test_super_chains_over_lists_and_methods():
    class A(gr.Model):
        x = gr.Variable()
        equations = [der(x) == 1]

    class B(A):
        y = gr.Variable()

        def equations(self):
            yield from super().equations()
            yield der(self.y) == self.x

    class C(B):
        z = gr.Variable()

        def equations(self):
            yield from super().equations()
            yield der(self.z) == self.y

    assert texts(C()) == ["der(x) == 1", "der(y) == x", "der(z) == y"]
    assert flatten(C()).hints == ()


def test_a_forgotten_super_leaves_a_hint():
    class Forgetful(Damped):
        y = gr.Variable()

        def equations(self):
            yield der(self.y) == self.v

    hints = flatten(Forgetful()).hints
    assert any("Forgetful replaces the equations of Damped" in h and "super().equations()" in h for h in hints)

    class Listed(Mass):
        y = gr.Variable()
        equations = [der(y) == Mass.v]

    assert "Listed replaces the equations of Mass" in flatten(Listed()).hints[0]


def test_equations_kept_in_attributes_may_be_yielded():
    class Kept(gr.Model):
        x = gr.Variable()
        laws = [der(x) == 1]

        def equations(self):
            yield from self.laws

    assert texts(Kept()) == ["der(x) == 1"]


def test_instances_change_values_only_for_themselves():
    heavy = Pendulum(k=6.25, start={"x": 0.1})
    assert heavy.parameters["k"].value == 6.25 and heavy.start["x"] == 0.1
    assert Pendulum().parameters["k"].value == 5.0 and Pendulum().start["x"] == 0.0
    assert heavy.start["y"] == "-L"


def test_members_are_replaced_by_declarations_of_their_kind():
    model = Pendulum(
        k=gr.Parameter(6, bounds=(1, 10)),
        w=gr.Disturbance(gr.spectra.lowpass(2.0)),
        phi=gr.Output(3 * Pendulum.x, noise=0.1),
        x=gr.Variable(start=1.0, fixed=True),
        u=gr.Input("kN", default=0.0),
    )
    flat = flatten(model)
    assert flat.parameters["k"].bounds == (1.0, 10.0)
    assert str(flat.disturbances["w"].spectrum) == "lowpass(bandwidth=2)"
    assert str(flat.outputs["phi"].definition) == "3*x"
    assert flat.variables["x"].fixed and flat.inputs["u"].default == 0.0


def test_parameters_may_be_formulas_of_others():
    model = Pendulum(k=2 * Pendulum.m)
    assert model.parameters["k"].value == pytest.approx(0.6) and model.parameters["k"].formula == "2*m"
    assert model.replace({"m": 1.0}).parameters["k"].value == 2.0


def test_formula_values_use_functions_and_named_formulas():
    class Friction(gr.Model):
        sigma0, m = gr.Parameter(4.0), gr.Parameter(9.0)
        stiffness = sigma0 * m
        damping = gr.Parameter(2 * gr.sqrt(stiffness))

    assert Friction().parameters["damping"].value == 12.0


def test_replace_reaches_into_components_and_replaces_them():
    circuit = Lowpass()
    assert circuit.replace({"r.R": 2e3}).parameters["r.R"].value == 2e3
    assert circuit.parameters["r.R"].value == 1e3

    class Coil(gr.Model):
        L = gr.Parameter(1e-3)
        p, n = Pin(), Pin()
        equations = [p.v - n.v == L * der(p.i), p.i + n.i == 0]

    changed = circuit.replace({"c": Coil()})
    assert "c.p.v - c.n.v == c.L*der(c.p.i)" in texts(changed) and "c.C" not in changed.parameters
    assert len(flatten(changed).variables) == 14
    assert texts(Lowpass(c=Coil())) == texts(changed)
    assert Lowpass(**{"r.R": 5.0}).parameters["r.R"].value == 5.0


def test_replaced_components_must_have_what_is_used():
    class Other(gr.Model):
        q = Pin()
        equations = [q.i == 0]

    with pytest.raises(ModelError, match=r"has no connector 'c.p'"):
        flatten(Lowpass(c=Other()))

    class User(gr.Model):
        part = Mass()
        y = gr.Output(part.x)

    class Bare(gr.Model):
        v = gr.Variable()
        equations = [der(v) == 0]

    with pytest.raises(ModelError, match=r"User uses 'part.x', which does not exist"):
        flatten(User(part=Bare()))


def test_the_same_class_twice_with_different_values():
    class Two(gr.Model):
        a, b = Mass(m=1.0), Mass(m=2.0, start={"x": 5.0})
        equations = []

    flat = flatten(Two())
    assert flat.parameters["b.m"].value.value == 2.0 and flat.variables["b.x"].start.value == 5.0
    assert flat.variables["a.x"].start.value == 0.0


def test_nesting_to_any_depth():
    inner: type[gr.Model] = Mass
    for depth in range(6):
        inner = type(f"Level{depth}", (gr.Model,), {"part": inner(), "k": gr.Parameter(float(depth))})
    model = inner()
    path = ".".join(["part"] * 6)
    assert f"{path}.m" in model.parameters
    assert str(model.part.part.part.k) == "part.part.part.k"
    assert model.replace({f"{path}.m": 7.0}).parameters[f"{path}.m"].value == 7.0


def test_lists_of_components():
    class Ladder(gr.Model):
        rs = [Resistor(R=float(i + 1)) for i in range(3)]
        equations = [gr.connect(rs[0].n, rs[1].p), gr.connect(rs[1].n, rs[2].p)]

    model = Ladder()
    assert list(model.parameters) == ["rs[0].R", "rs[1].R", "rs[2].R"]
    assert str(model.rs[1].R) == "rs[1].R" and len(model.rs) == 3
    assert "rs[0].n.v == rs[1].p.v" in texts(model)
    assert model.replace({"rs": [Resistor(R=9.0)] * 3}).parameters["rs[2].R"].value == 9.0


def test_copies():
    class Leg(gr.Model):
        La, angle = gr.Parameter(), gr.Parameter(0.0)
        q = gr.Variable(size=2)
        equations = [der(q) == La * angle]

    class Robot(gr.Model):
        La = gr.Parameter(0.3)
        legs = gr.copies(Leg(La=La), 3, angle=[0, 2.09, 4.19])
        masses = gr.copies(gr.Parameter(1.0, "kg"), 2, value=[1.0, 2.0])
        pins = gr.copies(Pin(), 2)

    model = Robot()
    assert model.parameters["legs[1].angle"].value == 2.09
    assert model.parameters["legs[2].La"].value == 0.3 and model.parameters["legs[2].La"].formula == "La"
    assert model.parameters["masses[1]"].value == 2.0 and model.parameters["masses[0]"].unit == "kg"
    assert "pins[1].v" in flatten(model).variables
    assert "der(legs[2].q[1]) == legs[2].La*legs[2].angle" in texts(model)
    for action, words in [
        (lambda: gr.copies(Leg(), 3, angle=[1, 2]), "angle has 2 values for 3 copies"),
        (lambda: gr.copies(Leg, 3), r"Call the class first"),
        (lambda: gr.copies(Leg(), 0), "whole number from 1"),
        (lambda: gr.copies(Leg(), 2, angel=1.0), "Did you mean 'angle'"),
        (lambda: gr.copies(gr.Parameter(), 2, valu=[1, 2]), "Parameter has no field 'valu'"),
    ]:
        with pytest.raises(ModelError, match=words):
            action()


def test_stars_reach_many_members():
    class Ladder(gr.Model):
        rs = gr.copies(Resistor(R=1.0), 3)

    model = Ladder().replace({"rs[*].R": 7.0}, start={"rs[*].p.v": 2.0})
    assert [p.value for p in model.parameters.values()] == [7.0] * 3
    assert model.start["rs[2].p.v"] == 2.0
    with pytest.raises(ModelError, match=r"no member that matches 'rs\[\*\].C'"):
        model.replace({"rs[*].C": 1.0})


def test_methods_connect_their_own_connectors():
    class Series(gr.Model):
        p, n = Pin(), Pin()
        a, b = Resistor(R=1.0), Resistor(R=2.0)

        def equations(self):
            yield gr.connect(self.p, self.a.p)
            yield gr.connect(self.a.n, self.b.p), gr.connect(self.b.n, self.n)

    found = texts(Series())
    assert "a.p.i - p.i == 0" in found and "b.n.i - n.i == 0" in found
    assert found.count("p.i == 0") == 1


def test_named_conditions():
    class Relay(gr.Model):
        x = gr.Variable()
        hot = x > 1
        equations = [der(x) == gr.where(hot, -1, 1)]

    flat = flatten(Relay())
    assert flat.equations[0].text == "der(x) == where(hot, -1, 1)"
    assert str(flat.equations[0].right) == "where(x > 1, -1, 1)"


def test_nested_classes_and_derivatives_as_quantities():
    class Plant(gr.Model):
        class Part(gr.Model):
            x = gr.Variable()
            a = der(x)
            power = gr.Output(x * a)
            equations = [a == -x]

        part = Part()

    flat = flatten(Plant())
    assert flat.equations[0].text == "part.a == -part.x"
    assert str(flat.equations[0].left) == "der(part.x)"
    assert str(flat.outputs["part.power"].definition) == "part.x*der(part.x)"


def test_instances_are_immutable():
    model = Pendulum()
    with pytest.raises(ModelError, match=r"model.replace\(\{'k'"):
        model.k = 3.0
    with pytest.raises(ModelError, match=r"do not change"):
        del model.k
    with pytest.raises(ModelError, match="read-only"):
        model.parameters["k"] = 1
    with pytest.raises(ModelError, match=r"r.R"):
        Lowpass().r.R = 3.0
    assert copy.deepcopy(model) is model and copy.copy(model) is model


def test_attributes_and_their_errors():
    circuit = Lowpass()
    assert str(circuit.r.p.v) == "r.p.v" and circuit.r.p.v.path == "r.p.v"
    assert "r" in dir(circuit) and "R" in dir(circuit.r) and "v" in dir(circuit.r.p)
    assert not hasattr(circuit, "rr")
    with pytest.raises(ModelError, match=r"Lowpass has no member 'sourc'. Did you mean 'source'"):
        circuit.sourc  # noqa: B018
    with pytest.raises(AttributeError, match=r"Lowpass.r has no member 'r'. Did you mean 'R'"):
        circuit.r.r  # noqa: B018
    with pytest.raises(ModelError, match=r"Pin has no field 'u'"):
        Pin().u  # noqa: B018


def test_classes_made_by_type():
    x = gr.Variable(1.0)
    cls = type("Made", (gr.Model,), {"x": x, "equations": [der(x) == -x]})
    assert texts(cls()) == ["der(x) == -x"]


def test_printing_reads_like_the_paper():
    text = str(Pendulum(k=6.25))
    assert text.startswith("Pendulum: Pendulum in Cartesian coordinates")
    for line in [
        "  k = 6.25 kg/m  in [0.5, 20]", "  y [m]    start -L", "  w  resonance(frequency=4, damping=0.1)  scale 0.6",
        "  phi = atan2(x, -y) [rad]  noise 0.002", "  (3) m*der(vx) == tension*x - k*abs(vx)*vx + u + w**2",
    ]:  # fmt: skip
        assert line in text.splitlines()
    assert "connect(source.p, r.p)" in str(Lowpass())
    assert repr(Capacitor(C=2.0)) == "Capacitor(C=2)"


def test_time_is_a_leaf():
    class Driven(gr.Model):
        x = gr.Variable()
        equations = [der(x) == gr.sin(gr.time)]

    class Outer(gr.Model):
        part = Driven()

    assert texts(Outer()) == ["der(part.x) == sin(time)"]


def test_connectors_with_vectors_and_nested_connectors():
    class Frame(gr.Connector):
        r = gr.Potential("m", size=2)
        f = gr.Flow("N", size=2)
        T = gr.Variable(300.0, "K")
        pin = Pin()

    class End(gr.Model):
        c = Frame()
        equations = [c.r == 0, c.T == 1, c.pin.v == 2]

    class Pair(gr.Model):
        a, b = End(), End()
        equations = [gr.connect(a.c, b.c)]

    found = texts(Pair())
    for text in ["a.c.r[1] == b.c.r[1]", "a.c.f[0] + b.c.f[0] == 0", "a.c.T == b.c.T", "a.c.pin.i + b.c.pin.i == 0"]:
        assert text in found
    assert Pair().a.c.r.shape == (2,)


def test_loops_in_a_class_body():
    class Ladder(gr.Model):
        x = gr.Variable(0.0, size=3)
        rs = gr.copies(Resistor(R=1.0), 3)
        front = rs[:2]
        equations = []
        for element in x:
            equations.append(der(element) == -element)
        for r in rs:
            equations.append(r.p.v == 0)

    flat = flatten(Ladder())
    assert [e.text for e in flat.equations[:4]] == [
        "der(x[0]) == -x[0]", "der(x[1]) == -x[1]", "der(x[2]) == -x[2]", "rs[0].p.v == 0",
    ]  # fmt: skip
    assert flat.quantities == {}
    assert str(Ladder.front[1].p.v) == "rs[1].p.v"
