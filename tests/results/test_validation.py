"""``fit.validate``: what is scored, from where, and what the tests say."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import grisaille as gr
from grisaille import der

T = np.arange(0.0, 100.0, 0.5)
RANDOM = np.random.default_rng(11)


class Room(gr.Model):
    """C T' = (outside − T)/R + P, and gains that nobody measures."""

    R, C = gr.Parameter(2.0, bounds=(0.1, 20.0)), gr.Parameter(4.0, bounds=(0.1, 40.0))
    P, outside = gr.Input(), gr.Input(default=5.0)
    T = gr.Variable(start=15.0)
    y = gr.Output(T, noise=0.1)
    equations = [C * der(T) == (outside - T) / R + P]


class Gains(Room):
    w = gr.Disturbance(gr.spectra.white(), scale=0.3)
    equations = [Room.C * der(Room.T) == (Room.outside - Room.T) / Room.R + Room.P + w]


def record(start: float, heat: np.ndarray, scale: float = 0.0, name: str = "A", wrong: float = 0.0) -> gr.Experiment:
    """R = 3, C = 5, exactly from sample to sample; ``wrong`` adds what is not in the model."""
    R, C, h = 3.0, 5.0, T[1] - T[0]
    a = np.exp(-h / (R * C))
    spread = scale / C * np.sqrt((1 - a**2) * R * C / 2)
    x = [start]
    for p in heat[:-1]:
        level = 5.0 + R * p
        x.append(level + a * (x[-1] - level) + spread * RANDOM.normal())
    measured = np.array(x) + 0.1 * RANDOM.normal(size=len(T)) + wrong * np.sin(0.3 * T)
    return gr.Experiment(T, {"P": heat}, {"y": measured}, name=name)


HEAT = 3.0 * (np.sin(0.2 * T) > 0)
RUN = record(22.0, HEAT)
OTHER = record(9.0, HEAT[::-1].copy(), name="B")


@pytest.fixture(scope="module")
def fit() -> gr.Fit:
    return gr.fit(Room(), RUN.split(0.6)[0], ["R", "C", "start(T)"], gr.OutputError())


def test_the_rest_of_the_record(fit: gr.Fit) -> None:
    found = fit.validate(RUN.split(0.6)[1])
    assert list(found.table.columns) == ["horizon", "samples", "rms", "fit", "r2", "log_score"]
    assert list(found.table.index) == ["y"]
    row = found.table.loc["y"]
    assert row["samples"] == 80 and 0.08 < row["rms"] < 0.12 and row["r2"] > 0.99 and row["fit"] > 90
    residuals = found.residuals()["residual"].to_numpy()
    assert row["rms"] == pytest.approx(np.sqrt(np.mean(residuals**2)))
    assert found and found.used == 0 and "which was not fitted: begins as 'A (train)' does" in str(found)


def test_samples_that_told_the_start_are_not_scored(fit: gr.Fit) -> None:
    found = fit.validate(OTHER)
    assert found.used == 10 and found.table.loc["y", "samples"] == 190 and found.table.loc["y", "rms"] < 0.12
    assert found and "the first 10 samples not scored" in str(found)
    declared = fit.validate(OTHER, start="declared")
    assert declared.table.loc["y", "rms"] > 1 and not declared and declared.table.loc["y", "samples"] == 200
    assert fit.validate(OTHER, start={"T": 9.0}).table.loc["y", "rms"] < 0.12


def test_a_wrong_model_is_found_out(fit: gr.Fit) -> None:
    found = fit.validate(record(9.0, HEAT[::-1].copy(), name="B", wrong=0.3))
    assert not found
    assert {"autocorrelation", "size"} <= {v.test for v in found.diagnosis.verdicts if not v.healthy}


def test_what_was_fitted_is_no_validation(fit: gr.Fit) -> None:
    with pytest.raises(gr.EstimationError, match=r"'A \(train\)' was fitted: its residuals are tested by fit.diagnose"):
        fit.validate(RUN.split(0.6)[0])


def test_pictures_and_pages(fit: gr.Fit, tmp_path: Path) -> None:
    found = fit.validate(OTHER)
    assert len(found.plot().axes) == 2
    page = found.report(tmp_path / "page.html").read_text()
    assert "validation" in page and "B" in page


def test_open_noise_is_that_of_the_fit() -> None:
    class Open(Room):
        y = gr.Output(Room.T)

    fit = gr.fit(Open(), RUN.split(0.6)[0], ["R", "C", "start(T)"], gr.OutputError())
    found = fit.validate(OTHER)
    assert found.table.loc["y", "rms"] < 0.12 and any(v.test == "size" for v in found.diagnosis.verdicts)


@pytest.mark.parametrize(
    "method", [gr.KalmanML(), gr.SimulatedPEM(realizations=50, seed=1)], ids=lambda m: type(m).__name__
)
def test_disturbed(method: object) -> None:
    """A filter predicts one sample ahead, a mean of realizations keeps the disturbance in its errors."""
    run, other = record(22.0, HEAT, 0.3), record(9.0, HEAT[::-1].copy(), 0.3, name="B")
    fit = gr.fit(Gains(), run.split(0.6)[0], ["R", "C", "start(T)"], method)
    for part in (run.split(0.6)[1], other):
        found = fit.validate(part)
        limit = 0.2 if isinstance(method, gr.KalmanML) else 0.8
        assert found.table["rms"].iloc[-1] < limit, str(found)
        assert found.diagnosis.verdicts[0].healthy, str(found)


@pytest.mark.parametrize("method", [gr.OutputError(), gr.KalmanML()], ids=["OutputError", "KalmanML"])
def test_estimates_beyond_the_declared_bounds_can_be_asked_about(method) -> None:
    class Decay(gr.Model):
        k = gr.Parameter(0.5, bounds=(0.1, 1.0))
        x = gr.Variable(0.5, bounds=(0.0, 0.9))
        y = gr.Output(x, noise=0.01)
        equations = [der(x) == -k * x]

    t = np.linspace(0.0, 2.0, 30)

    def decay(name: str) -> gr.Experiment:
        return gr.Experiment(t, outputs={"y": np.exp(-2 * t) + 0.01 * RANDOM.normal(size=30)}, name=name)

    wider = {"k": (0.1, 10.0), "start(x)": (0.0, 5.0)}
    fit = gr.fit(Decay(), decay("A"), ["k", "start(x)"], method, bounds=wider)
    assert fit.validate(decay("B")).table["rms"].max() < 0.02
    assert fit.model.parameters["k"].bounds == (0.1, 10.0) and Decay().parameters["k"].bounds == (0.1, 1.0)
    assert gr.bootstrap(fit, 2) is not None


# a score is that of a horizon: one sample ahead a filter follows every plant, also one that is not the model's


@pytest.fixture(scope="module")
def fitted() -> gr.Fit:
    return gr.fit(Gains(), record(15.0, HEAT, 0.3), ["R", "C"], gr.KalmanML())


@pytest.fixture(scope="module")
def other() -> gr.Experiment:
    """A room that loses twice as much."""
    x, h = [15.0], T[1] - T[0]
    for p in HEAT[:-1]:
        x.append(x[-1] + h / 5.0 * (2 * (5.0 - x[-1]) / 3.0 + p + 0.3 * RANDOM.normal() / np.sqrt(h)))
    return gr.Experiment(T, {"P": HEAT}, {"y": np.array(x) + 0.1 * RANDOM.normal(size=len(T))}, name="another room")


def test_simulation_and_one_sample_ahead_stand_side_by_side(fitted: gr.Fit, other: gr.Experiment) -> None:
    found = fitted.validate(other)
    scores = found.table.set_index("horizon")["fit"]
    assert list(scores.index) == ["simulation", "1 sample ahead"] == list(found.horizons)
    y = other.outputs["y"].values
    for horizon, name in ((np.inf, "simulation"), (1, "1 sample ahead")):
        e = y - fitted.predict(other, horizon=horizon)["y"].sel(statistic="mean").values
        wanted = 100 * (1 - np.linalg.norm(e) / np.linalg.norm(y - y.mean()))
        assert scores[name] == pytest.approx(wanted, abs=1e-6)
        assert found.residuals(name)["residual"].to_numpy() == pytest.approx(e, abs=1e-8)
    assert scores["simulation"] < 50 < 75 < scores["1 sample ahead"]
    assert "one sample is 0.5 s" in str(found) and "Tests of the predictions 1 sample ahead" in str(found)
    lines = found.plot().axes[0].get_legend_handles_labels()[1]
    assert {"predicted, 1 sample ahead", "simulation"} <= set(lines)


def test_a_horizon_that_is_asked_for(fitted: gr.Fit, other: gr.Experiment) -> None:
    one, ten, length, none = (fitted.validate(other, horizon=h).table for h in (1, 10, "5 s", np.inf))
    assert [t["horizon"].iloc[0] for t in (one, ten, length, none)] == [
        "1 sample ahead", "10 samples ahead", "5 s ahead", "simulation",
    ]  # fmt: skip
    assert length.loc["y", "rms"] == pytest.approx(ten.loc["y", "rms"])
    assert one.loc["y", "rms"] < ten.loc["y", "rms"] < none.loc["y", "rms"]
    with pytest.raises(gr.EstimationError, match=r"horizon is 1\.5; give a whole number"):
        fitted.validate(other, horizon=1.5)
    with pytest.raises(gr.EstimationError, match=r"horizon is 'next'; this validation has simulation"):
        fitted.validate(other).residuals("next")


def test_the_page_and_the_table_of_the_fit_name_it(fitted: gr.Fit, other: gr.Experiment, tmp_path: Path) -> None:
    page = fitted.validate(other).report(tmp_path / "page.html").read_text()
    assert "simulation" in page and "1 sample ahead" in page and "at given values" in page
    assert "% (1 sample ahead)" in str(fitted)


def test_output_error_simulates_whatever_is_asked(fit: gr.Fit) -> None:
    found = fit.validate(OTHER, horizon=5)
    assert list(found.horizons) == ["simulation"] and "by simulation, whatever the horizon" in str(found)


def test_collocation_is_simulated_and_refuses_horizons() -> None:
    fit = gr.fit(Room(), record(15.0, HEAT), ["R"], gr.Collocation())
    assert fit.validate(OTHER).horizons == ("simulation",) and "% (smoothed)" in str(fit)
    with pytest.raises(gr.EstimationError, match="some samples before come with"):
        fit.validate(OTHER, horizon=5)
