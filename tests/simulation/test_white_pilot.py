"""Steps under white noise: chosen on coupled paths, the same for every number of realizations, or refused."""

from __future__ import annotations

import numpy as np
import pytest

import grisaille as gr
from grisaille import der
from grisaille.errors import SimulationError
from grisaille.simulation import pose
from grisaille.simulation.ensembles import (
    ComparisonScale,
    EnsembleOptions,
    choose_halvings,
    compare,
    run_ensemble,
    white_pilot,
)

WHITE = gr.spectra.white


class Saturated(gr.Model):
    """Starts where the drift has no slope and settles where it has one of five."""

    x = gr.Variable(1.5)
    w = gr.Disturbance(WHITE(), scale=0.3)
    equations = [der(x) == -gr.tanh(5 * x) + w]


TIMES = np.array([0.0, 2.0, 4.0])


def test_the_estimate_is_a_number_and_steps_do_not_depend_on_the_number_of_realizations():
    many, few = (gr.simulate(Saturated(), TIMES, realizations=n) for n in (40, 2))
    assert 0 < many.attrs["error_estimate"] <= 1 and many.attrs["substeps"] == few.attrs["substeps"] > 8
    np.testing.assert_array_equal(many.x[:2], few.x)
    assert "24 paths with steps halved" in many.attrs["white_noise"]


def test_a_shorter_step_refines_the_same_path():
    """Cells of the same grid cut more finely: a path moves by the strong tolerance at most, not to another one."""
    posed = pose(Saturated(), TIMES, {}, {}, {}, hold=None, sensitivities=())
    chosen = run_ensemble(posed, EnsembleOptions(30, observed=("x",)))
    fine = run_ensemble(posed, EnsembleOptions(30, observed=("x",), substeps=4 * chosen.substeps))
    assert np.sqrt(((chosen.y - fine.y)[:, -1] ** 2).mean()) < 0.03 * 0.11


def test_steps_that_cannot_be_short_enough_are_refused(monkeypatch):
    monkeypatch.setattr(white_pilot, "MIN_STEPS_PER_CELL", 4)
    monkeypatch.setattr(white_pilot, "MAX_PILOT_STEPS", 1)
    words = r"Saturated: under white noise, steps of 1 \(2 in a cell, the limit of work\) are .* times the tolerance"
    with pytest.raises(SimulationError, match=words):
        gr.simulate(Saturated(), TIMES, realizations=2)
    with pytest.warns(UserWarning, match="times the tolerance off at x"):
        run = gr.simulate(Saturated(), TIMES, realizations=2, strict=False)
    assert run.attrs["error_estimate"] > 5


def test_realizations_that_explode_by_themselves_do_not_stop_the_others():
    class Explosive(gr.Model):
        x = gr.Variable(0.0)
        w = gr.Disturbance(WHITE())
        equations = [der(x) == x**2 - 1 + w]

    with pytest.warns(UserWarning, match="became infinite"):
        run = gr.simulate(Explosive(), np.linspace(0, 3, 7), realizations=30, strict=False)
    assert 0 < len(run.attrs["failed_realizations"]) < 30 and run.attrs["error_estimate"] <= 1


SCALE = ComparisonScale(("x",), np.ones(1), np.linspace(0, 10, 101), 1e-6, 2, 1.5)


def rows(n: int, louder: float = 1.0, growth: float = 0.0, error: float = 1.0) -> np.ndarray:
    """Paths whose error falls with n² and grows in time until it fills their spread."""
    random = np.random.default_rng(3)
    truth = np.sin(SCALE.times + 6 * random.uniform(size=(24, 1)))
    shift = error / n**2 * np.exp(growth * SCALE.times) * random.normal(size=(24, 1))
    parted = np.sin(SCALE.times * (1 + 0.1 * n) + 6 * np.random.default_rng(n).uniform(size=(24, 1)))
    return np.where(np.abs(shift) > 1, parted, truth + shift)[..., None]


def test_errors_are_those_of_the_difference():
    """y_n = y + e/n²: the estimate of the strong error is e/n² in standard deviations, up to its factor."""
    found = choose_halvings(rows, SCALE, 1, False)
    assert found.substeps in (8, 16) and found.parted is None
    deviation = np.std(np.sin(6 * np.random.default_rng(3).uniform(size=24)), ddof=1)
    assert found.strong == pytest.approx(0.75 / found.substeps**2 / 0.65 / deviation, rel=1.0)


def test_paths_that_part_are_told():
    found = choose_halvings(lambda n, _: rows(n, growth=2.0, error=1e-3), SCALE, 1, False)
    assert found.error <= 1 and found.parted is not None and 3 < found.parted < 9
    assert "part from t =" in found.sentence and found.weak > 0.05
    early = compare(rows(1, growth=2.0, error=0.3), rows(2, growth=2.0, error=0.3), 1, SCALE, 1e-9)
    assert early.error > 1, "they are apart from the beginning"
