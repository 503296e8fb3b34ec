"""Noise that outputs share: closed forms, a likelihood written with SciPy, filters, draws, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import multivariate_normal

import grisaille as gr
from grisaille import der
from grisaille.errors import EstimationError
from grisaille.estimators import build_problem
from grisaille.study import draw_records

T = np.arange(0.0, 12.0, 0.2)
NAMES = ("y1", "y2", "y3", "y4")


class Four(gr.Model):
    """Four sensors of one state."""

    k = gr.Parameter(0.4, bounds=(0.05, 5.0))
    x = gr.Variable(1.0)
    y1, y2, y3, y4 = gr.Output(x), gr.Output(x), gr.Output(x), gr.Output(x)
    equations = [der(x) == -k * x]

    def noise_covariance(self) -> Any:
        return "full"


class Still(gr.Model):
    """The same of an input."""

    k = gr.Parameter(0.4, bounds=(0.05, 5.0))
    u = gr.Input()
    y1, y2, y3, y4 = gr.Output(k * u), gr.Output(k * u), gr.Output(k * u), gr.Output(k * u)
    equations: tuple[Any, ...] = ()

    def noise_covariance(self) -> Any:
        return "full"


class Rows(gr.Model):
    """Formulas of an input: covariances that vary, parameters among them, one unknown correlation, known noise."""

    a, b = gr.Parameter(1.0, bounds=(-9.0, 9.0)), gr.Parameter(0.5, bounds=(-9.0, 9.0))
    c, s = gr.Parameter(0.004, bounds=(-0.05, 0.05)), gr.Parameter(0.1, bounds=(0.01, 1.0))
    u = gr.Input()
    y1, y2 = gr.Output(a * u), gr.Output(a + b * u, noise=s * (1 + u))
    y3, y4 = gr.Output(b * u**2), gr.Output(a - b, noise=0.2)
    equations: tuple[Any, ...] = ()

    def noise_covariance(self) -> Any:
        return {("y1", "y2"): self.c * (1 + self.u), ("y1", "y3"): "full"}


def four(seed: int = 1) -> gr.Experiment:
    rng = np.random.default_rng(seed)
    noise = 0.1 * rng.normal(size=T.size) + 0.02 * rng.normal(size=(4, T.size))
    return gr.Experiment(T, outputs=dict(zip(NAMES, np.exp(-0.5 * T) + noise, strict=True)))


U = np.linspace(0.0, 1.0, 60)


def still(seed: int = 1) -> gr.Experiment:
    rng = np.random.default_rng(seed)
    noise = 0.1 * rng.normal(size=U.size) + 0.02 * rng.normal(size=(4, U.size))
    return gr.Experiment(inputs={"u": U}, outputs=dict(zip(NAMES, 0.5 * U + noise, strict=True)))


def rows() -> np.ndarray:
    rng = np.random.default_rng(3)
    e = rng.normal(size=(4, U.size))
    shared = np.array([e[0], 0.5 * e[0] + 0.9 * e[1], -0.5 * e[0] + 0.9 * e[2], 2 * e[3]])
    y = np.array([U, 1 + 0.5 * U, 0.5 * U**2, 0.5 + 0 * U]) + 0.1 * shared
    y[0, 5:15] = y[1, 10:20] = y[2, ::3] = y[3, 40:] = np.nan
    return y


def data_of(y: np.ndarray) -> gr.Experiment:
    return gr.Experiment(inputs={"u": U}, outputs=dict(zip(NAMES, y, strict=True)))


def differenced(value: Any, theta: np.ndarray, among: Any = None) -> np.ndarray:
    found = []
    for k in range(len(theta)) if among is None else among:
        step = np.zeros(len(theta))
        step[k] = 1e-5 * max(abs(theta[k]), 0.1)
        found.append((value(theta + step) - value(theta - step)) / (2 * step[k]))
    return np.array(found)


def test_the_covariance_is_that_of_concentrated_maximum_likelihood() -> None:
    """Σ̂ = (1/N) Σ e eᵀ, and θ maximises −(N/2) log det Σ̂(θ)."""
    data = still()
    fit = gr.fit(Still(), data, ["k"], gr.OutputError())
    y = np.array([data.outputs[n].values for n in NAMES])

    def covariance(k: float) -> np.ndarray:
        e = y - k * U
        return np.asarray(e @ e.T / U.size)

    best = minimize(lambda k: np.linalg.slogdet(covariance(k[0]))[1], [0.5], method="Nelder-Mead", tol=1e-12).x[0]
    found, S = fit.estimates, covariance(best)
    size = np.sqrt(np.diag(S))
    assert fit.converged and found["k"] == pytest.approx(best, rel=1e-6)
    assert [found[f"noise({n})"] for n in NAMES] == pytest.approx(size, rel=1e-6)
    pairs = [(i, j) for i in range(4) for j in range(i + 1, 4)]
    told = [found[f"correlation({NAMES[i]}, {NAMES[j]})"] for i, j in pairs]
    assert told == pytest.approx([S[i, j] / size[i] / size[j] for i, j in pairs], rel=1e-6)
    assert fit["k"].std_error == pytest.approx((U @ U * np.linalg.inv(S).sum()) ** -0.5, rel=1e-4)
    limits = fit.intervals(method="wald").loc["correlation(y1, y2)"]
    assert 0 < limits["lower"] < found["correlation(y1, y2)"] < limits["upper"] < 1
    assert not fit.doubts


def test_a_filter_of_a_model_without_disturbances_has_the_same_likelihood() -> None:
    values = []
    for method in (gr.OutputError(rtol=1e-10), gr.KalmanML()):
        problem = build_problem(Four(), four(), ["k"], method).discretised_problem
        known = {"k": 0.5, **{f"noise({n})": 0.1 for n in NAMES}}
        theta = np.array([known.get(u.name, 0.9 - 0.01 * k) for k, u in enumerate(problem.unknowns)])
        found = problem.evaluate(theta)
        values.append((found.objective, found.gradient, [u.name for u in problem.unknowns]))
    assert values[0][0] == pytest.approx(values[1][0], abs=1e-5) and values[0][2] == values[1][2]
    assert values[0][1] == pytest.approx(values[1][1], rel=1e-5, abs=1e-3)


def test_with_gaps_it_is_the_likelihood_of_what_was_measured() -> None:
    y = rows()
    names = ["a", "b", "c", "s", "noise(y1)", "noise(y3)", "correlation(y1, y3)"]

    def cost(theta: np.ndarray) -> float:
        a, b, c, s, n1, n3, r = theta
        total = 0.0
        for u, own in zip(U, y.T, strict=True):
            S = np.diag([n1**2, (s * (1 + u)) ** 2, n3**2, 0.04])
            S[0, 1] = S[1, 0] = c * (1 + u)
            S[0, 2] = S[2, 0] = r * n1 * n3
            seen = np.isfinite(own)
            mean = np.array([a * u, a + b * u, b * u**2, a - b])
            if np.linalg.eigvalsh(S)[0] <= 0:
                return 1e10
            total -= multivariate_normal.logpdf(own[seen], mean[seen], S[np.ix_(seen, seen)]) if seen.any() else 0.0
        return total

    fit = gr.fit(Rows(), data_of(y), ["a", "b", "c", "s"], gr.OutputError())
    at = np.array([fit.estimates[n] for n in names])
    order = [fit.names.index(n) for n in names]
    assert fit.converged and sorted(fit.names) == sorted(names)
    assert fit.log_likelihood == pytest.approx(-cost(at), abs=1e-8)
    slope = differenced(cost, at)
    moved = fit.estimate.covariance[np.ix_(order, order)] @ slope / fit.std_errors[order]
    assert np.abs(moved).max() < 1e-4  # a Newton step from here, in standard errors

    problem = build_problem(Rows(), [data_of(y)], ["a", "b", "c", "s"], gr.OutputError())
    theta = at[[names.index(u.name) for u in problem.unknowns]] * 1.1
    found = problem.evaluate(theta)
    near = differenced(lambda v: problem.evaluate(v, sensitive=False).objective, theta)
    assert found.gradient == pytest.approx(near, rel=1e-5, abs=1e-5)
    assert -found.scores.sum(axis=0) == pytest.approx(found.gradient, rel=1e-9)


def test_given_covariances_are_generalised_least_squares() -> None:
    class Given(gr.Model):
        a = gr.Parameter(1.0)
        u = gr.Input()
        y, z = gr.Output(a * u, noise=0.1), gr.Output(2 * a * u + a, noise=0.2)
        equations: tuple[Any, ...] = ()

        def noise_covariance(self) -> Any:
            return {("y", "z"): 0.016}

    rng = np.random.default_rng(5)
    S = np.array([[0.01, 0.016], [0.016, 0.04]])
    D = np.stack([U, 2 * U + 1])
    values = 1.3 * D + np.linalg.cholesky(S) @ rng.normal(size=D.shape)
    both = gr.Experiment(inputs={"u": U}, outputs={"y": values[0], "z": values[1]})
    fit = gr.fit(Given(), both, ["a"], gr.OutputError())
    weighed = np.linalg.solve(S, D)
    assert float(fit["a"]) == pytest.approx(np.sum(weighed * values) / np.sum(weighed * D), rel=1e-7)
    assert fit["a"].std_error == pytest.approx(np.sum(weighed * D) ** -0.5, rel=1e-7)
    assert not fit.notes and np.isinf(fit.student)
    plain = gr.fit(Given(), both, ["a"], gr.OutputError(loss="huber"))
    assert any("gr.OutputError(loss='huber') takes the noise of y and z to be independent" in n for n in plain.notes)
    alone = gr.fit(Given(), both.replace(outputs={"y": values[0]}), ["a"], gr.OutputError())
    assert alone.estimate.evaluation.is_least_squares and float(alone["a"]) == pytest.approx(
        float(U @ values[0] / (U @ U)), rel=1e-9
    )


class Tank(gr.Model):
    """A disturbed state and what follows it."""

    k, c = gr.Parameter(0.4, bounds=(0.05, 5.0)), gr.Parameter(0.002, bounds=(-1.0, 1.0))
    w = gr.Disturbance(gr.spectra.white(), scale=0.2)
    x, v = gr.Variable(1.0), gr.Variable(0.0)
    y1, y2, y3 = gr.Output(x), gr.Output(v, noise=0.1), gr.Output(x + v)
    equations = [der(x) == -k * x + w, der(v) == k * x - 0.3 * v]

    def noise_covariance(self) -> Any:
        return {("y1", "y2"): self.c, ("y1", "y3"): "full", ("y2", "y3"): "full"}


class Bent(Tank):
    equations = [der(Tank.x) == -Tank.k * Tank.x * (1 + 0.1 * Tank.x) + Tank.w, der(Tank.v) == Tank.k * Tank.x - Tank.v]


@pytest.mark.parametrize(
    ("model", "kind"),
    [
        pytest.param(Tank, "linear", id="exact"),
        pytest.param(Bent, "extended", id="extended"),
        pytest.param(Bent, "iterated", id="iterated"),
        pytest.param(Bent, "unscented", id="unscented"),
    ],
)
def test_filters_have_exact_slopes_and_refuse_what_is_no_covariance(model: type[gr.Model], kind: Any) -> None:
    rng = np.random.default_rng(2)
    times = T[:10]
    y = np.array([np.exp(-0.4 * times), times / 20, 1 + 0 * times]) + 0.1 * rng.normal(size=(3, 10))
    y[0, 3:6] = y[2, ::4] = np.nan
    data = gr.Experiment(times, outputs=dict(zip(NAMES[:3], y, strict=True)))
    method = gr.KalmanML(filter=kind)
    problem = build_problem(model(), [data], ["k", "c", "scale(w)"], method).discretised_problem
    names = [u.name for u in problem.unknowns]
    theta = problem.guess.copy()
    theta[names.index("correlation(y1, y3)")], theta[names.index("noise(y1)")] = 0.25, 0.09
    of_noise = [k for k, n in enumerate(names) if n not in ("k", "scale(w)")]
    near = differenced(lambda v: problem.evaluate(v, sensitive=False).objective, theta, of_noise)
    assert problem.evaluate(theta).gradient[of_noise] == pytest.approx(near, rel=1e-5, abs=1e-5)
    theta[names.index("correlation(y1, y3)")], theta[names.index("correlation(y2, y3)")] = 0.95, -0.95
    theta[names.index("c")] = 0.008
    failure = problem.evaluate(theta).failure
    assert "the covariance of the noise of y1, y2, y3 is not positive definite" in failure


def test_a_fit_draws_keeps_and_repeats_what_outputs_share(tmp_path: Path) -> None:
    fit = gr.fit(Still(), still(), ["k"], gr.OutputError())
    told = fit.estimates["correlation(y1, y3)"]
    drawn = [np.array(values) - 0.5 * U for values in draw_records(fit, fit.estimate.theta, 20, 1)]
    assert np.corrcoef(np.concatenate(drawn, axis=1))[0, 2] == pytest.approx(told, abs=0.02)
    times = np.arange(2000.0)
    noisy = gr.simulate(fit.model, times, {"u": 0.0}, noise=True, seed=3)
    e = np.array([noisy[n].values.ravel() for n in NAMES])
    assert np.corrcoef(e)[0, 2] == pytest.approx(told, abs=0.02)
    assert np.std(e[1]) == pytest.approx(fit.estimates["noise(y2)"], rel=0.1)
    fit.save(tmp_path / "fit.nc")
    again = gr.load(tmp_path / "fit.nc")
    assert again.estimates == fit.estimates and again.parameters.equals(fit.parameters)
    assert again.profile("k").interval == pytest.approx(fit.profile("k").interval, rel=1e-6)
    table = fit.validate(still(2)).table
    assert sorted(table.index) == list(NAMES) and (table["rms"] < 0.2).all()


def test_guesses() -> None:
    method = gr.OutputError()
    for rho, said in ((1.0, "must lie between -1 and 1, both excluded"), (-0.99, "is not positive definite")):
        guess = {"correlation(y1, y2)": 0.99, "correlation(y2, y3)": rho}
        with pytest.raises(EstimationError, match=said):
            gr.fit(Still(), still(), ["k"], method, guess=guess)


@pytest.mark.parametrize(
    ("method", "said"),
    [
        (
            gr.SimulatedPEM(),
            r"'correlation\(y1, y2\)' is unknown .*gr.SimulatedPEM does not estimate it: use gr.Output",
        ),
        (
            gr.Collocation(),
            r"gr.Collocation does not estimate it: use gr.OutputError\(\), or leave noise_covariance out",
        ),
        (gr.OutputError(loss="huber"), "the noise of y1 and y2 has an unknown covariance: leave loss out"),
        (
            gr.OutputError(errors="robust"),
            "leave errors out. .Without noise_covariance in the model, outputs are taken",
        ),
        (gr.OutputError(shooting="multiple"), "leave shooting out"),
    ],
)
def test_refusals(method: Any, said: str) -> None:
    with pytest.raises(EstimationError, match=said):
        gr.fit(Four(), four(), ["k"], method)


def test_only_what_was_measured_is_estimated() -> None:
    data = four()
    some = data.replace(outputs={n: data.outputs[n] for n in ("y1", "y3")})
    problem = build_problem(Four(), [some], None, gr.OutputError())
    assert [u.name for u in problem.unknowns] == ["k", "noise(y1)", "noise(y3)", "correlation(y1, y3)"]
