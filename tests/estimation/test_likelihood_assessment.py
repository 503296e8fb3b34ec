"""What can be asked of likelihood fits: profiles, ratio tests with levels at zero, files, studies, joint priors."""

from __future__ import annotations

import numpy as np
import pytest

import grisaille as gr
from grisaille import der
from grisaille.assessment import DevianceLaw, mixture_p, mixture_weights
from grisaille.errors import EstimationError


class Walk(gr.Model):
    """A random walk with a drift, seen through noise."""

    slope = gr.Parameter(0.3, bounds=(-10.0, 10.0))
    x = gr.Variable(start=0.0)
    w = gr.Disturbance(gr.spectra.white(), scale=0.5)
    y = gr.Output(x, noise=0.5)
    equations = [der(x) == slope + w]


class Noisy(gr.Model):
    """Two disturbances whose levels are ordinary parameters."""

    k = gr.Parameter(0.5, bounds=(0.01, 10.0))
    s1, s2 = gr.Parameter(0.2, bounds=(0.0, 10.0)), gr.Parameter(0.2, bounds=(0.0, 10.0))
    x, v = gr.Variable(start=1.0), gr.Variable(start=0.0)
    w1 = gr.Disturbance(gr.spectra.white(), scale=s1)
    w2 = gr.Disturbance(gr.spectra.white(), scale=s2)
    y = gr.Output(x, noise=0.1)
    equations = [der(x) == v - k * x + w1, der(v) == -v + w2]


TIMES = np.arange(120.0)
NAMES = ["slope", "scale(w)", "noise(y)"]


def made(seed, model=None, N=120):
    run = gr.simulate(model or Walk(), TIMES[:N], realizations=1, seed=seed, noise=True)
    return gr.Experiment(TIMES[:N], {}, {"y": run["y"].values.ravel()}, name="A")


@pytest.fixture(scope="module")
def fit():
    return gr.fit(Walk(), made(3), estimate=NAMES, method=gr.KalmanML())


def test_the_profile_is_that_of_the_held_fits(fit):
    profile = fit.profile("slope")
    low, high = profile.interval
    for end in (low, high):
        held = gr.fit(Walk(slope=end), made(3), estimate=["scale(w)", "noise(y)"], method=gr.KalmanML())
        assert 2 * (fit.log_likelihood - held.log_likelihood) == pytest.approx(profile.threshold, rel=1e-4)
    error = float(fit.parameters.std_error["slope"])
    assert high - low == pytest.approx(2 * 1.98 * error, rel=0.15)
    surface = fit.surface("slope", "scale(w)", points=5)
    assert float(surface.data["deviance"].min()) > -1e-6


def test_ratio_tests(fit):
    assert fit.test({"slope": 0.3}).p > 0.01
    level = fit.test("scale(w)")
    held = gr.fit(Walk(w=gr.Disturbance(gr.spectra.white(), scale=0.0)), made(3), estimate=["slope", "noise(y)"],
                  method=gr.KalmanML())  # fmt: skip
    ratio = 2 * (fit.log_likelihood - held.log_likelihood)
    assert level.ratio == pytest.approx(ratio, rel=1e-6)
    assert level.weights == (0.5, 0.5)
    assert "1 degree of freedom" in str(level)
    both = gr.compare({"still": held, "walk": fit}, nested=[("still", "walk")])
    row = both.tests.iloc[0]
    assert (row.degrees_of_freedom, row.at_zero) == (1, 1)
    assert row.p == pytest.approx(level.p)
    with pytest.raises(EstimationError, match="outside"):
        fit.test({"scale(w)": -1.0})


def test_mixture_of_chi_squares():
    from scipy.stats import chi2, f

    assert mixture_p(2.7, 0, mixture_weights(np.eye(1)), DevianceLaw()) == pytest.approx(0.5 * chi2.sf(2.7, 1))
    assert mixture_p(0.0, 0, mixture_weights(np.eye(1)), DevianceLaw()) == pytest.approx(1.0)
    assert mixture_p(2.7, 1, [1.0], DevianceLaw(7.0)) == pytest.approx(f.sf(2.7, 1, 7))
    assert np.allclose(mixture_weights(np.eye(2)), [0.25, 0.5, 0.25])
    drawn = mixture_weights(np.eye(3))
    assert np.allclose(drawn, [1 / 8, 3 / 8, 3 / 8, 1 / 8], atol=0.015)
    V = np.array([[1.0, 0.8], [0.8, 1.0]])
    Z = np.random.default_rng(1).multivariate_normal([0, 0], V, 40_000)
    assert mixture_weights(V)[2] == pytest.approx(np.mean((Z > 0).all(axis=1)), abs=0.01)


def test_level_parameters_at_zero_are_found_and_the_number_of_starts_does_not_matter():
    data = made(10, Noisy(s1=0.0, s2=0.3))
    found = []
    for guess in ({"s1": 0.01, "s2": 1.0}, {"s1": 3.0, "s2": 0.05}):
        fit = gr.fit(Noisy(), data, estimate=["k", "s1", "s2"], method=gr.KalmanML(), guess=guess)
        assert fit.converged, fit.status
        assert fit.parameters.estimate["s1"] == 0.0
        assert fit.parameters.status["s1"] == "zero"
        assert any("one-sided 95 % limit" in note for note in fit.notes)
        found.append((fit.objective, float(fit["k"]), float(fit["s2"])))
    assert np.allclose(found[0], found[1], rtol=1e-5)
    assert fit.test("s1").p > 0.3


def test_the_fitted_model_carries_its_levels(fit):
    assert fit.model.parameters["slope"].value == pytest.approx(float(fit["slope"]))
    value = gr.evaluate(fit.model, made(3), method=gr.KalmanML(), parameters={"slope": float(fit["slope"])})
    assert value.log_likelihood == pytest.approx(fit.log_likelihood, abs=1e-9)


def test_files(fit, tmp_path):
    fit.save(tmp_path / "fit.nc")
    back = gr.load(tmp_path / "fit.nc")
    assert str(back) == str(fit)
    assert back.method == fit.method
    assert back.states()["x"].equals(fit.states()["x"])
    assert back.test("scale(w)").ratio == pytest.approx(fit.test("scale(w)").ratio, rel=1e-9)
    assert back.profile("slope", points=2).interval == pytest.approx(fit.profile("slope", points=2).interval)
    odd = gr.KalmanML(initial_covariance=[[2.0]], robust=("smooth", 2.5), bounds="transform")
    strange = gr.fit(Walk(), made(3), estimate=["slope"], method=odd)
    strange.save(tmp_path / "odd.nc")
    assert gr.load(tmp_path / "odd.nc").method == odd


def test_studies(fit):
    drawn = gr.bootstrap(fit, runs=6, executor="serial")
    assert drawn.table["converged"].all()
    assert np.allclose(drawn.truth, fit.estimate.theta)
    runs = gr.monte_carlo(Walk(), made(3), estimate=NAMES, method=gr.KalmanML(), runs=6, executor="serial")
    assert runs.truth["scale(w)"] == 0.5
    starts = gr.multistart(
        Walk(), made(3), estimate=NAMES, method=gr.KalmanML(), starts=3, executor="serial",
        ranges={"scale(w)": (0.01, 5.0), "noise(y)": (0.01, 5.0)},
    )  # fmt: skip
    assert np.allclose(starts.table["slope"], float(fit["slope"]), rtol=1e-4)
    with pytest.raises(EstimationError, match="kind='parametric'"):
        gr.bootstrap(fit, kind="residual")


def test_a_joint_prior_pulls_along_its_correlation():
    data = made(3)
    prior = gr.MultivariateNormal(["slope", "scale(w)"], [0.1, 0.8], [[1e-4, 9e-5], [9e-5, 1e-4]])
    fit = gr.fit(Walk(), data, estimate=NAMES, method=gr.KalmanML(), priors=[prior])
    d = np.array([float(fit["slope"]) - 0.1, float(fit["scale(w)"]) - 0.8])
    extra = 0.5 * d @ np.linalg.solve(np.array(prior.cov), d)
    assert fit.objective == pytest.approx(-fit.log_likelihood + extra, rel=1e-10)
    assert fit.correlation.loc["slope", "scale(w)"] > 0.5
    with pytest.raises(EstimationError, match="not estimated"):
        gr.fit(Walk(), data, estimate=["slope"], method=gr.KalmanML(), priors=[prior])


def test_levels_without_a_guess_begin_at_a_sane_order_of_magnitude():
    data = made(3)
    wild = Walk(w=gr.Disturbance(gr.spectra.white(), scale=1e4))
    guess = gr.KalmanML().level_guesses(wild, data, ["slope", "scale(w)", "noise(y)"])
    assert 0.05 < guess["scale(w)"] < 5.0
    assert 0.02 < guess["noise(y)"] < 5.0
    fit = gr.fit(wild, data, estimate=NAMES, method=gr.KalmanML())
    assert fit.converged
    assert float(fit["scale(w)"]) == pytest.approx(
        float(gr.fit(Walk(), data, NAMES, gr.KalmanML())["scale(w)"]), rel=1e-5
    )


def test_robust_losses_meet_least_squares_and_count_outliers_less(fit):
    clean = made(3)
    y = clean.outputs["y"].values.copy()
    y[50] += 30.0
    spoilt = clean.replace(outputs={"y": (TIMES, y)})
    far = [
        abs(float(gr.fit(Walk(), spoilt, NAMES, gr.KalmanML(robust=r))["noise(y)"]) - float(fit["noise(y)"]))
        for r in (None, 3.0, ("smooth", 3.0))
    ]
    assert far[1] < 0.6 * far[0]
    assert far[2] < 0.6 * far[0]
    wide = gr.fit(Walk(), clean, NAMES, gr.KalmanML(robust=("smooth", 1e4)))
    assert -wide.objective == pytest.approx(fit.log_likelihood, abs=1e-5) and np.isnan(wide.log_likelihood)


@pytest.mark.parametrize("robust", [2.0, ("smooth", 1.0)])
def test_gradient_of_robust_criteria_with_gaps(robust):
    data = made(3)
    y = data.outputs["y"].values.copy()
    y[10:14], y[40] = np.nan, 25.0
    data = data.replace(outputs={"y": (TIMES, y)})
    method = gr.KalmanML(robust=robust)
    at = {"slope": 0.31, "scale(w)": 0.45, "noise(y)": 0.6}
    value = gr.evaluate(Walk(), data, method=method, parameters=at)

    def objective(name, change):
        return gr.evaluate(Walk(), data, method=method, parameters={**at, name: at[name] + change}).objective

    for name in at:
        h = 1e-3
        near, far = ((objective(name, d) - objective(name, -d)) / (2 * d) for d in (h, 2 * h))
        assert value.gradient[name] == pytest.approx((4 * near - far) / 3, rel=1e-6)


def test_evaluate_reads_well():
    value = gr.evaluate(Walk(), made(3), method=gr.KalmanML(), parameters={"slope": 0.3, "scale(w)": 0.5})
    assert "log-likelihood" in str(value)
    assert "array" not in str(value)
    assert value.states["A"]["x"].sizes["given"] == 2
    with pytest.raises(EstimationError, match="States given the data come with"):
        _ = gr.evaluate(Walk(), made(3), method=gr.OutputError(), parameters={"slope": 0.3}).states
