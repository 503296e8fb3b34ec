"""Variable projection: linear unknowns are found symbolically and solved for; the answer is the same, found sooner."""

from __future__ import annotations

import numpy as np

import grisaille as gr
from grisaille import der, exp
from grisaille.estimators import build_problem
from grisaille.estimators.output_error import linear_unknowns


class Exponentials(gr.Model):
    """y = a e^{−bx} + c e^{−dx}."""

    a, b, c, d = gr.Parameter(1.0), gr.Parameter(0.5), gr.Parameter(1.0), gr.Parameter(3.0)
    x = gr.Input()
    y = gr.Output(a * exp(-b * x) + c * exp(-d * x))


X = np.linspace(0, 5, 60)
Y = 2.0 * np.exp(-0.4 * X) - 1.3 * np.exp(-2.5 * X)
DATA = gr.Experiment(inputs={"x": X}, outputs={"y": Y + 0.001 * np.random.default_rng(2).standard_normal(60)})
NAMES = ["a", "b", "c", "d"]


def is_linear(model: gr.Model, names: list[str], data: gr.Experiment = DATA) -> list[bool]:
    return linear_unknowns(build_problem(model, data, names, gr.OutputError())).tolist()


def test_amplitudes_are_linear_rates_are_not() -> None:
    assert is_linear(Exponentials(), NAMES) == [True, False, True, False]


def test_products_of_unknowns_are_not_jointly_linear() -> None:
    class Product(gr.Model):
        a, b = gr.Parameter(1.0), gr.Parameter(1.0)
        x = gr.Input()
        y = gr.Output(a * b * x)

    assert sum(is_linear(Product(), ["a", "b"])) == 1


def test_relations_of_unknowns_are_not_linear() -> None:
    class Stairs(gr.Model):
        a, b, c = gr.Parameter(1.0), gr.Parameter(0.3), gr.Parameter(2.0)
        x = gr.Input()
        y = gr.Output(a * x + gr.where(b > x, 0.0, 1.0) + gr.floor(c))

    system = build_problem(Stairs(b=0.3), DATA, ["a"], gr.OutputError())
    assert linear_unknowns(system).tolist() == [True]
    assert is_linear(Stairs(), ["a", "c"]) == [True, False]


def test_parameters_of_the_dynamics_are_not_linear() -> None:
    class Gain(gr.Model):
        k, g = gr.Parameter(1.0), gr.Parameter(2.0)
        s = gr.Variable(1.0)
        y = gr.Output(g * s)
        equations = [der(s) == -k * s]

    data = gr.Experiment(X, outputs={"y": Y})
    assert is_linear(Gain(), ["k", "g"], data) == [False, True]


def test_bounded_unknowns_are_searched() -> None:
    model = Exponentials(a=gr.Parameter(1.0, bounds=(0.0, 10.0)))
    assert is_linear(model, NAMES) == [False, False, True, False]


def test_same_minimum_with_fewer_iterations() -> None:
    with_projection = gr.fit(Exponentials(), DATA, NAMES, gr.OutputError())
    without = gr.fit(Exponentials(), DATA, NAMES, gr.OutputError(projection=False))
    assert np.allclose(with_projection.estimate.theta, without.estimate.theta, rtol=1e-7)
    assert np.allclose(with_projection.std_errors, without.std_errors, rtol=1e-6)
    assert len(with_projection.trace) <= len(without.trace)


def test_linear_parameters_of_each_run() -> None:
    """A factor that every run has for itself is one symbol of the model and several unknowns."""

    class Decay(gr.Model):
        a, b = gr.Parameter(1.0), gr.Parameter(0.5)
        x = gr.Input()
        y = gr.Output(a * exp(-b * x))

    runs = [
        gr.Experiment(inputs={"x": X}, outputs={"y": a * np.exp(-0.7 * X)}, name=name)
        for name, a in (("A", 2.0), ("B", 3.0))
    ]
    fit = gr.fit(Decay(), runs, ["a", "b"], gr.OutputError(), local=["a"])
    assert fit.names == ("a@A", "a@B", "b")
    assert np.allclose(fit.estimate.theta, [2.0, 3.0, 0.7], rtol=1e-6)
