"""What a user asks of collocation fits, by splines and directly: why, states anywhere, other data, files, values."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from collocation.direct_problems import Buffer, Oscillator, buffered

import grisaille as gr
from grisaille import der
from grisaille.errors import EstimationError

TIMES = np.linspace(0.0, 8.0, 33)
PUSH = 0.6 + 0.5 * np.sign(np.sin(1.1 * TIMES))
ROUTES = pytest.mark.parametrize("route", ["spline", "direct"])


class Gauge(gr.Model):
    """A state seen through a gain, under white and coloured noise."""

    g, a = gr.Parameter(2.0, bounds=(0.1, 10.0)), gr.Parameter(0.8, bounds=(0.1, 5.0))
    x = gr.Variable(start=1.0)
    u = gr.Input()
    w = gr.Disturbance(gr.spectra.white(), scale=0.2)
    d = gr.Disturbance(gr.spectra.lowpass(bandwidth=0.3), scale=0.5)
    y = gr.Output(g * x, noise=0.1)
    equations = [der(x) == -a * x + u + w + d]


def measured(seed, name, gaps=False):
    found = gr.simulate(Gauge(), TIMES, {"u": PUSH}, realizations=1, seed=seed, noise=True)
    y = found["y"].values.ravel().copy()
    if gaps:
        y[[3, 4, 9, 20, 21, 22, 30, 31, 32]] = np.nan
    return gr.Experiment(TIMES, {"u": PUSH}, {"y": y}, name=name)


@pytest.fixture(scope="module")
def runs():
    return [measured(1, "A", gaps=True), measured(2, "B")]


def exact(**options):
    return gr.KalmanML(initial_covariance={"x": 0.0}, **options)


@pytest.fixture(scope="module")
def fits(runs):
    return {
        route: gr.fit(Gauge(), runs, ["g", "a"], gr.Collocation(criterion="laplace", transcription=route))
        for route in ("spline", "direct")
    }


def smoothed(states, name, statistic="std"):
    return states[name].sel(given="smoothed", statistic=statistic).values


# why


def test_a_fit_says_how_trajectories_are_represented_and_why(fits):
    assert fits["spline"].why["Collocation"] == "given: splines of order 4, because white noise disturbs every state"
    assert fits["direct"].why["Collocation"].endswith("Radau points, as asked")
    fit = gr.fit(Buffer(), buffered(np.linspace(0.0, 4.0, 21)), ["c"], gr.Collocation(criterion="amle"))
    assert fit.why["Collocation"].endswith("because flow of Buffer is defined implicitly")
    assert "trajectories      direct collocation at Radau points, because flow" in str(fit)
    assert "because flow of Buffer" in fit._repr_html_()
    assert "trajectories" not in str(gr.fit(Gauge(), measured(1, "A"), ["a"], gr.OutputError()))


def test_the_obstacle_is_in_the_users_names():
    class Resonant(Gauge):
        d = gr.Disturbance(gr.spectra.resonance(frequency=2.0, damping=0.2), scale=0.5)

    class Own(Gauge):
        equations = [der(Gauge.x) == -Gauge.a * Gauge.x + Gauge.u + Gauge.x * Gauge.w + Gauge.d]

    class Both(gr.Model):
        a = gr.Parameter(1.0)
        x, z = gr.Variable(start=1.0), gr.Variable(start=0.0)
        w = gr.Disturbance(gr.spectra.white(), scale=0.2)
        y = gr.Output(x, noise=0.1)
        equations = [der(x) == -a * x + w, der(z) == x + w]

    for model, words in (
        (Resonant(), r"the spectrum of d is a filter with 2 states, not all of which its noise drives"),
        (Own(), r"the noise in the equation of der\(x\) depends on the states"),
        (Both(), r"the 2 states x, z share 1 white noise"),
        (Oscillator(), r"nothing disturbs the equation of der\(x\)"),
    ):
        inputs = {} if isinstance(model, Both) else {"u": PUSH}
        data = gr.Experiment(TIMES, inputs, {"y": np.ones(33)})
        with pytest.raises(EstimationError, match=f"Splines do not apply: {words}.*transcription='direct'"):
            gr.fit(model, data, ["a"], gr.Collocation(criterion="amle", transcription="spline"))


# states


@ROUTES
def test_states_at_given_values_are_those_of_the_smoother_between_measurements_too(runs, route):
    known = {"g": 2.0, "a": 0.8}
    theirs = gr.evaluate(Gauge(), runs, exact(), known).states
    ours = gr.evaluate(Gauge(), runs, gr.Collocation(criterion="amle", transcription=route), known).states
    for run in ("A", "B"):
        for name in ("x", "y"):
            for statistic in ("mean", "std"):
                found = smoothed(ours[run], name, statistic)
                np.testing.assert_allclose(found, smoothed(theirs[run], name, statistic), atol=1e-5)


def test_states_of_one_fit_are_the_same_by_both_routes(fits):
    for name in ("x", "y", "d"):
        spline, direct = (f.states("A", names=[name]) for f in fits.values())
        np.testing.assert_allclose(spline[name][0, 0], direct[name][0, 0], atol=1e-5)
        np.testing.assert_allclose(spline[name][0, 1], direct[name][0, 1], rtol=0.03)


@ROUTES
def test_bands_contain_the_unknowns_that_a_quantity_contains(fits, route):
    fit = fits[route]
    band = fit.states("B", names={"gain": Gauge.g, "doubled": 2 * Gauge.x, "x": Gauge.x})
    np.testing.assert_allclose(smoothed(band, "gain"), fit["g"].std_error, rtol=1e-6)
    np.testing.assert_allclose(smoothed(band, "doubled"), 2 * smoothed(band, "x"), rtol=1e-9)
    # the start is known, what is read there is not
    assert smoothed(fit.states("B"), "y")[0] == pytest.approx(fit["g"].std_error)
    assert list(fit.states().data_vars) == ["x", "y", "d"]
    with pytest.raises(EstimationError, match="'w' contains white noise"):
        fit.states(names=["w"])
    with pytest.raises(EstimationError, match="no quantity 'zz'"):
        fit.states(names=["zz"])


@ROUTES
def test_another_experiment_is_followed_at_the_estimates(fits, route):
    fit, other = fits[route], measured(5, "A")
    found = fit.states(other)
    values = {n: float(fit[n]) for n in fit.names}
    theirs = gr.evaluate(Gauge(), other, exact(), values).states["A"]
    np.testing.assert_allclose(smoothed(found, "x", "mean"), smoothed(theirs, "x", "mean"), atol=1e-5)
    assert (smoothed(found, "x")[1:] > smoothed(theirs, "x")[1:]).all()
    np.testing.assert_allclose(fit.states(fit.experiments[1])["x"], fit.states("B")["x"])
    with pytest.raises(EstimationError, match="No experiment of this fit is called 'C'; there are A, B"):
        fit.states("C")
    with pytest.raises(gr.GrisailleError, match=r"experiment is 3; give a gr\.Experiment or a text"):
        fit.states(3)


def test_instants_without_measurements_have_states():
    sparse = np.full(33, np.nan)
    sparse[::4] = measured(1, "A").measurements("y").values[::4]
    data = gr.Experiment(TIMES, {"u": PUSH}, {"y": sparse}, name="A")
    theirs = gr.evaluate(Gauge(), data, exact(), {"a": 0.8}).states["A"]
    ours = gr.evaluate(Gauge(), data, gr.Collocation(criterion="amle"), {"a": 0.8}).states["A"]
    np.testing.assert_allclose(ours["x"].time, TIMES)
    np.testing.assert_allclose(smoothed(ours, "x"), smoothed(theirs, "x"), atol=1e-5)


# values, predictions, files


@ROUTES
def test_only_likelihoods_are_called_so(runs, fits, route):
    plain = gr.evaluate(Gauge(), runs, gr.Collocation(criterion="amle", transcription=route), {"a": 0.8})
    assert np.isnan(plain.log_likelihood)
    assert "log-likelihood" not in str(plain)
    marginal = gr.evaluate(Gauge(), runs, gr.Collocation(criterion="laplace", transcription=route), {"a": 0.8})
    assert marginal.log_likelihood == pytest.approx(gr.evaluate(Gauge(), runs, exact(), {"a": 0.8}).log_likelihood)
    assert fits[route].predict("B", horizon=np.inf)["y"].shape == (33,)
    with pytest.raises(
        EstimationError, match=r"gr\.KalmanML\(\) or gr\.ParticleML\(\), not with Collocation: .*guess=fit"
    ):
        fits[route].predict("B", horizon=2)


@ROUTES
def test_a_file_keeps_knots_and_trajectories(fits, route, tmp_path):
    fit = fits[route]
    fit.save(tmp_path / "fit.nc")
    again = gr.load(tmp_path / "fit.nc")
    assert str(again) == str(fit)
    for run in ("A", "B"):
        np.testing.assert_allclose(again.states(run)["y"], fit.states(run)["y"], atol=1e-9)
    again.save(tmp_path / "again.nc")
    np.testing.assert_allclose(gr.load(tmp_path / "again.nc").states()["y"], fit.states()["y"], atol=1e-9)
    meshes = [c.discretisation for c in fit.estimate.cases]
    assert [c.discretisation for c in again.estimate.cases] == meshes and "Discretisation" not in str(meshes[0])


@ROUTES
def test_files_that_kept_meshes_as_arrays_are_read(fits, route, tmp_path):
    fit = fits[route]
    fit.save(tmp_path / "fit.nc")
    again, programs = gr.load(tmp_path / "fit.nc"), getattr(fit.estimate.evaluation.trajectories, "programs", ())
    for k, program in enumerate(programs):
        again.kept |= {f"knots_{k}_{i}": s.knots for i, s in enumerate(program.mesh.splines)}
        again.kept[f"noise_states_{k}"] = program.noise_states
    cases = tuple(replace(c, discretisation=None) for c in again.estimate.cases)
    again.estimate = replace(again.estimate, cases=cases)
    np.testing.assert_array_equal(again.states("B")["y"], gr.load(tmp_path / "fit.nc").states("B")["y"])


def test_refined_knots_come_back(tmp_path):
    quick = Gauge(a=gr.Parameter(20.0, bounds=(0.1, 100.0)))
    found = gr.simulate(quick, TIMES, {"u": PUSH}, realizations=1, seed=3, noise=True)
    data = gr.Experiment(TIMES, {"u": PUSH}, {"y": found["y"].values.ravel()})
    fit = gr.fit(quick, data, ["a"], gr.Collocation(criterion="amle", knots=9, refine=2))
    assert fit.estimate.mesh.refinements == 2
    fit.save(tmp_path / "fit.nc")
    again = gr.load(tmp_path / "fit.nc")
    np.testing.assert_allclose(again.states()["x"], fit.states()["x"], atol=1e-9)


# elements of direct collocation


class Spring(gr.Model):
    """A third of a turn between samples, undisturbed in its position."""

    a, b = gr.Parameter(400.0, bounds=(10.0, 1000.0)), gr.Parameter(0.5, bounds=(0.0, 10.0))
    x, v = gr.Variable(1.0), gr.Variable(0.0)
    w = gr.Disturbance(gr.spectra.white(), scale=0.4)
    y = gr.Output(x, noise=0.05)
    equations = [der(x) == v, der(v) == -a * x - b * v + w]


def test_elements_are_halved_until_the_estimates_stop_moving():
    times = np.linspace(0.0, 4.0, 41)
    run = gr.simulate(Spring(), times, realizations=1, seed=1, noise=True)
    data = gr.Experiment(times, {}, {"y": run["y"].values.ravel()}, name="A")
    truth = gr.fit(Spring(), data, ["a", "b"], gr.KalmanML(initial_covariance={"x": 0.0, "v": 0.0}))
    coarse = gr.fit(Spring(), data, ["a", "b"], gr.Collocation(criterion="laplace", refine=0))
    note = next(n for n in coarse.notes if n.startswith("elements"))
    moved = abs(float(coarse["b"]) - float(truth["b"])) / truth["b"].std_error
    assert moved > 4
    assert float(note.split("about ")[1].split()[0]) == pytest.approx(moved, rel=0.1)
    fine = gr.fit(Spring(), data, ["a", "b"], gr.Collocation(criterion="laplace"))
    assert fine.estimate.mesh.pieces > 1
    assert not any(n.startswith("elements") for n in fine.notes)
    for name in ("a", "b"):
        assert abs(float(fine[name]) - float(truth[name])) < 0.01 * truth[name].std_error
    fine_profile, exact_profile = (f.profile("b", points=2).interval for f in (fine, truth))
    np.testing.assert_allclose(fine_profile, exact_profile, rtol=1e-3)


def test_the_own_experiment_is_known_also_without_its_name() -> None:
    times = np.arange(0.0, 5.0, 0.25)

    class Sinking(gr.Model):
        k = gr.Parameter(0.5, bounds=(0.01, 5.0))
        x = gr.Variable(start=0.5)
        w = gr.Disturbance(gr.spectra.white(), scale=0.1)
        y = gr.Output(x, noise=0.05)
        equations = [gr.der(x) == -k * x + w]

    found = gr.simulate(Sinking(), times, start={"x": 2.0}, realizations=1, seed=1, noise=True)
    record = gr.Experiment(times, outputs={"y": found["y"].values.ravel()})
    fit = gr.fit(Sinking(), record, ["k", "start(x)"], gr.Collocation(criterion="amle"), progress=False)
    np.testing.assert_allclose(fit.states(record)["x"], fit.states()["x"])
    np.testing.assert_allclose(fit.predict(record)["x"], fit.predict()["x"])
    assert float(fit.predict(record)["x"][0]) > 1.5
