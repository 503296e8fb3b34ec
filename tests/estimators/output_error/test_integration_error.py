"""Errors of integration beside small noise: steps become short enough, or a note says what is left."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import grisaille as gr
from grisaille import der

T = np.linspace(0.0, 20.0, 101)
RANDOM = np.random.default_rng(3).normal(size=101)


def _slope(_: float, s: np.ndarray) -> list[float]:
    return [s[1], 1.3 * (1 - s[0] ** 2) * s[1] - s[0]]


EXACT = solve_ivp(_slope, (0.0, 20.0), [2.0, 0.0], "DOP853", T, rtol=1e-13, atol=1e-14).y[0]


class Oscillator(gr.Model):
    mu = gr.Parameter(1.0, bounds=(0.1, 5.0))
    x, v = gr.Variable(2.0), gr.Variable(0.0)
    y = gr.Output(x)
    equations = [der(x) == v, der(v) == mu * (1 - x**2) * v - x]


class Declared(Oscillator):
    y = gr.Output(Oscillator.x, noise=1e-9)


def fitted(model: Any, noise: float, method: Any, scale: float = 1.0) -> Any:
    return gr.fit(model, gr.Experiment(T, {}, {"y": scale * (EXACT + noise * RANDOM)}), ["mu"], method)


def off(found: Any) -> float:
    return abs(float(found["mu"]) - 1.3) / float(found.parameters.loc["mu", "std_error"])


@pytest.mark.parametrize(("model", "noise"), [(Oscillator(), 1e-6), (Oscillator(), 1e-9), (Declared(), 1e-9)])
def test_steps_become_short_enough_for_the_noise(model: Any, noise: float) -> None:
    found = fitted(model, noise, gr.OutputError())
    assert found.converged and off(found) < 3.0
    assert "integration" not in " ".join(found.notes)


def test_what_is_left_is_said() -> None:
    found = fitted(Oscillator(), 3e-14, gr.OutputError())
    assert off(found) < 3.0 or found.notes[-1].startswith("integration: errors of the simulation move mu by about ")


def test_ordinary_noise_costs_no_further_run(monkeypatch: pytest.MonkeyPatch) -> None:
    from grisaille.simulation import Runner

    def refuse(*_: Any) -> None:
        raise AssertionError("nothing to compare")

    monkeypatch.setattr(Runner, "predict_finer", refuse)
    assert fitted(Oscillator(), 1e-2, gr.OutputError()).converged


def test_finer_steps_are_kept_by_files(tmp_path: Any) -> None:
    found = fitted(Oscillator(), 1e-9, gr.OutputError())
    found.save(tmp_path / "fit.h5")
    again = gr.load(tmp_path / "fit.h5")
    assert again.estimate.cases[0].discretisation == found.estimate.cases[0].discretisation
    assert found.estimate.cases[0].discretisation.tolerance < 1e-9


def test_a_record_in_pieces_says_what_errors_do() -> None:
    pieces = gr.OutputError(shooting="multiple")
    found = fitted(Oscillator(), 1e-9, pieces)
    assert off(found) > 10
    assert any(n.startswith("integration: errors of the simulation move mu by about ") for n in found.notes)
    assert not any(n.startswith("integration") for n in fitted(Oscillator(), 1e-2, pieces).notes)


@pytest.mark.parametrize("loss", ["huber", "arctan"])
def test_robust_losses_look_too(loss: Any) -> None:
    outliers = np.where(np.arange(len(T)) % 20 == 7, 30.0, 0.0)
    data = gr.Experiment(T, {}, {"y": EXACT + 1e-9 * (RANDOM + outliers)})
    found = gr.fit(Oscillator(), data, ["mu"], gr.OutputError(loss=loss))
    assert found.converged and off(found) < 3.0
    assert "integration" not in " ".join(found.notes)
