"""How far approximate maximum likelihood leans, told and taken off."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import grisaille as gr
from grisaille import der
from grisaille.errors import EstimationError
from grisaille.estimation.collocation_bias import describe_lean, without_lean
from grisaille.estimation.fitting import build_problem


class Decay(gr.Model):
    k = gr.Parameter(1.0, "1/s", bounds=(0.01, 20.0))
    g = gr.Parameter(2.0, bounds=(0.01, 20.0))
    x = gr.Variable(start=0.0)
    u = gr.Input(default=1.0)
    w = gr.Disturbance(gr.spectra.white(), scale=0.8)
    y = gr.Output(x, noise=0.1)
    equations = [der(x) == -k * x + g * u + w]


@pytest.fixture(scope="module")
def data() -> gr.Experiment:
    times = np.arange(1, 81) * 0.25
    steps = np.arange(0.0, 20.0, 2.5)
    inputs = {"u": (steps, np.where(np.arange(steps.size) % 2, -1.0, 1.0))}
    grid = np.concatenate([[0.0], times])
    found = gr.simulate(Decay(), grid, inputs=inputs, realizations=1, seed=3, noise=True)
    return gr.Experiment(inputs=inputs, outputs={"y": (times, found["y"].values.reshape(-1)[1:])}, t0=0.0)


def fitted(data: gr.Experiment, **options: Any) -> gr.Fit:
    return gr.fit(Decay(), data, ["k", "g"], gr.Collocation(refine=0, **options), guess={"k": 0.7}, progress=False)


def _error(fit: gr.Fit, name: str) -> float:
    return float(np.sqrt(fit.covariance.loc[name, name]))


@pytest.mark.parametrize("transcription", ["spline", "direct"])
def test_steps_lead_most_of_the_way_to_the_marginal_likelihood(data: gr.Experiment, transcription: str) -> None:
    plain, debiased, marginal = (
        fitted(data, transcription=transcription, **options)
        for options in ({}, {"debias": True}, {"criterion": "laplace"})
    )
    for name in ("k", "g"):
        error = _error(plain, name)
        before, after = (abs(f[name] - marginal[name]) / error for f in (plain, debiased))
        assert before > 0.5
        assert after < 0.1 * before
    assert debiased.objective > plain.objective


def test_both_transcriptions_lean_alike(data: gr.Experiment) -> None:
    splines, direct = (fitted(data, transcription=t, debias=True) for t in ("spline", "direct"))
    # splines have Gauss–Newton's covariance, direct collocation that of the exact Hessian
    assert direct["k"] == pytest.approx(splines["k"], abs=0.1 * _error(splines, "k"))


def test_the_lean_is_that_of_the_determinants(data: gr.Experiment, monkeypatch: pytest.MonkeyPatch) -> None:
    """Against differences of Laplace's log-likelihood, less those of the criterion itself."""
    monkeypatch.setattr("grisaille.estimation.collocation_bias.STEPS", 1)
    plain, debiased = fitted(data), fitted(data, debias=True)
    theta, covariance = np.array([plain["k"], plain["g"]]), np.asarray(plain.covariance)

    def determinants(at: np.ndarray) -> float:
        values = []
        for criterion in ("laplace", "amle"):
            method = gr.Collocation(refine=0, criterion=criterion)  # type: ignore[arg-type]
            values.append(build_problem(Decay(), data, ["k", "g"], method).evaluate(at).objective)
        return values[0] - values[1]

    h = 1e-4
    slope = np.array([(determinants(theta + h * e) - determinants(theta - h * e)) / (2 * h) for e in np.eye(2)])
    assert theta - covariance @ slope == pytest.approx([debiased["k"], debiased["g"]], rel=1e-5)


def test_trajectories_are_those_of_the_debiased_estimates(data: gr.Experiment) -> None:
    fit = fitted(data, debias=True)
    held = gr.evaluate(Decay(), data, gr.Collocation(refine=0), parameters={"k": fit["k"], "g": fit["g"]})
    assert held.objective == pytest.approx(fit.objective, rel=1e-9)


def test_it_is_told(data: gr.Experiment) -> None:
    said = [n for n in fitted(data).notes if n.startswith("bias: ")]
    assert len(said) == 1 and "k by" in said[0] and "debias=True" in said[0] and "laplace" in said[0]
    taken = [n for n in fitted(data, debias=True).notes if n.startswith("bias: ")]
    assert len(taken) == 1 and taken[0].endswith("this was taken off.")
    assert not [n for n in fitted(data, criterion="laplace").notes if n.startswith("bias: ")]


def test_little_is_not_told(data: gr.Experiment) -> None:
    unknowns: Any = build_problem(Decay(), data, ["k", "g"], gr.Collocation()).unknowns
    assert describe_lean(unknowns, np.array([0.1, -0.2]), np.eye(2), False) == []
    # no variance: a bound decided
    assert describe_lean(unknowns, np.array([5.0, 0.0]), np.diag([0.0, 1.0]), False) == []


def test_what_is_too_far_for_one_step_is_not_taken_off(data: gr.Experiment, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("grisaille.estimation.collocation_bias.BELIEVED", 0.3)
    for transcription in ("spline", "direct"):
        plain, kept = (fitted(data, transcription=transcription, debias=d) for d in (False, True))
        assert kept["k"] == pytest.approx(float(plain["k"]), rel=1e-9)
        assert [n for n in kept.notes if "leans too far" in n and "use criterion='laplace'" in n]


def test_estimates_stay_inside_their_bounds() -> None:
    bounds = np.array([0.0, 0.0]), np.array([1.0, 1.0])
    seen = iter([(1.0, np.array([-0.5, 0.05])), (0.5, np.zeros(2)), (0.5, np.zeros(2))])
    theta = without_lean(bounds, np.array([0.2, 0.9]), np.eye(2), lambda _: next(seen, None))
    assert theta == pytest.approx([0.0, 0.95])


def test_only_steps_that_raise_the_likelihood_are_taken() -> None:
    """Newton with a curvature that is ten times too small overshoots, and is cut short until it helps."""
    bounds = np.full(1, -np.inf), np.full(1, np.inf)
    places = []

    def look(theta: np.ndarray) -> tuple[float, np.ndarray]:
        places.append(theta[0])
        return float(theta[0] ** 2), -5.0 * theta

    theta = without_lean(bounds, np.ones(1), np.eye(1), look)
    assert theta is not None and abs(theta[0]) < 0.1
    assert max(map(abs, places)) == 4.0
    assert without_lean(bounds, np.ones(1), np.eye(1), lambda t: (-float(t[0]), -t)) is None
    assert without_lean(bounds, np.ones(1), np.eye(1), lambda _: None) is None


def test_other_criteria_have_nothing_to_take_off() -> None:
    with pytest.raises(EstimationError, match="debias=True goes with criterion='amle', not 'laplace'"):
        gr.Collocation(criterion="laplace", debias=True)
