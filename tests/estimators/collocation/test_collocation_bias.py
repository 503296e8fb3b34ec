"""How far approximate maximum likelihood is biased, reported and subtracted."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import grisaille as gr
from grisaille import der
from grisaille.errors import EstimationError
from grisaille.estimators import build_problem
from grisaille.estimators.collocation import describe_lean


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
    method = gr.Collocation(**{"criterion": "amle", "refine": 0, **options})
    return gr.fit(Decay(), data, ["k", "g"], method, guess={"k": 0.7}, progress=False)


def _error(fit: gr.Fit, name: str) -> float:
    return float(np.sqrt(fit.covariance.loc[name, name]))


@pytest.mark.parametrize("transcription", ["spline", "direct"])
def test_it_leads_to_the_marginal_likelihood(data: gr.Experiment, transcription: str) -> None:
    plain, debiased, marginal = (
        fitted(data, transcription=transcription, **options)
        for options in ({}, {"debias": True}, {"criterion": "laplace"})
    )
    for name in ("k", "g"):
        error = _error(plain, name)
        before, after = (abs(f[name] - marginal[name]) / error for f in (plain, debiased))
        assert before > 0.5
        assert after < 0.01 * before
    assert debiased.objective > plain.objective


def test_both_transcriptions_lean_alike(data: gr.Experiment) -> None:
    splines, direct = (fitted(data, transcription=t, debias=True) for t in ("spline", "direct"))
    # splines have Gauss–Newton's covariance, direct collocation that of the exact Hessian
    assert direct["k"] == pytest.approx(splines["k"], abs=0.1 * _error(splines, "k"))


def test_the_lean_is_that_of_the_determinants(data: gr.Experiment) -> None:
    """Against differences of Laplace's log-likelihood, less those of the criterion itself."""
    plain = fitted(data)
    theta, covariance = np.array([plain["k"], plain["g"]]), np.asarray(plain.covariance)

    def determinants(at: np.ndarray) -> float:
        values = []
        for criterion in ("laplace", "amle"):
            method = gr.Collocation(refine=0, criterion=criterion)  # type: ignore[arg-type]
            values.append(build_problem(Decay(), data, ["k", "g"], method).evaluate(at).objective)
        return values[0] - values[1]

    h = 1e-4
    slope = np.array([(determinants(theta + h * e) - determinants(theta - h * e)) / (2 * h) for e in np.eye(2)])
    told = next(n for n in plain.notes if n.startswith("bias: "))
    leaning = (covariance @ slope) / np.sqrt(np.diag(covariance))
    for name, value in zip(("k", "g"), leaning, strict=True):
        assert f"{name} by {value:+.2g}".replace("-", "−") in told


def test_trajectories_are_those_of_the_debiased_estimates(data: gr.Experiment) -> None:
    fit = fitted(data, debias=True)
    held = gr.evaluate(
        Decay(), data, gr.Collocation(criterion="amle", refine=0), parameters={"k": fit["k"], "g": fit["g"]}
    )
    assert held.objective == pytest.approx(fit.objective, rel=1e-9)


def test_it_is_told(data: gr.Experiment) -> None:
    said = [n for n in fitted(data).notes if n.startswith("bias: ")]
    assert len(said) == 1 and "k by" in said[0] and "debias=True" in said[0] and "laplace" in said[0]
    taken = [n for n in fitted(data, debias=True).notes if n.startswith("bias: ")]
    assert len(taken) == 1 and taken[0].endswith("this was subtracted.")
    assert not [n for n in fitted(data, criterion="laplace").notes if n.startswith("bias: ")]


def test_ipda_is_biased_as_amle_is_and_says_so(data: gr.Experiment) -> None:
    """The same minimum, reached in turn, has the same bias."""
    joint, in_turn = (next(n for n in fitted(data, criterion=c).notes if n[:5] == "bias:") for c in ("amle", "ipda"))
    assert in_turn.partition(" standard errors")[0] == joint.partition(" standard errors")[0]
    assert "criterion='amle' with debias=True takes it off" in in_turn


def test_little_is_not_told(data: gr.Experiment) -> None:
    unknowns: Any = build_problem(Decay(), data, ["k", "g"], gr.Collocation(criterion="amle")).unknowns
    assert describe_lean(unknowns, np.array([0.1, -0.2]), np.eye(2), "amle") == []
    # no variance: a bound decided
    assert describe_lean(unknowns, np.array([5.0, 0.0]), np.diag([0.0, 1.0]), "amle") == []


@pytest.mark.parametrize("transcription", ["spline", "direct"])
def test_bounds_are_decided_by_the_likelihood(data: gr.Experiment, transcription: str) -> None:
    """On a bound that the criterion was pushed to and the likelihood leaves; and the other way round."""
    free, marginal = fitted(data), fitted(data, criterion="laplace")
    low, high = sorted([float(free["k"]), float(marginal["k"])])
    assert high - low > 0.05
    middle = {"k": (0.3 * low + 0.7 * high, 20.0) if free["k"] < marginal["k"] else (0.01, 0.7 * low + 0.3 * high)}
    held, left = (
        gr.fit(
            Decay(), data, ["k", "g"], gr.Collocation(refine=0, transcription=transcription, **options), bounds=middle,
            guess={"k": float(marginal["k"])}, progress=False,
        )
        for options in ({"criterion": "amle"}, {"debias": True})
    )  # fmt: skip
    assert held["k"].std_error == 0.0
    assert left["k"] == pytest.approx(float(marginal["k"]), rel=5e-3)
    assert left["k"].std_error > 0
    assert not [n for n in left.notes if n.startswith("at bound: k")]
    other = {"k": (0.01, 0.5 * (low + high)) if free["k"] < marginal["k"] else (0.5 * (low + high), 20.0)}
    pinned, best = (
        gr.fit(
            Decay(), data, ["k", "g"], gr.Collocation(refine=0, transcription=transcription, **options), bounds=other,
            guess={"k": float(free["k"])}, progress=False,
        )
        for options in ({"debias": True}, {"criterion": "laplace"})
    )  # fmt: skip
    assert pinned["k"].std_error == 0.0
    assert pinned["g"] == pytest.approx(float(best["g"]), rel=1e-3)


def test_other_criteria_have_nothing_to_take_off() -> None:
    with pytest.raises(EstimationError, match="the bias of criterion='amle', not of 'laplace', which has no such bias"):
        gr.Collocation(criterion="laplace", debias=True)
