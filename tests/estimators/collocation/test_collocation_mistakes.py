"""Mistakes in the options of ``gr.Collocation`` and in what it is asked: each is said in words, with a way out."""

from __future__ import annotations

import numpy as np
import pytest
from collocation.direct_problems import Oscillator

import grisaille as gr
from grisaille import der
from grisaille.errors import EstimationError

TIMES = np.linspace(0.0, 8.0, 33)


class Decay(gr.Model):
    """One state under white noise."""

    k = gr.Parameter(0.5, bounds=(0.1, 5.0))
    x = gr.Variable(start=1.0)
    w = gr.Disturbance(gr.spectra.white(), scale=0.1)
    y = gr.Output(x, noise=0.1)
    equations = [der(x) == -k * x + w]


class Hidden(gr.Model):
    """A second state that no output sees."""

    k, c = gr.Parameter(0.5, bounds=(0.1, 5.0)), gr.Parameter(1.0, bounds=(0.1, 5.0))
    x, z = gr.Variable(start=1.0), gr.Variable(start=0.0)
    w, v = gr.Disturbance(gr.spectra.white(), scale=0.1), gr.Disturbance(gr.spectra.white(), scale=0.1)
    y = gr.Output(x, noise=0.1)
    equations = [der(x) == -k * x + w, der(z) == x - c * z + v]


class Calm(gr.Model):
    """Nothing is disturbed."""

    k = gr.Parameter(0.5, bounds=(0.1, 5.0))
    x = gr.Variable(start=1.0)
    y = gr.Output(x, noise=0.1)
    equations = [der(x) == -k * x]


class Coloured(gr.Model):
    """Noise whose level, bandwidth and measurement are parameters."""

    a, s, f, n = gr.Parameter(1.0), gr.Parameter(0.4), gr.Parameter(1.0), gr.Parameter(0.1)
    half = gr.Parameter(0.5 * n)
    x, v = gr.Variable(1.0), gr.Variable(0.0)
    w = gr.Disturbance(gr.spectra.lowpass(bandwidth=f), scale=s)
    y = gr.Output(x, noise=2 * half)
    equations = [der(x) == v, der(v) == -a * x - v + w]


@pytest.fixture(scope="module")
def record():
    return gr.Experiment(TIMES, {}, {"y": np.exp(-0.5 * TIMES) + 0.1 * np.sin(17 * TIMES)}, name="run")


NOT_KNOTS = "give 'auto', a whole number of knots, or their times"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"knots": "all"}, f"knots is 'all'; {NOT_KNOTS}"),
        ({"knots": 20.0}, f"knots is 20.0; {NOT_KNOTS}"),
        ({"knots": True}, f"knots is True; {NOT_KNOTS}"),
        ({"knots": None}, f"knots is None; {NOT_KNOTS}"),
        ({"knots": 1}, "knots is 1; at least the two ends"),
        ({"knots": []}, "which are not times"),
        ({"knots": ["early", "late"]}, "which are not times"),
        ({"knots": [0.0, np.nan]}, "which are not times"),
        ({"knots": np.ones((2, 2))}, "which are not times"),
        ({"knots": {"x": "many"}}, r"knots\['x'\] is 'many'"),
        ({"order": 0}, r"order is 0; give a whole number from 2 \(straight lines\)"),
        ({"order": 2.5}, "order is 2.5"),
        ({"order": {"x": 1}}, "order is 1"),
        ({"quadrature": 0}, "quadrature is 0; it must be one of 'gauss'.* or a number of Gauss points from 1 to 20"),
        ({"quadrature": 2.5}, r"quadrature is 2\.5"),
        ({"quadrature": "trapezium"}, "quadrature is 'trapezium'"),
        ({"refine": -1}, "refine is -1; give a whole number from 0"),
        ({"tolerance": -1.0}, r"tolerance is -1\.0; give a small positive number"),
        ({"max_iterations": 0}, "max_iterations is 0"),
        ({"trajectories": [1.0, 2.0]}, r"trajectories is \(1\.0, 2\.0\); give them by state"),
        ({"trajectories": {"x": (TIMES, TIMES[1:])}}, "33 times for 32 values"),
    ],
)
def test_options_are_refused_when_they_are_given(options, words):
    with pytest.raises(EstimationError, match=words):
        gr.Collocation(**options)


def test_numbers_of_numpy_are_numbers():
    method = gr.Collocation(
        criterion="amle", order=np.int64(3), knots=np.int64(20), quadrature=np.int32(4), refine=np.int64(0)
    )
    assert (method.order, method.knots, method.quadrature, method.refine) == (3, 20, 4, 0)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"knots": [100.0, 200.0]}, "knots holds 100 and 1 more, outside the data, which last from 0 to 8"),
        ({"knots": {"x": [4.0, 9.0]}}, r"knots\['x'\] holds 9, outside the data"),
        (
            {"trajectories": {"x": ([9.0, 10.0], [1.0, 1.0])}},
            r"lasts from 9 to 10, outside experiment 'run' \(0 to 8\)",
        ),
        ({"quadrature": 1}, r"trajectories are not determined.*quadrature='gauss'"),
    ],
)
def test_options_that_do_not_fit_the_data(record, options, words):
    with pytest.raises(EstimationError, match=words):
        gr.fit(Decay(), record, ["k"], gr.Collocation(**options))


@pytest.mark.parametrize("criterion", ["amle", "laplace"])
def test_intensities_of_nothing(record, criterion):
    with pytest.raises(EstimationError, match=r"Calm has none: declare w = gr\.Disturbance"):
        gr.fit(Calm(), record, ["k"], gr.Collocation(criterion=criterion, intensities="estimate"))


@pytest.mark.parametrize("name", ["s", "f", "n", "noise(y)"])
def test_levels_and_spectra_need_a_likelihood_in_direct_collocation_too(record, name):
    with pytest.raises(EstimationError, match=rf"'{name[:5]}.*is a noise level, or shapes a spectrum.*'laplace'"):
        gr.fit(Coloured(), record, ["a", name], gr.Collocation(criterion="amle"))


@pytest.mark.parametrize("route", ["spline", "direct"])
def test_noise_must_be_known_and_positive(record, route):
    class Open(Decay):
        y = gr.Output(Decay.x)

    class Exact(Decay):
        y = gr.Output(Decay.x, noise=0.0)

    method = gr.Collocation(criterion="amle", transcription=route)
    with pytest.raises(EstimationError, match=r"noise of output 'y' is unknown.*criterion='laplace'"):
        gr.fit(Open(), record, ["k"], method)
    with pytest.raises(EstimationError, match="weight is infinite"):
        gr.fit(Exact(), record, ["k"], method)


def test_a_level_that_no_output_sees_is_dead_and_one_that_is_not_needed_zero(record):
    fit = gr.fit(Hidden(), record, ["k"], gr.Collocation(criterion="laplace", intensities="estimate"))
    assert any(n.startswith("dead: no output depends on scale(v)") for n in fit.notes)
    assert np.isinf(fit["scale(v)"].std_error)
    zero = next(n for n in fit.notes if n.startswith("zero: scale(w)"))
    limit = float(zero.split()[-1].rstrip("."))
    exact = gr.KalmanML(initial_covariance={"x": 0.0})
    there = gr.evaluate(Decay(), record, exact, {"scale(w)": limit}).log_likelihood
    assert fit.log_likelihood - there == pytest.approx(1.35, abs=0.3)


def test_an_unknown_that_no_output_sees_stays_at_its_guess(record):
    fit = gr.fit(Hidden(), record, ["k", "c"], gr.Collocation(criterion="laplace"))
    assert fit.converged
    assert float(fit["c"]) == 1.0
    assert np.isinf(fit["c"].std_error)
    assert [n for n in fit.notes if n.startswith("dead: no output depends on c;")]
    alone = gr.fit(Hidden(), record, ["k"], gr.Collocation(criterion="laplace"))
    assert float(fit["k"]) == pytest.approx(float(alone["k"]), rel=1e-5)
    assert fit["k"].std_error == pytest.approx(alone["k"].std_error, rel=1e-3)


def test_options_of_splines_say_nothing_to_direct_collocation():
    data = gr.Experiment(TIMES, {"u": np.ones(33)}, {"y": np.ones(33)})
    for options in ({"knots": 30}, {"order": 3}, {"trajectories": {"x": 1.0}}):
        with pytest.raises(EstimationError, match=r"Nothing disturbs the equation of der\(x\).*belongs to splines"):
            gr.fit(Oscillator(), data, ["a"], gr.Collocation(**options))


class Product(gr.Model):
    """Only a b is seen; c moves nothing."""

    a, b = gr.Parameter(0.8, bounds=(0.01, 10.0)), gr.Parameter(1.0, bounds=(0.01, 10.0))
    c = gr.Parameter(0.5, bounds=(0.01, 10.0))
    x, z = gr.Variable(start=1.0), gr.Variable(start=0.0)
    w = gr.Disturbance(gr.spectra.white(), scale=0.1)
    y = gr.Output(x, noise=0.1)
    equations = [der(x) == -a * b * x + w, der(z) == x - c * z]


@pytest.mark.parametrize("criterion", ["amle", "laplace"])
def test_what_the_data_do_not_tell_leaves_the_rest_alone(record, criterion):
    method = gr.Collocation(criterion=criterion)
    alone = gr.fit(Product(), record, ["a"], method)
    dead = gr.fit(Product(), record, ["a", "c"], method)
    assert dead.converged
    assert [n.partition(";")[0] for n in dead.notes if n.startswith("dead")] == ["dead: no output depends on c"]
    assert dead["a"].std_error == pytest.approx(alone["a"].std_error, rel=1e-4)
    assert np.isinf(dead["c"].std_error)
    flat = gr.fit(Product(), record, ["a", "b"], method)
    assert flat.converged
    assert any(n.startswith("flat direction") for n in flat.notes)
    for fit in (dead, flat):
        band = fit.states()["x"].sel(given="smoothed", statistic="std")
        np.testing.assert_allclose(band, alone.states()["x"].sel(given="smoothed", statistic="std"), rtol=0.02)
