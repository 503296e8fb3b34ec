"""Chains: exact moments, warm-ups where the metric is wrong, the same numbers in whatever blocks they are drawn."""

from __future__ import annotations

import json

import numpy as np
import pytest
from posteriors.densities import BEND, Known, banana, funnel, normal

from grisaille.posteriors import (
    Block,
    Chain,
    Metric,
    SamplingOptions,
    advance,
    begin_chain,
    convergence_of,
    learned_covariance,
    mcse_of_mean,
    metric_of_curvature,
    window_ends,
)

OPTIONS = SamplingOptions(500, 300)


def chains(target: Known, metric: Metric, options: SamplingOptions = OPTIONS, seed: int = 3) -> tuple[np.ndarray, int]:
    """(chains, draws, n), and how often metrics were corrected."""
    found, corrections = [], 0
    for k in range(4):
        chain = begin_chain(target, metric, k, seed)
        assert chain is not None
        chain, block = advance(target, chain, options.tune + options.draws, options)
        corrections += chain.corrections
        found.append(block.xi[options.tune :])
    return np.array(found), corrections


def within(draws: np.ndarray, expected: float) -> bool:
    return abs(float(draws.mean()) - expected) < 4 * mcse_of_mean(draws)


def test_a_normal_law_has_its_mean_and_covariance() -> None:
    covariance, mean = np.array([[4.0, -0.019], [-0.019, 1e-4]]), np.array([3.0, -1.0])
    target = normal(covariance, mean)
    metric = metric_of_curvature(target, mean + np.array([1.0, 0.01]), np.array([2.0, np.nan]), np.zeros(2, dtype=bool))
    np.testing.assert_allclose(metric.centre, mean, atol=1e-8)
    np.testing.assert_allclose(metric.covariance, covariance, rtol=1e-6)
    draws, corrections = chains(target, metric)
    assert corrections == 0
    for k in range(2):
        assert within(draws[..., k], mean[k])
        for j in range(2):
            assert within((draws[..., k] - mean[k]) * (draws[..., j] - mean[j]), covariance[k, j])
    assert all(convergence_of(draws[..., k]).r_hat < 1.01 for k in range(2))


def test_a_wrong_metric_is_corrected() -> None:
    """Standard deviations 2 and 0.05, correlation −0.95, from the identity."""
    covariance = np.array([[4.0, -0.095], [-0.095, 2.5e-3]])
    draws, corrections = chains(normal(covariance, np.zeros(2)), Metric(np.zeros(2), np.eye(2)))
    assert corrections >= 4
    assert within(draws[..., 0] ** 2, 4.0) and within(draws[..., 1] ** 2, 2.5e-3)
    assert min(convergence_of(draws[..., k]).ess_bulk for k in range(2)) > 500


def test_a_banana_is_explored_from_the_curvature_at_its_mode() -> None:
    target, start = banana(), np.array([0.1, -1.0])
    metric = metric_of_curvature(target, start, np.full(2, np.nan), np.zeros(2, dtype=bool))
    draws, corrections = chains(target, metric, SamplingOptions(600, 300, 0.9))
    x, y = draws[..., 0], draws[..., 1]
    assert corrections > 0
    assert within(x, 0.0) and within(x**2, 4.0) and within(y, 0.0) and within(y**2, 1 + 32 * BEND**2)


def test_a_funnel_is_explored() -> None:
    draws, _ = chains(funnel(), Metric(np.zeros(3), np.eye(3)), SamplingOptions(600, 300, 0.9))
    v = draws[..., 0]
    assert within(v, 0.0) and within(v**2, 2.25) and within(draws[..., 1], 0.0)


def test_blocks_of_any_length_and_files_between_them_give_the_same_numbers() -> None:
    target, options = banana(), SamplingOptions(30, 120)
    metric = Metric(np.zeros(2), np.eye(2))
    begun = begin_chain(target, metric, 1, 5)
    assert begun is not None
    _, whole = advance(target, begun, 150, options)
    chain, parts = begun, []
    for length in (1, 13, 70, 46, 20):
        chain, block = advance(target, chain, length, options)
        chain = Chain.of_data(json.loads(json.dumps(chain.as_data())))
        parts.append(Block.of_data(json.loads(json.dumps(block.as_data())), 2))
    joined = Block.joined(parts)
    for name, values in vars(whole).items():
        np.testing.assert_array_equal(getattr(joined, name), values)


def test_windows_double_and_leave_the_ends_to_the_step() -> None:
    assert window_ends(500) == (87, 137, 237, 438)
    assert window_ends(400)[-1] == 350 and window_ends(20) == () and window_ends(0) == ()


def test_sample_covariances_of_the_identity_leave_a_metric_alone() -> None:
    rng = np.random.default_rng(0)
    for d, n in [(1, 25), (5, 50), (30, 25)]:
        assert learned_covariance(list(rng.standard_normal((n, d)))) is None
    learned = learned_covariance(list(rng.standard_normal((200, 2)) * [1.0, 5.0]))
    assert learned is not None and learned[1, 1] == pytest.approx(25, rel=0.3)


def test_chains_that_find_no_density_do_not_begin() -> None:
    nowhere = Known(lambda x: (-np.inf, np.full(1, np.nan)), 1)
    assert begin_chain(nowhere, Metric(np.zeros(1), np.eye(1)), 0, 1) is None
