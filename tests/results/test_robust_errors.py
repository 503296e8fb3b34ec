"""Output error under a disturbance that the model does not have: what the table says, and errors that know it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import grisaille as gr
from grisaille import der
from grisaille.errors import EstimationError


class Room(gr.Model):
    """One capacity behind one resistance."""

    R = gr.Parameter(1.5, "K/kW", bounds=(0.05, 50.0))
    C = gr.Parameter(4.0, "kWh/K", bounds=(0.05, 50.0))
    heat = gr.Input("kW")
    T = gr.Variable(start=0.0, unit="K")
    y = gr.Output(T)
    equations = [C * der(T) == -T / R + heat]


class Known(Room):
    """The same with declared noise."""

    y = gr.Output(Room.T, noise=0.1)


class Driven(Room):
    """The same with the disturbance."""

    w = gr.Disturbance(gr.spectra.white(), scale=0.3)
    y = gr.Output(Room.T, noise=0.1)
    equations = [Room.C * der(Room.T) == -Room.T / Room.R + Room.heat + w]


def record(n: int, slow: float, size: float, seed: int = 0) -> gr.Experiment:
    """R = 2, C = 5, an hour a sample; an Ornstein–Uhlenbeck process heats beside the input."""
    rng = np.random.default_rng(seed)
    heat = np.repeat(rng.choice([0.0, 4.0], n // 8 + 1), 8)[:n]
    T, w, seen, keep = 0.0, 0.0, np.zeros(n), np.exp(-0.1 / slow)
    for k in range(n):
        seen[k] = T
        for _ in range(10):
            T += 0.1 / 5.0 * (-T / 2.0 + heat[k] + w)
            w = keep * w + size * np.sqrt(1 - keep**2) * rng.standard_normal()
    values = seen + 0.1 * rng.standard_normal(n)
    return gr.Experiment(np.arange(n, dtype=float), {"heat": heat}, {"y": values}, name="room")


DISTURBED, QUIET = record(300, 6.0, 0.6), record(300, 6.0, 0.0)
PLAIN = gr.OutputError()


@pytest.fixture(scope="module")
def fit() -> gr.Fit:
    return gr.fit(Room(), DISTURBED, ["R", "C"], PLAIN)


@pytest.fixture(scope="module")
def robust(fit: gr.Fit) -> gr.Fit:
    return fit.with_errors("robust")


def test_the_table_itself_says_that_residuals_are_not_white(fit: gr.Fit) -> None:
    said = fit.notes[0]
    assert said.startswith("residuals of y in 'room' are not white: correlation +0.9")
    assert "Standard errors, intervals, AIC and BIC assume that they are" in said
    assert "off by a factor of about" in said and "fit.with_errors('robust')" in said
    assert f"! {said}" in str(fit) and "std. error!" in str(fit) and "not white" in fit._repr_html_()


def test_the_factor_is_that_of_the_errors(fit: gr.Fit, robust: gr.Fit) -> None:
    told = float(fit.notes[0].split("factor of about ")[1].split(" ")[0])
    assert told == pytest.approx((robust.std_errors / fit.std_errors).max(), rel=0.02) and told > 2


def test_white_residuals_get_no_such_sentence() -> None:
    quiet = gr.fit(Room(), QUIET, ["R", "C"], PLAIN)
    assert quiet.doubts == () and "std. error!" not in str(quiet)
    assert quiet.with_errors("robust").std_errors == pytest.approx(quiet.std_errors, rel=0.35)


def test_errors_of_a_fit_are_those_computed_afterwards(fit: gr.Fit, robust: gr.Fit) -> None:
    at_once = gr.fit(Room(), DISTURBED, ["R", "C"], gr.OutputError(errors="robust"))
    assert at_once.std_errors == pytest.approx(robust.std_errors, rel=1e-4)
    assert at_once.student == pytest.approx(robust.student, rel=1e-3)
    assert robust.doubts == () and robust.notes[0].startswith("robust errors: ")
    assert robust.with_errors("plain").std_errors == pytest.approx(fit.std_errors, rel=1e-9)


def test_intervals_have_the_truth_and_say_what_they_are(fit: gr.Fit, robust: gr.Fit) -> None:
    found = robust.intervals()
    assert found.lower["R"] < 2.0 < found.upper["R"] and found.lower["C"] < 5.0 < found.upper["C"]
    assert "with robust errors" in found.attrs["said"]
    half = (found.upper["R"] - found.lower["R"]) / 2
    assert half > 1.96 * float(robust.std_errors[0])
    noise = [f.parameters.loc["noise(y)", "std_error"] for f in (fit, robust)]
    assert noise[1] > 1.5 * noise[0]


def test_they_are_kept_in_files(robust: gr.Fit, tmp_path: Path) -> None:
    robust.save(tmp_path / "fit.nc")
    again = gr.load(tmp_path / "fit.nc")
    assert again.method == robust.method and again.student == pytest.approx(robust.student)
    assert again.intervals().to_numpy() == pytest.approx(robust.intervals().to_numpy())
    assert again.with_errors("plain").std_errors == pytest.approx(robust.with_errors("plain").std_errors)


def test_what_takes_residuals_for_independent_is_refused(robust: gr.Fit) -> None:
    for ask in (lambda: robust.profile("R"), lambda: robust.test({"R": 2.0}), lambda: robust.surface("R", "C")):
        with pytest.raises(EstimationError, match="take residuals to be independent"):
            ask()
    with pytest.raises(EstimationError, match="kind='residual'"):
        gr.bootstrap(robust, runs=2)
    runs = gr.bootstrap(robust, runs=2, kind="residual")
    assert len(runs.table) == 2


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"errors": "hac"}, "errors is 'hac'"),
        ({"errors": "robust", "covariance": "sandwich"}, "a sandwich already"),
        ({"errors": "robust", "shooting": "multiple"}, "needs shooting='single'"),
    ],
)
def test_options_that_do_not_go_together(options: dict[str, str], words: str) -> None:
    with pytest.raises(EstimationError, match=words):
        gr.OutputError(**options)


def test_a_robust_loss_and_a_prior_have_robust_errors_too() -> None:
    losses = gr.fit(Room(), DISTURBED, ["R", "C"], gr.OutputError(loss="huber"))
    assert (losses.with_errors("robust").std_errors > 1.5 * losses.std_errors).any()
    known = gr.fit(Room(), DISTURBED, ["R", "C"], PLAIN, priors={"R": gr.Normal(2.0, 1e-4)})
    assert known.with_errors("robust").std_errors[0] == pytest.approx(1e-4, rel=0.05)


def test_declared_noise_that_residuals_refute_is_said() -> None:
    known = gr.fit(Known(), DISTURBED, ["R", "C"], PLAIN)
    assert any("times the declared noise" in n for n in known.notes) and "not white" in known.doubts[0]
    nearly = gr.fit(Known(), record(300, 6.0, 0.0, seed=1).replace(weights={"y": 1.6}), ["R", "C"], PLAIN)
    assert "residuals of y in 'room' are 1.6 times the declared noise: standard errors" in nearly.doubts[0]


def test_innovations_are_asked_too() -> None:
    filtered = gr.fit(Driven(), DISTURBED, ["R", "C"], gr.KalmanML())
    assert filtered.notes[0].startswith("innovations of y in 'room' are not white")
    with pytest.raises(EstimationError, match="Standard errors of several kinds come with"):
        filtered.with_errors("robust")


def test_bands_of_predictions_have_robust_errors(fit: gr.Fit, robust: gr.Fit) -> None:
    plain, wider = (f.predict(bands="all")["T"].sel(statistic="std").values for f in (fit, robust))
    assert (wider[5:] > plain[5:]).all()
