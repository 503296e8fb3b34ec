"""The filter on matrices: textbook, joint normal, published likelihoods, derivatives, gaps, singular noise."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from zoo import textbook_kalman as textbook

from grisaille.disturbance import constant_dual
from grisaille.filtering import (
    DiscreteModel,
    add_up,
    add_up_given,
    filter_moments,
    filter_states,
    likelihood_of_sums,
    smooth,
)


def make(y, F, Q, H, R, x0, P0, c=None, d=None):
    """One set of matrices for all samples, without derivatives."""
    N, n = len(y), len(x0)
    ones = np.zeros(N, dtype=np.int64)
    return DiscreteModel(
        F=constant_dual(F, 0)[None], F_of=ones[1:], c=np.zeros((N - 1, 1, n)) if c is None else c[:, None],
        Q=constant_dual(Q, 0)[None], Q_of=ones[1:], H=constant_dual(H, 0)[None], H_of=ones,
        d=np.zeros((N, 1, len(H))) if d is None else np.tile(d, (N, 1, 1)), R=constant_dual(R, 0)[None], R_of=ones,
        y=np.asarray(y, dtype=float), sample_at=np.arange(N), x0=np.asarray(x0, dtype=float)[None],
        P0=constant_dual(P0, 0),
        X0=np.zeros((n, 0)),
    )  # fmt: skip


def example(directions=0, seed=3, N=40):
    """Three states, one of them free of noise and known at first; two outputs with gaps."""
    random = np.random.default_rng(seed)
    y = random.normal(size=(N, 2))
    y[random.uniform(size=(N, 2)) < 0.3] = np.nan
    y[7] = np.nan
    F = np.array([[0.9, 0.2, 0.0], [-0.1, 0.8, 0.3], [0.0, 0.0, 0.97]])
    Q, P0 = np.diag([0.3, 0.1, 0.0]), np.diag([1.0, 0.5, 0.0])
    H, R = np.array([[1.0, 0.0, 0.4], [0.0, 1.0, -0.2]]), np.array([[0.2, 0.05], [0.05, 0.3]])
    model = make(y, F, Q, H, R, [0.1, -0.2, 1.0], P0, random.normal(size=(N - 1, 3)), np.array([0.1, -0.1]))
    return moved(model, directions, random) if directions else model


def moved(model, directions, random):
    """The same with random directions in everything; symmetric where matrices are."""

    def extend(X, symmetric=False, size=0.1):
        shape = (
            (*X.shape[: X.ndim - 3], directions, *X.shape[X.ndim - 2 :]) if X.ndim > 2 else (directions, X.shape[-1])
        )
        D = size * random.normal(size=shape)
        if symmetric:
            D = D + np.swapaxes(D, -1, -2)
        return np.concatenate([X, D], axis=-3 if X.ndim > 2 else 0)

    c = np.concatenate([model.c, 0.1 * random.normal(size=(len(model.c), directions, model.n))], axis=1)
    d = np.concatenate([model.d, 0.1 * random.normal(size=(len(model.d), directions, model.y.shape[1]))], axis=1)
    return replace(
        model, F=extend(model.F), Q=extend(model.Q, True, 0.01), H=extend(model.H), R=extend(model.R, True, 0.01),
        x0=extend(model.x0), P0=extend(model.P0, True, 0.01), c=c, d=d,
    )  # fmt: skip


def along(model, k, eps):
    """The value part moved along direction k."""

    def shift(X):
        return X[..., :1, :, :] + eps * X[..., k : k + 1, :, :]

    return replace(
        model, F=shift(model.F), Q=shift(model.Q), H=shift(model.H), R=shift(model.R), P0=shift(model.P0),
        x0=model.x0[:1] + eps * model.x0[k : k + 1], c=model.c[:, :1] + eps * model.c[:, k : k + 1],
        d=model.d[:, :1] + eps * model.d[:, k : k + 1],
    )  # fmt: skip


def as_textbook(m):
    N = len(m.y)
    return (
        [m.F[0, 0]] * (N - 1), m.c[:, 0], [m.Q[0, 0]] * (N - 1), m.H[0, 0], m.d[0, 0], m.R[0, 0], m.y, m.x0[0], m.P0[0]
    )  # fmt: skip


def test_equals_the_textbook_and_the_joint_normal():
    model = example()
    value = likelihood_of_sums(add_up(model)).value
    assert value == pytest.approx(textbook.kalman(*as_textbook(model))[0], rel=1e-12)
    assert value == pytest.approx(textbook.dense(*as_textbook(model))[0], rel=1e-10)


@pytest.mark.parametrize("robust", [np.inf, 1.2])
@pytest.mark.parametrize("condition", [False, True])
def test_gradient(robust, condition):
    """Also where P₀ is singular, a state has no noise, data are missing, and Huber's threshold is active."""
    model = example(directions=3)
    found = likelihood_of_sums(add_up(model, robust=robust, condition=condition))
    for k in range(3):
        ends = [
            likelihood_of_sums(add_up(along(model, 1 + k, e), robust=robust, condition=condition)).value
            for e in (2e-4, 1e-4, -1e-4, -2e-4)
        ]
        slope = (8 * (ends[1] - ends[2]) - (ends[0] - ends[3])) / 12e-4
        assert found.gradient[k] == pytest.approx(slope, rel=1e-7)


def test_moments_along_the_record_with_their_derivatives():
    """Before and after every update; a pass to which those before its samples are given has the same sums."""
    model = example(directions=3)
    sums, m, P = filter_moments(model)
    filtered = textbook.kalman(*as_textbook(model))[1]
    assert np.allclose(m[:, 1, 0], [f[0] for f in filtered], atol=1e-12)
    assert np.allclose(P[:, 1, 0], [f[1] for f in filtered], atol=1e-12)
    h = 1e-5
    ends = [filter_moments(along(model, 2, e))[1:] for e in (h, -h)]
    for found, up, down in zip((m, P), *ends, strict=True):
        assert np.allclose(found[:, :, 2], (up[:, :, 0] - down[:, :, 0]) / (2 * h), rtol=1e-7, atol=1e-8)
    again = add_up_given(model, m[:, 0], P[:, 0], robust=1.2, condition=True)
    wanted = add_up(model, robust=1.2, condition=True)
    for name in ("base", "G", "information", "cross", "innovations", "variances", "slopes", "count"):
        assert np.allclose(getattr(again, name), getattr(wanted, name), rtol=1e-12, atol=1e-13, equal_nan=True), name
    assert np.array_equal(sums.variances, wanted.variances, equal_nan=True)


def test_information_is_that_of_a_linear_regression():
    """With x₀ as the only unknown, −log L is quadratic and the information is its Hessian."""
    model = example()

    def still(X, axis):
        return np.concatenate([X, np.zeros_like(X)], axis=axis)

    matrices = {n: still(getattr(model, n), -3) for n in ("F", "Q", "H", "R", "P0")}
    x0 = np.array([[0.1, -0.2, 1.0], [0.0, 0.0, 1.0]])
    wide = replace(model, **matrices, x0=x0, c=still(model.c, 1), d=still(model.d, 1))
    here = likelihood_of_sums(add_up(wide))
    there = likelihood_of_sums(add_up(replace(wide, x0=wide.x0 + np.array([[0.0, 0.0, 0.5], [0.0, 0.0, 0.0]]))))
    assert there.gradient[0] - here.gradient[0] == pytest.approx(-0.5 * here.information[0, 0], rel=1e-10)


def test_diffuse_start_is_the_limit_of_a_wide_one():
    model = replace(example(), P0=np.zeros((1, 3, 3)))
    flat = likelihood_of_sums(add_up(replace(model, X0=np.eye(3)))).value
    k = 1e7
    wide = likelihood_of_sums(add_up(replace(model, P0=k * np.eye(3)[None]))).value
    assert flat == pytest.approx(wide + 1.5 * np.log(2 * np.pi * k), abs=2e-5)


def test_gradient_of_a_diffuse_start():
    model = replace(example(directions=3), X0=np.eye(3)[:, :2])
    found = likelihood_of_sums(add_up(model))
    for k in range(3):
        ends = [likelihood_of_sums(add_up(along(model, 1 + k, e))).value for e in (1e-5, -1e-5)]
        assert found.gradient[k] == pytest.approx((ends[0] - ends[1]) / 2e-5, rel=1e-6)


def test_smoother_is_the_conditional_mean_of_the_joint_normal():
    model = example(N=15)
    states = filter_states(model)[1]
    x, P = smooth(model, states)
    _, mean, covariances = textbook.dense(*as_textbook(model))
    assert np.allclose(x, mean, atol=1e-11)
    assert np.allclose(P, covariances, atol=1e-11)
    filtered = textbook.kalman(*as_textbook(model))[1]
    assert np.allclose(states.x_filt, [f[0] for f in filtered], atol=1e-12)


def test_a_sensor_that_falls_silent_is_a_sensor_taken_away():
    model = example()
    y = np.random.default_rng(5).normal(size=model.y.shape)
    y[20:, 1] = np.nan
    gone = replace(model, y=y)
    first = replace(model, y=y[:, :1], H=model.H[..., :1, :], R=model.R[..., :1, :1], d=model.d[..., :1])
    early = replace(gone, y=y[:20], sample_at=gone.sample_at[:20], F_of=gone.F_of[:19], Q_of=gone.Q_of[:19])
    sums, states = filter_states(early)
    rest = replace(
        first, sample_at=np.concatenate([[-1], np.arange(20, 40)]), x0=states.x_filt[-1:], P0=states.P_filt[-1:],
        c=first.c[19:], F_of=first.F_of[19:], Q_of=first.Q_of[19:],
    )  # fmt: skip
    parts = likelihood_of_sums(sums).value + likelihood_of_sums(add_up(rest)).value
    assert likelihood_of_sums(add_up(gone)).value == pytest.approx(parts, rel=1e-12)


def test_vanishing_uncertainty_is_a_failure_with_its_sample():
    model = make(np.ones((4, 1)), np.eye(1), np.zeros((1, 1)), np.eye(1), np.zeros((1, 1)), [0.0], np.zeros((1, 1)))
    found = likelihood_of_sums(add_up(model))
    assert found.failed == 0
    assert found.value == -np.inf


@pytest.mark.parametrize("robust", [1.2, -1.2])
def test_losses(robust):
    """Huber's, and the smooth one: of innovations and variances that do not know of them."""
    model = example()
    model = replace(model, y=model.y[:, :1], H=model.H[..., :1, :], R=model.R[..., :1, :1], d=model.d[..., :1])
    found = add_up(model, robust=robust)
    e, S = found.innovations[:, 0], found.variances[:, 0]
    v, c = (e**2 / S)[~np.isnan(e)], abs(robust)
    rho = 2 * c**2 * (np.sqrt(1 + v / c**2) - 1) if robust < 0 else np.where(v > c**2, c * (2 * np.sqrt(v) - c), v)
    assert (v > c**2).any()
    assert likelihood_of_sums(found).value == pytest.approx(
        -0.5 * (rho.sum() + np.nansum(np.log(2 * np.pi * S))), rel=1e-12
    )


def test_clark(reference_data):
    """Trend and cycle of US output: no measurement noise, singular process noise."""
    table = pd.read_csv(reference_data / "kalman_clark1987" / "gdp.csv")
    y = np.log(table["GDP"].to_numpy(dtype=float))[:, None]
    sv, se, sw, phi1, phi2 = 0.005539, 0.006164, 0.000184, 1.531659, -0.585422
    T = np.array([[1, 0, 0, 1], [0, phi1, phi2, 0], [0, 1, 0, 0], [0, 0, 0, 1.0]])
    model = make(
        y,
        T,
        np.diag([sv**2, se**2, 0, sw**2]),
        np.array([[1.0, 1, 0, 0]]),
        np.zeros((1, 1)),
        np.zeros(4),
        100 * T @ T.T,
    )
    sums, filtered = filter_states(model)
    S, e = sums.variances[20:, 0], sums.innovations[20:, 0]
    value = -0.5 * np.sum(e**2 / S + np.log(2 * np.pi * S))
    assert value == pytest.approx(578.520887, abs=5e-6)
    states = pd.read_csv(reference_data / "kalman_clark1987" / "states_reference.csv").to_numpy(dtype=float)
    assert np.allclose(filtered.x_filt[20:][:, [0, 1, 3]], states[-175:, -3:], atol=2e-4)
