"""Measured outputs of infinite variance: refused at the guess, by every estimator in the same words."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import grisaille as gr
from grisaille import der, spectra
from grisaille.bound_experiment import BoundExperiment, EstimatedQuantities, refuse_infinite_variance
from grisaille.errors import EstimationError

TIMES = np.linspace(0.0, 2.0, 9)
METHODS = [
    gr.OutputError(),
    gr.OutputError(shooting="multiple", pieces=2),
    gr.KalmanML(),
    gr.Collocation(),
    gr.SimulatedPEM(realizations=2),
    "auto",
]


class TwoBodies(gr.Model):
    """Two masses joined rigidly under white forces: the speed can be measured, the force between them cannot."""

    a = gr.Parameter(1.0, bounds=(0.1, 5.0))
    v1, v2, f = gr.Variable(0.0), gr.Variable(0.0), gr.Variable()
    w1, w2 = gr.Disturbance(spectra.white()), gr.Disturbance(spectra.white())
    speed, bad = gr.Output(v1, noise=0.1), gr.Output(f, noise=0.1)
    equations = [der(v1) == -a * v1 + f + w1, der(v2) == -f + w2, v1 == v2]


class Differentiated(gr.Model):
    """The rate of a first-order disturbance is white noise."""

    a = gr.Parameter(1.0, bounds=(0.1, 5.0))
    x, z = gr.Variable(0.0), gr.Variable()
    w = gr.Disturbance(spectra.lowpass(2.0))
    speed, bad = gr.Output(x, noise=0.1), gr.Output(z, noise=0.1)
    equations = [der(x) == -a * x + w, z == der(w)]


class Squared(gr.Model):
    """White noise in a square has no meaning."""

    a = gr.Parameter(1.0, bounds=(0.1, 5.0))
    x = gr.Variable(0.0)
    w = gr.Disturbance(spectra.white())
    bad = gr.Output(x, noise=0.1)
    equations = [der(x) == -a * x + w**2]


class Gauged(gr.Model):
    """White noise in an output, behind a nonlinear state."""

    a = gr.Parameter(1.0, bounds=(0.1, 5.0))
    x = gr.Variable(1.0)
    w = gr.Disturbance(spectra.white())
    bad = gr.Output(x * (1 + w), noise=0.1)
    equations = [der(x) == -a * x**3]


class Instant(gr.Model):
    """A state that follows white noise at once, because its time constant is zero."""

    a, tau = gr.Parameter(1.0, bounds=(0.1, 5.0)), gr.Parameter(0.0)
    x = gr.Variable(1.0)
    w = gr.Disturbance(spectra.white())
    bad = gr.Output(x, noise=0.1)
    equations = [tau * der(x) == -a * x + w]


MODELS = [TwoBodies(), Differentiated(), Squared(), Gauged(), Instant()]


@pytest.mark.parametrize("model", MODELS, ids=lambda m: type(m).__name__)
def test_every_estimator_refuses_in_the_same_words(model: gr.Model) -> None:
    data = gr.Experiment(TIMES, outputs={"bad": np.sin(TIMES)})
    words = rf"gr.fit of {type(model).__name__} is not a well-posed problem. Output bad has infinite variance: w"
    said = set()
    for method in METHODS:
        with pytest.raises(EstimationError, match=words) as error:
            gr.fit(model, data, ["a"], method)
        said.add(str(error.value))
    assert len(said) == 1


def test_what_is_not_measured_may_have_infinite_variance() -> None:
    for model in (TwoBodies(), Differentiated()):
        data = gr.Experiment(TIMES, outputs={"speed": np.sin(TIMES)})
        assert np.isfinite(gr.evaluate(model, data, gr.OutputError(), {"a": 1.0}).objective)


class Doubtful(gr.Model):
    """Derivatives that are counted reach the output whatever the values; at c = 1 they cancel."""

    c = gr.Parameter(1.0)
    x, z = gr.Variable(0.0), gr.Variable()
    w = gr.Disturbance(spectra.lowpass(2.0))
    y = gr.Output(x + z - c * z)
    equations = [der(x) == -x + w, z == der(w)]


@pytest.mark.parametrize(("c", "finite"), [(1.0, True), (0.5, False), (1.0 + 1e-6, False)])
def test_values_of_the_point_decide(c: float, finite: bool) -> None:
    data = gr.Experiment(TIMES, outputs={"y": np.zeros(len(TIMES))}, name="run")
    point = BoundExperiment.of(Doubtful(), data, EstimatedQuantities.named(["c"])).at([c])
    if finite:
        refuse_infinite_variance(point)
    else:
        with pytest.raises(EstimationError, match="infinite variance"):
            refuse_infinite_variance(point)


def test_counting_is_enough_where_it_shows_finite_variance(monkeypatch: pytest.MonkeyPatch) -> None:
    """The linearised equations of a model that needs no more than counting are not looked at."""

    def never(*_: Any, **__: Any) -> None:
        raise AssertionError

    monkeypatch.setattr("grisaille.bound_experiment.shared_refusals.examine", never)
    for model in (TwoBodies(), Differentiated()):
        data = gr.Experiment(TIMES, outputs={"speed": np.zeros(len(TIMES))}, name="run")
        refuse_infinite_variance(BoundExperiment.of(model, data).at())
