"""Errors of integration of means beside small noise: steps become short enough, or a note says what is left."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import grisaille as gr
from grisaille import der

T = np.linspace(0.0, 10.0, 51)


def _slope(_: float, s: np.ndarray) -> list[float]:
    return [s[1], -9.0 * np.sin(s[0]) - 0.2 * s[1]]


EXACT = solve_ivp(_slope, (0.0, 10.0), [1.5, 0.0], "DOP853", T, rtol=1e-13, atol=1e-14).y[0]


class Pendulum(gr.Model):
    g = gr.Parameter(8.9, bounds=(1.0, 50.0))
    a, v = gr.Variable(1.5), gr.Variable(0.0)
    w = gr.Disturbance(gr.spectra.lowpass(2.0), scale=1e-10)
    y = gr.Output(a)
    equations = [der(a) == v, der(v) == -g * gr.sin(a) - 0.2 * v + w]


def fitted(noise: float, **options: Any) -> Any:
    data = gr.Experiment(T, {}, {"y": EXACT + noise * np.random.default_rng(3).normal(size=len(T))})
    return gr.fit(Pendulum(), data, ["g"], gr.SimulatedPEM(realizations=4, **options))


@pytest.mark.parametrize("match", ["mean", "mean-variance"])
def test_steps_become_short_enough_for_the_noise(match: Any) -> None:
    found = fitted(1e-8, match=match)
    assert found.converged
    assert abs(float(found["g"]) - 9.0) < 3.0 * found["g"].std_error
    assert not any(note.startswith("integration") for note in found.notes)


def test_what_is_left_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    from grisaille.estimators.simulated_pem import ensemble_stages

    monkeypatch.setattr(ensemble_stages, "MAX_ROUNDS", 0)
    found = fitted(1e-8)
    off = abs(float(found["g"]) - 9.0) / found["g"].std_error
    note = next(note for note in found.notes if note.startswith("integration"))
    told = float(note.split(" by about ")[1].split()[0])
    assert off > 3.0
    assert told == pytest.approx(off, rel=0.5)


def test_ordinary_noise_costs_no_further_ensemble(monkeypatch: pytest.MonkeyPatch) -> None:
    from grisaille.estimators.simulated_pem import MeanCriterion

    def refuse(*_: Any) -> None:
        raise AssertionError("nothing to compare")

    monkeypatch.setattr(MeanCriterion, "on_shorter_steps", refuse)
    assert fitted(1e-2).converged
    with pytest.raises(AssertionError, match="nothing to compare"):
        fitted(1e-6)
