"""Repeated ensembles of one experiment: what is left out, what is chosen once and kept."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import grisaille as gr
from grisaille import der, spectra
from grisaille.bound_experiment import BoundExperiment, EstimatedQuantities
from grisaille.simulation.ensembles import EnsembleOptions, EnsembleRunner

TIMES = np.linspace(0.0, 1.0, 6)


def runner(model: gr.Model, outputs: list[str], names: list[str], **options: Any) -> EnsembleRunner:
    chosen = EnsembleOptions(4, **options)
    return EnsembleRunner(BoundExperiment(model, TIMES, moves=EstimatedQuantities.named(names)), outputs, chosen)


class Differentiated(gr.Model):
    """The rate of a first-order disturbance is white noise."""

    a = gr.Parameter(1.0, bounds=(0.1, 5.0))
    x, z = gr.Variable(0.0), gr.Variable()
    w = gr.Disturbance(spectra.lowpass(2.0))
    y, rate = gr.Output(x, noise=0.1), gr.Output(z, noise=0.1)
    equations = [der(x) == -a * x + w, z == der(w)]


def test_what_is_not_measured_may_have_infinite_variance():
    """The rate is left out; the state goes on as in the model without it."""

    class Plain(gr.Model):
        x = gr.Variable(0.0)
        w = gr.Disturbance(spectra.lowpass(2.0))
        y = gr.Output(x)
        equations = [der(x) == -x + w]

    found, plain = (runner(m, ["y"], []).predict(np.zeros(0), sensitive=False) for m in (Differentiated(), Plain()))
    assert found.completed
    np.testing.assert_allclose(found.mean, plain.mean, rtol=1e-12)
    with pytest.raises(gr.GrisailleError, match=r"Output rate .* infinite variance.*well_posedness"):
        gr.simulate(Differentiated(), TIMES, realizations=2)


def test_internal_variables_of_infinite_variance_are_left_out():
    class Inside(gr.Model):
        x, z = gr.Variable(0.0), gr.Variable()
        w = gr.Disturbance(spectra.lowpass(2.0))
        equations = [der(x) == -x + w, z == der(w)]

    run = gr.simulate(Inside(), TIMES, realizations=2)
    assert "x" in run and "w" in run and "z" not in run


class Rate(gr.Model):
    """dx = κ(1 − x) dt + √x dω: zero may be reached when 2κ < 1."""

    kappa = gr.Parameter(1.0)
    x = gr.Variable(1.0)
    w = gr.Disturbance(spectra.white())
    y = gr.Output(x)
    equations = [der(x) == kappa * (1 - x) + gr.sqrt(gr.maximum(x, 0)) * w]


class Coloured(gr.Model):
    b = gr.Parameter(2.0)
    x = gr.Variable(1.0)
    w = gr.Disturbance(spectra.lowpass(b))
    y = gr.Output(x)
    equations = [der(x) == -x + w**2]


@pytest.mark.parametrize(
    ("model", "name", "inside", "outside"), [(Rate(), "kappa", 1.0, 0.4), (Coloured(), "b", 2.0, 20.0)]
)
def test_the_discretisation_is_chosen_at_the_first_call_and_kept(model, name, inside, outside):
    """Elsewhere the choice would be another one; the statistics must not jump."""
    kept = runner(model, ["y"], [name])
    chosen = kept.discretise(np.array([inside]))
    kept = kept.on(chosen)
    ends = [kept.predict(np.array([outside + h]), sensitive=False).mean for h in (1e-5, -1e-5)]
    slope = kept.predict(np.array([outside]), sensitive=True).mean_slopes[..., 0]
    assert kept.grid == chosen and chosen.substeps and chosen.step
    np.testing.assert_allclose(slope, (ends[0] - ends[1]) / 2e-5, rtol=1e-5, atol=1e-7)
    if name == "kappa":
        assert chosen.method == "lamperti"


class Loop(gr.Model):
    """An algebraic equation that must be solved in every step."""

    b = gr.Parameter(2.0)
    x, z = gr.Variable(1.0), gr.Variable(0.5)
    w = gr.Disturbance(spectra.lowpass(b), scale=0.4)
    y = gr.Output(x)
    equations = [der(x) == -b * z, z + 0.1 * z**3 == x + w]


def test_steps_of_implicit_models_are_kept_too():
    made = runner(Loop(), ["y"], ["b"], step=0.1, rtol=1e-5)
    chosen, other = (made.discretise(np.array([b])) for b in (0.5, 8.0))
    assert other.inner_step < 0.9 * chosen.inner_step, "the choice would have been another one"
    kept = made.on(chosen)
    assert made.on(chosen).refined(np.array([8.0])).grid == replace(chosen, inner_step=other.inner_step)
    assert made.on(other).refined(np.array([0.5])).grid == other, "never longer ones"
    ends = [kept.predict(np.array([8.0 + h]), sensitive=False).mean for h in (1e-4, -1e-4)]
    slope = kept.predict(np.array([8.0]), sensitive=True).mean_slopes[..., 0]
    assert kept.grid == chosen
    np.testing.assert_allclose(slope, (ends[0] - ends[1]) / 2e-4, rtol=1e-5, atol=1e-6)
