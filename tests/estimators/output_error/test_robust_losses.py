"""Robust losses: their derivatives, units that do not matter, and standard errors that hold beside outliers."""

from __future__ import annotations

import numpy as np
import pytest

import grisaille as gr
from grisaille.estimators.output_error import LOSSES, robust_level


class Line(gr.Model):
    """y = p x + q; the noise is unknown."""

    p, q, x = gr.Parameter(0.5), gr.Parameter(0.0), gr.Input()
    y = gr.Output(p * x + q)
    equations = []


def spoiled(seed: int, unit: float = 1.0) -> gr.Experiment:
    random = np.random.default_rng(seed)
    x = np.linspace(0.0, 1.0, 80)
    y = 2.0 * x + 1.0 + 0.1 * random.standard_normal(80)
    y[random.choice(80, 8, replace=False)] += random.choice([-3.0, 3.0], 8)
    return gr.Experiment(inputs={"x": x}, outputs={"y": unit * y})


def fitted(experiment: gr.Experiment, loss: str = "huber") -> gr.Fit:
    return gr.fit(Line(), experiment, ["p", "q"], gr.OutputError(loss=loss))


@pytest.mark.parametrize("name", LOSSES)
def test_derivatives(name: str) -> None:
    loss, z, h = LOSSES[name], np.array([0.0, 0.3, 0.9, 1.1, 4.0, 50.0]), 1e-5
    for function, derivative in ((loss.value, loss.slope), (loss.slope, loss.bend)):
        np.testing.assert_allclose((function(z + h) - function(z)) / h, derivative(z + h / 2), atol=1e-6)


@pytest.mark.parametrize("loss", ["soft_l1", "huber", "cauchy", "arctan"])
def test_units_do_not_matter(loss: str) -> None:
    volts, millivolts = fitted(spoiled(1), loss), fitted(spoiled(1, 1000.0), loss)
    assert float(millivolts["p"]) == pytest.approx(1000 * float(volts["p"]), rel=1e-4)
    assert float(volts["p"]) == pytest.approx(2.0, abs=4 * volts["p"].std_error)
    assert float(volts["noise(y)"]) == pytest.approx(0.1, rel=0.4)


def test_standard_errors_are_the_spread_of_estimates() -> None:
    fits = [fitted(spoiled(seed)) for seed in range(80)]
    estimates, claimed = (np.array(v) for v in zip(*((float(f["p"]), f["p"].std_error) for f in fits), strict=True))
    assert np.mean(claimed) == pytest.approx(np.std(estimates), rel=0.3)  # 80 runs: ±8 % (one standard deviation)
    assert abs(np.mean(estimates) - 2.0) < 4 * np.std(estimates) / np.sqrt(80)
    least_squares = fitted(spoiled(0), "linear")
    assert np.mean(claimed) < 0.3 * least_squares["p"].std_error


def test_level_of_data_that_mostly_agree() -> None:
    assert robust_level(np.array([0.0, 0.0, 0.0, 1.0])) == pytest.approx(0.5)
    assert robust_level(np.random.default_rng(1).standard_normal(4000)) == pytest.approx(1.0, rel=0.05)


@pytest.mark.parametrize("loss", ["soft_l1", "cauchy"])
def test_verdicts_are_those_of_the_robust_criterion(loss: str) -> None:
    class Declared(Line):
        y = gr.Output(Line.p * Line.x + Line.q, noise=0.1)

    for model in (Line(), Declared()):
        found = gr.fit(model, spoiled(1), ["p", "q"], gr.OutputError(loss=loss))
        plain = gr.fit(model, spoiled(1), ["p", "q"], gr.OutputError())
        assert found.status.startswith("converged: ") and "explanation" not in " ".join(found.notes)
        assert found.quality.rms["y"] == pytest.approx(0.1, rel=0.4) and found.quality.r2["y"] > 0.9
        assert plain.quality.rms["y"] > 0.5 and plain.quality.r2["y"] < 0.6
        assert "as the loss counts them" in str(found) and "as the loss" not in str(plain)
        diagnosis = found.diagnose()
        assert diagnosis and not plain.diagnose()
        rows = {v.test: v for v in diagnosis.verdicts}
        assert "the robust loss counts them less" in rows["outliers"].sentence
        assert np.isnan(rows["normality"].p) and (model.__class__ is Line or rows["size"].p > 0.01)


def test_a_bend_shows_beside_outliers() -> None:
    x = np.linspace(0.0, 1.0, 80)
    data = spoiled(2)
    bent = data.replace(outputs={"y": data.measurements("y").values + 1.5 * (x - 0.5) ** 2})
    assert "input x" in [v.test for v in fitted(bent, "soft_l1").diagnose().verdicts if not v.healthy]
