"""R̂, effective sizes and Monte Carlo standard errors: closed forms of autoregressions, and ArviZ where it is there."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from grisaille.posteriors import convergence_of, effective_size


def autoregression(phi: float, draws: int = 4000, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    x = np.empty((4, draws))
    x[:, 0] = rng.standard_normal(4) / np.sqrt(1 - phi**2)
    for t in range(1, draws):
        x[:, t] = phi * x[:, t - 1] + rng.standard_normal(4)
    return x


@pytest.mark.parametrize("phi", [0.0, 0.6, 0.9, -0.4])
def test_the_effective_size_of_an_autoregression(phi: float) -> None:
    """N (1 − φ)/(1 + φ), to a tenth."""
    assert effective_size(autoregression(phi)) == pytest.approx(16000 * (1 - phi) / (1 + phi), rel=0.1)


def test_chains_apart_in_place_or_in_spread_are_seen() -> None:
    x = autoregression(0.0, 1000)
    assert convergence_of(x).r_hat < 1.01
    assert convergence_of(x + 0.3 * np.arange(4)[:, None]).r_hat > 1.03
    assert convergence_of(x * np.array([1.0, 1.0, 1.0, 1.8])[:, None]).r_hat > 1.03
    drifting = x + np.linspace(-1, 1, 1000)
    assert convergence_of(drifting).r_hat > 1.05


def test_monte_carlo_errors_are_those_of_many_repetitions() -> None:
    means, sds, said = [], [], []
    for seed in range(60):
        x = autoregression(0.5, 500, seed)
        found = convergence_of(x)
        means.append(x.mean())
        sds.append(x.std())
        said.append((found.mcse_mean, found.mcse_sd))
    expected = np.mean(said, axis=0)
    assert np.std(means) == pytest.approx(expected[0], rel=0.3) and np.std(sds) == pytest.approx(expected[1], rel=0.3)


def test_too_few_draws_and_constants_say_nothing() -> None:
    assert np.isnan(convergence_of(np.zeros((4, 100))).r_hat)
    assert np.isnan(convergence_of(np.random.default_rng(0).standard_normal((4, 6))).ess_bulk)


@pytest.mark.parametrize("phi", [0.0, 0.8, -0.5])
def test_arviz_says_the_same(phi: float) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        az = pytest.importorskip("arviz")
    x = np.exp(autoregression(phi, 600) / 2)
    found = convergence_of(x)
    theirs = [az.rhat(x), az.ess(x), az.ess(x, method="tail"), az.mcse(x), az.mcse(x, method="sd")]
    ours = [found.r_hat, found.ess_bulk, found.ess_tail, found.mcse_mean, found.mcse_sd]
    np.testing.assert_allclose(ours, np.array(theirs, dtype=float), rtol=0.02)
