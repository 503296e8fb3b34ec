"""The marginal likelihood of direct collocation from far guesses, on elements that may be too long, in silence."""

from __future__ import annotations

import numpy as np
import pytest

import grisaille as gr
from grisaille import der

TIMES = np.arange(21.0)
FEED = np.where(TIMES > 12, 0.3, 0.0)
NAMES = ["mu", "K", "Y"]


class Growth(gr.Model):
    """Cells live on a substrate, of which there is never less than nothing."""

    mu, K = gr.Parameter(0.4, bounds=(0.01, 5.0)), gr.Parameter(0.5, bounds=(0.001, 20.0))
    Y = gr.Parameter(0.5, bounds=(0.05, 2.0))
    feed, X, S = gr.Input(), gr.Variable(start=0.1), gr.Variable(start=5.0)
    w = gr.Disturbance(gr.spectra.white(), scale=0.05)
    cells, substrate = gr.Output(X, noise=0.05), gr.Output(S, noise=0.1)
    equations = [der(X) == mu * S / (K + S) * X + w * X, der(S) == feed - mu * S / (K + S) * X / Y]


class Limited(Growth):
    S = gr.Variable(start=5.0, bounds=(0.0, None))
    substrate = gr.Output(S, noise=0.1)
    equations = [
        der(Growth.X) == Growth.mu * S / (Growth.K + S) * Growth.X + Growth.w * Growth.X,
        der(S) == Growth.feed - Growth.mu * S / (Growth.K + S) * Growth.X / Growth.Y,
    ]


@pytest.fixture(scope="module")
def culture() -> gr.Experiment:
    """By small steps of Euler and Maruyama."""
    random, h, X, S = np.random.default_rng(0), 0.005, 0.1, 5.0
    rows = []
    for k in range(round(TIMES[-1] / h) + 1):
        if k % 200 == 0:
            rows.append((X, S))
        rate = 0.4 * S / (0.5 + S) * X
        X += h * rate + 0.05 * X * np.sqrt(h) * random.standard_normal()
        S = max(S + h * (FEED[int(k * h)] - rate / 0.5), 0.0)
    y = np.array(rows) + [0.05, 0.1] * random.standard_normal((len(TIMES), 2))
    return gr.Experiment(TIMES, {"feed": FEED}, {"cells": y[:, 0], "substrate": y[:, 1]})


@pytest.fixture(scope="module")
def near(culture: gr.Experiment):
    return gr.fit(Growth(), culture, NAMES, gr.Collocation(criterion="laplace"), progress=False)


@pytest.mark.parametrize(("model", "guess"), [
    (Growth, {"mu": 0.2, "K": 2.0, "Y": 0.3}),
    (Limited, {"mu": 0.2, "K": 2.0, "Y": 0.3}),
    (Growth, {"mu": 1.5, "K": 5.0, "Y": 1.0}),
], ids=["slow", "slow, with a bound", "fast"])  # fmt: skip
def test_far_guesses_lead_to_the_same_maximum(culture, near, model, guess, capfd) -> None:
    fit = gr.fit(model(), culture, NAMES, gr.Collocation(criterion="laplace"), guess=guess, progress=False)
    assert near.converged and fit.converged
    assert fit.log_likelihood == pytest.approx(near.log_likelihood, abs=1e-3)
    for name, truth in zip(NAMES, (0.4, 0.5, 0.5), strict=True):
        assert abs(float(fit[name]) - float(near[name])) < 0.05 * near[name].std_error
        assert abs(float(fit[name]) - truth) < 3.5 * near[name].std_error
    assert float(fit.states()["S"].sel(statistic="mean").min()) > -1e-6
    said = capfd.readouterr()
    assert said.out == "" and said.err == ""


class Swing(gr.Model):
    """Fast beside its samples."""

    a = gr.Parameter(250.0, bounds=(50.0, 1000.0))
    x, v = gr.Variable(start=1.0), gr.Variable(start=0.0)
    w = gr.Disturbance(gr.spectra.white(), scale=0.3)
    y = gr.Output(x, noise=0.02)
    equations = [der(x) == v, der(v) == -a * x - 0.3 * v + w]


@pytest.mark.parametrize("criterion", ["amle", "laplace"])
def test_estimates_that_shorter_elements_would_move_have_not_converged(criterion: str) -> None:
    times = np.arange(0.0, 8.01, 0.8)
    run = gr.simulate(Swing(), times, realizations=1, seed=2, noise=True)
    record = gr.Experiment(times, {}, {"y": run["y"].values.ravel()})
    coarse, fine = (
        gr.fit(Swing(), record, ["a"], gr.Collocation(criterion=criterion, refine=r), progress=False) for r in (0, 6)
    )
    assert not coarse.converged
    assert "elements are too long" in coarse.status
    assert [n for n in coarse.notes if n.startswith("elements: shorter ones would move a by about") and "refine=" in n]
    assert fine.converged
    exact = gr.fit(Swing(), record, ["a"], gr.KalmanML(), progress=False)
    if criterion == "laplace":
        assert abs(float(fine["a"]) - float(exact["a"])) < 0.1 * exact["a"].std_error
