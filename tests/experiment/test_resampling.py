"""Other times: windows, means with their weights, nearest samples, inputs by their hold."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from grisaille.experiment import Experiment

T = np.arange(0.0, 1.05, 0.1)


def test_means_are_not_shifted_in_time():
    """What grows evenly is on its line everywhere: at the ends, beside gaps, with weights, in odd and even windows."""
    t = np.linspace(0, 10, 1001)
    gap, half = np.where((t > 3.2) & (t < 6.1), np.nan, t), np.where(t % 1.0 > 0.4, np.nan, t)
    for y in (t, gap, half):
        fine = Experiment(t, {}, {"y": y}, weights={"y": 1 + t})
        for step in (1.0, 0.55, 0.03, 3.0):
            for how in ("mean", "nearest"):
                times, values, _ = fine.resample(step, outputs=how).measurements("y")
                np.testing.assert_allclose(values, times, rtol=1e-12, atol=1e-12)


def test_evenly_filled_windows_keep_the_new_times():
    coarse = Experiment(np.arange(31) * 0.1, {}, {"y": np.ones(31)}).resample(0.3)
    np.testing.assert_array_equal(coarse.outputs["y"].times[1:-1], np.arange(1, 10) * 0.3)


def test_a_fit_to_half_filled_windows_is_that_of_the_samples():
    """A sensor that reports half of the time: k was 3 standard errors off."""
    t = np.arange(0, 3, 0.01)
    y = np.exp(-0.7 * t) + 0.02 * np.random.default_rng(1).normal(size=t.size)
    data = Experiment(t, {}, {"y": np.where(t % 0.6 > 0.3, np.nan, y)})

    def rate(experiment):
        times, values, weights = experiment.measurements("y")
        return minimize_scalar(lambda k: np.sum((weights * (values - np.exp(-k * times))) ** 2), (0.5, 1.0)).x

    assert rate(data.resample(0.6)) == pytest.approx(rate(data), abs=0.004)


def test_windows_hold_equally_many_samples_in_spite_of_rounding():
    data = Experiment(np.arange(0, 301) * 0.1, {}, {"y": np.ones(301)}).resample(0.2)
    np.testing.assert_allclose(data.weights["y"][1:-1], np.sqrt(2))


def test_the_sum_of_squares_moves_with_a_prediction_as_before():
    """Σ wᵢ²(yᵢ − ŷ)² as a function of ŷ changes by a constant only."""
    rng = np.random.default_rng(1)
    data = Experiment(T, {}, {"y": rng.normal(size=11)}, weights={"y": rng.uniform(0.5, 2, 11)})
    mean = data.resample(times=[0.2, 0.9])

    def squares(experiment, prediction):
        _, values, weights = experiment.measurements("y")
        return np.sum((weights * (values - prediction)) ** 2)

    differences = [squares(data, p) - squares(mean, p) for p in (0.0, 1.0, -3.0)]
    np.testing.assert_allclose(differences, differences[0])


def test_nearest_takes_samples_and_their_weights():
    data = Experiment(outputs={"y": ([0.0, 0.9, 1.2, 3.0], [1.0, 2.0, 3.0, 4.0])}, weights={"y": [1, 2, 3, 4]})
    near = data.resample(1.0, outputs="nearest")
    np.testing.assert_array_equal(near.outputs["y"].values, [1.0, 2.0, np.nan, 4.0])
    np.testing.assert_array_equal(near.measurements("y").weights, [1.0, 2.0, 4.0])


def test_nothing_is_invented_between_samples():
    data = Experiment([0.0, 1.0, 2.0], {}, {"y": [1.0, 2.0, 3.0]}).resample(0.25)
    assert np.isfinite(data.outputs["y"].values).sum() == 3 and len(data.output_times) == 9


def test_inputs_follow_their_hold():
    data = Experiment(
        [0, 1, 2, 3], {"u": [0, 1, 4, 9], "v": [0, 1, 4, 9], "s": [0, 1, 8, 27], "g": 5}, {"y": [1, 2, 3, 4]},
        hold={"v": "foh", "s": "spline"},
    ).resample(0.5)  # fmt: skip
    np.testing.assert_array_equal(data.inputs["u"].values, [0, 0, 1, 1, 4, 4, 9])
    np.testing.assert_array_equal(data.inputs["v"].values, [0, 0.5, 1, 2.5, 4, 6.5, 9])
    np.testing.assert_allclose(data.inputs["s"].values, np.arange(0, 3.5, 0.5) ** 3, atol=1e-12)
    assert data.inputs["g"] == 5.0


def test_the_start_keeps_its_instant_and_skipped_samples_are_gone():
    data = Experiment(T, {"u": (T * 2 - 1, T)}, {"y": T}, t0=-0.5, skip=3, start={"x": 1})
    coarse = data.resample([0.0, 0.5, 1.0])
    assert (coarse.t0, coarse.skip, coarse.start) == (-0.5, 0, {"x": 1.0})
    assert np.isnan(coarse.outputs["y"].values[0]) and coarse.inputs["u"].times[0] == -0.5


@pytest.mark.parametrize("rows", [2, 3, 50])
def test_the_same_times_change_nothing(rows):
    t = np.linspace(0, 1, rows)
    data = Experiment(t, {"u": t}, {"y": t**2})
    for how in ("mean", "nearest"):
        again = data.resample(times=t, outputs=how)
        np.testing.assert_allclose(again.outputs["y"].values, t**2)
        np.testing.assert_array_equal(again.measurements("y").weights, 1.0)
