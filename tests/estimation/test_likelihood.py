"""The criterion of likelihood estimators: sums over records, priors, conditioning, two rates of sampling, Hessian."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import multivariate_normal, norm

import grisaille as gr
from grisaille import der
from grisaille.estimators import build_problem

TIMES = 0.2 * np.arange(60)
FORCE = np.sign(np.sin(0.7 * TIMES))
NAMES = ["k", "c", "scale(w)", "noise(y)"]


class Spring(gr.Model):
    """A damped mass under a random force; a sensor that gets worse with time."""

    k, c = gr.Parameter(2.0, bounds=(0.1, 20.0)), gr.Parameter(0.5, bounds=(0.01, 5.0))
    x, v = gr.Variable(0.3), gr.Variable(0.0)
    u = gr.Input()
    w = gr.Disturbance(gr.spectra.white(), scale=0.4)
    y = gr.Output(x, noise=0.05)
    worse = gr.Output(v, noise=0.1 * (1 + 0.1 * gr.time))
    equations = [der(x) == v, der(v) == -k * x - c * v + u + w]


def record(seed, outputs=("y",)):
    run = gr.simulate(Spring(), TIMES, {"u": FORCE}, realizations=1, seed=seed, noise=True)
    return gr.Experiment(TIMES, {"u": FORCE}, {n: run[n].values[0] for n in outputs}, name=f"run {seed}")


def value(data, parameters=None, **options):
    method = gr.KalmanML(**options)
    return gr.evaluate(Spring(), data, method=method, parameters=parameters or {"k": 2.1})


def dense(data, P0):
    """Means and covariance of all measurements of one record, instant by instant and output by output."""
    from scipy.linalg import expm

    A, b, h = np.array([[0.0, 1.0], [-2.1, -0.5]]), np.array([0.0, 1.0]), 0.2
    W, n = np.diag([0.0, 0.16]), len(TIMES)
    big = expm(h * np.block([[-A, W], [np.zeros((2, 2)), A.T]]))
    F = big[2:, 2:].T
    Q = F @ big[:2, 2:]
    held = expm(h * np.block([[A, b[:, None]], [np.zeros((1, 3))]]))[:2, 2]
    means, blocks = [np.array([0.3, 0.0])], [P0]
    for k in range(n - 1):
        means.append(F @ means[-1] + held * FORCE[k])
        blocks.append(F @ blocks[-1] @ F.T + Q)
    whole = np.zeros((2 * n, 2 * n))
    for j in range(n):
        across = blocks[j]
        for i in range(j, n):
            whole[2 * i : 2 * i + 2, 2 * j : 2 * j + 2] = across
            whole[2 * j : 2 * j + 2, 2 * i : 2 * i + 2] = across.T
            across = F @ across
    noise = np.column_stack([np.full(n, 0.05), 0.1 * (1 + 0.1 * TIMES)]).ravel()
    y = np.full((n, 2), np.nan)
    for column, name in enumerate(("y", "worse")):
        if name in data.outputs:
            times, values, weights = data.measurements(name)
            y[np.searchsorted(TIMES, times - 1e-9), column] = np.where(weights > 0, values, np.nan)
    seen = np.flatnonzero(np.isfinite(y.ravel()))
    return y.ravel()[seen], np.concatenate(means)[seen], (whole + np.diag(noise**2))[np.ix_(seen, seen)]


P0 = np.diag([0.04, 0.09])


def test_two_rates_and_gaps_equal_the_joint_normal():
    """One sensor at every third instant, one with a hole, noise that grows with time."""
    full = record(1, ("y", "worse"))
    y, worse = (full.measurements(n).values.copy() for n in ("y", "worse"))
    y[20:30] = np.nan
    data = gr.Experiment(
        None, {"u": (TIMES, FORCE)}, {"y": (TIMES, y), "worse": (TIMES[::3], worse[::3])}, hold="zoh", name="both"
    )
    expected = multivariate_normal.logpdf(*dense(data, P0))
    for options in ({}, {"filter": "extended", "substeps": 1}, {"filter": "unscented", "substeps": 1}):
        assert value(data, initial_covariance=P0, **options).log_likelihood == pytest.approx(expected, rel=1e-10)


def test_conditioning_takes_the_first_density_away():
    data = record(2)
    whole, rest = (value(data, initial_covariance=P0, first_observation=f) for f in ("include", "condition"))
    first = norm.logpdf(data.measurements("y").values[0], 0.3, np.sqrt(0.04 + 0.05**2))
    assert rest.log_likelihood == pytest.approx(whole.log_likelihood - first, rel=1e-12)


def test_records_add_up():
    apart = [value(record(s)) for s in (1, 2, 3)]
    together = value([record(s) for s in (1, 2, 3)])
    assert together.log_likelihood == pytest.approx(sum(a.log_likelihood for a in apart), rel=1e-13)
    assert together.gradient["k"] == pytest.approx(sum(a.gradient["k"] for a in apart), rel=1e-12)


def test_a_joint_prior_makes_the_posterior():
    """Equation (31): half the squared distance in the prior's covariance, its correlation included."""
    data, method = record(4), gr.KalmanML()
    mean, covariance = np.array([2.5, 0.4]), np.array([[0.04, 0.015], [0.015, 0.01]])
    prior = [gr.MultivariateNormal(["k", "c"], mean, covariance)]
    free, tied = (build_problem(Spring(), data, ["k", "c"], method, priors=p) for p in (None, prior))
    for theta in (np.array([2.0, 0.5]), np.array([2.7, 0.3])):
        off = theta - mean
        a, b = free.evaluate(theta), tied.evaluate(theta)
        assert b.objective - a.objective == pytest.approx(0.5 * off @ np.linalg.solve(covariance, off), rel=1e-9)
        assert np.allclose(b.slope - a.slope, np.linalg.solve(covariance, off), rtol=1e-9)
        assert b.log_likelihood == a.log_likelihood
    fit = gr.fit(Spring(), data, ["k", "c"], method, priors=prior)
    alone = gr.fit(Spring(), data, ["k", "c"], method)
    assert fit.converged and fit.log_likelihood < alone.log_likelihood
    assert (np.diag(fit.covariance) < np.diag(alone.covariance)).all()


@pytest.mark.parametrize("robust", [None, ("smooth", 2.0)])
def test_standard_errors_are_those_of_an_extrapolated_hessian(robust):
    """Differences of exact gradients against Richardson's extrapolation of them."""
    data, method = record(5), gr.KalmanML(robust=robust)
    fit = gr.fit(Spring(), data, NAMES, method)
    assert fit.converged, fit.status
    problem = build_problem(Spring(), data, NAMES, method)
    theta = np.array([float(fit[n]) for n in NAMES])
    hessian = np.zeros((4, 4))
    for k in range(4):
        h = 2e-3 * theta[k] * np.eye(4)[k]
        g = [problem.gradient(theta + m * h)[1] for m in (2, 1, -1, -2)]
        hessian[k] = (8 * (g[1] - g[2]) - (g[0] - g[3])) / (12 * h[k])
    errors = np.sqrt(np.diag(np.linalg.inv((hessian + hessian.T) / 2)))
    said = fit.parameters["std_error"].to_numpy(float)
    if robust is None:
        assert np.allclose(said, errors, rtol=1e-5)
    else:  # the sandwich, which a curvature that is no variance does not tell
        assert (said > 0.5 * errors).all() and (said < 1.5 * errors).all()
