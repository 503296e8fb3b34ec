"""Log-likelihoods of nonlinear filters, step by step as other programs compute them: plain NumPy, written from papers.

Extended: Runge–Kutta or Euler steps of x' = f, P' = A P + P Aᵀ + W. Unscented: the same steps of sigma points (S.
Särkkä, IEEE Trans. Autom. Control 52 (2007) 1631), α = 1, β = 0, κ = 3. Inputs are held, components missing.
"""

from __future__ import annotations

import numpy as np
import pytest

import grisaille as gr
from grisaille import der

N, P0 = 400, np.diag([0.02, 0.03])
TIMES = 0.1 * np.arange(N)
FEED = np.where(TIMES % 5 < 2.0, 1.0, 0.3)
VALUES = {"r": 1.2, "g": 0.8, "s": 0.15}


class Prey(gr.Model):
    """A prey that is fed and hunted."""

    r, g, s = gr.Parameter(1.0), gr.Parameter(1.0), gr.Parameter(0.1)
    x, y = gr.Variable(1.0), gr.Variable(0.5)
    feed = gr.Input()
    v, w = gr.Disturbance(gr.spectra.white(), scale=s), gr.Disturbance(gr.spectra.white(), scale=0.1)
    both = gr.Output(x + 0.3 * x * y, noise=0.1)
    hunter = gr.Output(y, noise=0.05)
    equations = [der(x) == feed + r * x * (1 - x) - x * y + v, der(y) == g * x * y - y + w]


@pytest.fixture(scope="module")
def data():
    run = gr.simulate(Prey(**VALUES), TIMES, {"feed": FEED}, realizations=1, seed=8, noise=True)
    measured = {n: run[n].values[0].copy() for n in ("both", "hunter")}
    measured["both"][50:80] = np.nan
    measured["hunter"][::7] = np.nan
    measured["hunter"][60] = np.nan
    return gr.Experiment(TIMES, {"feed": FEED}, measured, name="run")


def drift(x, u):
    return np.array([u + VALUES["r"] * x[0] * (1 - x[0]) - x[0] * x[1], VALUES["g"] * x[0] * x[1] - x[1]])


def jacobian(x):
    r, g = VALUES["r"], VALUES["g"]
    return np.array([[r - 2 * r * x[0] - x[1], -x[0]], [g * x[1], g * x[0] - 1]])


def seen(x):
    return np.array([x[0] + 0.3 * x[0] * x[1], x[1]])


W, R = np.diag([VALUES["s"] ** 2, 0.1**2]), np.diag([0.1**2, 0.05**2])


def stepped(rates, state, h, solver):
    """One explicit step of a tuple of arrays."""

    def moved(slopes, part):
        return tuple(a + part * h * b for a, b in zip(state, slopes, strict=True))

    k1 = rates(*state)
    if solver == "euler":
        return moved(k1, 1.0)
    k2 = rates(*moved(k1, 0.5))
    k3 = rates(*moved(k2, 0.5))
    k4 = rates(*moved(k3, 1.0))
    return moved(tuple((a + 2 * b + 2 * c + d) / 6 for a, b, c, d in zip(k1, k2, k3, k4, strict=True)), 1.0)


def scored(e, S):
    return -0.5 * (e @ np.linalg.solve(S, e) + np.linalg.slogdet(S)[1] + len(e) * np.log(2 * np.pi))


def extended(y, substeps, solver):
    x, P, total = np.array([1.0, 0.5]), P0, 0.0
    for k in range(N):
        here = np.flatnonzero(np.isfinite(y[k]))
        if len(here):
            C = np.array([[1 + 0.3 * x[1], 0.3 * x[0]], [0.0, 1.0]])[here]
            S = C @ P @ C.T + R[np.ix_(here, here)]
            e, K = (y[k] - seen(x))[here], P @ C.T @ np.linalg.inv(S)
            total += scored(e, S)
            x, P = x + K @ e, P - K @ S @ K.T
        if k + 1 < N:
            for _ in range(substeps):
                x, P = stepped(
                    lambda x, P, u=FEED[k]: (drift(x, u), jacobian(x) @ P + P @ jacobian(x).T + W),
                    (x, P), 0.1 / substeps, solver,
                )  # fmt: skip
    return total


def unscented(y, substeps, solver):
    c = np.sqrt(2 + 3.0)
    weights = np.array([3 / 5, *[1 / 10] * 4])

    def points(x, L):
        return np.column_stack([x, *(x + c * L[:, j] for j in range(2)), *(x - c * L[:, j] for j in range(2))])

    def rates(x, L, u):
        X = points(x, L)
        F = np.column_stack([drift(p, u) for p in X.T])
        mean = F @ weights
        together = (X - x[:, None]) * weights @ (F - mean[:, None]).T
        inverse = np.linalg.inv(L)
        M = inverse @ (together + together.T + W) @ inverse.T
        return mean, L @ (np.tril(M) - np.diag(np.diag(M)) / 2)

    x, P, total = np.array([1.0, 0.5]), P0, 0.0
    for k in range(N):
        here = np.flatnonzero(np.isfinite(y[k]))
        if len(here):
            X = points(x, np.linalg.cholesky(P))
            Y = np.column_stack([seen(p) for p in X.T])[here]
            mean = Y @ weights
            S = (Y - mean[:, None]) * weights @ (Y - mean[:, None]).T + R[np.ix_(here, here)]
            K = (X - x[:, None]) * weights @ (Y - mean[:, None]).T @ np.linalg.inv(S)
            total += scored(y[k, here] - mean, S)
            x, P = x + K @ (y[k, here] - mean), P - K @ S @ K.T
        if k + 1 < N:
            L = np.linalg.cholesky(P)
            for _ in range(substeps):
                x, L = stepped(lambda x, L, u=FEED[k]: rates(x, L, u), (x, L), 0.1 / substeps, solver)
            P = L @ L.T
    return total


def ours(data, **options):
    method = gr.KalmanML(initial_covariance=P0, **options)
    return gr.evaluate(Prey(**VALUES), data, method=method, estimate=["r"]).log_likelihood


def measurements(data):
    y = np.full((N, 2), np.nan)
    for column, name in enumerate(("both", "hunter")):
        times, values, weights = data.measurements(name)
        y[np.searchsorted(TIMES, times), column] = np.where(weights > 0, values, np.nan)
    return y


@pytest.mark.parametrize(("solver", "substeps"), [("rk4", 1), ("rk4", 3), ("euler", 4)])
def test_extended(data, solver, substeps):
    expected = extended(measurements(data), substeps, solver)
    found = ours(data, filter="extended", propagation="moments", solver=solver, substeps=substeps)
    assert found == pytest.approx(expected, rel=1e-11)


@pytest.mark.parametrize(("solver", "substeps"), [("rk4", 1), ("rk4", 3), ("euler", 4)])
def test_unscented(data, solver, substeps):
    expected = unscented(measurements(data), substeps, solver)
    found = ours(data, filter="unscented", propagation="square-root", solver=solver, substeps=substeps)
    assert found == pytest.approx(expected, rel=1e-11)


def test_all_ways_of_the_unscented_filter_have_one_limit(data):
    limit = unscented(measurements(data), 8, "rk4")
    moments = [ours(data, filter="unscented", propagation="moments", substeps=n) for n in (1, 2)]
    assert moments[1] == pytest.approx(limit, abs=1e-4)
    assert abs(moments[0] - limit) > 5 * abs(moments[1] - limit)
    linearized = ours(data, filter="unscented", propagation="linearize", substeps=8)
    assert linearized == pytest.approx(limit, abs=1e-3)


def test_other_sigma_points(data):
    """α and κ move the points; they matter little here, but not nothing."""
    usual, near, far = (
        ours(data, filter="unscented", propagation="moments", substeps=1, sigma=s)
        for s in ((1, 0, 3), (0.1, 2, 0), (1, 0, 6))
    )
    assert 1e-9 < abs(near - usual) < 1.0
    assert 1e-9 < abs(far - usual) < 1.0


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"propagation": "square-root"}, "filter='unscented'"),
        ({"filter": "unscented", "propagation": "square-root"}, "initial_covariance={state: variance}"),
        ({"solver": "euler"}, "substeps=n"),
        ({"solver": "heun"}, "'rk4' or 'euler'"),
        ({"sigma": (0, 0, 3)}, "alpha > 0"),
        ({"sigma": 3}, "alpha, beta, kappa"),
    ],
)
def test_what_does_not_go_together(options, said):
    with pytest.raises(gr.EstimationError, match=said.replace("(", "\\(")):
        gr.KalmanML(**options)


class Driven(gr.Model):
    """Two states, one of them driven by white noise, one by a disturbance that may start from zero."""

    k = gr.Parameter(0.5, bounds=(0.01, 5.0))
    x, v = gr.Variable(1.5), gr.Variable(0.0)
    w = gr.Disturbance(gr.spectra.white(), scale=0.3)
    y = gr.Output(x, noise=0.1)
    equations = [der(x) == v, der(v) == 1.0 - k * x - v + w]


class FromZero(Driven):
    d = gr.Disturbance(gr.spectra.lowpass(3.0, start="zero"), scale=0.1)
    equations = [der(Driven.x) == Driven.v + d, der(Driven.v) == 1.0 - Driven.k * Driven.x - Driven.v + Driven.w]


class Exactly(Driven):
    position, speed = gr.Output(Driven.x, noise=0.0), gr.Output(Driven.v, noise=0.1)


def driven(*outputs):
    t = np.linspace(0.0, 2.0, 11)
    return gr.Experiment(t, {}, {name: 1.5 + 0.3 * np.sin(t) for name in outputs})


def by_sigma_points(model, data, propagation, P0, substeps="auto"):
    method = gr.KalmanML(filter="unscented", propagation=propagation, initial_covariance=P0, substeps=substeps)
    return gr.evaluate(model, data, method, estimate=["k", "scale(w)"])


@pytest.mark.parametrize("substeps", ["auto", 4])
@pytest.mark.parametrize(
    ("model", "P0", "state"),
    [
        (Driven, {"x": 0.0, "v": 0.1}, "x"),
        (Driven, {"x": 0.1}, "v"),
        (Driven, ((0.1, 0.1), (0.1, 0.1)), "v"),
        (FromZero, {"x": 0.1, "v": 0.1}, "d[0]"),
    ],
)
def test_a_root_that_vanishes_at_the_start_is_refused(model, P0, state, substeps):
    """From P = 0 its root grows like √t, which steps of the root do not follow."""
    with pytest.raises(gr.EstimationError, match="square-root") as caught:
        by_sigma_points(model(), driven("y"), "square-root", P0, substeps)
    assert f"'{state}' has no uncertainty of its own" in str(caught.value)
    assert "propagation='moments'" in str(caught.value)


def test_a_root_that_vanishes_at_a_measurement_is_refused():
    data = driven("position", "speed")
    assert np.isfinite(by_sigma_points(Exactly(), data, "moments", {"x": 0.1, "v": 0.1}).log_likelihood)
    with pytest.raises(gr.EstimationError, match="propagation='square-root' needs both everywhere: try 'moments'"):
        by_sigma_points(Exactly(), data, "square-root", {"x": 0.1, "v": 0.1}, 4)


@pytest.mark.parametrize("size", [1e-6, 1e-3, 1.0])
def test_a_small_root_is_followed(size):
    P0 = {"x": size, "v": size}
    exact = gr.evaluate(
        Driven(), driven("y"), gr.KalmanML(filter="linear", initial_covariance=P0), estimate=["k", "scale(w)"]
    )
    found = by_sigma_points(Driven(), driven("y"), "square-root", P0)
    assert found.log_likelihood == pytest.approx(exact.log_likelihood, abs=1e-5)
    for name in exact.gradient:
        assert found.gradient[name] == pytest.approx(exact.gradient[name], rel=1e-4)
