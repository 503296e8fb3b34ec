"""Fits in unfriendly circumstances: noise that moves, samples taken out, bounds, steps too long, wrong names.

Also whether standard errors are those that repeated experiments show.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import binom

import grisaille as gr
from grisaille import der
from grisaille.errors import EstimationError
from grisaille.estimators import build_problem

PLAIN = gr.OutputError()
TIMES = np.linspace(0.0, 5.0, 41)


class Decay(gr.Model):
    """x' = −a x + b, with a parameter that may stand in the noise."""

    a, b = gr.Parameter(1.0, bounds=(0.05, 5.0)), gr.Parameter(0.5)
    level = gr.Parameter(0.1)
    x = gr.Variable(2.0)
    y, z = gr.Output(x), gr.Output(3 * x)
    equations = [der(x) == -a * x + b]


def with_noise(noise: object) -> gr.Model:
    return type("Noisy", (Decay,), {"y": gr.Output(Decay.x, noise=noise)})()


def course(a: float = 0.7, b: float = 0.2, times: np.ndarray = TIMES) -> np.ndarray:
    return b / a + (2.0 - b / a) * np.exp(-a * times)


def record(noise: float = 0.05, seed: int = 0, **options: object) -> gr.Experiment:
    y = course() + noise * np.random.default_rng(seed).standard_normal(len(TIMES))
    return gr.Experiment(TIMES, outputs={"y": y}, **options)


def test_noise_that_moves_with_the_prediction_is_reweighted_not_minimised() -> None:
    """At the answer the weights are those of the answer itself; with them held, no step is left."""
    data = record()
    fit = gr.fit(with_noise(0.01 + 0.1 * abs(Decay.x)), data, ["a", "b"], PLAIN)
    assert fit.converged
    sigma = 0.01 + 0.1 * course(*fit.estimate.theta)
    weighted = data.replace(weights=1 / sigma)
    held = gr.fit(with_noise(1.0), weighted, ["a", "b"], PLAIN)
    assert np.allclose(fit.estimate.theta, held.estimate.theta, rtol=1e-7)
    assert np.allclose(fit.covariance, held.covariance, rtol=1e-5)
    e = data.measurements("y").values - course(*fit.estimate.theta)
    expected = -np.sum(0.5 * (e / sigma) ** 2 + np.log(sigma) + 0.5 * np.log(2 * np.pi))
    assert fit.log_likelihood == pytest.approx(expected, rel=1e-6)


def test_noise_with_a_parameter_alone_is_as_large_as_what_a_fit_leaves() -> None:
    """The largest likelihood: σ² = Σ e²/N with e of least squares, and a standard error of σ/√(2 N)."""
    fit = gr.fit(with_noise(Decay.level), record(), ["a", "level"], PLAIN)
    squares = gr.fit(with_noise(1.0), record(), ["a"], PLAIN)
    e = record().measurements("y").values - course(squares.estimate.theta[0], 0.5)
    level, errors = np.sqrt(np.mean(e**2)), dict(zip(fit.parameters.index, fit.std_errors, strict=True))
    assert fit.converged
    assert fit.estimate.theta == pytest.approx([squares.estimate.theta[0], level], rel=1e-6)
    assert errors == pytest.approx({"a": level * squares.std_errors[0], "level": level / np.sqrt(2 * len(e))}, rel=1e-5)


def test_noise_with_a_parameter_beside_the_prediction_has_the_largest_likelihood() -> None:
    """Compared with a search over the closed form of the course, where a moves the noise, too."""
    fit = gr.fit(with_noise(0.01 + Decay.level * abs(Decay.x)), record(), ["a", "level"], PLAIN)

    def criterion(theta: np.ndarray) -> float:
        expected = course(theta[0], 0.5)
        sigma = 0.01 + theta[1] * expected
        return float(np.sum(0.5 * ((record().measurements("y").values - expected) / sigma) ** 2 + np.log(sigma)))

    best = minimize(criterion, [1.0, 0.1], method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-12})
    assert np.all(np.abs(fit.estimate.theta - best.x) < 1e-5 * np.array(fit.std_errors))


@pytest.mark.parametrize("options", [{"loss": "huber"}, {"errors": "robust"}, {"shooting": "multiple"}])
def test_what_is_made_for_squares_refuses_parameters_of_the_noise_alone(options: dict[str, str]) -> None:
    sentence = "'level' stands in the noise of output 'y' and in nothing that is predicted"
    with pytest.raises(EstimationError, match=sentence):
        gr.fit(with_noise(Decay.level), record(), ["a", "level"], gr.OutputError(**options))
    assert gr.fit(with_noise(Decay.level), record(), ["a"], gr.OutputError(**options)).converged


def test_another_search_refuses_parameters_of_the_noise_alone() -> None:
    options = gr.OutputError(optimizer="nelder-mead")
    with pytest.raises(EstimationError, match="'level' stands in the noise of output 'y' alone: leave optimizer out"):
        gr.fit(with_noise(Decay.level), record(), ["a", "level"], options)
    assert gr.fit(with_noise(Decay.level), record(), ["a"], options).converged


def test_weight_zero_is_not_measured() -> None:
    out = TIMES > 3
    data = record()
    y = np.where(out, np.nan, data.measurements("y").values)
    light = gr.fit(Decay(), data.replace(weights=np.where(out, 0.0, 1.0)), ["a", "b"], PLAIN)
    absent = gr.fit(Decay(), data.replace(outputs={"y": y}), ["a", "b"], PLAIN)
    assert np.allclose(light.estimate.theta, absent.estimate.theta, rtol=1e-9)
    assert np.allclose(light.std_errors, absent.std_errors, rtol=1e-9)


def test_declared_covariance_that_is_not_used_is_said() -> None:
    class Correlated(gr.Model):
        a = gr.Parameter(1.0)
        x = gr.Variable(2.0)
        y, z = gr.Output(x, noise=0.1), gr.Output(3 * x, noise=0.3)

        def equations(self):
            yield der(self.x) == -self.a * self.x

        def noise_covariance(self):
            return {("y", "z"): 0.01}

    both = gr.Experiment(TIMES, outputs={"y": course(), "z": 3 * course()})
    squares = gr.OutputError(errors="robust")
    assert any("y and z to be independent" in n for n in gr.fit(Correlated(), both, ["a"], squares).notes)
    for method, data in ((PLAIN, both), (squares, record())):
        assert not any("to be independent" in n for n in gr.fit(Correlated(), data, ["a"], method).notes)


def test_steps_that_are_far_too_long_do_not_lead_astray() -> None:
    """The guess is so slow that one step spans a sample; the answer is sixty times as fast."""
    y = course(3.0, 0.9) + 0.01 * np.random.default_rng(4).standard_normal(len(TIMES))
    data = gr.Experiment(TIMES, outputs={"y": y})
    fit = gr.fit(Decay(), data, ["a", "b"], PLAIN, guess={"a": 0.05, "b": 0.0})
    near = gr.fit(Decay(), data, ["a", "b"], PLAIN, guess={"a": 3.0, "b": 0.9})
    assert fit.converged and near.converged
    assert np.allclose(fit.estimate.theta, near.estimate.theta, rtol=1e-6)


def test_discretised_nonsense_fails_instead_of_fitting() -> None:
    """x' = −k x with k = −1e4: fixed steps give finite numbers that have nothing to do with exp(1e4 t)."""

    class Growth(gr.Model):
        k = gr.Parameter(1.0)
        x = gr.Variable(1.0)
        y = gr.Output(x)
        equations = [der(x) == -k * x]

    data = gr.Experiment(TIMES[:11], outputs={"y": np.exp(-TIMES[:11])})
    problem = build_problem(Growth(), data, ["k"], PLAIN)
    assert problem.evaluate(np.array([1.0])).completed
    assert "far too long here" in problem.evaluate(np.array([-1e4])).failure


def test_bound_is_active_in_multiple_shooting_too() -> None:
    bounds = {"b": (0.0, 0.1)}
    single = gr.fit(Decay(), record(), ["a", "b"], PLAIN, bounds=bounds, guess={"b": 0.05})
    pieces = gr.OutputError(shooting="multiple", pieces=4)
    multiple = gr.fit(Decay(), record(), ["a", "b"], pieces, bounds=bounds, guess={"b": 0.05})
    for fit in (single, multiple):
        assert fit.converged
        assert fit.parameters.loc["b", "status"] == "at bound" and float(fit["b"]) == pytest.approx(0.1, abs=1e-8)
    assert float(multiple["a"]) == pytest.approx(float(single["a"]), rel=1e-6)
    assert multiple["a"].std_error == pytest.approx(single["a"].std_error, rel=1e-4)


def test_uniform_prior_is_a_bound() -> None:
    fit = gr.fit(Decay(), record(), ["a", "b"], PLAIN, priors={"a": gr.Uniform(0.1, 0.5)}, guess={"a": 0.3})
    assert float(fit["a"]) == pytest.approx(0.5, abs=1e-8)
    assert any("at bound: a" in note for note in fit.notes)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"guess": {"k": 1.0}}, "guess= names 'k'"),
        ({"priors": {"k": gr.Normal(0, 1)}}, "priors= names 'k'"),
        ({"guess": {"b": 1.0}}, "guess= names 'b'"),
    ],
)
def test_names_that_are_not_estimated(options: dict[str, object], words: str) -> None:
    with pytest.raises(EstimationError, match=words):
        gr.fit(Decay(), record(), ["a"], PLAIN, **options)


def test_constants_of_an_experiment_are_not_overruled() -> None:
    data = [record(name="A"), record(name="B", seed=1, constants={"b": 0.2})]
    with pytest.raises(EstimationError, match=r"experiment 'B' sets it to 0\.2 in constants="):
        gr.fit(Decay(), data, ["a", "b"], PLAIN)
    fit = gr.fit(Decay(), data, ["a", "b@A"], PLAIN)
    assert float(fit["b@A"]) == pytest.approx(0.2, abs=0.1)


def test_evaluation_takes_every_given_value() -> None:
    data = record()
    alone = gr.evaluate(Decay(), data, PLAIN, {"a": 0.7, "b": 0.2})
    beside = gr.evaluate(Decay(), data, PLAIN, {"a": 0.7, "b": 0.2}, ["a"])
    assert beside.log_likelihood == alone.log_likelihood
    assert alone.predictions["experiment 1"][:, 0] == pytest.approx(course(), rel=1e-6)


def test_standard_errors_are_those_of_repeated_experiments() -> None:
    """100 experiments: spread within 20 % of the mean standard error (the spread itself is known to 7 %), and as many
    95 % intervals that hold the truth as the binomial distribution allows at 0.1 %."""
    truth = np.array([0.7, 0.2, 2.0])
    found, errors, hits = [], [], np.zeros(3)
    for seed in range(100):
        fit = gr.fit(Decay(), record(0.1, seed), ["a", "b", "start(x)"])
        table = fit.intervals()
        found.append(fit.estimate.theta)
        errors.append(fit.std_errors)
        hits += (table["lower"].to_numpy() <= truth) & (truth <= table["upper"].to_numpy())
    assert np.allclose(np.std(found, axis=0, ddof=1), np.mean(errors, axis=0), rtol=0.2)
    assert ((hits >= binom.ppf(0.0005, 100, 0.95)) & (hits <= binom.ppf(0.9995, 100, 0.95))).all()
