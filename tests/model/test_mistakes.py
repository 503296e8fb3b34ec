"""Deliberate mistakes in the modelling language: each message names the thing and says what to do."""

from __future__ import annotations

import numpy as np
import pytest
from model.examples import Capacitor, Ground, Lowpass, Pendulum, Pin, Resistor

import grisaille as gr
from grisaille import der
from grisaille.errors import ModelError
from grisaille.model import flatten


def body(**members):
    return type("Plant", (gr.Model,), members)


def declared_twice():
    class Plant(gr.Model):
        k = gr.Parameter(1.0)
        k = gr.Variable()


def component_declared_twice():
    class Plant(gr.Model):
        r = Resistor()
        r = Resistor()


def same_object():
    class Plant(gr.Model):
        x = y = gr.Variable()


def unlisted_in_body():
    class Plant(gr.Model):
        x, v = gr.Variable(), gr.Variable()
        der(x) == v
        equations = [der(v) == 0]


def unlisted_connection():
    class Plant(gr.Model):
        a, b = Resistor(), Resistor()
        gr.connect(a.p, b.p)
        equations = [gr.connect(a.n, b.n)]


def unlisted_without_equations():
    class Plant(gr.Model):
        x = gr.Variable()
        der(x) == 1


def unlisted_in_method():
    class Plant(gr.Model):
        x, v = gr.Variable(), gr.Variable()

        def equations(self):
            der(self.x) == self.v
            yield der(self.v) == 0

    Plant()


def listed_twice():
    class Plant(gr.Model):
        x = gr.Variable()

        def equations(self):
            law = der(self.x) == 1
            yield law
            yield law

    Plant()


def nothing_returned():
    class Plant(gr.Model):
        x = gr.Variable()

        def equations(self):
            der(self.x) == 1

    Plant()


def nothing_returned_nothing_written():
    class Plant(gr.Model):
        x = gr.Variable()

        def equations(self):
            pass

    Plant()


def no_equations():
    class Plant(gr.Model):
        x, y = gr.Variable(), gr.Variable()

    flatten(Plant())


def formula_listed():
    class Plant(gr.Model):
        x = gr.Variable()
        equations = [der(x) - 1]


def truth_listed():
    class Plant(gr.Model):
        x = gr.Variable()
        equations = [der(x) == 1, 1 == 1]


def text_listed():
    class Plant(gr.Model):
        x = gr.Variable()
        equations = ["der(x) == 1"]


def own_init():
    class Plant(gr.Model):
        def __init__(self):
            pass


def foreign_member():
    class Plant(gr.Model):
        y = gr.Variable()
        equations = [der(y) == Pendulum.x]

    flatten(Plant())


def foreign_connector():
    other = Resistor()

    class Plant(gr.Model):
        r = Resistor()
        equations = [gr.connect(r.p, other.p)]

    Plant()


def connected_twice():
    class Plant(gr.Model):
        a, b, g = Resistor(R=1.0), Resistor(R=1.0), Ground()
        equations = [gr.connect(a.p, b.p, g.p), gr.connect(b.p, a.p)]

    flatten(Plant())


class Port(gr.Connector):
    T = gr.Potential("K")
    q = gr.Flow("W")


class Heater(gr.Model):
    port = Port()
    u, y = gr.Input("V"), gr.Output(port.T, unit="K")
    equations = [port.q == u]


def driven_twice():
    class Plant(gr.Model):
        u = gr.Input("V")
        h = Heater(u=2 * u)
        equations = [gr.connect(u, h.u)]

    flatten(Plant())


def no_source():
    class Plant(gr.Model):
        a, b = Heater(), Heater()
        equations = [gr.connect(a.u, b.u)]

    flatten(Plant())


def two_sources():
    class Plant(gr.Model):
        a, b = Heater(), Heater()
        equations = [gr.connect(a.y, b.y)]

    flatten(Plant())


def signal_units():
    class Plant(gr.Model):
        a, b = Heater(), Heater()
        equations = [gr.connect(a.y, b.u)]

    flatten(Plant())


def other_units():
    class Pin(gr.Connector):
        v = gr.Potential("mV")
        i = gr.Flow("A")

    class Cell(gr.Model):
        p = Pin()

    gr.connect(Cell().p, Resistor().p)


def circular_parameters():
    class Gain(gr.Model):
        k = gr.Parameter(1.0)

    class Plant(gr.Model):
        a = gr.Parameter(1.0)
        g = Gain(k=a)
        x = gr.Variable()
        equations = [der(x) == a]

    plant = Plant()
    flatten(plant.replace({"a": plant.g.k * 2}))


def moving_parameter():
    class Plant(gr.Model):
        x = gr.Variable()
        double = 2 * x
        k = gr.Parameter(double)


def reused_declaration():
    k = gr.Parameter(1.0)
    part = Resistor(R=k)
    body(k=k, part=part)


def wrong_covariance():
    class Plant(gr.Model):
        x = gr.Variable()
        y = gr.Output(x)
        equations = [der(x) == 0]

        def noise_covariance(self):
            return {("y", "z"): 1.0}

    Plant()


def hidden_by_a_number():
    class Slow(Resistor):
        R = 7.0


def hidden_plain_value():
    class Falling(gr.Model):
        g = 9.81
        x = gr.Variable()

        def equations(self):
            yield der(self.x) == -self.g

    class Moon(Falling):
        g = gr.Parameter(1.62)


def class_changed():
    class Plant(gr.Model):
        k = gr.Parameter(1.0)

    Plant.k = 3.0


def plain_value_given():
    class Plant(gr.Model):
        n = 3
        x = gr.Variable()
        equations = [der(x) == n * x]

    Plant(n=4)


def condition_equated():
    x = gr.Variable()
    return (x > 0) == 1


def set_of_equations():
    x = gr.Variable()
    body(x=x, equations={der(x) == 1})


MISTAKES = [
    (declared_twice, "Plant: 'k' is declared twice.*another name"),
    (component_declared_twice, "'r' is declared twice"),
    (same_object, "'x' and 'y' are the same object"),
    (lambda: body(parameters=gr.Parameter()), "'parameters' is reserved. Reserved names are .*equations.*time"),
    (lambda: body(time=gr.Variable()), "the name 'time' is reserved"),
    (lambda: body(_x=gr.Variable()), "'_x' begins with an underscore"),
    (lambda: body(**{"lambda": gr.Parameter(1.0)}), "'lambda' is a keyword"),
    (lambda: body(**{'x; system("ls")': gr.Parameter(1.0)}), "is not an identifier"),
    (lambda: body(**{"r.R": gr.Parameter(1.0)}), "'r.R' is not an identifier"),
    (lambda: type("Plant", (gr.Model,), {3: gr.Parameter(1.0)}), "name must be a string, got 3"),
    (unlisted_in_body, r"`der\(x\) == v` \(test_mistakes.py:\d+\) is written but not listed"),
    (unlisted_connection, r"connection `connect\(a.p, b.p\)` \(test_mistakes.py:\d+\) is written but not listed"),
    (unlisted_without_equations, "is written but not listed"),
    (unlisted_in_method, r"`der\(x\) == v` \(test_mistakes.py:\d+\) is written but not listed.*`yield` it"),
    (listed_twice, "listed twice"),
    (nothing_returned, r"Plant.equations\(\) returned nothing"),
    (nothing_returned_nothing_written, r"Plant.equations\(\) returned nothing: use `yield"),
    (no_equations, r"Plant has 2 variables \(x, y\) but no equations"),
    (formula_listed, r"equations\[0\]: `der\(x\) - 1` is a formula, not an equation; write `der\(x\) - 1 == 0`"),
    (truth_listed, r"equations\[1\] is True: a comparison of plain numbers"),
    (text_listed, r"equations\[0\] is 'der\(x\) == 1' \(str\)"),
    (own_init, "a model class has no __init__ of its own"),
    (foreign_member, "Plant uses `x`, which is not one of its members"),
    (foreign_connector, "`p` is not a member of Plant"),
    (lambda: Pendulum(kk=3.0), "Pendulum has no member 'kk'. Did you mean 'k'"),
    (lambda: Pendulum(tenson=3.0), "Did you mean 'tension'"),
    (lambda: Pendulum(3.0), r"Pendulum takes changes by name, such as Pendulum\(k=1.0\)"),
    (lambda: Pendulum(k=gr.Variable()), "Pendulum.k is declared as a parameter and cannot be replaced by a variable"),
    (lambda: Pendulum(k="5"), "Pendulum.k: value must be a number or a formula.*without quotes"),
    (lambda: Pendulum(k=None), "None is not a value"),
    (lambda: Pendulum(k=100.0), r"Pendulum.k: the value 100 lies outside its bounds \[0.5, 20\]"),
    (lambda: Pendulum(k=float("nan")), "NaN cannot stand in a formula"),
    (lambda: Pendulum(k=Pendulum.k == 3), "is an equation"),
    (lambda: Pendulum(x=0.1), r"start=\{'x': 0.1\}"),
    (lambda: Pendulum(w=0.1), r"replace it by gr.Disturbance\(spectrum, scale=…\)"),
    (lambda: Pendulum(phi=0.1), r"replace it by gr.Output\("),
    (lambda: Pendulum(start={"z": 1.0}), "Pendulum has no variable 'z'"),
    (lambda: Pendulum(start={"k": 1.0}), "'k' is a parameter, not a variable"),
    (lambda: Pendulum().replace({3: 1.0}), "members are named by text"),
    (lambda: Lowpass(r=3.0), r"Lowpass.r is a sub-model \(Resistor\); replace it by an instance"),
    (lambda: Lowpass().replace({"r.p": Pin()}), "is a connector and cannot be replaced"),
    (lambda: body(k=gr.Parameter(1.0, 3)), "Plant.k: the unit must be a text such as 'kg', got 3"),
    (lambda: body(k=gr.Parameter("kg")), "Plant.k: value must be a number or a formula"),
    (lambda: body(u=gr.Input(3.0)), "Plant.u: the unit must be a text"),
    (lambda: body(u=gr.Input(default=gr.Parameter())), "default of an input must be a number"),
    (
        lambda: body(k=gr.Parameter(1.0, bounds=(2.0, 1.0))),
        "Plant.k: the bounds are reversed or empty: 2 is not below 1",
    ),
    (lambda: body(k=gr.Parameter(5.0, bounds=(0.0, 1.0))), r"value 5 lies outside its bounds \[0, 1\]"),
    (lambda: body(k=gr.Parameter(1.0, bounds=3.0)), "bounds must be a pair"),
    (lambda: body(k=gr.Parameter(1.0, prior=3.0)), r"prior must be a law such as gr.Normal\(mean, std\)"),
    (lambda: body(k=gr.Parameter(1.0, transform="ln")), "transform must be 'auto', 'log' or None"),
    (lambda: body(k=gr.Parameter(1.0, transform="log", bounds=(-1, 2))), "lower bound is -1"),
    (lambda: body(x=gr.Variable(fixed=True)), "Plant.x: fixed=True needs a start value"),
    (lambda: body(x=gr.Variable(1.0, nominal=-1.0)), "nominal must be a positive number"),
    (lambda: body(y=gr.Output("V")), "Plant.y: the definition of an output is a formula; write unit='V'"),
    (lambda: body(y=gr.Output(gr.Variable(), noise=-0.1)), "cannot be negative"),
    (lambda: body(w=gr.Disturbance(0.5)), "Plant.w: a disturbance needs a spectrum"),
    (lambda: body(w=gr.Disturbance(gr.spectra.white(), scale=Pendulum.x)), "scale may depend on parameters only"),
    (lambda: body(w=gr.Disturbance(gr.spectra.lowpass(Pendulum.u))), "contains the input `u`"),
    (lambda: body(p=Pin), r"Plant.p is the class Pin, not an instance: write Pin\(\)"),
    (lambda: body(k=gr.Parameter([1.0, 2.0])), r"Plant.k: value has 2 entries; declare a vector with size=\(2,\)"),
    (moving_parameter, "Plant.k: value may depend on parameters only.*contains the variable `x`"),
    (circular_parameters, "is defined by itself"),
    (reused_declaration, "has already replaced Resistor.R"),
    (wrong_covariance, "'z' is not an output; outputs are y"),
    (lambda: Resistor().p == Resistor().n, r"== between connectors is refused.*gr.connect\(p, n\)"),
    (lambda: Pin() == Pin(), "== between connectors is refused"),
    (lambda: gr.connect(Resistor().p), "connect needs at least two ends"),
    (lambda: gr.connect(Resistor().p, Heater().port), "p is a Pin and port is a Port; only connectors of one class"),
    (lambda: gr.connect((r := Resistor()).p, r.p), "p is connected with itself"),
    (lambda: gr.connect(Resistor().p, 3.0), "`3.0` is a formula"),
    (lambda: gr.connect(Resistor().p, Capacitor()), "is a whole component; name one of its connectors"),
    (lambda: gr.connect(Resistor().p, "n"), "is neither a connector nor a signal"),
    (lambda: gr.connect(Resistor().p, Heater().u), "mixes connectors and signals"),
    (connected_twice, r"b.p and a.p are connected twice: at test_mistakes.py:\d+ and at"),
    (other_units, "the unit of v is 'mV' in p and 'V' in p"),
    (driven_twice, r"h.u is driven twice: it is bound to `2\*u`"),
    (no_source, "exactly one end must be a signal.*found none"),
    (two_sources, "exactly one end must be a signal.*found a.y, b.y"),
    (signal_units, "a.y is in 'K' and b.u in 'V'; convert between them"),
    (
        lambda: type("Bad", (gr.Connector,), {"R": gr.Parameter(1.0)}),
        "holds gr.Potential, gr.Flow and gr.Variable only",
    ),
    (lambda: flatten(Pendulum), r"Call the class: Pendulum\(\)"),
    (hidden_by_a_number, r"Slow.R = 7.0 hides a member of a parent class.*R = gr.Parameter"),
    (hidden_plain_value, r"Moon.g is declared, but Falling holds it as the plain value 9.81.*declare it in Falling"),
    (class_changed, r"classes do not change.*Plant\(k=…\)"),
    (plain_value_given, r"Plant.n is a plain value of the class \(3\).*gr.Parameter"),
    (condition_equated, r"condition `<variable> > 0` cannot be used as a number"),
    (lambda: -(Pendulum.x > 0), "cannot be used as a number"),
    (lambda: abs(Pendulum.x > 0), "cannot be used as a number"),
    (set_of_equations, r"equations is a set, which has no order; write a list"),
    (lambda: body(equations=None), r"equations is None"),
    (lambda: Pendulum.x / 0, "`x / 0` divides by the number zero"),
    (lambda: 10**400 * Pendulum.x, "beyond 1e308"),
    (lambda: Pendulum.x @ Pendulum.k, "@ needs arrays on both sides; `x` is a single quantity"),
    (lambda: divmod(Pendulum.x, 2), "gr.floor"),
    (lambda: gr.sin(Pendulum()), "type Pendulum cannot stand in a formula"),
    (lambda: gr.smooth_abs(Pendulum.x, "wide"), "The text 'wide' cannot stand in a formula"),
    (lambda: gr.smooth_sign(Pendulum.x, None), "None cannot stand in a formula"),
    (lambda: body(k=gr.Parameter(1.0, bounds="02")), "bounds must be a pair of numbers"),
    (lambda: body(x=gr.Variable(5.0, bounds=(0, 1))), r"Plant.x: the value 5 lies outside its bounds \[0, 1\]"),
    (lambda: body(w=gr.Disturbance(gr.spectra.white(), scale=-1.0)), "scale must be a number from zero up"),
    (lambda: body(parameter=gr.Variable()), "the name 'parameter' is reserved"),
    (lambda: body(noise_covariance={("a", "b"): 1.0})(), "noise_covariance must be a method that returns a dict"),
    (lambda: body(noise_covariance=lambda self: None)(), "noise_covariance must be a method that returns a dict"),
    (lambda: Pendulum().replace([("k", 1.0)]), r"the changes must be a dict such as .* got \[\('k', 1.0\)\] \(list\)"),
    (lambda: Pendulum().replace(k=1.0), r"replace takes a dict.*replace\(\{'k': 1.0\}\)"),
    (lambda: Pendulum(start="steady"), r"start must be a dict such as .* got 'steady'"),
    (lambda: Pendulum().parameters["kk"], r"Pendulum.parameters has no entry 'kk'. Did you mean 'k'"),
    (lambda: Pendulum().parameters.__setitem__("k", 1.0), "Pendulum.parameters is read-only"),
    (lambda: gr.MultivariateNormal(3, [0.0], [[1.0]]), "names must be a list of parameter names"),
]


@pytest.mark.parametrize(("mistake", "words"), MISTAKES, ids=[f"{i}-{w[:30]}" for i, (_, w) in enumerate(MISTAKES)])
def test_mistakes_are_named(mistake, words):
    with pytest.raises(ModelError, match=words):
        mistake()


def test_a_failed_class_body_leaves_nothing_behind():
    with pytest.raises(ZeroDivisionError):

        class Broken(gr.Model):
            x = gr.Variable()
            der(x) == 1
            y = 1 / 0

    class Fine(gr.Model):
        x = gr.Variable()
        equations = [der(x) == np.float64(1.0)]

    assert [e.text for e in flatten(Fine()).equations] == ["der(x) == 1"]


def test_unknown_parameters_still_are_key_errors():
    with pytest.raises(KeyError):
        Pendulum().parameters["kk"]
    assert "kk" not in Pendulum().parameters and Pendulum().parameters.get("kk") is None


def test_a_member_may_be_called_self():
    x = gr.Variable(1.0)
    plant = body(self=gr.Parameter(1.0), x=x, equations=[der(x) == 0])(self=2.0)
    assert plant.parameters["self"].value == 2.0


def test_names_in_texts_are_folded_like_identifiers():
    """Python reads the micro sign in an identifier as the Greek letter; a text keeps it."""
    x = gr.Variable(1.0)
    plant = body(**{"\u03bc": gr.Parameter(1.0)}, x=x, equations=[der(x) == 0])()
    assert plant.replace({"\u00b5": 3.0}).parameters["\u03bc"].value == 3.0


def test_functions_take_lists_of_formulas():
    assert [str(e) for e in gr.cos([Pendulum.x, Pendulum.y])] == ["cos(x)", "cos(y)"]
