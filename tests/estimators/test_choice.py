"""``method="auto"``: which estimator is taken for which model, and the reasons that are given."""

from __future__ import annotations

import numpy as np
import pytest

import grisaille as gr
from grisaille import der
from grisaille.errors import EstimationError
from grisaille.estimators import choose_method

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
    assert list(why) == ["OutputError", "KalmanML", "SimulatedPEM", "Collocation", "ParticleML"]
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


class Late(Line):
    """A state that is measured where it arrives later."""

    late = gr.Output(gr.delay(Line.x, 0.7), noise=0.1)


class Returning(Line):
    """The past of a state in the equations."""

    equations = [der(Line.x) == -Line.k * gr.delay(Line.x, 0.5) + Line.w]


@pytest.mark.parametrize(("model", "wanted", "match"), [
    (Late, ["k"], "mean"), (Late, ["k", "scale(w)"], "mean-variance"), (Returning, ["k"], "mean"),
    (Returning, ["k", "noise(y)"], "mean-variance"),
])  # fmt: skip
def test_what_no_filter_follows_is_simulated(model, wanted, match):
    method, why = choose_method("auto", model(), data(), wanted)
    assert method == gr.SimulatedPEM(match=match)
    assert "the past of an unknown" in why["KalmanML"] and "the past of an unknown" in why["Collocation"]


def test_what_the_first_choice_refuses_the_next_one_takes(monkeypatch):
    def refuse(self, question):
        raise EstimationError("filters are closed today.")

    monkeypatch.setattr(gr.KalmanML, "pose", refuse)
    fit = gr.fit(Line(), data(), ["k"])
    assert type(fit.method) is gr.SimulatedPEM
    assert fit.why["KalmanML"] == "refused: filters are closed today."
    assert fit.why["SimulatedPEM"].startswith("chosen: KalmanML would come first, but refuses")
    study = gr.multistart(Line(), data(), ["k"], starts=1, executor="serial", progress=False)
    assert type(study.best.method) is gr.SimulatedPEM
    with pytest.raises(EstimationError, match="filters are closed today"):
        gr.fit(Line(), data(), ["k"], gr.KalmanML())
    with pytest.raises(EstimationError, match=r"Nearest: k") as unknown:
        gr.fit(Line(), data(), estimate=["K"])
    assert "says" not in str(unknown.value)


def test_where_none_takes_it_each_says_why(monkeypatch):
    def refuse(self, question):
        raise EstimationError(f"not with {type(self).__name__}.")

    for kind in (gr.KalmanML, gr.SimulatedPEM):
        monkeypatch.setattr(kind, "pose", refuse)
    words = (
        r"No method takes Line with these data\. gr\.KalmanML\(\) says: not with KalmanML\. gr\.SimulatedPEM\(\) says"
    )
    with pytest.raises(EstimationError, match=words):
        gr.fit(Line(), data(), ["k"])
