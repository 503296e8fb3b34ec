"""Initial equations under every estimator: the start moves with the parameters, x₀ = (−1 + √(1 + k q)) / k."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import grisaille as gr
from grisaille import der
from grisaille.errors import EstimationError

TIMES = np.linspace(0.0, 3.0, 31)
TRUTH = {"k": 1.5, "q": 2.5}


class Settled(gr.Model):
    """At rest in x when it begins, with twice as much in y; declared starts are far from that."""

    k = gr.Parameter(2.0, bounds=(0.1, 10.0))
    q = gr.Parameter(3.0, bounds=(0.1, 10.0))
    x, y = gr.Variable(start=0.5), gr.Variable(start=0.1)
    a, b = gr.Output(x, noise=0.01), gr.Output(y, noise=0.01)
    equations = [der(x) == q - k * x * x - y + gr.sin(gr.time), der(y) == 0.5 * x - y]
    initial = [der(x) == 0, y == 2 * x]


def start(k: float, q: float) -> float:
    return float((-1.0 + np.sqrt(1.0 + k * q)) / k)


@pytest.fixture(scope="module")
def data() -> gr.Experiment:
    run = gr.simulate(Settled().replace(TRUTH), TIMES, noise=True, seed=1)
    assert float(run["x"][0]) == pytest.approx(start(**TRUTH), abs=1e-9)
    return gr.Experiment(TIMES, {}, {n: run[n].values for n in "ab"})


@pytest.fixture(scope="module")
def by_output_error(data: gr.Experiment) -> Any:
    return gr.fit(Settled(), data, ["k", "q"], gr.OutputError(), progress=False)


def test_output_error_finds_them_and_the_start_they_give(by_output_error: Any) -> None:
    for name, value in TRUTH.items():
        assert abs(float(by_output_error[name]) - value) < 3 * by_output_error[name].std_error
    found = {n: float(by_output_error[n]) for n in TRUTH}
    assert float(by_output_error.simulate(TIMES)["x"][0]) == pytest.approx(start(**found), abs=1e-8)


@pytest.mark.parametrize("method", [gr.KalmanML(), gr.Collocation()], ids=lambda m: type(m).__name__)
def test_without_a_disturbance_every_estimator_says_the_same(
    method: Any, data: gr.Experiment, by_output_error: Any
) -> None:
    fit = gr.fit(Settled(), data, ["k", "q"], method, progress=False)
    for name in TRUTH:
        assert abs(float(fit[name]) - float(by_output_error[name])) < 0.02 * by_output_error[name].std_error


def test_the_gradient_holds_the_start_that_moves(data: gr.Experiment) -> None:
    def at(k: float) -> Any:
        return gr.evaluate(Settled(), data, method=gr.OutputError(), parameters={"k": k, "q": 2.4})

    slope = (at(1.5 + 1e-5).objective - at(1.5 - 1e-5).objective) / 2e-5
    assert at(1.5).gradient["k"] == pytest.approx(slope, rel=1e-4)


@pytest.mark.parametrize(
    ("method", "words"),
    [
        (gr.OutputError(), r"tied by 'der\(x\) == 0 \(at the start\)'"),
        (gr.Collocation(), r"'start\(x\)' cannot be chosen freely: .*initial equations"),
    ],
    ids=lambda m: type(m).__name__,
)
def test_a_start_that_they_dictate_is_not_estimated(method: Any, words: str, data: gr.Experiment) -> None:
    with pytest.raises(EstimationError, match=words):
        gr.fit(Settled(), data, ["k", "start(x)"], method, progress=False)


def test_multiple_shooting_begins_where_they_do_not_hold(data: gr.Experiment) -> None:
    with pytest.raises(EstimationError, match=r"begins anew inside the record, where 'der\(x\) == 0"):
        gr.fit(Settled(), data, ["k"], gr.OutputError(shooting="multiple"), progress=False)
