"""A fit as users meet it: names that complete, mistakes that are answered, methods that are its own."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

import grisaille as gr
from grisaille.errors import EstimationError
from grisaille.estimation import Fitted


class Decay(gr.Model):
    """x' = −rate x."""

    rate = gr.Parameter(1.0, "1/s", bounds=(0.01, 50.0))
    gain = gr.Parameter(2.0)
    x = gr.Variable(2.0, "m")
    level = gr.Output(gain * x, unit="m")
    equations = [gr.der(x) == -rate * x]


@pytest.fixture(scope="module")
def fit() -> gr.Fit:
    t = np.linspace(0.0, 3.0, 16)
    y = 4 * np.exp(-0.7 * t) + 0.01 * np.random.default_rng(3).standard_normal(16)
    return gr.fit(Decay(), gr.Experiment(t, {}, {"level": y}), ["rate"], gr.OutputError())


def test_names_complete(fit: gr.Fit) -> None:
    assert fit._ipython_key_completions_() == ["rate", "noise(level)"]
    assert all(fit[name].name == name for name in fit)
    assert "rate" in fit and "noise(level)" in fit and "gain" not in fit and 0 not in fit
    assert fit.model.parameters._ipython_key_completions_() == ["rate", "gain"]


def test_methods_complete(fit: gr.Fit) -> None:
    asked = {"profile", "surface", "test", "diagnose", "states", "plot", "report", "save", "intervals", "predict"}
    assert asked | {"parameters", "model", "residuals", "simulate", "converged"} <= set(dir(fit))


def test_the_methods_are_written_in_the_class() -> None:
    """Nothing is attached from elsewhere, and nothing answers to any name."""
    for cls in (gr.Fit, Fitted):
        assert not hasattr(cls, "__getattr__")
        for name, value in vars(cls).items():
            if inspect.isfunction(value):
                assert value.__qualname__ == f"{cls.__name__}.{name}" or name == "__repr__"


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("Rate", r"has no 'Rate'; it has rate, noise\(level\)\. Did you mean 'rate'\?"),
        ("noise(lvel)", r"Did you mean 'noise\(level\)'\?"),
        ("gain", r"'gain' was not estimated, its value is in fit\.model; estimated: rate, noise\(level\)\."),
        ("x", r"has no 'x'; it has rate, noise\(level\)\. Trajectories are in fit\.predict\(\)\."),
        ("zzz", r"has no 'zzz'; it has rate, noise\(level\)\.$"),
        (0, r"has no 0; it has rate, noise\(level\)\.$"),
        (None, r"has no None; it has"),
    ],
)
def test_wrong_names_are_answered(fit: gr.Fit, name: object, said: str) -> None:
    with pytest.raises(EstimationError, match=said):
        fit[name]  # type: ignore[index]


def test_what_is_not_a_name_of_intervals_is_refused(fit: gr.Fit) -> None:
    with pytest.raises(EstimationError, match=r"give one of 'auto', 'bootstrap', 'profile', 'wald'"):
        fit.intervals(method="Wald")  # type: ignore[arg-type]
    with pytest.raises(EstimationError, match=r"samples= goes with method='bootstrap', not with 'wald'"):
        fit.intervals(method="wald", samples=50)
    with pytest.raises(EstimationError, match=r"level is 95"):
        fit.intervals(95)


def test_before_the_last_room_a_fit_knows_its_covariance_and_says_so(fit: gr.Fit) -> None:
    plain = Fitted(fit.initial_model, fit.experiments, fit.method, fit.estimate, fit.why)
    assert "Wald's, from the covariance alone" in str(plain)
    assert np.allclose(plain.limits().lower, fit.intervals(method="wald")["lower"])
    assert gr.Fit.of(plain).profile("rate", points=3).shape == "bounded"


def test_long_names_do_not_move_the_columns_of_the_table() -> None:
    class Line(gr.Model):
        slope_of_the_line_that_was_measured = gr.Parameter(1.0, "m/s", bounds=(-10.0, 10.0))
        b, x = gr.Parameter(0.0, "m", bounds=(-10.0, 10.0)), gr.Input()
        y = gr.Output(slope_of_the_line_that_was_measured * x + b)

    x = np.linspace(0, 1, 20)
    fit = gr.fit(
        Line(), gr.Experiment(inputs={"x": x}, outputs={"y": 2 * x + 0.01 * np.cos(9 * x)}), method=gr.OutputError()
    )
    lines = str(fit).splitlines()
    rows = [line for line in lines if line.startswith(("slope", "b ", "noise"))]
    assert len(rows) == 3 and len({line.index("[") + line[line.index("[") :].index("]") for line in rows}) == 1
    assert max(map(len, rows)) <= len(lines[1]), "and the rule is as wide"
