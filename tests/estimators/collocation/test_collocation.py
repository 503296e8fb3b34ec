"""Collocation with splines: limits with known answers, published estimates, other methods, refusals."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import grisaille as gr
from grisaille import der
from grisaille.collocation import first_root, make_spline
from grisaille.errors import EstimationError
from grisaille.estimators import build_problem
from grisaille_reproductions import varziri_cstr as cstr

TIMES = np.linspace(0.0, 10.0, 41)
STEP = (np.array([0.0, 5.0]), np.array([0.0, 1.0]))


class Tank(gr.Model):
    """One state, linear, with an input that steps; its start is a formula of parameters."""

    a = gr.Parameter(1.0, bounds=(0.01, 10.0))
    x0 = gr.Parameter(1.0)
    x = gr.Variable(start=x0 * a)
    u = gr.Input()
    w = gr.Disturbance(gr.spectra.white(), scale=0.5)
    y = gr.Output(x, noise=0.2)
    equations = [der(x) == -a * x + u + w]


class Pair(gr.Model):
    """Two states under correlated disturbances, both outputs with correlated noise."""

    a, b = gr.Parameter(0.7), gr.Parameter(0.4)
    x, z = gr.Variable(start=1.0), gr.Variable(start=0.0)
    w = gr.Disturbance(gr.spectra.white(), scale=0.3, size=2, correlation=[[1.0, 0.6], [0.6, 1.0]])
    y1, y2 = gr.Output(x, noise=0.1), gr.Output(z, noise=0.15)
    equations = [der(x) == -a * x + z + w[0], der(z) == -b * z - x + w[1]]

    def noise_covariance(self):
        return {("y1", "y2"): 0.006}


class FitzHughNagumo(gr.Model):
    """As in the reference data."""

    a, b, c = gr.Parameter(0.2), gr.Parameter(0.2), gr.Parameter(3.0)
    V, R = gr.Variable(start=-1.0), gr.Variable(start=1.0)
    s = gr.Parameter(1.0)
    w1, w2 = gr.Disturbance(gr.spectra.white(), scale=s), gr.Disturbance(gr.spectra.white(), scale=s)
    yV, yR = gr.Output(V, noise=1.0), gr.Output(R, noise=1.0)
    equations = [der(V) == c * (V - V**3 / 3 + R) + w1, der(R) == -(V - a + b * R) / c + w2]


def record(model: gr.Model, times: np.ndarray = TIMES, seed: int = 3, inputs: dict | None = None) -> gr.Experiment:
    found = gr.simulate(model, times, inputs=inputs, realizations=1, seed=seed, noise=True)
    outputs = {n: found[n].values.ravel() for n in ("y", "y1", "y2") if n in found}
    return gr.Experiment(times, inputs or {}, outputs)


@pytest.fixture(scope="module")
def tank() -> gr.Experiment:
    return record(Tank(), inputs={"u": STEP})


@pytest.fixture(scope="module")
def reactor() -> gr.Experiment:
    return cstr.simulate_experiment(1)


def value_of(model: gr.Model) -> float:
    return float(model.parameters["a"].value)


def smoothed(model: gr.Model, data: gr.Experiment, known: dict[str, float], name: str) -> np.ndarray:
    """Mean and standard deviation by the exact filter at the model's parameters."""
    held = {"a": (value_of(model) - 1e-12, value_of(model) + 1e-12)}
    fit = gr.fit(model, data, ["a"], gr.KalmanML(initial_covariance=known), bounds=held)
    return fit.states().sel(given="smoothed")[name].values[:2]


# closed form: the smoother of linear models


def at_parameters(model: gr.Model, data: gr.Experiment, method: gr.Collocation, name: str) -> np.ndarray:
    held = {"a": (value_of(model) - 1e-12, value_of(model) + 1e-12)}
    fit = gr.fit(model, data, ["a"], method, bounds=held)
    return fit.states().sel(given="smoothed")[name].values[:2]


def test_on_fine_knots_the_trajectory_is_that_of_the_kalman_smoother(tank) -> None:
    exact = smoothed(Tank(), tank, {"x": 0.0}, "x")
    errors = []
    for pieces in (1, 2, 4):
        found = at_parameters(Tank(), tank, gr.Collocation(criterion="amle", knots=40 * pieces + 1), "x")
        errors.append(np.abs(found[0] - exact[0]).max())
    assert errors[2] < 0.01
    # slopes jump at every observation: first order in the distance of simple knots
    assert errors[0] / errors[1] == pytest.approx(2.0, abs=0.6)
    assert errors[1] / errors[2] == pytest.approx(2.0, abs=0.6)


def test_straight_lines_converge_with_second_order_bands_too(tank) -> None:
    exact = smoothed(Tank(), tank, {"x": 0.0}, "x")
    errors = []
    for pieces in (1, 2, 4):
        found = at_parameters(Tank(), tank, gr.Collocation(criterion="amle", order=2, knots=40 * pieces + 1), "x")
        errors.append(np.abs(found - exact).max())
    assert errors[2] < 1e-5
    assert errors[0] / errors[1] == pytest.approx(4.0, abs=0.8)
    assert errors[1] / errors[2] == pytest.approx(4.0, abs=0.8)


def test_kinks_at_observations_let_cubic_splines_converge_with_their_order(tank) -> None:
    exact = smoothed(Tank(), tank, {"x": 0.0}, "x")
    found = at_parameters(Tank(), tank, gr.Collocation(criterion="amle", kinks="observations"), "x")
    assert np.abs(found - exact).max() < 1e-7


def test_correlated_disturbances_and_outputs_are_those_of_the_smoother() -> None:
    data = record(Pair(), seed=5)
    exact = smoothed(Pair(), data, {"x": 0.0, "z": 0.0}, "z")
    found = at_parameters(Pair(), data, gr.Collocation(criterion="amle", order=2, knots=321), "z")
    np.testing.assert_allclose(found, exact, atol=1e-4)


def test_gaps_weights_and_own_times_of_outputs() -> None:
    full = record(Pair(), seed=5)
    y1, y2 = full.measurements("y1").values.copy(), full.measurements("y2").values
    y1[5:20] = np.nan
    data = gr.Experiment(TIMES, {}, {"y1": y1, "y2": (TIMES[1::3], y2[1::3])})
    exact = smoothed(Pair(), data, {"x": 0.0, "z": 0.0}, "x")
    found = at_parameters(Pair(), data, gr.Collocation(criterion="amle", order=2, knots=321), "x")
    np.testing.assert_allclose(found, exact, atol=1e-4)


# zero noise, and the limit of small disturbances


def test_exact_data_give_exact_parameters() -> None:
    exact = gr.simulate(Tank(a=0.6), TIMES, {"u": STEP}, rtol=1e-11)["y"].values
    data = gr.Experiment(TIMES, {"u": STEP}, {"y": exact})
    fit = gr.fit(
        Tank(w=gr.Disturbance(gr.spectra.white(), scale=0.01)),
        data,
        ["a", "x0"],
        gr.Collocation(criterion="amle", knots=161),
    )
    assert fit.converged
    assert fit["a"] == pytest.approx(0.6, abs=1e-6)
    assert fit["x0"] == pytest.approx(1.0, abs=1e-6)


def test_small_disturbances_lead_to_output_error(tank) -> None:
    quiet = Tank(w=gr.Disturbance(gr.spectra.white(), scale=1e-4))
    reference = gr.fit(quiet, tank, ["a", "x0"], gr.OutputError())
    fit = gr.fit(quiet, tank, ["a", "x0"], gr.Collocation(criterion="amle", knots=161))
    np.testing.assert_allclose(fit.estimate.theta, reference.estimate.theta, rtol=1e-5)
    np.testing.assert_allclose(fit.std_errors, reference.std_errors, rtol=1e-4)
    coarse = gr.fit(quiet, tank, ["a", "x0"], gr.Collocation(criterion="amle", knots=6))
    assert np.abs(coarse.estimate.theta / reference.estimate.theta - 1).max() > 1e-3


# criteria among each other


def test_in_turn_or_together_the_minimum_is_the_same(tank) -> None:
    together = gr.fit(Tank(), tank, ["a", "start(x)"], gr.Collocation(criterion="amle", knots=21))
    in_turn = gr.fit(Tank(), tank, ["a", "start(x)"], gr.Collocation(criterion="ipda", knots=21))
    assert in_turn.converged
    assert in_turn["a"] == pytest.approx(together["a"], rel=1e-6)
    assert in_turn["a"].std_error == pytest.approx(together["a"].std_error, rel=1e-4)
    assert in_turn.estimate.evaluations > together.estimate.evaluations


def test_both_optimizers_find_the_same_minimum(reactor) -> None:
    unknown = [*cstr.TRUE, "start(C_A)"]
    ours = gr.fit(cstr.Reactor(), reactor, unknown, gr.Collocation(criterion="amle"), guess=cstr.halved_guess())
    theirs = gr.fit(
        cstr.Reactor(), reactor, unknown, gr.Collocation(criterion="amle", optimizer="ipopt"), guess=cstr.halved_guess()
    )
    assert ours.converged and theirs.converged
    np.testing.assert_allclose(ours.estimate.theta, theirs.estimate.theta, rtol=1e-6)
    assert ours.objective == pytest.approx(theirs.objective, rel=1e-10)


def test_reactor_from_half_of_every_true_value(reactor) -> None:
    fit = gr.fit(cstr.Reactor(), reactor, list(cstr.TRUE), gr.Collocation(criterion="amle"), guess=cstr.halved_guess())
    assert fit.converged
    for name, true in cstr.TRUE.items():
        assert abs(fit[name] - true) < 4 * fit[name].std_error


def test_marginal_likelihood_is_that_of_the_kalman_filter(tank) -> None:
    unknown = ["a", "x0", "scale(w)", "noise(y)"]
    filtered = gr.fit(Tank(), tank, unknown, gr.KalmanML(initial_covariance={"x": 0.0}))
    fit = gr.fit(Tank(), tank, unknown, gr.Collocation(criterion="laplace", knots=161))
    assert fit.log_likelihood == pytest.approx(filtered.log_likelihood, abs=2e-4)
    np.testing.assert_allclose(fit.estimate.theta, filtered.estimate.theta, rtol=1e-3)
    np.testing.assert_allclose(fit.std_errors, filtered.std_errors, rtol=1e-2)


@pytest.mark.parametrize("criterion", ["amle", "laplace", "smoothing"])
def test_gradients_are_those_of_the_criterion(reactor, criterion: str) -> None:
    extra = ["noise(y_C)", "scale(w_T)"] if criterion == "laplace" else []
    problem = build_problem(
        cstr.Reactor(), reactor, [*cstr.TRUE, *extra], gr.Collocation(criterion=criterion, knots=60)
    )
    theta = problem.guess * np.linspace(0.96, 1.05, len(problem.unknowns))
    at = problem.evaluate(theta)
    for k in range(len(theta)):
        h = np.zeros(len(theta))
        h[k] = 1e-4 * theta[k]
        difference = problem.evaluate(theta + h).objective - problem.evaluate(theta - h).objective
        assert at.slope[k] == pytest.approx(difference / (2 * h[k]), rel=1e-5)


def test_a_coloured_disturbance_starts_stationary() -> None:
    class Sunny(gr.Model):
        a, b = gr.Parameter(1.0), gr.Parameter(0.8)
        x = gr.Variable(start=1.0)
        w = gr.Disturbance(gr.spectra.white(), scale=0.3)
        g = gr.Disturbance(gr.spectra.lowpass(bandwidth=b), scale=0.5)
        y = gr.Output(x, noise=0.1)
        equations = [der(x) == -a * x + g + w]

    data = record(Sunny(), np.linspace(0.0, 15.0, 61), seed=8)
    method = gr.Collocation(criterion="laplace", knots=241)
    at = {"a": 1.1, "b": 0.7, "scale(g)": 0.6}
    likelihood = gr.KalmanML(initial_covariance={"x": 0.0})
    exact, found = gr.evaluate(Sunny(), data, likelihood, at), gr.evaluate(Sunny(), data, method, at)
    assert found.log_likelihood == pytest.approx(exact.log_likelihood, abs=3e-3)
    for name in at:
        assert found.gradient[name] == pytest.approx(exact.gradient[name], rel=3e-3)


def test_models_that_splines_do_not_suit_are_solved_directly(tmp_path: Path) -> None:
    class Cart(gr.Model):
        a = gr.Parameter(1.0)
        x, v = gr.Variable(start=1.0), gr.Variable(start=0.0)
        w = gr.Disturbance(gr.spectra.white(), scale=0.5)
        y = gr.Output(x, noise=0.2)
        equations = [der(x) == v, der(v) == -a * x - 0.5 * v + w]

    data = record(Cart())
    fit = gr.fit(Cart(), data, ["a"], gr.Collocation(criterion="amle"))
    states = fit.states()
    assert fit.converged and float(states["x"].sel(statistic="std")[0, 5]) > 0
    fit.save(tmp_path / "cart.nc")
    np.testing.assert_allclose(gr.load(tmp_path / "cart.nc").states()["x"], states["x"], atol=1e-6)


# intensities


def test_intensities_from_known_noise_lie_near_the_truth(reactor) -> None:
    fit = gr.fit(
        cstr.Reactor(),
        reactor,
        list(cstr.TRUE),
        gr.Collocation(criterion="amle", intensities="estimate"),
        guess=cstr.halved_guess(),
    )
    assert fit.converged
    assert 0.5 < fit["scale(w_C)"] ** 2 / 4e-3 < 2.0
    assert 0.5 < fit["scale(w_T)"] ** 2 / 4.0 < 2.0
    # what defines them: residuals and the share that the trajectories took are as large as the noise
    ratios = fit.estimate.evaluation.solution.misfit(fit.estimate.cases, ["y_C", "y_T"]).ratios
    np.testing.assert_allclose(ratios, 1.0, atol=5e-3)


def test_the_first_root_from_small_arguments_is_taken() -> None:
    """g falls through zero at −1 and tends to zero from below far out."""
    found, met = first_root(lambda x: -np.tanh(x + 1) * np.exp(-0.2 * x), -6.0, 1e-8)
    assert met and found == pytest.approx(-1.0, abs=1e-6)
    assert first_root(lambda x: 1.0, 0.0, 1e-6) == (0.0, False)
    assert first_root(lambda x: -1.0 + 0.05 * x, 0.0, 1e-6) == (-10.0, False)
    small, met = first_root(lambda x: -1.0, 0.0, 1e-6)  # flat: as good as zero long before
    assert -6 < small < -4 and not met


def test_a_drifting_disturbance_is_followed() -> None:
    drifting = cstr.DriftingReactor()
    data = cstr.simulate_experiment(2, drifting)
    fit = gr.fit(
        drifting, data, list(cstr.TRUE), gr.Collocation(criterion="amle", knots=100), guess=cstr.halved_guess()
    )
    states = fit.states(names=["d"])["d"].sel(given="smoothed")
    assert fit.converged
    assert states.sel(statistic="std").values[0] == 0.0
    assert states.sel(statistic="mean").values.std() > 1e-3


def test_an_unmeasured_state_starts_from_a_simulation() -> None:
    data = cstr.simulate_experiment(2, outputs=("y_T",))
    fit = gr.fit(
        cstr.Reactor(), data, ["E_R", "k_ref"], gr.Collocation(criterion="amle", knots=100),
        guess={"E_R": 6000.0, "k_ref": 0.4},
    )  # fmt: skip
    assert fit.converged
    assert abs(fit["E_R"] - 8330.1) < 4 * fit["E_R"].std_error


# published


def test_generalised_profiling_gives_the_published_estimates(reference_data: Path) -> None:
    """The published trajectories are a local minimum of the inner problem: one starts near them."""
    folder = reference_data / "collocinfer_fhn"
    data, published = pd.read_csv(folder / "data.csv"), pd.read_csv(folder / "spline_coefficients_reference.csv")
    knots, random = np.linspace(0, 20, 101), np.random.default_rng(1)
    where = make_spline(3, knots, np.zeros(0)).averages
    near = {n: (where, published[n].to_numpy() + 0.02 * random.normal(size=102)) for n in ("V", "R")}
    method = gr.Collocation(criterion="smoothing", order=3, knots=knots, quadrature="ends+midpoints", trajectories=near)
    # 102 points of weight 20/102: a penalty of 10 000/102 at each is an intensity of 20/10 000
    model = FitzHughNagumo(s=np.sqrt(20 / 10_000))
    experiment = gr.Experiment(data["t"].to_numpy(), {}, {"yV": data["V"].to_numpy(), "yR": data["R"].to_numpy()})
    fit = gr.fit(model, experiment, ["a", "b", "c", "start(V)", "start(R)"], method)
    assert fit.converged
    np.testing.assert_allclose(
        fit.estimate.theta[:3], [0.226787300957118, 0.16462933875439198, 3.003806053317611], rtol=1e-7
    )
    assert 2 * fit.objective == pytest.approx(3.79579047045, rel=1e-9)
    quadratic = fit.estimate.evaluation.solution.at
    for place, name in zip(quadratic.task.programs[0].mesh.places, ("V", "R"), strict=True):
        np.testing.assert_allclose(quadratic.betas[0][place], published[name], atol=1e-6)
    # from the data themselves the trajectories find a lower minimum of the same inner problem
    free = gr.Collocation(criterion="smoothing", order=3, knots=knots, quadrature="ends+midpoints")
    problem = build_problem(model, experiment, ["a", "b", "c", "start(V)", "start(R)"], free, guess=fit)
    lower = problem.evaluate(fit.estimate.theta).solution.at
    assert lower.objective < quadratic.objective - 0.1


# what else a fit can do


def test_refinement_stops_when_the_estimates_stay(tank) -> None:
    coarse = gr.fit(Tank(), tank, ["a", "x0"], gr.Collocation(criterion="amle", knots=11))
    fine = gr.fit(Tank(), tank, ["a", "x0"], gr.Collocation(criterion="amle", knots=11, refine=8))
    finest = gr.fit(Tank(), tank, ["a", "x0"], gr.Collocation(criterion="amle", order=2, knots=641))
    assert 0 < fine.estimate.mesh.refinements < 8
    error = finest["a"].std_error
    assert abs(fine["a"] - finest["a"]) < 0.1 * error
    assert abs(fine["a"] - finest["a"]) < abs(coarse["a"] - finest["a"])


def test_bounds_of_states_and_parameters_hold(tank) -> None:
    class Bounded(Tank):
        x = gr.Variable(start=Tank.x0 * Tank.a, bounds=(0.4, None))
        equations = [der(x) == -Tank.a * x + Tank.u + Tank.w]
        y = gr.Output(x, noise=0.2)

    free = gr.fit(Tank(), tank, ["a"], gr.Collocation(criterion="amle"))
    fit = gr.fit(Bounded(), tank, ["a"], gr.Collocation(criterion="amle"), bounds={"a": (0.9, 1.2)})
    assert free.states()["x"].sel(statistic="mean").min() < 0.3
    assert fit.converged
    assert fit.states()["x"].sel(statistic="mean").min() >= 0.4 - 1e-9
    assert fit.objective > free.objective
    held = gr.fit(
        Tank(), tank, ["a"], gr.Collocation(criterion="amle"), bounds={"a": (free["a"] + 0.1, 2.0)}, guess={"a": 1.5}
    )
    assert held["a"] == pytest.approx(free["a"] + 0.1)
    assert held.parameters.loc["a", "status"] == "at bound"


def test_priors_and_outputs_of_parameters_alone_add_information(tank) -> None:
    plain = gr.fit(Tank(), tank, ["a"], gr.Collocation(criterion="amle"))
    known = gr.fit(Tank(), tank, ["a"], gr.Collocation(criterion="amle"), priors={"a": gr.Normal(1.5, 0.05)})
    assert abs(known["a"] - 1.5) < abs(plain["a"] - 1.5)

    class Seen(Tank):
        k = gr.Output(Tank.a**2, noise=0.15)

    also = gr.Experiment(TIMES, {"u": STEP}, {"y": tank.measurements("y").values, "k": (TIMES[:1], [2.25])})
    fit = gr.fit(Seen(), also, ["a"], gr.Collocation(criterion="amle"))
    # a² = 2.25 ± 0.15 is a = 1.5 ± 0.05 to first order
    assert fit["a"] == pytest.approx(known["a"], abs=0.2 * known["a"].std_error)
    assert fit["a"].std_error < 0.5 * plain["a"].std_error


def test_several_experiments_share_parameters_and_have_their_own_starts() -> None:
    model = Tank()
    data = [record(model, inputs={"u": STEP}, seed=k).replace(name=name) for k, name in ((1, "A"), (2, "B"))]
    fit = gr.fit(model, data, ["a", "start(x)"], gr.Collocation(criterion="amle"))
    assert fit.names == ("a", "start(x)@A", "start(x)@B")
    alone = gr.fit(model, data[0], ["a", "start(x)"], gr.Collocation(criterion="amle"))
    assert fit["a"].std_error < alone["a"].std_error
    assert fit.states("B").attrs["experiment"] == "B"


def test_a_saved_fit_comes_back_with_its_trajectories(tank, tmp_path: Path) -> None:
    fit = gr.fit(Tank(), tank, ["a", "start(x)"], gr.Collocation(criterion="amle", knots=np.linspace(0, 10, 21)))
    fit.save(tmp_path / "fit.nc")
    again = gr.load(tmp_path / "fit.nc")
    assert again.method == fit.method
    assert again["a"] == fit["a"]
    np.testing.assert_allclose(again.states()["x"], fit.states()["x"], atol=1e-9)


def test_other_estimators_start_from_it(tank) -> None:
    fit = gr.fit(Tank(), tank, ["a", "x0"], gr.Collocation(criterion="amle"))
    follow = gr.fit(Tank(), tank, ["a", "x0"], gr.OutputError(), guess=fit)
    assert follow.parameters.loc["a", "guess"] == pytest.approx(fit["a"])


def test_noise_that_depends_on_states_is_settled_on_the_trajectory() -> None:
    class Relative(gr.Model):
        a = gr.Parameter(0.3)
        x = gr.Variable(start=4.0)
        w = gr.Disturbance(gr.spectra.white(), scale=0.1)
        y = gr.Output(x, noise=0.02 + 0.05 * x)
        equations = [der(x) == -a * x + w]

    data = record(Relative(), seed=4)
    fit = gr.fit(Relative(), data, ["a"], gr.Collocation(criterion="amle"))
    predicted = fit.residuals()
    expected = predicted["residual"] / (0.02 + 0.05 * predicted["predicted"])
    np.testing.assert_allclose(fit.residuals(standardized=True)["residual"], expected, rtol=1e-4)


# mistakes


def test_what_cannot_be_done_is_said(tank) -> None:
    class Open(Tank):
        y = gr.Output(Tank.x)

    class Free(Tank):
        sigma = gr.Parameter(0.5)
        w = gr.Disturbance(gr.spectra.white(), scale=sigma)
        equations = [der(Tank.x) == -Tank.a * Tank.x + Tank.u + w]

    class Undisturbed(gr.Model):
        a = gr.Parameter(1.0)
        x, v = gr.Variable(start=1.0), gr.Variable(start=0.0)
        u = gr.Input()
        w = gr.Disturbance(gr.spectra.white(), scale=0.5)
        y = gr.Output(x, noise=0.2)
        equations = [der(x) == v, der(v) == -a * x + u + w]

    with pytest.raises(EstimationError, match=r"noise of output 'y' is unknown.*criterion='laplace'"):
        gr.fit(Open(), tank, ["a"], gr.Collocation(criterion="amle"))
    with pytest.raises(EstimationError, match=r"'sigma' is a noise level.*laplace"):
        gr.fit(Free(), tank, ["sigma"], gr.Collocation(criterion="amle"))
    with pytest.raises(EstimationError, match=r"nothing disturbs the equation of der\(x\)"):
        gr.fit(Undisturbed(), tank, ["a"], gr.Collocation(criterion="amle", transcription="spline"))
    with pytest.raises(EstimationError, match="knots= names 'X'"):
        gr.fit(Tank(), tank, ["a"], gr.Collocation(criterion="amle", knots={"X": 5}))
    with pytest.raises(EstimationError, match="trajectories= names 'q'"):
        gr.fit(Tank(), tank, ["a"], gr.Collocation(criterion="amle", trajectories={"q": 1.0}))
    with pytest.raises(EstimationError, match="criterion is 'mle'"):
        gr.Collocation(criterion="mle")  # type: ignore[arg-type]
    with pytest.raises(EstimationError, match="goes with criterion='amle' or 'laplace'"):
        gr.Collocation(criterion="ipda", intensities="estimate")


def test_more_intensities_than_outputs_are_refused() -> None:
    data = cstr.simulate_experiment(2, outputs=("y_T",))
    with pytest.raises(EstimationError, match=r"2 intensities .* cannot be found from the misfit of 1 output"):
        gr.fit(
            cstr.Reactor(),
            data,
            ["E_R"],
            gr.Collocation(criterion="amle", intensities="estimate", knots=30),
        )
