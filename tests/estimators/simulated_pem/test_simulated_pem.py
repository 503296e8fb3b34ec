"""Simulated prediction errors: agreement on linear models, what means and what variances tell, every search."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from estimators.simulated_pem.mean_models import INPUT, TIMES, Drifting, Squared, TwoTanks, record

import grisaille as gr
from grisaille import der
from grisaille.errors import EstimationError


def within(fit: gr.Fit, truth: dict[str, float], errors: float = 3.0) -> bool:
    return all(abs(float(fit[n]) - v) < errors * fit[n].std_error for n, v in truth.items())


def test_linear_model_gives_the_output_error_estimate() -> None:
    """Antithetic pairs make the mean exact, so the predictor is the undisturbed simulation."""
    data = record(Drifting(a=1.2, b=1.5), 7)
    pem = gr.fit(Drifting(), data, ["a", "b"], gr.SimulatedPEM(realizations=8, antithetic=True, correction=False))
    error = gr.fit(Drifting(), data, ["a", "b"], gr.OutputError())
    assert pem.converged
    assert np.allclose(pem.estimate.theta, error.estimate.theta, rtol=1e-3)
    assert (pem.std_errors > 1.5 * error.std_errors).all(), "output error takes correlated errors for independent ones"


def test_squared_disturbance_biases_output_error_only() -> None:
    found = []
    for seed in range(8):
        data = record(Squared(a=1.2), seed, threads=1)
        pem = gr.fit(Squared(), data, ["a"], gr.SimulatedPEM(realizations=64, threads=1))
        found.append((float(pem["a"]), float(gr.fit(Squared(), data, ["a"], gr.OutputError())["a"])))
    pem_mean, error_mean = np.mean(found, axis=0)
    spread = np.std(found, axis=0)[0]
    assert abs(pem_mean - 1.2) < 3 * spread / np.sqrt(8)
    assert abs(error_mean - 1.2) > 4 * abs(pem_mean - 1.2)


def test_searches_agree() -> None:
    """Common random numbers: the same criterion has the same minimum, however it is found."""
    data, options = record(Squared(a=1.2), 1), {"realizations": 16, "seed": 1}
    bounds = {"a": (0.8, 1.8)}
    newton = gr.fit(Squared(), data, ["a"], gr.SimulatedPEM(**options))
    grid = gr.fit(Squared(), data, ["a"], gr.SimulatedPEM(search="grid", points=21, **options), bounds=bounds)
    simplex = gr.fit(Squared(), data, ["a"], gr.SimulatedPEM(search="nelder-mead", **options))
    stochastic = gr.fit(Squared(), data, ["a"], gr.SimulatedPEM(search="stochastic", **options))
    assert abs(float(newton["a"]) - float(grid["a"])) <= 0.05
    assert float(simplex["a"]) == pytest.approx(float(newton["a"]), rel=1e-4)
    assert float(stochastic["a"]) == pytest.approx(float(newton["a"]), rel=1e-4), "after the polish"
    assert simplex["a"].std_error == pytest.approx(newton["a"].std_error, rel=1e-2)


def test_scale_of_a_squared_disturbance_from_the_mean() -> None:
    data = [record(Squared(a=1.2), seed) for seed in range(3)]
    fit = gr.fit(Squared(), data, ["a", "scale(w)"], gr.SimulatedPEM(realizations=64), guess={"scale(w)": 0.6})
    assert fit.converged
    assert within(fit, {"a": 1.2, "scale(w)": 1.0})


def test_scale_of_a_linear_disturbance_needs_the_variance() -> None:
    data = record(Drifting(a=1.2, b=1.5), 3)
    names = ["a", "b", "scale(w)"]
    with pytest.raises(EstimationError, match=r"does not depend on 'scale\(w\)' .*match='mean-variance'"):
        gr.fit(Drifting(), data, names, gr.SimulatedPEM(realizations=100))
    fit = gr.fit(Drifting(), data, names, gr.SimulatedPEM(realizations=100, match="mean-variance"))
    assert fit.converged
    assert within(fit, {"a": 1.2, "b": 1.5, "scale(w)": 0.3})


def test_noise_is_not_in_the_mean() -> None:
    data = record(TwoTanks(), 3)
    with pytest.raises(EstimationError, match=r"does not depend on 'noise\(y1\)': use .*mean-variance"):
        gr.fit(TwoTanks(), data, ["k", "noise(y1)"], gr.SimulatedPEM(realizations=8))


def test_correlation_spectrum_and_noise_from_variances() -> None:
    """Two experiments, two outputs, five disturbance parameters and the noise that the model leaves open."""
    data = [record(TwoTanks(k=1.0, rho=0.6), seed, noise=0.05, threads=1) for seed in (1, 2)]
    names = ["k", "rho", "bandwidth", "scale(w[0])", "scale(w[1])"]
    fit = gr.fit(TwoTanks(rho=0.3), data, names, gr.SimulatedPEM(realizations=64, match="mean-variance", rtol=1e-4))
    truth = {"k": 1.0, "rho": 0.6, "bandwidth": 1.5, "scale(w[0])": 0.4, "scale(w[1])": 0.4}
    assert fit.converged
    assert set(fit.names) == {*truth, "noise(y1)"}
    assert within(fit, truth)
    # the first samples alone, where no disturbance has acted yet, tell the noise
    noise = fit["noise(y1)"]
    assert abs(np.log(float(noise) / 0.05)) < 3 * noise.std_error / float(noise)


def test_starts_of_several_experiments() -> None:
    data = [record(Drifting(a=1.2, b=1.5), seed).replace(name=f"run {seed}") for seed in (1, 2)]
    fit = gr.fit(Drifting(), data, ["a", "b", "start(x)"], gr.SimulatedPEM(realizations=32))
    assert fit.converged
    assert fit.names == ("a", "b", "start(x)@run 1", "start(x)@run 2")
    assert within(fit, {"a": 1.2, "b": 1.5, "start(x)@run 1": 0.0, "start(x)@run 2": 0.0})


def test_gain_and_bandwidth_are_hard_to_tell_apart_by_the_mean() -> None:
    """E w² moves with both; the note says so, loudly."""

    class Both(Squared):
        b = gr.Parameter(2.0, bounds=(0.2, 20.0))
        w = gr.Disturbance(gr.spectra.lowpass(bandwidth=b), scale=1.0)

    data = record(Squared(a=1.2), 3)
    fit = gr.fit(Both(a=1.2), data, ["b", "scale(w)"], gr.SimulatedPEM(realizations=64))
    assert any(n.startswith("NEARLY UNIDENTIFIABLE") and "mean-variance" in n for n in fit.notes)


def test_a_disturbance_that_is_not_there_has_scale_zero() -> None:
    data = record(Drifting(a=1.2, b=1.5), 3, **{"parameters": {"scale(w)": 0.0}})
    fit = gr.fit(Drifting(), data, ["a", "b", "scale(w)"], gr.SimulatedPEM(realizations=32, match="mean-variance"))
    assert float(fit["scale(w)"]) < 0.01
    assert within(fit, {"a": 1.2, "b": 1.5}, 4.0)


def test_number_of_realizations_is_chosen() -> None:
    data = record(Squared(a=1.2), 3)
    fit = gr.fit(Squared(), data, ["a"], gr.SimulatedPEM(realizations="auto"))
    assert fit.converged
    assert fit.estimate.ensemble.realizations >= 128
    assert fit.estimate.ensemble.monte_carlo_share < 0.01
    assert any(n.startswith("realizations: 128 (enough; tried 64, 128)") for n in fit.notes)


def test_few_realizations_are_told() -> None:
    fit = gr.fit(Squared(), record(Squared(a=1.2), 3), ["a"], gr.SimulatedPEM(realizations=8))
    (note,) = [n for n in fit.notes if n.startswith("finite ensemble") and "variance of a" in n]
    assert "due to only 8 realizations" in note and "would leave 1 %" in note


def test_without_derivatives_the_simplex_takes_over() -> None:
    """Bridges between grid points have no derivative by a scale."""
    data = record(Squared(), 3, np.linspace(0.0, 3.0, 7))
    method = gr.SimulatedPEM(realizations=4, between="exact", rtol=1e-2, step=0.5, max_iterations=1)
    fit = gr.fit(Squared(), data, ["scale(w)"], method)
    assert any(n.startswith("searched without derivatives (Nelder–Mead)") for n in fit.notes)
    assert np.isfinite(fit["scale(w)"].std_error)


def test_interrupted_fit_gives_what_it_reached(monkeypatch: pytest.MonkeyPatch) -> None:
    from grisaille.estimators.simulated_pem import MeanCriterion

    data, method = record(Squared(a=1.2), 3), gr.SimulatedPEM(realizations=16)
    whole = gr.fit(Squared(), data, ["a"], method)
    evaluate, calls = MeanCriterion.at, []

    def stop(self, theta, **options):
        calls.append(theta)
        if len(calls) == 5:
            raise KeyboardInterrupt
        return evaluate(self, theta, **options)

    monkeypatch.setattr(MeanCriterion, "at", stop)
    part = gr.fit(Squared(), data, ["a"], method)
    assert not part.converged
    assert part.status.startswith("INTERRUPTED")
    assert len(part.trace) > 1
    assert not np.isfinite(part["a"].std_error)
    monkeypatch.undo()
    resumed = gr.fit(Squared(), data, ["a"], method, guess=part)
    assert resumed.converged
    assert float(resumed["a"]) == pytest.approx(float(whole["a"]), rel=1e-5)


def test_interrupting_a_study_stops_it(monkeypatch: pytest.MonkeyPatch) -> None:
    from grisaille.estimators.simulated_pem import MeanCriterion

    evaluate, calls = MeanCriterion.at, []

    def stop(self, theta, **options):
        calls.append(theta)
        if len(calls) == 8:
            raise KeyboardInterrupt
        return evaluate(self, theta, **options)

    monkeypatch.setattr(MeanCriterion, "at", stop)
    plan = record(Squared(), 1)
    with pytest.raises(KeyboardInterrupt):
        gr.monte_carlo(
            Squared(a=1.2), plan, ["a"], gr.SimulatedPEM(realizations=8), runs=20, executor="serial", progress=False
        )
    assert len(calls) < 12


def test_checkpoint_goes_on_and_is_removed(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    from grisaille.estimators.simulated_pem import MeanCriterion

    path, data = tmp_path / "pem.json", record(Squared(a=1.2), 3)
    method = gr.SimulatedPEM(realizations=16, checkpoint=str(path))
    evaluate, calls = MeanCriterion.at, []

    def stop(self, theta, **options):
        calls.append(theta)
        if len(calls) == 5:
            raise KeyboardInterrupt
        return evaluate(self, theta, **options)

    monkeypatch.setattr(MeanCriterion, "at", stop)
    gr.fit(Squared(), data, ["a"], method)
    monkeypatch.undo()
    assert path.exists()
    with pytest.raises(EstimationError, match="belongs to another model, other data or other options"):
        gr.fit(Squared(), record(Squared(a=1.2), 4), ["a"], method)
    fit = gr.fit(Squared(), data, ["a"], method)
    assert fit.converged
    assert any("went on from the checkpoint" in n for n in fit.notes)
    assert not path.exists()


def test_damaged_checkpoint_is_refused(tmp_path) -> None:
    path = tmp_path / "pem.json"
    path.write_text("{}")
    with pytest.raises(EstimationError, match="cannot be read"):
        gr.fit(Squared(), record(Squared(), 3), ["a"], gr.SimulatedPEM(realizations=4, checkpoint=str(path)))


def test_memory_does_not_grow_with_the_ensemble() -> None:
    """NumPy reports its arrays to tracemalloc; the kernels allocate nothing."""
    data, peaks = record(Squared(a=1.2), 3), []
    for count in (100, 100, 1200):
        tracemalloc.start()
        gr.fit(Squared(), data, ["a"], gr.SimulatedPEM(realizations=count, max_iterations=2))
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[2] < peaks[1] + 40e6


def test_streams_of_data_and_model_differ() -> None:
    """With the same seed the model must not recognise its own noise: the errors stay as large as the disturbance."""
    data = record(Drifting(a=1.2, b=1.5), 1)
    fit = gr.fit(Drifting(), data, ["a", "b"], gr.SimulatedPEM(realizations=2, seed=1))
    assert fit.residuals()["residual"].std() > 0.05


def test_saved_fit_comes_back(tmp_path) -> None:
    data = record(Squared(a=1.2), 3)
    fit = gr.fit(Squared(), data, ["a", "scale(w)"], gr.SimulatedPEM(realizations=16, match="mean-variance"))
    fit.save(tmp_path / "fit.nc")
    back = gr.load(tmp_path / "fit.nc")
    assert str(back) == str(fit)


def test_prediction_is_the_mean_of_an_ensemble() -> None:
    """Other realizations than those of the fit, so it agrees with the fitted mean to its Monte Carlo error."""
    data = record(Squared(a=1.2), 3)
    fit = gr.fit(Squared(), data, ["a", "scale(w)"], gr.SimulatedPEM(realizations=200))
    fitted = fit.residuals()["predicted"].to_numpy()
    assert np.abs(fit.predict()["y"].values - fitted).max() < 0.3
    assert np.abs(fit.predict()["y"].values - fitted).mean() < 0.1


def test_print_has_no_likelihood_line() -> None:
    fit = gr.fit(Squared(), record(Squared(a=1.2), 3), ["a"], gr.SimulatedPEM(realizations=16))
    assert "log-likelihood" not in str(fit)
    assert "not a likelihood: no AIC, BIC" in str(fit)
    with pytest.raises(EstimationError, match="AIC needs a likelihood"):
        _ = fit.aic


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"realizations": 1}, "whole number from 2"),
        ({"realizations": "many"}, "whole number from 2, or 'auto'"),
        ({"search": "genetic"}, "must be one of"),
        ({"match": "median"}, "must be one of"),
        ({"batch": 1}, "batch is 1; give a whole number from 2"),
        ({"weighting": "full"}, "give None, 'diagonal' or a matrix"),
        ({"search": "stochastic", "match": "mean-variance"}, "is for match='mean'"),
        ({"search": "stochastic", "correction": False}, "would not be unbiased"),
    ],
)
def test_mistakes_in_options(options, words: str) -> None:
    with pytest.raises(EstimationError, match=words):
        gr.SimulatedPEM(**options)


def test_model_without_disturbances_is_refused() -> None:
    class Quiet(gr.Model):
        a = gr.Parameter(1.0)
        x = gr.Variable(1.0)
        y = gr.Output(x)
        equations = [der(x) == -a * x]

    with pytest.raises(EstimationError, match=r"use gr.OutputError\(\)"):
        gr.fit(Quiet(), gr.Experiment(TIMES, outputs={"y": np.exp(-TIMES)}), ["a"], gr.SimulatedPEM(realizations=4))


def test_grid_needs_one_bounded_unknown() -> None:
    data = gr.Experiment(TIMES, {"u": INPUT}, {"y": INPUT})
    with pytest.raises(EstimationError, match="exactly one unknown"):
        gr.fit(Drifting(), data, ["a", "b"], gr.SimulatedPEM(realizations=4, search="grid"))


class Fading(gr.Model):
    """dx = −a x dt + s dW: the steps that a = 1 needs become unstable at a = 50."""

    a = gr.Parameter(1.0, bounds=(0.1, 2000.0))
    x = gr.Variable(1.0)
    w = gr.Disturbance(gr.spectra.white(), scale=0.05)
    y = gr.Output(x, noise=0.01)
    equations = [der(x) == -a * x + w]


def test_steps_under_white_noise_follow_the_estimate():
    """Data of a = 300 fitted from a = 1: neither the edge of stability of the first steps nor anything near it."""
    times = np.concatenate([[0.0, 0.002, 0.004, 0.006], np.arange(0.1, 4.0, 0.1)])
    y = np.exp(-300 * times) + 0.01 * np.random.default_rng(1).normal(size=times.size)
    fit = gr.fit(Fading(), gr.Experiment(times, {}, {"y": y}), ["a"], gr.SimulatedPEM(realizations=50))
    p = fit.parameters.loc["a"]
    assert not fit.converged or abs(p["estimate"] - 300) < 4 * p["std_error"]
    assert fit.converged, fit.status
