"""The simulated criterion: derivatives by everything that can be unknown, its correction, several outputs."""

from __future__ import annotations

import numpy as np
import pytest
from estimators.simulated_pem.mean_models import SHORT, Squared, TwoTanks, record

import grisaille as gr
from grisaille.estimators import build_problem
from grisaille.estimators.simulated_pem import MeanCriterion

EVERYTHING = ["k", "rho", "bandwidth", "scale(w[0])", "scale(w[1])", "start(h1)"]


def criterion(model: gr.Model, data: object, names: list[str], match: str, **options: object) -> MeanCriterion:
    method = gr.SimulatedPEM(**{"realizations": 6, "match": match, "step": 0.2, **options})
    made = MeanCriterion(build_problem(model, data, names, method))
    made.update_levels(made.at(made.problem.guess))
    return made


def tanks(match: str, names: list[str] = EVERYTHING, **options: object) -> MeanCriterion:
    data = record(TwoTanks(k=1.0), 3, SHORT)
    return criterion(TwoTanks(), data, names, match, **options)


def central(made: MeanCriterion, theta: np.ndarray, k: int) -> float:
    """Richardson's extrapolation of central differences of the same criterion."""
    sizes = [1e-3, 5e-4]
    slopes = []
    for h in sizes:
        ends = [made.at(theta + s * h * np.eye(len(theta))[k], sensitive=False).objective for s in (1, -1)]
        slopes.append((ends[0] - ends[1]) / (2 * h))
    return (4 * slopes[1] - slopes[0]) / 3


@pytest.mark.parametrize("match", ["mean", "mean-variance"])
def test_gradient_by_every_kind_of_unknown(match: str) -> None:
    """Parameters of dynamics, spectrum and correlation, scales, starts and open noise."""
    made = tanks(match)
    names = [u.name for u in made.problem.unknowns]
    assert ("noise(y1)" in names) == (match == "mean-variance")
    theta = made.problem.guess * 1.05
    value = made.at(theta)
    assert made.patterns[0].outputs == ("y1", "y2")
    for k, name in enumerate(names):
        assert value.gradient[k] == pytest.approx(central(made, theta, k), rel=1e-6, abs=1e-7), name


def test_values_without_derivatives_are_renewed_beside_a_prior() -> None:
    """Whose slope is known where that of the simulations was not asked for."""
    data = record(TwoTanks(k=1.0), 3, SHORT)
    method = gr.SimulatedPEM(realizations=6, step=0.2)
    made = MeanCriterion(build_problem(TwoTanks(), data, ["k"], method, priors={"k": gr.Gamma(1.3, 9.0)}))
    value = made.at(made.problem.guess, sensitive=False)
    made.update_levels(value)
    found = made.renew(value).objective
    assert found == pytest.approx(made.renew(made.at(made.problem.guess)).objective, rel=1e-12)


def test_gradient_with_gaps_and_weights() -> None:
    """Outputs measured at different instants, some with less weight."""
    whole = record(TwoTanks(k=1.0), 3, SHORT)
    y1 = np.array(whole.outputs["y1"].values)
    y1[3:7] = np.nan
    weights = {"y2": np.linspace(0.5, 2.0, len(SHORT))}
    data = gr.Experiment(SHORT, {"u": 1.0}, {"y1": y1, "y2": whole.outputs["y2"].values}, weights=weights)
    for match in ("mean", "mean-variance"):
        made = criterion(TwoTanks(), data, ["k", "scale(w[1])"], match)
        assert {p.outputs for p in made.patterns} == {("y2",), ("y1", "y2")}
        theta = made.problem.guess * 1.05
        for k in range(2):
            assert made.at(theta).gradient[k] == pytest.approx(central(made, theta, k), rel=1e-6)


def test_covariances_are_those_of_the_realizations() -> None:
    made = tanks("mean-variance", ["k"])
    problem = made.problem
    (case,) = problem.cases
    found = made.at(problem.guess).predictions[0]
    from grisaille.simulation.ensembles import run_ensemble

    runner = made.runners[0]
    rows = run_ensemble(runner._at(np.array([0.7]), False), runner.options).y
    assert rows is not None
    expected = np.array([np.cov(rows[:, t, :2], rowvar=False) for t in range(len(case.grid))])
    np.testing.assert_allclose(found.covariance, expected, rtol=1e-9, atol=1e-13)


def test_correction_is_the_variance_of_the_mean() -> None:
    data = record(Squared(a=1.2), 3, SHORT)
    with_it, without = (criterion(Squared(), data, ["a"], "mean", correction=c) for c in (True, False))
    with_it.level = without.level = np.eye(1)
    a, b = with_it.at(np.array([1.0])), without.at(np.array([1.0]))
    assert b.objective - a.objective == pytest.approx(0.5 * a.spread.sum() / 6, rel=1e-10)


def test_corrected_gradient_is_the_product_over_different_realizations() -> None:
    """−Σ_{i≠j} (y − ŷ_i) ∂ŷ_j / (M(M−1)), from the realizations themselves."""
    from grisaille.simulation.ensembles import run_ensemble

    data = record(Squared(a=1.2), 3, SHORT)
    made = criterion(Squared(), data, ["a"], "mean")
    made.level = np.eye(1)
    runner, theta = made.runners[0], np.array([1.1])
    found = run_ensemble(runner._at(np.array([1.1]), True), runner.options)
    assert found.y is not None and found.sy is not None
    e, s = data.outputs["y"].values - found.y[:, :, 0], found.sy[:, :, 0, 0]
    pairs = [np.sum(e[i] * s[j]) for i in range(6) for j in range(6) if i != j]
    assert made.at(theta).gradient[0] == pytest.approx(-np.mean(pairs), rel=1e-10)


def test_weighting_of_several_outputs() -> None:
    """Estimated with the correlation of the errors, without it, or given."""
    full, diagonal, given = (tanks("mean", ["k"], weighting=w) for w in (None, "diagonal", [[2.0, 0.5], [0.5, 1.0]]))
    assert full.level[0, 1] != 0
    assert diagonal.level[0, 1] == 0
    np.testing.assert_allclose(np.linalg.inv(given.level), [[2.0, 0.5], [0.5, 1.0]])
    for made in (full, diagonal, given):
        theta = made.problem.guess * 1.05
        assert made.at(theta).gradient[0] == pytest.approx(central(made, theta, 0), rel=1e-6)


@pytest.mark.parametrize("weighting", [[[1.0]], [[1.0, 2.0], [2.0, 1.0]], [[1.0, 0.3], [0.0, 1.0]]])
def test_wrong_weighting_is_refused(weighting: object) -> None:
    with pytest.raises(gr.GrisailleError, match=r"symmetric positive definite 2 × 2 matrix, for y1, y2"):
        tanks("mean", ["k"], weighting=weighting)


def test_evaluate_gives_the_criterion_and_its_gradient() -> None:
    data = record(Squared(a=1.2), 3, SHORT)
    method = gr.SimulatedPEM(realizations=6, match="mean-variance")
    found = gr.evaluate(Squared(), data, method, {"a": 1.0})
    made = criterion(Squared(), data, ["a"], "mean-variance", step=None)
    assert found.objective == pytest.approx(made.at(np.array([1.0])).objective, rel=1e-12)
    assert found.gradient["a"] == pytest.approx(made.at(np.array([1.0])).gradient[0], rel=1e-12)
    assert np.isnan(found.log_likelihood)
