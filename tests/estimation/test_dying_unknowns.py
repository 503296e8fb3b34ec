"""Unknowns that die on the way are held where that happens, named, and cost nothing; those that wake up are let go."""

from __future__ import annotations

import numpy as np
import pytest

import grisaille as gr
from grisaille import der, maximum

TIMES = np.linspace(1.0, 12.0, 45)


class Rise(gr.Model):
    """A rise of rate k that is over before the first sample, beside a slow one."""

    a, k = gr.Parameter(1.0, bounds=(0.1, 9.0)), gr.Parameter(1.0, bounds=(0.01, 1e6))
    c = gr.Parameter(0.2, bounds=(0.0, 3.0))
    h, s = gr.Variable(0.0), gr.Variable(0.0)
    y = gr.Output(a * h + s, noise=0.02)
    equations = [der(h) == k * (1 - h), der(s) == 0.1 - c * s]


class Disturbed(Rise):
    w = gr.Disturbance(gr.spectra.white(), scale=0.02)
    equations = [der(Rise.h) == Rise.k * (1 - Rise.h), der(Rise.s) == 0.1 - Rise.c * Rise.s + w]


def record(noise: float | None = 0.02, unit: float = 1.0) -> gr.Experiment:
    y = 2.0 + 0.2 * (1 - np.exp(-0.5 * TIMES)) + 0.02 * np.random.default_rng(2).standard_normal(45)
    return gr.Experiment(np.concatenate([[0.0], TIMES]), {}, {"y": (TIMES, unit * y)})


METHODS = {
    "trust-region": (Rise, gr.OutputError(), 20),
    "gauss-newton": (Rise, gr.OutputError("gauss-newton"), 14),
    "levenberg-marquardt": (Rise, gr.OutputError("levenberg-marquardt"), 20),
    "multiple shooting": (Rise, gr.OutputError(shooting="multiple", pieces=4), 90),
    "soft loss": (Rise, gr.OutputError(loss="soft_l1"), 40),
    "kalman": (Rise, gr.KalmanML(), 30),
    "disturbed": (Disturbed, gr.KalmanML(), 30),
    "simulated": (Disturbed, gr.SimulatedPEM(realizations=8), 12),
    "stochastic": (Disturbed, gr.SimulatedPEM(realizations=8, search="stochastic"), 120),
}


@pytest.mark.parametrize("name", METHODS)
def test_a_rate_that_is_only_large_is_held(name: str) -> None:
    model, method, most = METHODS[name]
    fit = gr.fit(model(), record(), ["a", "k", "c"], method)
    assert fit.converged, fit.status
    assert fit.estimate.evaluations <= most
    assert float(fit["k"]) > 7 and not np.isfinite(fit["k"].std_error)
    assert sum("no output depends on k" in note for note in fit.notes) == 1 and not any(
        "along" in note for note in fit.notes
    )
    for name, truth in (("a", 2.0), ("c", 0.5)):
        assert abs(float(fit[name]) - truth) < 4 * fit[name].std_error < 0.5


@pytest.mark.parametrize("unit", [1e-9, 1.0, 1e9])
def test_the_unit_of_a_record_does_not_matter(unit: float) -> None:
    """The noise is open, so that residuals are in the unit of the record."""

    class Scaled(gr.Model):
        a, k = gr.Parameter(unit), gr.Parameter(1.0, bounds=(0.01, 1e6))
        h = gr.Variable(0.0)
        y = gr.Output(a * h)
        equations = [der(h) == k * (1 - h)]

    y = unit * (2.0 + 0.02 * np.cos(9 * (TIMES - 1)))
    data = gr.Experiment(np.concatenate([[0.0], TIMES]), {}, {"y": (TIMES, y)})
    for optimizer in ("trust-region", "gauss-newton", "levenberg-marquardt"):
        fit = gr.fit(Scaled(), data, ["a", "k"], gr.OutputError(optimizer, projection=False))
        assert fit.converged and fit.estimate.evaluations < 45, fit.status
        assert not np.isfinite(fit["k"].std_error) and float(fit["a"]) == pytest.approx(y.mean(), rel=1e-3)
        assert fit["a"].std_error == pytest.approx(np.std(y, ddof=1) / np.sqrt(45), rel=0.1)


class Clipped(gr.Model):
    """A level that a lid cuts off."""

    q, lid = gr.Parameter(1.0, bounds=(0.1, 9.0)), gr.Parameter(1.2, bounds=(0.1, 20.0))
    h = gr.Variable(0.0)
    y = gr.Output(h - maximum(0, h - lid), noise=0.01)
    equations = [der(h) == q - 0.5 * h]


def clipped(q: float, lid: float) -> gr.Experiment:
    y = np.minimum(2 * q * (1 - np.exp(-0.5 * TIMES)), lid) + 0.01 * np.cos(9 * (TIMES - 12))
    return gr.Experiment(np.concatenate([[0.0], TIMES]), {}, {"y": (TIMES, y)})


OPTIMIZERS = ["trust-region", "gauss-newton", "levenberg-marquardt", "nelder-mead"]


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_a_threshold_left_behind_is_held(optimizer: str) -> None:
    """The lid cuts the trajectory at the guess, and is above all of it at the end."""
    fit = gr.fit(Clipped(), clipped(1.5, 30.0), ["q", "lid"], gr.OutputError(optimizer))
    assert fit.converged, fit.status
    assert fit.estimate.evaluations < (400 if optimizer == "nelder-mead" else 40)
    assert float(fit["lid"]) > 2.95 and not np.isfinite(fit["lid"].std_error)
    assert abs(float(fit["q"]) - 1.5) < 4 * fit["q"].std_error < 0.05


@pytest.mark.parametrize("optimizer", OPTIMIZERS[:3])  # a simplex may end where all is above a lid that is too low
def test_a_threshold_that_is_reached_on_the_way_is_let_go(optimizer: str) -> None:
    """At the guess all is below the lid."""
    fit = gr.fit(Clipped(q=0.4), clipped(1.5, 2.0), ["q", "lid"], gr.OutputError(optimizer), guess={"lid": 1.0})
    assert fit.converged, fit.status
    for name, truth in (("q", 1.5), ("lid", 2.0)):
        assert abs(float(fit[name]) - truth) < 4 * fit[name].std_error < 0.1
