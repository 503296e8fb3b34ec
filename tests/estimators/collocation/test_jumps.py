"""Equations that jump with states: small jumps leave a minimum, larger ones are refused by their name."""

from __future__ import annotations

import numpy as np
import pytest

import grisaille as gr
from grisaille import der

TIMES = np.linspace(0.0, 6.0, 31)


class Relay(gr.Model):
    """A heater that the temperature itself switches off."""

    loss, size, level = gr.Parameter(0.4, bounds=(0.05, 3.0)), gr.Parameter(0.5), gr.Parameter(1.0)
    T = gr.Variable(0.5)
    w = gr.Disturbance(gr.spectra.white(), scale=0.05)
    y = gr.Output(T, noise=0.02)
    equations = [der(T) == 1.0 - loss * T - gr.where(T > level, size, 0.0) + w]


def record(size: float) -> gr.Experiment:
    """Euler steps of a hundredth of a sample, with white noise."""
    random, h, T, path = np.random.default_rng(3), 0.002, 0.5, [0.5]
    for _ in TIMES[1:]:
        for _ in range(100):
            T += h * (1.0 - 0.5 * T - (size if T > 1.0 else 0.0)) + 0.05 * np.sqrt(h) * random.normal()
        path.append(T)
    return gr.Experiment(TIMES, {}, {"y": np.array(path) + 0.02 * random.normal(size=len(TIMES))}, name="run")


METHODS = [
    gr.Collocation(criterion="amle"),
    gr.Collocation(criterion="smoothing"),
    gr.Collocation(criterion="amle", transcription="direct"),
    gr.Collocation(criterion="laplace", transcription="direct"),
]


@pytest.mark.parametrize("method", METHODS, ids=lambda m: f"{m.criterion}-{m.transcription}")
def test_a_large_jump_is_refused_by_its_name_or_passed(method: gr.Collocation) -> None:
    data = record(0.5)
    try:
        found = gr.fit(Relay(), data, ["loss"], method)
    except gr.EstimationError as error:
        assert str(error).startswith("The equations jump with 'level<T' at t = 0.")
        assert "gr.KalmanML(filter='unscented')" in str(error)
    else:
        assert found.converged and abs(float(found["loss"]) - 0.5) < 4 * found["loss"].std_error
        assert any(n.startswith("jumps: the equations jump with 'level<T'") for n in found.notes)


@pytest.mark.parametrize("method", METHODS, ids=lambda m: f"{m.criterion}-{m.transcription}")
def test_a_small_jump_is_passed(method: gr.Collocation) -> None:
    found = gr.fit(Relay(size=0.01), record(0.01), ["loss"], method)
    assert found.converged and abs(float(found["loss"]) - 0.5) < 4 * found["loss"].std_error


def test_a_switch_that_is_never_reached_is_not_blamed() -> None:
    """A search that is stopped early is not converged, and the jump has no part in it."""
    found = gr.fit(Relay(level=50.0), record(0.0), ["loss"], gr.Collocation(criterion="amle", max_iterations=1))
    assert not found.converged


@pytest.mark.parametrize("criterion", ["amle", "laplace"])
def test_an_unknown_threshold_is_refused(criterion: str) -> None:
    """It was reported as converged at the guess, with an infinite standard error and called dead."""
    with pytest.raises(gr.EstimationError, match=r"'level' decides where the equations jump \(level<T\).*unscented"):
        gr.fit(Relay(), record(0.5), ["loss", "level"], gr.Collocation(criterion=criterion), bounds={"level": (0, 5)})
