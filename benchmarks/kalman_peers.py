"""The problems of ``kalman.py`` in plain NumPy, in JAX and in statsmodels, each written as its users would.

All have the same log-likelihood: exact discretisation of linear models by one matrix exponential per evaluation
(inputs held), the extended filter of the reactor by classical Runge–Kutta steps of mean and covariance. Gradients:
NumPy by forward differences, JAX by reverse mode, statsmodels by its own complex steps.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from kalman_problems import LinearProblem, NonlinearProblem

LOG_2PI = float(np.log(2 * np.pi))
Evaluate = Callable[[np.ndarray], tuple[float, np.ndarray]]


def discretised(p: LinearProblem, theta: Any, xp: Any, expm: Any) -> tuple[Any, ...]:
    """F, input matrix, Q, H, D, R over one sampling interval: exponentials of block matrices (Van Loan)."""
    A, B, W, H, D, R = p.matrices(theta, xp)
    n, nu, h = A.shape[0], B.shape[1], p.step
    zero = xp.zeros
    inputs = xp.concatenate([xp.concatenate([A, B], axis=1), zero((nu, n + nu))], axis=0)
    moved = expm(inputs * h)
    noise = xp.concatenate([xp.concatenate([-A, W], axis=1), xp.concatenate([zero((n, n)), A.T], axis=1)], axis=0)
    # in short steps and doubled: the block -A grows where the model is stiff
    block = expm(noise * (h / 16))
    F, Q = block[n:, n:].T, block[n:, n:].T @ block[:n, n:]
    for _ in range(4):
        Q, F = Q + F @ Q @ F.T, F @ F
    return moved[:n, :n], moved[:n, n:], (Q + Q.T) / 2, H, D, R


def numpy_linear(p: LinearProblem) -> Evaluate:
    from scipy.linalg import expm

    def value(theta: np.ndarray) -> float:
        F, G, Q, H, D, R = discretised(p, theta, np, expm)
        x, P, total = p.x0.copy(), p.P0.copy(), 0.0
        identity, c, d = np.eye(len(x)), p.u @ G.T, p.u @ D.T
        for k in range(len(p.y)):
            if k:
                x = F @ x + c[k - 1]
                P = F @ P @ F.T + Q
            e = p.y[k] - H @ x - d[k]
            PH = P @ H.T
            S = H @ PH + R
            root = np.linalg.cholesky(S)
            K = np.linalg.solve(S, PH.T).T
            total += e @ np.linalg.solve(S, e) + 2 * np.log(np.diag(root)).sum() + len(e) * LOG_2PI
            x = x + K @ e
            J = identity - K @ H
            P = J @ P @ J.T + K @ R @ K.T
        return -0.5 * total

    return lambda theta: (value(theta), _differences(value, theta))


def numpy_extended(p: NonlinearProblem) -> Evaluate:
    def value(theta: np.ndarray) -> float:
        n = len(p.x0)
        W, R = np.diag(p.noise(theta, np)), np.diag(p.variance(theta, np))
        x, P, total, identity = p.x0.copy(), p.P0.copy(), 0.0, np.eye(n)

        def rates(x: np.ndarray, P: np.ndarray, u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            f = p.drift(x, u, theta, np)
            A = np.empty((n, n))
            for j in range(n):
                step = 1e-6 * max(abs(x[j]), 1.0)
                moved = x.copy()
                moved[j] += step
                A[:, j] = (p.drift(moved, u, theta, np) - f) / step
            return f, A @ P + P @ A.T + W

        for k in range(len(p.y)):
            if k:
                h = (p.times[k] - p.times[k - 1]) / p.substeps
                for _ in range(p.substeps):
                    x, P = _runge_kutta(rates, x, P, p.u[k - 1], h)
            e, S = p.y[k] - x, P + R
            root = np.linalg.cholesky(S)
            K = np.linalg.solve(S, P.T).T
            total += e @ np.linalg.solve(S, e) + 2 * np.log(np.diag(root)).sum() + n * LOG_2PI
            x = x + K @ e
            J = identity - K
            P = J @ P @ J.T + K @ R @ K.T
        return -0.5 * total

    return lambda theta: (value(theta), _differences(value, theta))


def _runge_kutta(rates: Any, x: Any, P: Any, u: Any, h: float) -> tuple[Any, Any]:
    k1, K1 = rates(x, P, u)
    k2, K2 = rates(x + h / 2 * k1, P + h / 2 * K1, u)
    k3, K3 = rates(x + h / 2 * k2, P + h / 2 * K2, u)
    k4, K4 = rates(x + h * k3, P + h * K3, u)
    return x + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4), P + h / 6 * (K1 + 2 * K2 + 2 * K3 + K4)


def _differences(value: Callable[[np.ndarray], float], theta: np.ndarray) -> np.ndarray:
    base, step = value(theta), 1e-6
    return np.array([(value(theta + step * unit) - base) / step for unit in np.eye(len(theta))])


def jax_linear(p: LinearProblem) -> Evaluate:
    jax, jnp, scan = _jax()
    y, u = jnp.asarray(p.y), jnp.asarray(p.u)
    before = jnp.concatenate([u[:1] * 0, u[:-1]])
    first = jnp.arange(len(p.y)) == 0

    def value(theta: Any) -> Any:
        F, G, Q, H, D, R = discretised(p, theta, jnp, jax.scipy.linalg.expm)
        c, d, identity = before @ G.T, u @ D.T, jnp.eye(len(p.x0))

        def sample(carry: Any, given: Any) -> Any:
            x, P = carry
            y_k, c_k, d_k, start = given
            x = jnp.where(start, x, F @ x + c_k)
            P = jnp.where(start, P, F @ P @ F.T + Q)
            e = y_k - H @ x - d_k
            PH = P @ H.T
            S = H @ PH + R
            root = jnp.linalg.cholesky(S)
            K = jax.scipy.linalg.cho_solve((root, True), PH.T).T
            part = e @ jax.scipy.linalg.cho_solve((root, True), e) + 2 * jnp.log(jnp.diag(root)).sum()
            J = identity - K @ H
            return (x + K @ e, J @ P @ J.T + K @ R @ K.T), part

        _, parts = scan(sample, (jnp.asarray(p.x0), jnp.asarray(p.P0)), (y, c, d, first))
        return -0.5 * (parts.sum() + y.size * LOG_2PI)

    return _compiled(jax, value)


def jax_extended(p: NonlinearProblem) -> Evaluate:
    jax, jnp, scan = _jax()
    y, u = jnp.asarray(p.y), jnp.asarray(p.u)
    lengths = jnp.concatenate([jnp.zeros(1), jnp.diff(jnp.asarray(p.times))]) / p.substeps
    before = jnp.concatenate([u[:1], u[:-1]])
    n = len(p.x0)

    def value(theta: Any) -> Any:
        W, R, identity = jnp.diag(p.noise(theta, jnp)), jnp.diag(p.variance(theta, jnp)), jnp.eye(n)

        def rates(x: Any, P: Any, u_k: Any) -> Any:
            A = jax.jacfwd(lambda s: p.drift(s, u_k, theta, jnp))(x)
            return p.drift(x, u_k, theta, jnp), A @ P + P @ A.T + W

        def sample(carry: Any, given: Any) -> Any:
            x, P = carry
            y_k, u_k, h = given
            for _ in range(p.substeps):
                x, P = _runge_kutta(rates, x, P, u_k, h)
            e, S = y_k - x, P + R
            root = jnp.linalg.cholesky(S)
            K = jax.scipy.linalg.cho_solve((root, True), P.T).T
            part = e @ jax.scipy.linalg.cho_solve((root, True), e) + 2 * jnp.log(jnp.diag(root)).sum()
            J = identity - K
            return (x + K @ e, J @ P @ J.T + K @ R @ K.T), part

        _, parts = scan(sample, (jnp.asarray(p.x0), jnp.asarray(p.P0)), (y, before, lengths))
        return -0.5 * (parts.sum() + y.size * LOG_2PI)

    return _compiled(jax, value)


def _jax() -> tuple[Any, Any, Any]:
    import jax

    jax.config.update("jax_enable_x64", True)
    return jax, jax.numpy, jax.lax.scan


def _compiled(jax: Any, value: Any) -> Evaluate:
    both = jax.jit(jax.value_and_grad(value))

    def evaluate(theta: np.ndarray) -> tuple[float, np.ndarray]:
        found, slope = both(theta)
        return float(found), np.asarray(slope)

    return evaluate


def statsmodels_linear(p: LinearProblem) -> Evaluate:
    model = _statsmodels(p)
    return lambda theta: (float(model.loglike(theta)), np.asarray(model.score(theta)))


def statsmodels_fit(p: LinearProblem) -> tuple[float, np.ndarray]:
    found = _statsmodels(p).fit(p.guess, method="lbfgs", maxiter=200, disp=0, cov_type="none")
    return float(found.llf), np.asarray(found.params)


def _statsmodels(p: LinearProblem) -> Any:
    from scipy.linalg import expm
    from statsmodels.tsa.statespace.mlemodel import MLEModel

    n, ny = len(p.x0), p.y.shape[1]

    class Plant(MLEModel):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__(p.y, k_states=n, k_posdef=n)
            self.initialize_known(p.x0, p.P0)
            self["selection"] = np.eye(n)

        @property
        def start_params(self) -> np.ndarray:
            return p.guess

        def update(self, params: Any, **options: Any) -> None:
            params = super().update(params, **options)
            F, G, Q, H, D, R = discretised(p, params, np, expm)
            self["transition"], self["design"], self["state_cov"], self["obs_cov"] = F, H, Q, R
            self.ssm["state_intercept"] = np.ascontiguousarray((p.u @ G.T).T)
            self.ssm["obs_intercept"] = np.ascontiguousarray((p.u @ D.T).T)

    assert ny == p.y.shape[1]
    return Plant()
