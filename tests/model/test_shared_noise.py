"""What ``noise_covariance`` may return: numbers, formulas, ``"full"``; and what it may not."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

import grisaille as gr
from grisaille import der
from grisaille.errors import ModelError
from grisaille.model import flatten
from grisaille.model.measurement import correlations_of, covariance_formulas, is_correlation


class Sensors(gr.Model):
    """Three sensors, two of unknown noise."""

    k = gr.Parameter(0.4, bounds=(0.05, 5.0))
    x = gr.Variable(1.0)
    y1, y2, y3 = gr.Output(x), gr.Output(x), gr.Output(x, noise=0.1)
    equations = [der(x) == -k * x]


def returning(what: Any, base: type[gr.Model] = Sensors) -> type[gr.Model]:
    return type("Tied", (base,), {"noise_covariance": lambda self: what})


def test_full_is_a_correlation_of_each_pair() -> None:
    model = returning("full")()
    names = ["correlation(y1, y2)", "correlation(y1, y3)", "correlation(y2, y3)"]
    assert [n for n in model.parameters if is_correlation(n)] == names
    assert model.parameters[names[0]].bounds == (-1.0, 1.0) and model.parameters[names[0]].value == 0.0
    flat = flatten(model)
    assert str(flat.noise_covariance["y1", "y2"]) == "correlation(y1, y2)*noise(y1)*noise(y2)"
    assert str(covariance_formulas(flat, ["y1", "y3"])["y1", "y3"]) == "correlation(y1, y3)*noise(y1)*0.1"
    assert correlations_of(flat, ["y1", "y3"]) == names[1:2]
    assert (
        "cov(y1, y2) = correlation(y1, y2)*noise(y1)*noise(y2)" in str(model) and "cov(y1, y2)" in model._repr_html_()
    )
    some = returning({("y1", "y2"): "full", (Sensors.y2, Sensors.y3): 0.002})()
    assert correlations_of(flatten(some), ["y1", "y2", "y3"]) == names[:1]


def test_full_of_a_part_keeps_its_names() -> None:
    class Plant(gr.Model):
        part = returning({("y1", "y2", "y3"): "full"})()
        shared = gr.Parameter(0.01)
        z = gr.Output(part.x, noise=0.2)
        equations: list[Any] = []

        def noise_covariance(self) -> dict[Any, Any]:
            return {("z", "part.y3"): self.shared}

    model = Plant().replace({"part.correlation(y1, y2)": 0.3})
    covariances = {pair: str(f) for pair, f in flatten(model).noise_covariance.items()}
    assert covariances["part.y1", "part.y2"] == "part.correlation(y1, y2)*noise(part.y1)*noise(part.y2)"
    assert covariances["z", "part.y3"] == "shared"
    again = pickle.loads(pickle.dumps(model))
    assert again.fingerprint == model.fingerprint and again.parameters["part.correlation(y1, y2)"].value == 0.3


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("all", "or \"full\" for all outputs, got 'all'"),
        ({("y1", "y2"): "ful"}, r'of y1, y2 is \'ful\': give a number, a formula, or "full"'),
        ({("y1", "y2", "y3"): 0.1}, 'keys are pairs of outputs .*, or several with the value "full"'),
        ({("y1", "y1"): 0.1}, "names 'y1' with itself: its variance is the square of its noise"),
        ({("y1", "y2"): 0.1, ("y2", "y1"): 0.1}, "gives the covariance of y2 and y1 twice"),
        ({("y1", "y4"): "full"}, "'y4' is not an output"),
    ],
)
def test_mistakes(given: Any, said: str) -> None:
    with pytest.raises(ModelError, match=said):
        returning(given)()


def test_other_laws_have_no_covariance() -> None:
    class Counted(Sensors):
        y3 = gr.Output(Sensors.x, distribution=gr.laws.Student(df=4, scale=0.1))

    with pytest.raises(ModelError, match="'y3' is measured by the law Student: only normal noise has covariances"):
        flatten(returning("full", Counted)())
    flatten(returning({("y1", "y2"): "full"}, Counted)())
