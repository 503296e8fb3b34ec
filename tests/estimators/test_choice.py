"""``method="auto"``: which estimator is taken for which model, and the reasons that are given."""

from __future__ import annotations

import numpy as np
import pytest

import grisaille as gr
from grisaille import der
from grisaille.errors import EstimationError
from grisaille.estimators.choice import choose_method

TIMES = np.linspace(0.0, 5.0, 41)


class Still(gr.Model):
    k = gr.Parameter(0.5, bounds=(0.1, 2.0))
    x = gr.Variable(start=1.0)
    y = gr.Output(x, noise=0.1)
    equations = [der(x) == -k * x]


class Line(gr.Model):
    k = gr.Parameter(0.5, bounds=(0.1, 2.0))
    x = gr.Variable(start=1.0)
    w = gr.Disturbance(gr.spectra.white(), scale=0.1)
    y = gr.Output(x, noise=0.1)
    equations = [der(x) == -k * x + w]


class Curve(Line):
    equations = [der(Line.x) == -Line.k * Line.x**2 + Line.w]


class Squared(gr.Model):
    k = gr.Parameter(0.5, bounds=(0.1, 2.0))
    x = gr.Variable(start=1.0)
    w = gr.Disturbance(gr.spectra.lowpass(bandwidth=2.0), scale=0.3)
    y = gr.Output(x, noise=0.1)
    equations = [der(x) == -k * x + w**2]


class Table(gr.Model):
    a = gr.Parameter(1.0, bounds=(0.0, 3.0))
    u = gr.Input()
    y = gr.Output(a * u, noise=0.1)
    equations = []


def data():
    return gr.Experiment(TIMES, {}, {"y": np.exp(-0.5 * TIMES)})


@pytest.mark.parametrize(("model", "chosen", "reason"), [
    (Still, "OutputError", "no disturbances"),
    (Line, "KalmanML", "linear in its states"),
    (Curve, "KalmanML", "extended filter"),
    (Squared, "SimulatedPEM", "simulates w"),
])  # fmt: skip
def test_the_choice_and_its_reasons(model, chosen, reason):
    method, why = choose_method("auto", model(), data())
    assert type(method).__name__ == chosen
    assert list(why) == ["OutputError", "KalmanML", "SimulatedPEM", "Collocation"]
    assert why[chosen].startswith("chosen:")
    assert reason in why[chosen]
    assert all(text.startswith(("refused:", "possible")) for name, text in why.items() if name != chosen)


def test_static_models_are_compared_row_by_row():
    u = np.linspace(0.0, 1.0, 9)
    fit = gr.fit(Table(), gr.Experiment(None, {"u": u}, {"y": 2 * u}))
    assert float(fit["a"]) == pytest.approx(2.0)
    assert "static" in fit.why["OutputError"]
    assert "static" in fit.why["KalmanML"]


def test_levels_are_estimated_by_likelihood_even_without_disturbances():
    fit = gr.fit(Still(), data(), estimate=["k", "noise(y)"])
    assert type(fit.method).__name__ == "KalmanML"
    assert "does not estimate 'noise(y)'" in fit.why["OutputError"]


def test_a_fit_tells_why():
    fit = gr.fit(Line(), data(), estimate=["k"])
    assert type(fit.method).__name__ == "KalmanML"
    assert fit.why["OutputError"].startswith("refused: it would hold the disturbances w at zero")
    given = gr.fit(Line(), data(), estimate=["k"], method=gr.OutputError())
    assert given.why == {"OutputError": "given"}


def test_words_for_wrong_methods():
    with pytest.raises(EstimationError, match="make an instance"):
        gr.fit(Line(), data(), method=gr.KalmanML)
    with pytest.raises(EstimationError, match="method is 'kalman'"):
        gr.fit(Line(), data(), method="kalman")
    with pytest.raises(EstimationError, match=r"Nearest: k"):
        gr.fit(Line(), data(), estimate=["K"])


def test_estimators_by_name() -> None:
    """As problem folders have them."""
    assert choose_method("KalmanML")[0] == gr.KalmanML() and choose_method("OutputError")[0] == gr.OutputError()
    with pytest.raises(
        gr.EstimationError, match=r"method is 'kalman', which is no estimator\. Did you mean 'KalmanML'"
    ):
        choose_method("kalman")
