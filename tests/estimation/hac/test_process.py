"""The correlation of residuals: closed forms, and dense matrices as reference."""

from __future__ import annotations

import numpy as np
import pytest

from grisaille.estimation.hac import AutoregressiveProcess, ResidualMoments, SampleGrid, yule_walker


def grid(lengths: tuple[int, ...], outputs: int, keep: float = 1.0, seed: int = 0) -> SampleGrid:
    rng = np.random.default_rng(seed)
    where = [(e, t, a) for e, n in enumerate(lengths) for a in range(outputs) for t in range(n)]
    kept = [w for w in where if rng.random() < keep or w[1] in (0, lengths[w[0]] - 1)]
    e, t, a = np.array(kept).T
    times = tuple(np.arange(n, dtype=float) for n in lengths)
    return SampleGrid(e, t, a, tuple("yz"[:outputs]), times)


def dense(of: SampleGrid, gamma: np.ndarray) -> np.ndarray:
    """Σ sample by sample."""
    n = len(of.instant)
    found = np.zeros((n, n))
    for i in range(n):
        for j in range(n):
            lag = of.instant[j] - of.instant[i]
            if of.experiment[i] == of.experiment[j] and abs(lag) < len(gamma):
                found[i, j] = (gamma[lag] if lag >= 0 else gamma[-lag].T)[of.output[i], of.output[j]]
    return found


def test_scalar_covariances_are_those_of_an_autoregression() -> None:
    process = AutoregressiveProcess(np.array([[[0.8]]]), np.array([[0.36]]))
    gamma = process.covariances(6, 4096)[:, 0, 0]
    assert gamma == pytest.approx(0.8 ** np.arange(6), rel=1e-12)
    again, exists = yule_walker(gamma[:, None, None], 2)
    assert exists and again.phi[:, 0, 0] == pytest.approx([0.8, 0.0], abs=1e-10)


def test_two_outputs_come_back_from_their_covariances() -> None:
    phi, noise = np.array([[0.7, 0.2], [-0.1, 0.5]]), np.array([[1.0, 0.3], [0.3, 0.5]])
    gamma0 = np.linalg.solve(np.eye(4) - np.kron(phi, phi), noise.ravel()).reshape(2, 2)
    gamma = AutoregressiveProcess(phi[None], noise).covariances(3, 4096)
    assert gamma[0] == pytest.approx(gamma0, rel=1e-10) and gamma[1] == pytest.approx(gamma0 @ phi.T, rel=1e-10)
    found, exists = yule_walker(gamma, 1)
    assert exists and found.phi[0] == pytest.approx(phi, rel=1e-9) and found.noise == pytest.approx(noise, rel=1e-9)


@pytest.mark.parametrize(("lengths", "outputs"), [((30,), 1), ((25, 14), 1), ((20, 17), 2)])
def test_expected_products_are_those_of_dense_matrices(lengths: tuple[int, ...], outputs: int) -> None:
    of = grid(lengths, outputs)
    rng = np.random.default_rng(1)
    U = np.linalg.qr(rng.standard_normal((len(of.instant), 3)))[0]
    phi = np.array([[0.7, 0.2], [-0.1, 0.5]])[:outputs, :outputs]
    gamma = AutoregressiveProcess(phi[None], np.eye(outputs)).covariances(max(lengths), 1024)
    Sigma = dense(of, gamma)
    moments = ResidualMoments(of, U)
    assert moments.applied(gamma, U) == pytest.approx(Sigma @ U, abs=1e-9)
    left = np.eye(len(U)) - U @ U.T
    residual = left @ Sigma @ left.T
    lags = moments.lags
    wanted = np.zeros((lags + 1, outputs, outputs))
    for i in range(len(U)):
        for j in range(len(U)):
            lag = of.instant[j] - of.instant[i]
            if of.experiment[i] == of.experiment[j] and 0 <= lag <= lags:
                wanted[lag, of.output[i], of.output[j]] += residual[i, j]
    assert moments.expected(gamma, lags) == pytest.approx(wanted, abs=1e-8)
    a = rng.standard_normal((len(U), 2))
    variances = np.einsum("lab,klab->k", gamma, moments.weights(a, len(gamma)))
    assert variances == pytest.approx(np.diag(a.T @ Sigma @ a), rel=1e-9)


def test_variances_leave_out_what_was_not_measured() -> None:
    of = grid((40,), 2, keep=0.6)
    gamma = AutoregressiveProcess(np.array([[[0.8, 0.1], [0.0, 0.6]]]), np.eye(2)).covariances(40, 1024)
    a = np.random.default_rng(2).standard_normal((len(of.instant), 1))
    moments = ResidualMoments(of, a / np.linalg.norm(a))
    assert moments.applied(gamma, a) == pytest.approx(dense(of, gamma) @ a, abs=1e-9)


def test_the_process_is_found_where_the_fit_has_taken_most_of_it() -> None:
    """Mean over records: as it is without a fit, where the first look is far too small."""
    of, n = grid((120,), 1), 120
    t = np.arange(n) / n
    U = np.linalg.qr(np.stack([np.ones(n), t, t**2], axis=1))[0]
    process, moments = AutoregressiveProcess(np.array([[[0.9]]]), np.array([[0.19]])), ResidualMoments(of, U)
    drawn = moments.draw(process, 24)
    seen = moments.observed(drawn - U @ (U.T @ drawn))
    first, corrected = [], []
    for c in seen:
        first.append(c[0, 0, 0] / n)
        corrected.append(moments.process_of(c)[0].covariances(1, 8192)[0, 0, 0])
    assert np.mean(first) < 0.75 < 0.8 < np.median(corrected) < 1.25
