"""Paths on a grid: exact recursion, statistics, independence of order and number, smoothness in parameters."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest
from disturbance.headers import pointer

from grisaille.disturbance import Process, build_process, make_transitions, normals, sample_increments, sample_path
from grisaille.errors import DataError, ModelError
from grisaille.model import (
    Spectrum,
    double_integrated,
    integrated,
    lowpass,
    matern12,
    matern32,
    matern52,
    periodic,
    quasi_periodic,
    rational,
    resonance,
    white,
)
from grisaille.numerics import stream_key

GRID = np.arange(9) * 0.25
UNEVEN = np.array([0.0, 0.01, 0.5, 0.51, 2.0, 2.3])
STATIONARY = [
    lowpass(2.0), lowpass(2.0, 3), resonance(4.0, 0.1), rational([1, 0.5], [1, 2, 3, 1]),
    matern12(1.0), matern32(1.0), matern52(1.0), quasi_periodic(1.5, 1.0),
]  # fmt: skip
WANDERING = [integrated(), double_integrated(), periodic(1.5), lowpass(2.0, start="zero")]


def single(spectrum: Spectrum, scale: float = 1.0) -> Process:
    return build_process(["w"], [spectrum], [scale])


def test_first_order_recursion_by_hand() -> None:
    b, h = 2.0, 0.25
    z = normals(5, "model", "w", 3, GRID.size)[..., 0]
    w = z[:, 0] * np.sqrt(b / 2)
    x = sample_path(single(lowpass(b)), GRID, 5, 3, "model")[..., 0]
    for k in range(GRID.size):
        assert np.allclose(x[:, k], w, atol=1e-14)
        if k + 1 < GRID.size:
            w = np.exp(-b * h) * w + np.sqrt(b / 2 * (1 - np.exp(-2 * b * h))) * z[:, k + 1]


def test_without_noise_the_start_decays() -> None:
    process = Process(("w",), np.array([[-2.0]]), np.zeros((1, 1)), np.eye(1), np.zeros((1, 1)), (1,), ("zero",))
    x = sample_path(process, GRID, 1, 2, start=[3.0])[..., 0]
    assert np.allclose(x, 3 * np.exp(-2 * GRID), atol=1e-15)


@pytest.mark.parametrize("spectrum", [*STATIONARY, *WANDERING], ids=str)
@pytest.mark.parametrize("times", [GRID, UNEVEN], ids=["even", "uneven"])
def test_covariances_agree_with_theory(spectrum: Spectrum, times: np.ndarray) -> None:
    """20 000 paths, seed 11: every entry within 5 of its standard deviations √((c_ii c_jj + c_ij²)/M)."""
    process, M = single(spectrum, 0.7), 20_000
    w = sample_path(process, times, 11, M)[..., :] @ process.C.T
    empirical = w[..., 0].T @ w[..., 0] / M
    theory = np.array([[process.covariance(t, s)[0, 0] for s in times] for t in times])
    margin = 5 * np.sqrt((np.outer(np.diag(theory), np.diag(theory)) + theory**2) / M)
    assert np.all(np.abs(empirical - theory) <= margin + 1e-15)


@pytest.mark.parametrize("spectrum", STATIONARY, ids=str)
def test_periodogram_agrees_with_theory(spectrum: Spectrum) -> None:
    """800 paths of 128 points, seed 12: each bin within 5 standard deviations of its exact expectation.

    The expectation Σ (1 − |k|/N) R(kh) e^{−iωkh} counts leakage and aliasing; one bin's deviation is its mean / √M.
    """
    N, M, h = 128, 800, 0.1
    process = single(spectrum)
    w = (sample_path(process, np.arange(N) * h, 12, M) @ process.C.T)[..., 0]
    measured = np.mean(np.abs(np.fft.rfft(w, axis=1)) ** 2, axis=0)[1:-1] / N
    k = np.arange(1 - N, N)
    weighted = (1 - np.abs(k) / N) * process.covariance_function(k * h)[:, 0, 0]
    expected = np.array([np.sum(weighted * np.cos(2 * np.pi * j * k / N)) for j in range(1, N // 2)])
    assert np.all(np.abs(measured / expected - 1) < 5 / np.sqrt(M))


def test_cross_covariance_agrees_with_theory() -> None:
    """20 000 paths, seed 13, margin of 5 standard deviations."""
    spectra = [lowpass(2.0), resonance(4.0, 0.1)]
    process, M = build_process(["a", "b"], spectra, [1.0, 4.0], [[1, 0.8], [0.8, 1]]), 20_000
    w = sample_path(process, GRID[:3], 13, M) @ process.C.T
    for i, j in ((0, 0), (0, 2), (2, 0)):
        empirical, theory = w[:, i].T @ w[:, j] / M, process.covariance_function(GRID[i] - GRID[j])
        deviation = np.sqrt(np.diag(process.stationary_variance()))
        assert np.all(np.abs(empirical - theory) < 5 * np.sqrt(2) * np.outer(deviation, deviation) / np.sqrt(M))


def test_digits_do_not_depend_on_number_or_order() -> None:
    process = single(resonance(4.0, 0.1))
    many = sample_path(process, GRID, 1, 50)
    assert np.array_equal(sample_path(process, GRID, 1, [31, 7]), many[[31, 7]])
    assert np.array_equal(sample_path(process, GRID[:4], 1, 50), many[:, :4])


def test_going_on_from_a_kept_state() -> None:
    process = single(resonance(4.0, 0.1))
    whole = sample_path(process, GRID, 1, 5)
    assert np.array_equal(sample_path(process, GRID[4:], 1, 5, start=whole[:, 4], first=4), whole[:, 4:])


def test_purposes_and_seeds_give_other_paths() -> None:
    process = single(lowpass(1.0))
    paths = [sample_path(process, GRID, s, 1, p) for s in (1, 2) for p in ("data", "model", "bootstrap")]
    assert np.unique(np.concatenate(paths)).size == 6 * GRID.size


def test_antithetic_paths_mirror_each_other() -> None:
    x = sample_path(single(resonance(4.0, 0.1)), GRID, 1, 4, antithetic=True)
    assert np.array_equal(x[1::2], -x[::2])


def test_paths_are_smooth_in_parameters() -> None:
    """Common random numbers: second differences in the frequency shrink with the square of its step."""

    def curvature(step: float) -> float:
        values = [sample_path(single(resonance(4.0 + d, 0.1)), GRID, 1, 20) for d in (-step, 0.0, step)]
        return float(np.max(np.abs(values[0] - 2 * values[1] + values[2])))

    assert curvature(1e-2) / curvature(5e-3) == pytest.approx(4, rel=0.01)


def test_increments_of_white_noise() -> None:
    """Covariance D Dᵀ h; 20 000 paths, seed 14, margin of 5 standard deviations."""
    process = build_process(["a", "b"], [white()] * 2, [2.0, 1.0], [[1, 0.5], [0.5, 1]])
    M = 20_000
    increments = sample_increments(process, UNEVEN, 14, M)
    for k, h in enumerate(np.diff(UNEVEN)):
        empirical = increments[:, k].T @ increments[:, k] / M
        assert np.all(
            np.abs(empirical / h - [[4, 1], [1, 1]]) < 5 * np.sqrt(2) * np.array([[4, 2], [2, 1]]) / np.sqrt(M)
        )


def test_c_gives_the_same_paths(native: ctypes.CDLL) -> None:
    process = build_process(["a", "b"], [lowpass(2.0), resonance(4.0, 0.1)], [1.0, 1.0], [[1, 0.5], [0.5, 1]])
    times = np.arange(1001) * 0.01
    ours, steps = sample_path(process, times, 3, [17])[0], make_transitions(process, times)
    theirs = np.zeros_like(ours)
    theirs[0] = ours[0]
    key = [ctypes.c_uint32(k) for k in stream_key(3, "data", "a")]
    sizes = ctypes.c_uint32(17), ctypes.c_long(3)
    native.path(*key, *sizes, pointer(steps.F[0]), pointer(steps.L[0]), ctypes.c_long(1000), pointer(theirs))
    assert np.array_equal(ours, theirs)


def test_refusals() -> None:
    process = single(lowpass(1.0))
    with pytest.raises(DataError, match="white noise has no value at an instant"):
        sample_path(single(white()), GRID, 1)
    with pytest.raises(DataError, match="not white"):
        sample_increments(process, GRID, 1)
    with pytest.raises(DataError, match=r"the start has shape \(2,\)"):
        sample_path(process, GRID, 1, 3, start=[1.0, 2.0])
    with pytest.raises(DataError, match="grid point 4 needs the state there"):
        sample_path(process, GRID, 1, 3, first=4)
    with pytest.raises(ModelError, match="no stationary distribution"):
        sample_path(single(resonance(4.0, 0.0)), GRID, 1)
