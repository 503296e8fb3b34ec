"""Sums by compiled C and by a reference in NumPy, formulas by NumPy and by CasADi, and the whole by differences."""

from __future__ import annotations

import casadi as ca
import numpy as np
import pytest

import grisaille as gr
from grisaille import der, exp
from grisaille.collocation import CollocationPoints, NormalEquations, ResidualBlock, Vectorised
from grisaille.estimators import build_problem


class Kettle(gr.Model):
    """Two nonlinear states; a start that moves with a parameter."""

    k, c = gr.Parameter(0.6), gr.Parameter(1.2)
    x, z = gr.Variable(start=c), gr.Variable(start=0.5)
    w = gr.Disturbance(gr.spectra.white(), scale=0.4, size=2, correlation=[[1.0, 0.3], [0.3, 1.0]])
    y = gr.Output(x + 0.2 * z**2, noise=0.1)
    q = gr.Output(z, noise=0.2)
    equations = [der(x) == -k * x * exp(0.3 * z) + w[0], der(z) == c * x - z**3 + w[1]]


@pytest.fixture(scope="module")
def program():
    t = np.linspace(0.0, 3.0, 13)
    random = np.random.default_rng(0)
    data = gr.Experiment(t, {}, {"y": 1 + 0.1 * random.normal(size=13), "q": (t[::2], 0.5 + 0 * t[::2])})
    problem = build_problem(Kettle(), data, ["k", "c", "start(z)"], gr.Collocation(criterion="amle", order={"z": 3}))
    return problem.trajectories.programs[0], problem


def added(
    self: NormalEquations, points: CollocationPoints, U, r, by_state, by_theta, X, *, moving, curved=None
) -> ResidualBlock:
    """The sums in whole matrices, group after group."""
    local, m, n = points.local, points.local.index.shape[1], points.local.phi.shape[1]
    by_beta = (local.slope if moving else 0.0) - by_state @ local.phi
    part = ResidualBlock((U @ r[:, :, None])[:, :, 0], U, U @ by_beta, -U @ by_theta, X)
    for k, index in enumerate(local.index):
        J = np.concatenate([part.by_beta[k], part.by_theta[k]], axis=1)
        A, g = J.T @ J, part.residuals[k] @ J
        if curved is not None:
            H, dq = curved
            by = np.zeros((H.shape[1], m + len(dq)))
            by[:n, :m], by[n:, m:] = local.phi[k], dq.T
            A = A + by.T @ H[k] @ by
        for a, i in enumerate(index):
            for b, j in enumerate(index):
                if i >= j:
                    self.band[i - j, j] += A[a, b]
            self.border[i] += A[a, m:]
            self.gradient[i] += g[a]
        self.slope += g[m:]
        self.corner += A[m:, m:]
    return part


@pytest.mark.parametrize("exact", [False, True])
def test_compiled_sums_are_those_of_numpy(program, exact: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    spline, problem = program
    given = spline.record.at([0.6, 1.2, 0.5])
    beta = problem.trajectories.first_betas[0] + 0.1 * np.sin(np.arange(spline.mesh.count))
    compiled = spline.linearised(beta, given, exact=exact)
    monkeypatch.setattr(NormalEquations, "add", added)
    plain = spline.linearised(beta, given, exact=exact)
    for name in ("gradient", "slope", "band", "border", "corner"):
        np.testing.assert_allclose(getattr(compiled, name), getattr(plain, name), rtol=1e-10, atol=1e-9, err_msg=name)
    np.testing.assert_allclose(compiled.model.by_beta, plain.model.by_beta, atol=1e-12)
    np.testing.assert_allclose(compiled.data.by_theta, plain.data.by_theta, atol=1e-12)


def dense(band: np.ndarray) -> np.ndarray:
    n = band.shape[1]
    return sum(np.diag(band[d, : n - d], -d) + (np.diag(band[d, : n - d], d) if d else 0) for d in range(len(band)))


def test_gradient_and_exact_curvature_are_those_of_the_criterion(program) -> None:
    spline, problem = program
    theta = np.array([0.6, 1.2, 0.5])
    beta = problem.trajectories.first_betas[0] + 0.1 * np.sin(np.arange(spline.mesh.count))
    given = spline.record.at(theta.tolist())
    held = spline.held(given)
    here = spline.linearised(beta, given, exact=True)

    def at(b: np.ndarray, th: np.ndarray):
        return spline.linearised(b, spline.record.at(th.tolist()))

    h = 1e-6
    H = dense(here.band)
    for j in np.flatnonzero(~held)[::5]:
        e = np.zeros(len(beta))
        e[j] = h
        up, down = at(beta + e, theta), at(beta - e, theta)
        assert here.gradient[j] == pytest.approx((up.objective - down.objective) / (2 * h), rel=1e-6, abs=1e-4)
        np.testing.assert_allclose(H[~held, j], ((up.gradient - down.gradient) / (2 * h))[~held], rtol=1e-5, atol=1e-3)
    for k in range(3):
        e = np.zeros(3)
        e[k] = h
        up, down = at(beta, theta + e), at(beta, theta - e)
        assert here.slope[k] == pytest.approx((up.objective - down.objective) / (2 * h), rel=1e-6, abs=1e-4)
        difference = ((up.gradient - down.gradient) / (2 * h))[~held]
        np.testing.assert_allclose(here.border[~held, k], difference, rtol=1e-5, atol=1e-3)


def test_empty_sums_are_zero() -> None:
    sums = NormalEquations(5, 2, 3)
    assert not sums.band.any() and sums.band.shape == (3, 5) and sums.border.shape == (5, 3)


def test_formulas_on_arrays_are_those_of_casadi() -> None:
    x, q = ca.SX.sym("x", 3), ca.SX.sym("q", 2)
    a, b, c = x[0], x[1], x[2]
    rows = [
        ca.exp(a) + ca.log(b) * ca.sqrt(c), a**3 - b**q[0], ca.sin(a) * ca.cos(b) / ca.tan(c), ca.fabs(a - b),
        ca.if_else(a > b, a * q[1], ca.atan2(a, b)), ca.fmin(a, b) + ca.fmax(b, c),
        ca.tanh(a) + ca.sinh(b) - ca.cosh(c),
        ca.sign(a - b), ca.floor(3 * a) + ca.ceil(b), ca.asin(a / 3) + ca.acos(b / 3) + ca.atan(c), ca.erf(a), 1 / b,
        ca.logic_and(a > b, b < c), ca.logic_or(a > b, b < c), ca.logic_not(a > b), ca.fmod(5 * a, b), -a, 2 * a,
        ca.asinh(a) + ca.acosh(1 + b) + ca.atanh(a / 3), ca.log1p(a) + ca.expm1(b), ca.hypot(a, b),
        ca.copysign(a, b - c),
        ca.SX(4.0), a == b, a != b,
    ]  # fmt: skip
    function = ca.Function("f", [x, q], [ca.vertcat(*rows), ca.jacobian(ca.vertcat(*rows), x)])
    assert Vectorised.can_do(function)
    points, values = np.random.default_rng(1).uniform(0.2, 1.5, (40, 3)), np.array([1.7, -0.4])
    found = Vectorised(function, (1,))(points, values)
    for k, point in enumerate(points):
        for mine, theirs in zip(found, function(point, values), strict=True):
            np.testing.assert_allclose(mine[k], np.array(theirs.full()).ravel(order="F"), rtol=1e-13, atol=1e-14)
