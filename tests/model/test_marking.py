"""Marking inputs, disturbances and outputs in a model whose equations are given."""

from __future__ import annotations

import numpy as np
import pytest

import grisaille as gr
from grisaille.errors import ModelError


class Drive(gr.Model):
    """A motor on a spring; the source is connected by an equality."""

    c = gr.Parameter(4.0)
    phi = gr.Variable(start=0.0, unit="rad")
    w = gr.Variable(start=0.0)
    torque = gr.Variable(unit="N.m")
    source = gr.Variable()
    end = gr.Variable()
    equations = [
        gr.der(phi) == w,
        gr.der(w) == torque - c * phi + end,
        source == torque,
        source == gr.sin(gr.time),
        end == 0 * w,
    ]


TIMES = np.linspace(0.0, 3.0, 7)


def test_a_variable_becomes_an_input_where_its_signal_enters() -> None:
    made = Drive().with_inputs({"torque": gr.Input("kN", default=1.0)})
    assert made._content.inputs["torque"].unit == "kN" and "torque" not in made._content.variables
    result = gr.simulate(made, TIMES, inputs={"torque": 2.0}, rtol=1e-9)
    np.testing.assert_allclose(result["phi"], 0.5 * (1 - np.cos(2 * TIMES)), atol=1e-7)
    np.testing.assert_allclose(result["source"], np.sin(TIMES), atol=1e-9)
    default = gr.simulate(made, TIMES, rtol=1e-9)
    np.testing.assert_allclose(default["phi"], 0.25 * (1 - np.cos(2 * TIMES)), atol=1e-7)


def test_the_source_itself_becomes_an_input() -> None:
    result = gr.simulate(Drive().with_inputs({"source": None}), TIMES, {"source": 2.0}, rtol=1e-9)
    np.testing.assert_allclose(result["torque"], 2.0)


def test_a_disturbance_is_added_in_the_equation_of_its_variable() -> None:
    made = Drive().with_disturbance("end", gr.spectra.lowpass(2.0), scale=0.3)
    assert list(made._content.disturbances) == ["end.disturbance"]
    result = gr.simulate(made, TIMES, realizations=2, seed=1)
    np.testing.assert_allclose(result["end"], result["end.disturbance"], atol=1e-12)
    assert float(np.abs(result["end"]).max()) > 0.01
    named = Drive().with_disturbance("end", gr.spectra.white(), label="gust")
    assert list(named._content.disturbances) == ["gust"]


class Tank(gr.Model):
    """A state whose derivative is inside a formula, a sensor of it, and an oscillator."""

    C = gr.Parameter(2.0)
    T = gr.Variable(start=1.0, unit="K")
    x, v = gr.Variable(start=1.0), gr.Variable(start=0.0)
    seen = gr.Variable()
    equations = [C * gr.der(T) == -T, seen == T, v == gr.der(x), gr.der(v) == -x]


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("T", "C*(der(T) - T.disturbance) = -T"), ("der(T)", "C*(der(T) - T.disturbance) = -T"),
        ("v", "der(v) = -x + v.disturbance"), ("der(x)", "v + x.disturbance = der(x)"),
    ],
)  # fmt: skip
def test_a_disturbance_of_a_state_is_added_to_its_derivative(name: str, shown: str) -> None:
    made = Tank().with_disturbance(name, gr.spectra.lowpass(2.0), scale=0.3)
    (disturbance,) = made._content.disturbances.values()
    assert disturbance.description.endswith(shown) and shown.replace(" = ", " == ") in str(made)


def test_derivatives_in_several_equations_do_not_say_where_a_signal_enters() -> None:
    class Two(gr.Model):
        a, b = gr.Variable(start=1.0), gr.Variable(start=0.0)
        equations = [gr.der(a) + gr.der(b) == -a, gr.der(a) - gr.der(b) == -b]

    with pytest.raises(ModelError, match=r"2 equations have der\(a\)"):
        Two().with_disturbance("a", gr.spectra.white())


def test_outputs_are_names_or_formulas() -> None:
    drive = Drive()
    made = drive.with_outputs({"angle": "phi", "twice": 2 * drive.phi, "rate": "der(phi)"}, noise={"angle": 0.1})
    assert made._content.outputs["angle"].unit == "rad"
    assert made._content.outputs["twice"].noise is None
    result = gr.simulate(made, TIMES)
    np.testing.assert_allclose(result["twice"], 2 * result["angle"])
    np.testing.assert_allclose(result["rate"], result["w"])


def test_outputs_have_laws() -> None:
    drive = Drive()
    law = {"count": gr.laws.NegativeBinomial(size=2 * drive.c), "angle": gr.Normal(std=0.1)}
    made = drive.with_outputs({"count": "phi", "angle": "phi"}, distribution=law)
    assert "count = phi [rad]  NegativeBinomial(size=2*c)" in str(made)
    assert "angle = phi [rad]  noise 0.1" in str(made)


def test_the_noise_of_an_output_can_be_replaced() -> None:
    drive = Drive()
    made = drive.with_outputs({"twice": 2 * drive.phi}, noise=0.3)
    again = made.with_outputs({"twice": "twice"}, distribution=gr.laws.Laplace(scale=0.1))
    assert "twice = 2*phi  Laplace(scale=0.1)" in str(again)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda m: m.with_inputs({"tork": None}), "no variable 'tork'. Did you mean 'torque'"),
        (lambda m: m.with_inputs({"c": None}), "'c' is a parameter, not a variable"),
        (lambda m: m.with_inputs({"phi": None}), "no equation gives 'phi' alone"),
        (lambda m: m.with_inputs(["torque"]), "takes a dict by name"),
        (lambda m: m.with_inputs({"torque": "high"}), "torque"),
        (lambda m: m.with_disturbance("end", 3.0), "needs a spectrum"),
        (lambda m: m.with_disturbance("end", gr.spectra.white(), label="w"), "has a member 'w' already"),
        (lambda m: m.with_disturbance("phi", gr.spectra.white()), "no equation gives 'phi' alone"),
        (lambda m: m.with_outputs({"y": "psi"}), "has no member 'psi'"),
        (lambda m: m.with_outputs({"w": "phi"}), "has a member 'w' already"),
        (lambda m: m.with_outputs({"y": "phi"}, noise="big"), "noise"),
        (lambda m: m.with_outputs({"y": "phi"}, distribution="poisson"), "must be a law such as"),
        (lambda m: m.with_outputs({"y": "phi"}, noise=1, distribution=gr.laws.Poisson()), "give one of them"),
        (lambda m: m.with_outputs({"y": "phi"}, distribution={"x": gr.laws.Poisson()}), "distribution= names 'x'"),
    ],
)
def test_mistakes(change: object, words: str) -> None:
    with pytest.raises(ModelError, match=words):
        change(Drive())  # type: ignore[operator]
