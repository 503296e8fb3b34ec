"""Disturbed models whose outputs are measured by laws: the marginal likelihood of a dense program of SciPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.special import gammaln
from scipy.stats import norm, t

import grisaille as gr
from grisaille import der
from grisaille.errors import DataError, EstimationError

TIMES = np.linspace(0.0, 10.0, 26)
Floats = np.ndarray


class Wandering(gr.Model):
    """x' = b − a x + w, seen in one way or another."""

    a, b = gr.Parameter(0.8, bounds=(0.05, 5.0)), gr.Parameter(2.0)
    s = gr.Parameter(0.3, bounds=(1e-3, 10.0))
    x = gr.Variable(1.0)
    w = gr.Disturbance(gr.spectra.white(), scale=0.4)
    y = gr.Output(10 * gr.exp(x), distribution=gr.laws.Poisson())
    equations = [der(x) == -a * x + b + w]


def measured(law: Any, formula: Any = Wandering.x) -> gr.Model:
    return type("Seen", (Wandering,), {"y": gr.Output(formula, distribution=law)})()


def record(model: gr.Model, seed: int = 4) -> gr.Experiment:
    found = gr.simulate(model, TIMES, realizations=1, seed=seed, noise=True)
    return gr.Experiment(TIMES, outputs={"y": found["y"].values[0]})


def test_disturbed_models_with_laws_are_integrated_over_unasked() -> None:
    fit = gr.fit(Wandering(), record(Wandering()), ["b"], progress=False)
    assert (
        isinstance(fit.method, gr.Collocation)
        and "KalmanML and SimulatedPEM would come first" in fit.why["Collocation"]
    )


def dense(theta: Floats, y: Floats, log_density: Callable[[Floats, Floats, float], Floats]) -> float:
    """−log L by Laplace's method: states at the samples, their exact transitions, Newton steps, log-determinants.

    log_density : of y, states and s; its derivatives are differences
    """
    a, b, scale, s = theta
    n, h = len(y) - 1, 1e-3
    decay = np.exp(-a * (TIMES[1] - TIMES[0]))
    A = np.eye(n) - np.diag(np.full(n - 1, decay), -1)
    drift = np.full(n, b / a * (1 - decay))
    drift[0] += decay
    P = A.T @ A / (scale**2 * (1 - decay**2) / (2 * a))
    best = np.linalg.solve(A, drift)

    def criterion(x: Floats) -> float:
        e = x - best
        return float(0.5 * e @ P @ e - log_density(y[1:], x, s).sum())

    x = best.copy()
    for _ in range(60):
        at = [log_density(y[1:], x + k * h, s) for k in (-2, -1, 0, 1, 2)]
        slope = (8 * (at[3] - at[1]) - (at[4] - at[0])) / (12 * h)
        bend = (16 * (at[3] + at[1]) - (at[4] + at[0]) - 30 * at[2]) / (12 * h**2)
        step = np.linalg.solve(P - np.diag(bend), P @ (x - best) - slope)
        share = 1.0
        while criterion(x - share * step) > criterion(x) + 1e-9 and share > 1e-6:
            share /= 2
        x = x - share * step
    halves = 0.5 * (np.linalg.slogdet(P - np.diag(bend))[1] - np.linalg.slogdet(P)[1])
    return criterion(x) + float(halves) - float(log_density(y[:1], np.ones(1), s)[0])


def of_poisson(y: Floats, x: Floats, s: float) -> Floats:
    return y * (np.log(10) + x) - 10 * np.exp(x) - gammaln(y + 1)


def of_censored(y: Floats, x: Floats, s: float) -> Floats:
    return np.where(y <= 2.0, norm.logcdf(2.0, x, s), norm.logpdf(y, x, s))


def of_student(y: Floats, x: Floats, s: float) -> Floats:
    return t.logpdf(y, 5.0, x, s)


TRUTH = {"a": 0.8, "b": 2.0, "scale(w)": 0.4, "s": 0.3}
LAWS = {
    "Poisson": (Wandering(), of_poisson, ["a", "b"]),
    "Censored": (
        measured(gr.laws.Censored(below=2.0, of=gr.laws.Normal(std=Wandering.s))),
        of_censored,
        ["a", "s"],
    ),
    "Student": (measured(gr.laws.Student(df=5, scale=Wandering.s)), of_student, ["a", "scale(w)", "s"]),
}


@pytest.mark.parametrize("name", LAWS)
def test_the_likelihood_is_that_of_a_dense_program(name: str) -> None:
    """Value and estimates: at the fit the other likelihood is as large, and is flat."""
    model, log_density, unknown = LAWS[name]
    data = record(model)
    fit = gr.fit(model, data, unknown, gr.Collocation())
    y, n = data.measurements("y").values, len(unknown)
    theta, errors = fit.estimate.theta, np.array(fit.std_errors)

    def other(step: Floats) -> float:
        moved = dict(zip(unknown, theta + errors * step, strict=True))
        return dense(np.array([moved.get(k, v) for k, v in TRUTH.items()]), y, log_density)

    h = 0.01
    slope = [(8 * (other(h * e) - other(-h * e)) - other(2 * h * e) + other(-2 * h * e)) / (12 * h) for e in np.eye(n)]
    assert fit.converged
    assert fit.log_likelihood == pytest.approx(-other(np.zeros(n)), abs=1e-5)
    assert np.abs(fit.correlation.to_numpy() @ slope).max() < 1e-3


def test_the_gradient_is_that_of_the_value() -> None:
    """Of two experiments, one of which has samples with limits of their own, where the law's numbers move, too."""
    model = measured(gr.laws.Censored(of=gr.laws.Student(df=5, scale=Wandering.s + 0.1 * Wandering.x**2)))
    plain = record(measured(gr.laws.Normal(std=0.2)))
    marked = ["<1.9" if k % 4 == 0 else str(v) for k, v in enumerate(plain.measurements("y").values)]
    both = [plain.replace(name="A"), gr.Experiment(TIMES, outputs={"y": marked}, name="B")]
    density = gr.log_density(model, both, ["a", "b", "s"], method=gr.Collocation(refine=0))
    theta, steps = np.array([0.7, 1.9, 0.25]), 1e-5 * np.eye(3)
    slope = [(density(theta + h) - density(theta - h)) / 2e-5 for h in steps]
    assert density.gradient(theta) == pytest.approx(slope, rel=1e-6, abs=1e-6)


def test_fits_keep_quantile_residuals_and_trajectories(tmp_path: Any) -> None:
    fit = gr.fit(Wandering(), record(Wandering()), ["a", "b"], gr.Collocation())
    fit.save(tmp_path / "fit.nc")
    loaded = gr.load(tmp_path / "fit.nc")
    for seed in (0, 7):
        own, again = (f.residuals(standardized=True, seed=seed)["residual"].to_numpy() for f in (fit, loaded))
        assert own == pytest.approx(again, rel=1e-12)
    assert all("gr.monte_carlo" in v.sentence for v in fit.diagnose().verdicts)
    smoothed = fit.states(names=["x"])["x"].sel(statistic="mean").values.ravel()
    assert smoothed == pytest.approx(loaded.states(names=["x"])["x"].sel(statistic="mean").values.ravel(), rel=1e-8)


@pytest.mark.parametrize(
    ("method", "sentence"),
    [
        (gr.KalmanML(), r"takes measurements to be normal: use gr\.Collocation\(\)"),
        (gr.Collocation(transcription="spline"), "Splines do not apply: 'y' is measured by the law Poisson"),
        (
            gr.Collocation(criterion="ipda"),
            "criterion='ipda' is made for squares of errors, and output 'y' is measured by the law Poisson",
        ),
        (gr.Collocation(optimizer="ipopt"), "leave optimizer out"),
        (gr.Collocation(criterion="amle", intensities="estimate"), "use criterion='laplace'"),
    ],
)
def test_what_does_not_go_with_laws_is_refused(method: Any, sentence: str) -> None:
    with pytest.raises(EstimationError, match=sentence):
        gr.fit(Wandering(), record(Wandering()), ["a"], method)


def test_kinks_and_impossible_samples_are_refused() -> None:
    laplace = measured(gr.laws.Laplace(scale=0.3))
    with pytest.raises(EstimationError, match="the law Laplace, whose log-density has a kink"):
        gr.fit(laplace, record(laplace), ["a"], gr.Collocation())
    half = gr.Experiment(TIMES, outputs={"y": np.full(len(TIMES), 20.5)})
    with pytest.raises(DataError, match=r"the sample of 'y' at t = 0 is 20\.5; counts are whole numbers"):
        gr.fit(Wandering(), half, ["a"], gr.Collocation())
    with pytest.raises(EstimationError, match="'s' is a noise level"):
        gr.fit(LAWS["Student"][0], record(laplace), ["a", "s"], gr.Collocation(criterion="amle"))
