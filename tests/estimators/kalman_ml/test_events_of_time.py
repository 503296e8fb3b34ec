"""Models whose discrete variables follow clocks and time: filters, collocation and output error say the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import grisaille as gr
from grisaille import der

TIMES = 0.05 * np.arange(121)


class Stepped(gr.Model):
    tau, k, period = gr.Parameter(2.0), gr.Parameter(1.5), gr.Parameter(0.7)
    x = gr.Variable(0.0)
    n, on = gr.Discrete(0.0), gr.Discrete(0.0)
    drive = k * gr.where(n > 1.5, 1, 0.2 * n) + on
    y = gr.Output(x + 0.3 * on, noise=0.05)

    def equations(self) -> Any:
        yield self.tau * der(self.x) == -self.x + self.drive + self.noise()
        yield gr.when(gr.clock(self.period, 0.3), self.n == gr.where(gr.pre(self.n) > 2.5, 0, gr.pre(self.n) + 1))
        yield gr.when(gr.time > 3.33, self.on == 0.5).otherwise(gr.time > 5.12, self.on == -0.3)

    def noise(self) -> Any:
        return 0


class Disturbed(Stepped):
    w = gr.Disturbance(gr.spectra.white(), scale=0.2)

    def noise(self) -> Any:
        return self.w


@pytest.fixture(scope="module")
def y() -> np.ndarray:
    return np.array(gr.simulate(Stepped(), TIMES, noise=True, seed=3).y.values)


@pytest.fixture(scope="module")
def data(y: np.ndarray) -> gr.Experiment:
    return gr.Experiment(time=TIMES, outputs={"y": y})


def test_estimators_agree(data: gr.Experiment) -> None:
    methods = (gr.OutputError(), gr.KalmanML(), gr.Collocation())
    fits = [gr.fit(Stepped(tau=1.5, k=1.0), data, estimate=["tau", "k"], method=m) for m in methods]
    for fit in fits[1:]:
        np.testing.assert_allclose(fit.parameters["estimate"], fits[0].parameters["estimate"], rtol=1e-6)
        np.testing.assert_allclose(fit.parameters["std_error"], fits[0].parameters["std_error"], rtol=0.02)
        np.testing.assert_allclose(fit.log_likelihood, fits[0].log_likelihood, rtol=1e-9)


def levels(t: float) -> tuple[float, float]:
    """n and on just after t."""
    ticks = int(np.floor((t - 0.3) / 0.7 + 1e-9)) + 1
    return float(max(ticks, 0) % 4), -0.3 if t >= 5.12 else 0.5 if t >= 3.33 else 0.0


def log_likelihood(y: np.ndarray, tau: float, k: float, scale: float, noise: float) -> float:
    """A Kalman filter of the one state, exact between samples, ticks and switches."""
    m, P, total, t = 0.0, 0.0, 0.0, 0.0
    switches = [*(0.3 + 0.7 * np.arange(9)), 3.33, 5.12]
    for sample, now in zip(y, TIMES, strict=True):
        for end in sorted({*(s for s in switches if t + 1e-12 < s < now - 1e-12), now}):
            n, on = levels(t)
            u = k * (1.0 if n > 1.5 else 0.2 * n) + on
            F = np.exp(-(end - t) / tau)
            m, P = F * m + (1 - F) * u, F * F * P + (scale / tau) ** 2 * tau / 2 * (1 - F * F)
            t = end
        S = P + noise**2
        e = sample - m - 0.3 * levels(now)[1]
        total -= 0.5 * (np.log(2 * np.pi * S) + e * e / S)
        m, P = m + P / S * e, P - P * P / S
    return float(total)


def test_likelihood_is_that_of_a_kalman_filter(data: gr.Experiment, y: np.ndarray) -> None:
    fit = gr.fit(Disturbed(), data, estimate=["tau", "k"], method=gr.KalmanML(initial_covariance={"x": 0.0}))
    tau, k = fit.parameters["estimate"]
    np.testing.assert_allclose(fit.log_likelihood, log_likelihood(y, tau, k, 0.2, 0.05), rtol=1e-8)
    assert fit.log_likelihood > log_likelihood(y, 1.02 * tau, k, 0.2, 0.05)
    assert isinstance(gr.fit(Disturbed(), data, estimate=["k"]).method, gr.KalmanML)  # taken unasked


class Feedback(Disturbed):
    held = gr.Discrete(0.0)

    def equations(self) -> Any:
        yield from super().equations()
        yield gr.when(gr.clock(0.25), self.held == 1 - self.x)


@pytest.mark.parametrize("method", [gr.KalmanML(), gr.Collocation()])
def test_what_is_not_known_beforehand_is_refused(data: gr.Experiment, method: Any) -> None:
    with pytest.raises(gr.EstimationError, match=r"'held' takes a value that contains 'x', .* gr.OutputError"):
        gr.fit(Feedback(), data, estimate=["k"], method=method)
    with pytest.raises(gr.EstimationError, match=r"depend on the estimated 'period'.* gr.OutputError"):
        gr.fit(Disturbed(), data, estimate=["period"], method=method)
    with pytest.raises(gr.EstimationError, match="depend on the estimated 'n'"):
        gr.fit(Disturbed(), data, estimate=["n"], method=method)
