"""The criterion, its intervals, bands and misfits against dense matrices of an independent program in SciPy and CasADi.

A small nonlinear model with correlated disturbances, correlated measurement noise and an input that steps: every
quantity is formed from all residuals and their Jacobian by all unknowns and coefficients, without any band.
"""

from __future__ import annotations

from dataclasses import dataclass

import casadi as ca
import numpy as np
import pytest
from scipy.interpolate import BSpline
from scipy.linalg import expm

import grisaille as gr
from grisaille import der

TIMES = np.linspace(0.0, 6.0, 13)
STEP = {"u": (np.array([0.0, 3.0]), np.array([0.0, 1.0]))}
W = 0.09 * np.array([[1.0, 0.6], [0.6, 1.0]])
R = np.array([[0.01, 0.006], [0.006, 0.0225]])


class Pair(gr.Model):
    a, b = gr.Parameter(0.7, bounds=(0.01, 5.0)), gr.Parameter(0.4, bounds=(0.01, 5.0))
    x, z = gr.Variable(start=1.0), gr.Variable(start=0.0)
    u = gr.Input()
    w = gr.Disturbance(gr.spectra.white(), scale=0.3, size=2, correlation=[[1.0, 0.6], [0.6, 1.0]])
    y1, y2 = gr.Output(x, noise=0.1), gr.Output(z + 0.1 * z**2, noise=0.15)
    equations = [der(x) == -a * x - 0.2 * x**3 + z + u + w[0], der(z) == -b * z - x + w[1]]

    def noise_covariance(self):
        return {("y1", "y2"): 0.006}


class Linear(gr.Model):
    a, b = gr.Parameter(0.7, bounds=(0.01, 5.0)), gr.Parameter(0.4, bounds=(0.01, 5.0))
    x, z = gr.Variable(start=1.0), gr.Variable(start=0.0)
    u = gr.Input()
    w = gr.Disturbance(gr.spectra.white(), scale=0.3, size=2, correlation=[[1.0, 0.6], [0.6, 1.0]])
    y1, y2 = gr.Output(x, noise=0.1), gr.Output(2 * x - z, noise=0.15)
    equations = [der(x) == -a * x + z + u + w[0], der(z) == -b * z - x + w[1]]

    def noise_covariance(self):
        return {("y1", "y2"): 0.006}


@dataclass
class Dense:
    """At the fit: all residuals, those of the data, and their Jacobians by (unknowns, free coefficients)."""

    residuals: np.ndarray
    jacobian: np.ndarray
    data: np.ndarray
    data_jacobian: np.ndarray
    states: np.ndarray
    """∂x/∂τ at the samples."""


@pytest.fixture(scope="module")
def data() -> gr.Experiment:
    found = gr.simulate(Pair(), TIMES, inputs=STEP, realizations=1, seed=5, noise=True)
    return gr.Experiment(TIMES, STEP, {n: found[n].values.ravel() for n in ("y1", "y2")})


def dense(fit: gr.Fit, data: gr.Experiment) -> Dense:
    quadratic = fit.estimate.evaluation.solution.at
    splines, places = quadratic.task.programs[0].mesh.splines, quadratic.task.programs[0].mesh.places
    theta = ca.SX.sym("theta", len(fit.names))
    named = {n: theta[k] for k, n in enumerate(fit.names)}
    free = [ca.SX.sym("c", s.count - 1) for s in splines]
    first = (named.get("start(x)", ca.SX(1.0)), named.get("start(z)", ca.SX(0.0)))
    coefficients = [ca.vertcat(f, c) for f, c in zip(first, free, strict=True)]
    bounds = np.unique(np.concatenate([[3.0], *(s.breaks for s in splines)]))
    nodes, shares = np.polynomial.legendre.leggauss(4)
    t = (bounds[:-1, None] + np.diff(bounds)[:, None] * (1 + nodes) / 2).ravel()
    weights = np.sqrt((np.diff(bounds)[:, None] * shares / 2).ravel())

    def along(times: np.ndarray, slope: int = 0) -> list[ca.SX]:
        bases = [BSpline(s.knots, np.eye(s.count), s.order - 1) for s in splines]
        return [ca.DM(b(times, nu=slope)) @ c for b, c in zip(bases, coefficients, strict=True)]

    (x, z), (dx, dz) = along(t), along(t, 1)
    r = (dx - (-named["a"] * x - 0.2 * x**3 + z + (t >= 3.0)), dz - (-named["b"] * z - x))
    model = _whitened(W, r, weights)
    x, z = along(TIMES)
    errors = (data.measurements("y1").values - x, data.measurements("y2").values - (z + 0.1 * z**2))
    seen = _whitened(R, errors, np.ones(len(TIMES)))
    every, tau = ca.vertcat(*model, *seen), ca.vertcat(theta, *free)
    of_data = ca.vertcat(*seen)
    formulas = [every, ca.jacobian(every, tau), of_data, ca.jacobian(of_data, tau), ca.jacobian(x, tau)]
    beta = quadratic.betas[0]
    at = np.concatenate([fit.estimate.theta, *(beta[p][1:] for p in places)])
    return Dense(*(np.array(v) for v in ca.Function("dense", [tau], formulas)(at)))


def _whitened(covariance: np.ndarray, r: tuple[ca.SX, ca.SX], weights: np.ndarray) -> list[ca.SX]:
    L = np.linalg.inv(np.linalg.cholesky(covariance))
    return [(L[k, 0] * r[0] + L[k, 1] * r[1]) * ca.DM(weights) for k in range(2)]


@pytest.mark.parametrize("unknowns", [("a", "b"), ("a", "b", "start(x)"), ("a", "b", "start(x)", "start(z)")])
def test_criterion_intervals_and_bands_are_those_of_dense_matrices(data, unknowns) -> None:
    fit = gr.fit(Pair(), data, unknowns, gr.Collocation(criterion="amle", refine=0), progress=False)
    found = dense(fit, data)
    assert fit.objective == pytest.approx(0.5 * float((found.residuals**2).sum()), rel=1e-12)
    assert np.abs(found.jacobian.T @ found.residuals).max() < 1e-8
    covariance = np.linalg.inv(found.jacobian.T @ found.jacobian)
    errors = [fit[n].std_error for n in unknowns]
    np.testing.assert_allclose(errors, np.sqrt(np.diag(covariance))[: len(unknowns)], rtol=1e-8)
    band = fit.states(names=["x"])["x"].sel(given="smoothed", statistic="std").values
    np.testing.assert_allclose(band, np.sqrt(np.diag(found.states @ covariance @ found.states.T)), atol=1e-9)


@pytest.mark.parametrize("unknowns", [("a", "b"), ("a", "b", "start(x)", "start(z)")])
def test_misfit_with_its_trace_is_that_of_the_dense_inverse(data, unknowns) -> None:
    fit = gr.fit(Pair(), data, unknowns, gr.Collocation(criterion="amle", refine=0), progress=False)
    found = dense(fit, data)
    covariance = np.linalg.inv(found.jacobian.T @ found.jacobian)
    taken = np.einsum("ki,ij,kj->k", found.data_jacobian, covariance, found.data_jacobian)
    expected = (found.data.ravel() ** 2 + taken).reshape(2, -1).mean(axis=1)
    ratios = fit.estimate.evaluation.solution.misfit(fit.estimate.cases, ["y1", "y2"]).ratios
    np.testing.assert_allclose(ratios, expected, rtol=1e-8)


def filtered(theta: np.ndarray, y: np.ndarray) -> float:
    """log L of ``Linear`` by a Kalman filter with exact transitions; NaN where nothing was measured."""
    a, b = theta
    A, C = np.array([[-a, 1.0], [-1.0, -b]]), np.array([[1.0, 0.0], [2.0, -1.0]])
    mean, P, total, h = np.array([1.0, 0.0]), np.zeros((2, 2)), 0.0, TIMES[1] - TIMES[0]
    blocks = expm(h * np.block([[-A, W], [np.zeros((2, 2)), A.T]]))
    F = blocks[2:, 2:].T
    pushed = expm(h * np.block([[A, np.array([[1.0], [0.0]])], [np.zeros((1, 3))]]))[:2, 2]
    for k, t in enumerate(TIMES):
        if k:
            mean, P = F @ mean + pushed * (t > 3.0), F @ P @ F.T + F @ blocks[:2, 2:]
        seen = np.isfinite(y[k])
        S, e = C[seen] @ P @ C[seen].T + R[np.ix_(seen, seen)], y[k, seen] - C[seen] @ mean
        total -= 0.5 * float(e @ np.linalg.solve(S, e) + np.linalg.slogdet(2 * np.pi * S)[1])
        K = P @ C[seen].T @ np.linalg.inv(S)
        mean, P = mean + K @ e, P - K @ C[seen] @ P
    return total


def test_marginal_likelihood_is_that_of_an_own_filter() -> None:
    """Correlated disturbances and noise, outputs that miss at different instants."""
    found = gr.simulate(Linear(), TIMES, inputs=STEP, realizations=1, seed=6, noise=True)
    y = np.column_stack([found[n].values.ravel() for n in ("y1", "y2")])
    y[3::4, 0], y[2::5, 1] = np.nan, np.nan
    record = gr.Experiment(TIMES, STEP, {"y1": y[:, 0], "y2": y[:, 1]})
    for transcription in ("spline", "direct"):
        method = gr.Collocation(criterion="laplace", transcription=transcription)
        fit = gr.fit(Linear(), record, ["a", "b"], method, progress=False)
        assert fit.converged
        exact = filtered(fit.estimate.theta, y)
        assert fit.log_likelihood == pytest.approx(exact, abs=2e-4)
        for k in range(2):
            moved = 1e-3 * np.eye(2)[k]
            rise = filtered(fit.estimate.theta + moved, y) - filtered(fit.estimate.theta - moved, y)
            assert abs(rise / 2e-3) * fit[("a", "b")[k]].std_error < 1e-3


def test_additional_information_adds_its_own_squares() -> None:
    """Measurements of formulas of parameters from another run, as a second experiment; equally, as a prior."""

    class Seen(Pair):
        k = gr.Output(Pair.a * gr.exp(Pair.u), noise=0.05)

    found = gr.simulate(Pair(), TIMES, inputs=STEP, realizations=1, seed=5, noise=True)
    dynamic = gr.Experiment(TIMES, STEP, {n: found[n].values.ravel() for n in ("y1", "y2")}, name="dynamic")
    values, levels = np.array([0.8, 0.9, 1.1]), np.array([0.0, 0.1, 0.2])
    other = gr.Experiment(np.arange(3.0), {"u": levels}, {"k": values}, name="steady")
    fit = gr.fit(Seen(), [dynamic, other], ["a", "b"], gr.Collocation(criterion="amle", refine=0), progress=False)
    # y_i = a exp(u_i) + ε is one measurement of a with precision Σ exp(2 u_i)/σ²
    gains = np.exp(levels)
    mean, std = float(gains @ values / (gains @ gains)), 0.05 / float(np.sqrt(gains @ gains))
    prior = gr.fit(
        Pair(),
        dynamic,
        ["a", "b"],
        gr.Collocation(criterion="amle", refine=0),
        priors={"a": gr.Normal(mean, std)},
        progress=False,
    )
    for name in ("a", "b"):
        assert fit[name] == pytest.approx(float(prior[name]), rel=1e-7)
        assert fit[name].std_error == pytest.approx(prior[name].std_error, rel=1e-6)
    left = values - mean * gains
    assert fit.objective - prior.objective == pytest.approx(0.5 * float(left @ left) / 0.05**2, rel=1e-6)
