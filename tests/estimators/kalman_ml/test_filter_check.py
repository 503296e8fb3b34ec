"""Fits of strongly nonlinear plants say that their filter approximates, and others do not."""

from __future__ import annotations

import numpy as np
import pytest

import grisaille as gr
from grisaille import der

WHITE = gr.spectra.white


class Well(gr.Model):
    """A process with two wells."""

    a = gr.Parameter(0.7, bounds=(0.05, 5.0))
    x = gr.Variable(1.0)
    w = gr.Disturbance(WHITE(), scale=0.5)
    y = gr.Output(x, noise=0.5)
    equations = [der(x) == a * x - x**3 + w]


class Drop(gr.Model):
    """A drop in a tilted well, seen through a bent sensor."""

    a = gr.Parameter(1.2, bounds=(0.05, 5.0))
    x = gr.Variable(0.5)
    w = gr.Disturbance(WHITE(), scale=0.9)
    y = gr.Output(gr.exp(0.8 * x), noise=0.3)
    equations = [der(x) == a * gr.sin(2 * x) - 0.2 * x + w]


class Flipped(gr.Model):
    """Seen through its square, so that its sign is not: the extended filter sees nothing of a mean at zero."""

    k = gr.Parameter(0.5, bounds=(0.05, 5.0))
    x = gr.Variable(0.0)
    w = gr.Disturbance(WHITE(), scale=0.7)
    y = gr.Output(x**2 / 2, noise=0.1)
    equations = [der(x) == -k * x + w]


class Tank(gr.Model):
    """Weakly nonlinear."""

    k = gr.Parameter(0.5, bounds=(0.05, 5.0))
    h = gr.Variable(1.0)
    w = gr.Disturbance(WHITE(), scale=0.02)
    y = gr.Output(h, noise=0.02)
    equations = [der(h) == 0.6 - k * gr.sqrt(h) + w]


class Pumped(gr.Model):
    """Jumps with a state: the unscented filter is taken, and the extended one refuses."""

    k = gr.Parameter(0.4, bounds=(0.05, 5.0))
    h = gr.Variable(0.9)
    w = gr.Disturbance(WHITE(), scale=0.1)
    y = gr.Output(h, noise=0.02)
    equations = [der(h) == 0.5 - k * h - gr.where(h > 1.0, 0.2, 0.0) + w]


def record(model, step, count, seed=1, **values):
    times = step * np.arange(count)
    run = gr.simulate(model, times, realizations=1, seed=seed, noise=True, parameters=values)
    return gr.Experiment(times, outputs={"y": run["y"].values[0]})


@pytest.fixture(scope="module")
def wells():
    data = record(Well(a=1.0, w=gr.Disturbance(WHITE(), scale=0.6)), 1.0, 120)
    return gr.fit(Well(), data, ["a", "scale(w)"])


def test_two_wells_are_marked_and_auto_leaves_the_extended_filter(wells):
    assert wells.method == gr.KalmanML(filter="unscented")
    assert "the unscented filter, because" in wells.why["KalmanML"]
    check = wells.estimate.approximation
    assert check.first == "the unscented filter" and check.distance > 1.0
    text = str(wells)
    assert "std. error!" in text and "! approximation: the extended filter would move a by about −" in text
    assert "filter: the unscented one was taken, because the unscented filter would move a by about +" in text
    assert wells.states().sizes["time"] == 120  # filtered by the one that was fitted


def test_what_was_asked_for_is_kept_and_marked(wells):
    fit = gr.fit(Well(), wells.experiments[0], ["a", "scale(w)"], gr.KalmanML(filter="extended"))
    assert fit.method.filter == "extended" and fit.estimate.approximation.distance > 1.0
    assert "std. error!" in str(fit)
    iterated = gr.fit(Well(), wells.experiments[0], ["a"], gr.KalmanML(filter="iterated"))
    assert iterated.estimate.approximation.first == "the iterated filter"


def test_a_saved_fit_keeps_its_mark(wells, tmp_path):
    wells.save(tmp_path / "fit.nc")
    again = gr.load(tmp_path / "fit.nc")
    assert again.estimate.approximation == wells.estimate.approximation
    assert again.doubts == wells.doubts


def test_laplace_is_compared_with_a_filter(wells):
    fit = gr.fit(Well(), wells.experiments[0], ["a", "scale(w)"], gr.Collocation())
    assert fit.estimate.approximation.first == "Laplace's method"
    assert "std. error!" in str(fit) and "from where Laplace's method ends" in fit.doubts[0]


def test_runs_of_a_study_keep_their_filter(wells):
    found = gr.multistart(Well(), wells.experiments[0], ["a", "scale(w)"], starts=2, executor="serial")
    assert found.best.method.filter == "auto" and found.best.estimate.approximation.first == "the extended filter"


def test_a_bent_sensor_on_a_bent_drift():
    fit = gr.fit(Drop(), record(Drop(), 1.0, 50), ["a"])
    assert fit.estimate.approximation.is_doubted and "std. error!" in str(fit)


def test_a_state_that_is_seen_through_its_square():
    fit = gr.fit(Flipped(), record(Flipped(), 0.3, 60), ["k"])
    assert fit.method.filter == "unscented" and np.isfinite(fit["k"].std_error)
    assert "the unscented filter sees k, which the extended filter does not" in str(fit)
    assert "the unscented filter determines k, and the extended filter does not" in fit.doubts[0]


def test_weakly_nonlinear_fits_say_nothing():
    data = record(Tank(), 0.2, 100)
    for method in (
        gr.KalmanML(), gr.KalmanML(filter="unscented"), gr.KalmanML(robust=3.0), gr.Collocation(),
        gr.KalmanML(filter="extended", propagation="moments"),
    ):  # fmt: skip
        fit = gr.fit(Tank(), data, ["k"], method)
        assert fit.estimate.approximation.distance < 0.1
        assert "approximation" not in str(fit)


def test_priors_are_no_difference():
    """What they pull, and what they add to the curvature, is the same on both sides."""
    data = record(Tank(), 0.2, 100)
    for method in (gr.KalmanML(), gr.Collocation(), gr.KalmanML(bounds="transform", penalty=1e-2)):
        fit = gr.fit(Tank(), data, ["k", "scale(w)"], method, priors={"k": gr.Normal(0.47, 0.002)})
        check = fit.estimate.approximation
        assert check.distance < 0.1 and np.allclose(check.curvatures, 1.0, atol=0.05)


def test_where_the_other_filter_refuses_it_is_said():
    fit = gr.fit(Pumped(), record(Pumped(), 0.2, 60), ["k"])
    assert (
        "approximation: it was not checked how far the unscented filter approximates: the extended filter refuses"
        in str(fit)
    )
    ahead = gr.fit(Tank(), record(Tank(), 0.2, 60), ["k"], gr.KalmanML(horizon=2))
    assert "approximation: it was not checked" in str(ahead)


class Phase(gr.Model):
    """A phase that is seen by its sine: after a while sigma points know nothing of it, and the extended filter does."""

    om = gr.Parameter(1.0, bounds=(0.1, 5.0))
    phi = gr.Variable(0.0)
    w = gr.Disturbance(WHITE(), scale=1.0)
    y = gr.Output(gr.sin(phi), noise=0.1)
    equations = [der(phi) == om + w]


def test_a_filter_is_not_left_for_one_that_sees_less():
    fit = gr.fit(Phase(), record(Phase(), 0.4, 60, om=1.5), ["om", "scale(w)"])
    assert fit.method.filter == "auto" and np.isfinite(fit["om"].std_error)
    assert "the extended filter determines om, scale(w), and the unscented filter does not" in fit.doubts[0]


class Decaying(gr.Model):
    """Data without the disturbance: its scale ends at zero."""

    k = gr.Parameter(0.3, bounds=(0.01, 9.0))
    x = gr.Variable(1.0)
    w = gr.Disturbance(WHITE(), scale=0.02)
    y = gr.Output(x, noise=0.02)
    equations = [der(x) == 0.2 - k * x**2 + w]


def test_levels_that_end_at_zero_have_no_curvature_to_compare():
    times = np.linspace(0.0, 10.0, 30)
    y = gr.simulate(Decaying(k=0.5), times)["x"].values + 0.02 * np.random.default_rng(1).normal(size=30)
    data = gr.Experiment(times, outputs={"y": y})
    fit = gr.fit(Decaying(), data, ["k", "scale(w)", "noise(y)"], gr.Collocation())
    assert fit["scale(w)"] < fit["scale(w)"].std_error and not fit.doubts


def test_data_that_are_explained_exactly_end_in_words():
    """A sensor that hangs where the plant rests: no noise to find."""
    data = gr.Experiment(np.arange(20.0), outputs={"y": np.full(20, np.sqrt(0.2 / 0.5))})
    model = Decaying(k=0.5, x=gr.Variable(np.sqrt(0.2 / 0.5)))
    try:
        gr.fit(model, data, ["k", "scale(w)", "noise(y)"])
    except gr.EstimationError as error:
        assert str(error)
