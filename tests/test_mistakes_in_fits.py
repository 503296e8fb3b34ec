"""Mistakes that newcomers make with fits: each is answered by one of our own errors, with what was probably meant."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import grisaille as gr
from grisaille import der
from grisaille.errors import EstimationError, GrisailleError, ModelError


class Tank(gr.Model):
    """A tank that is filled, runs out and is rained into."""

    k = gr.Parameter(0.5, "1/s", bounds=(0.01, 5.0))
    h = gr.Variable(1.0, "m")
    u = gr.Input("m/s")
    rain = gr.Disturbance(gr.spectra.lowpass(bandwidth=1.0), scale=0.1)
    y = gr.Output(h, noise=0.01, unit="m")
    equations = [der(h) == u - k * h + rain]


TIMES = np.linspace(0.0, 5.0, 11)
DATA = gr.Experiment(TIMES, {"u": 1.0}, {"y": 2 - np.exp(-0.5 * TIMES)}, name="a")
METHOD = gr.OutputError()


def fitted(*arguments: Any, **options: Any) -> gr.Fit:
    return gr.fit(Tank(), DATA, *arguments, method=METHOD, **options)


@pytest.fixture(scope="module")
def fit() -> gr.Fit:
    return fitted()


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("h", r"It is a variable: its value at the first instant is 'start\(h\)'"),
        ("rain", r"It is a disturbance: its level is 'scale\(rain\)'"),
        ("u", "It is an input: it belongs to the data"),
        ("y", "It is an output: it belongs to the data"),
        ("K", "Nearest: k"),
    ],
)
def test_names_of_the_wrong_kind(name: str, words: str) -> None:
    with pytest.raises(EstimationError, match=words):
        fitted([name])


@pytest.mark.parametrize(
    ("local", "words"), [(["q"], "local= names 'q'.*there are k"), ("k", r"list of names: \['k'\]")]
)
def test_local_names_must_be_estimated(local: Any, words: str) -> None:
    with pytest.raises(EstimationError, match=words):
        fitted(local=local)


def test_bounds_are_pairs() -> None:
    with pytest.raises(EstimationError, match=r"The bounds of 'k' are 3; give \(low, high\)"):
        fitted(bounds={"k": 3})


def test_local_takes_members_as_estimate_does() -> None:
    model = Tank()
    pair = [DATA, DATA.replace(name="b")]
    assert gr.fit(model, pair, [model.k], METHOD, local=[model.k]).names == ("k@a", "k@b")


@pytest.mark.parametrize(
    ("ask", "words"),
    [
        (lambda fit: fit["h"], r"The fit has no 'h'; it has k\. Trajectories are in fit\.predict"),
        (lambda fit: fit.predict(TIMES), r"experiment is an array .* For other times and inputs use fit\.simulate"),
        (lambda fit: gr.bootstrap(fit.parameters), "fit is a DataFrame; give a fit, as gr.fit gives it"),
    ],
)
def test_questions_to_a_fit(fit: gr.Fit, ask: Callable[[gr.Fit], Any], words: str) -> None:
    with pytest.raises(GrisailleError, match=words):
        ask(fit)


def test_noise_is_declared_not_given() -> None:
    with pytest.raises(ModelError, match=r"The noise of an output is declared: gr.Output\(…, noise=…\)"):
        gr.simulate(Tank(), TIMES, {"u": 1.0}, {"noise(y)": 0.1})


def test_a_root_of_zero_is_named() -> None:
    class Between(gr.Model):
        a = gr.Parameter(0.1, bounds=(0.01, 1.0))
        x, z = gr.Variable(0.2), gr.Variable(0.2)
        y = gr.Output(x)
        equations = [der(x) == -a * gr.sign(x - z) * gr.sqrt(abs(x - z)), der(z) == a * gr.sqrt(z) - a]

    data = gr.Experiment(TIMES, outputs={"y": np.full(11, 0.2)})
    with pytest.raises(EstimationError, match="root of zero, whose slope is infinite, near"):
        gr.fit(Between(), data, ["a", "start(x)"], METHOD)
