"""Residuals of several outputs against each other, and what ``print(fit)`` says of residuals."""

from __future__ import annotations

import numpy as np
import pytest

import grisaille as gr
from grisaille import der
from grisaille.assessment import BETWEEN_OUTPUTS, correlated_pairs

T = np.arange(0.0, 24.0, 0.2)
U = np.where(T % 10 < 5, 1.0, 0.0)


class Tank(gr.Model):
    """Two tanks in a row; three sensors, two of which see the same state."""

    k = gr.Parameter(0.4, bounds=(0.05, 5.0))
    x, v = gr.Variable(0.0), gr.Variable(0.0)
    u = gr.Input()
    y1, y2, y3 = gr.Output(x, noise=0.1), gr.Output(x + v, noise=0.1), gr.Output(v, noise=0.1)
    equations = [der(x) == u - k * x, der(v) == x - v]


class Open(Tank):
    y1, y2, y3 = gr.Output(Tank.x), gr.Output(Tank.x + Tank.v), gr.Output(Tank.v)


class Tied(Tank):
    def noise_covariance(self) -> dict[tuple[str, str], float]:
        return {("y1", "y2"): 0.0064}


class Disturbed(Tank):
    w = gr.Disturbance(gr.spectra.white(), scale=0.3)
    equations = [der(Tank.x) == Tank.u - Tank.k * Tank.x + w, der(Tank.v) == Tank.x - Tank.v]


class Both(Disturbed):
    def noise_covariance(self) -> dict[tuple[str, str], float]:
        return {("y1", "y2"): 0.0064}


class Bent(Disturbed):
    """Not linear: the extended filter."""

    equations = [
        der(Tank.x) == Tank.u - Tank.k * Tank.x - 0.05 * Tank.x**2 + Disturbed.w,
        der(Tank.v) == Tank.x - Tank.v,
    ]


def record(common: float, scale: float = 0.0, seed: int = 1, bend: float = 0.0) -> gr.Experiment:
    """k = 0.5; y1 and y2 have noise of the variance 0.01, ``common`` of it in both."""
    random, x, v, seen = np.random.default_rng(seed), 0.0, 0.0, []
    for u in U:
        seen.append((x, x + v, v))
        for _ in range(10):
            step = 0.02 * (u - 0.5 * x - bend * x**2) + scale * np.sqrt(0.02) * random.normal()
            x, v = x + step, v + 0.02 * (x - v)
    noise = np.sqrt(1 - common) * random.normal(size=(3, len(T)))
    noise[:2] += np.sqrt(common) * random.normal(size=len(T))
    noise[2] /= np.sqrt(1 - common)
    values = np.array(seen).T + 0.1 * noise
    values[0, 20:30] = np.nan
    return gr.Experiment(T, {"u": U}, {"y1": values[0], "y2": (T[::2], values[1, ::2]), "y3": values[2]}, name="run")


def between(fit: gr.Fit) -> list[bool]:
    return [v.healthy for v in fit.diagnose().verdicts if v.test == BETWEEN_OUTPUTS]


def test_noise_that_outputs_share_is_found_and_said() -> None:
    fit = gr.fit(Open(), record(0.64), ["k"], gr.OutputError())
    assert between(fit) == [False] and "residuals of y1, y2 and y3 in run, compared with each other" in str(
        fit.diagnose()
    )
    (said,) = fit.doubts
    assert "are correlated: y1 and y2: correlation +0.5" in said and "fit.with_errors('robust')" in said
    assert 'def noise_covariance(self): return "full"' in said
    assert f"! {said}" in str(fit) and "std. error!" in str(fit)
    assert "1 of 16 tests is unhealthy: correlation between y1, y2 and y3; fit.diagnose()" in fit.residual_verdict
    robust = fit.with_errors("robust")
    assert robust.doubts == () and robust["k"].std_error > fit["k"].std_error


@pytest.mark.slow
def test_a_filter_offers_what_it_can_use() -> None:
    fit = gr.fit(Disturbed(), record(0.8, 0.1), ["k", "scale(w)"], gr.KalmanML())
    assert between(fit) == [False]
    assert any("are correlated: y1 and y2" in d and '{("y1", "y2"): "full"}' in d for d in fit.doubts)


@pytest.mark.parametrize(
    ("model", "common", "scale", "bend", "method"),
    [
        pytest.param(Open(), 0.0, 0.0, 0.0, gr.OutputError(), id="independent"),
        pytest.param(Tied(), 0.64, 0.0, 0.0, gr.OutputError(), id="declared"),
        pytest.param(Disturbed(), 0.0, 0.3, 0.0, gr.KalmanML(), id="states shared"),
        pytest.param(Both(), 0.64, 0.3, 0.0, gr.KalmanML(), id="declared to a filter"),
        pytest.param(Bent(), 0.0, 0.3, 0.05, gr.KalmanML(), id="extended"),
    ],
)
def test_what_the_model_says_itself_is_no_finding(
    model: gr.Model, common: float, scale: float, bend: float, method: object
) -> None:
    fit = gr.fit(model, record(common, scale, 2, bend), ["k"], method)
    assert between(fit) == [True] and fit.doubts == () and "all 1" in fit.residual_verdict


def test_its_level_holds_for_few_samples() -> None:
    """Of 300 fits with two unknowns to twelve samples of three outputs about 3 are called unhealthy."""
    random, found = np.random.default_rng(5), 0
    for _ in range(300):
        basis = np.linalg.qr(np.cumsum(random.normal(size=(12, 3, 2)), axis=0).reshape(36, 2))[0]
        noise = random.normal(size=36)
        r, q = (noise - basis @ (basis.T @ noise)).reshape(12, 3), basis.reshape(12, 3, 2)
        pairs = [p for a, b in ((0, 1), (0, 2), (1, 2)) for p in correlated_pairs("a", "b", r[:, [a, b]], q[:, [a, b]])]
        found += min(p.p for p in pairs) * len(pairs) < 0.01
    assert found <= 10


def test_outliers_stand_in_the_table_of_every_method() -> None:
    data = record(0.0, 0.3)
    times, values, _ = data.measurements("y3")
    values = values.copy()
    values[[40, 80]] = -4.0
    wild = data.replace(outputs={**{n: data.outputs[n] for n in ("y1", "y2")}, "y3": (times, values)})
    fit = gr.fit(Disturbed(), wild, ["k", "noise(y3)"], gr.KalmanML())
    said = next(d for d in fit.doubts if "stick" in d)
    assert said.startswith("2 innovations of y3 in 'run' stick out, at t = 8, 16: the largest is")
    assert said.endswith("gr.KalmanML(robust=3.0).") and "std. error!" in str(fit) and "outliers of y3" in str(fit)
    assert "residuals: " in fit._repr_html_()
    tamed = gr.fit(Disturbed(), wild, ["k", "noise(y3)"], gr.KalmanML(robust=3.0))
    assert not any("stick" in d for d in tamed.doubts)
    squares = gr.fit(Open(), wild, ["k"], gr.OutputError())
    assert any("2 residuals of y3 in 'run' stick out" in d and 'loss="soft_l1"' in d for d in squares.doubts)
