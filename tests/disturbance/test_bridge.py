"""Bridges: closed forms, order-free access, covariances between grid points, correlation, the C twin."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest
from disturbance.headers import pointer

from grisaille.disturbance import (
    BridgedPath,
    Process,
    build_bridge,
    build_process,
    choose_depth,
    discretize,
    sample_bridged_path,
    sample_path,
)
from grisaille.errors import DataError
from grisaille.model import Spectrum, double_integrated, integrated, lowpass, matern52, periodic, resonance
from grisaille.numerics import stream_key

GRID = np.array([0.0, 0.4, 0.8, 1.3])
OFF_GRID = np.array([0.03, 0.2, 0.25, 0.4, 0.61, 0.9, 1.29])


def single(spectrum: Spectrum) -> Process:
    return build_process(["w"], [spectrum], [1.0])


def correlated() -> Process:
    spectra = [lowpass(2.0), resonance(4.0, 0.1)]
    return build_process(["a", "b"], spectra, [1.0, 4.0], [[1, 0.8], [0.8, 1]])


PROCESSES = {
    "integrated": single(integrated()),
    "double_integrated": single(double_integrated()),
    "lowpass": single(lowpass(2.0)),
    "stiff lowpass": single(lowpass(1e3)),
    "resonance": single(resonance(4.0, 0.1)),
    "matern52": single(matern52(0.5)),
    "periodic": single(periodic(1.0)),
    "correlated": correlated(),
    "perfectly correlated": build_process(["a", "b"], [lowpass(1.0)] * 2, [1.0, 3.0], [[1, 1], [1, 1]]),
}


def test_brownian_bridge() -> None:
    """Middle: half of either end, variance a quarter of the length; leaf: the straight line."""
    bridge = build_bridge(single(integrated()), 0.8, depth=4)
    assert np.allclose(bridge.gain, 0.5) and np.allclose(bridge.transition, 1.0)
    assert np.allclose(bridge.root[:, 0, 0] ** 2, 0.8 * 0.5 ** np.arange(4) / 4, rtol=1e-13)
    assert np.allclose(bridge.leaf_gain[:2, 0, 0], [0, 1], atol=1e-14)


def test_first_order_bridge() -> None:
    """Mean of the Ornstein–Uhlenbeck bridge: (x₀ sinh b(h−s) + x₁ sinh bs)/sinh bh; middle variance tanh(bh/2)·b/2."""
    b, h = 2.0, 0.2
    bridge = build_bridge(single(lowpass(b)), h, depth=0)
    f = np.linspace(0, 1, 11)
    ends = np.full((11, 1), 1.5), np.full((11, 1), -0.7)
    mean = bridge.states(None, 0, 0, f, *ends)[:, 0]  # type: ignore[arg-type]
    assert np.allclose(mean, (1.5 * np.sinh(b * h * (1 - f)) - 0.7 * np.sinh(b * h * f)) / np.sinh(b * h), atol=1e-13)
    variance = build_bridge(single(lowpass(b)), h, depth=1).root[0, 0, 0] ** 2
    assert variance == pytest.approx(b / 2 * np.tanh(b * h / 2), rel=1e-12)


def test_integral_of_a_wiener_process_is_a_cubic_between_ends() -> None:
    """Its conditional mean given position and velocity at both ends is the Hermite cubic."""
    bridge = build_bridge(single(double_integrated()), 0.5, depth=0)
    f = np.linspace(0, 1, 11)
    t = 0.5 * f
    left, right = np.array([1.0, -2.0]), np.array([1 - 2 * 0.5 + 0.3 * 0.25 + 0.7 * 0.125, -2 + 0.6 * 0.5 + 2.1 * 0.25])
    states = bridge.states(None, 0, 0, f, np.tile(left, (11, 1)), np.tile(right, (11, 1)))  # type: ignore[arg-type]
    assert np.allclose(states[:, 0], 1 - 2 * t + 0.3 * t**2 + 0.7 * t**3, atol=1e-13)
    assert np.allclose(states[:, 1], -2 + 0.6 * t + 2.1 * t**2, atol=1e-12)


@pytest.mark.parametrize("name", PROCESSES)
def test_grid_values_are_those_of_the_path(name: str) -> None:
    path = sample_bridged_path(PROCESSES[name], GRID, 1, 4)
    assert np.array_equal(path.states, sample_path(PROCESSES[name], GRID, 1, 4))
    assert np.allclose(path.states_at(GRID), path.states, rtol=1e-10, atol=1e-12 * np.abs(path.states).max())


@pytest.mark.parametrize("name", ["lowpass", "correlated", "double_integrated"])
def test_thousands_of_requests_in_any_order(name: str) -> None:
    """4000 instants asked together, in another order, in scattered groups and one by one: the same bits."""
    path = sample_bridged_path(PROCESSES[name], GRID, 2, 2)
    random = np.random.default_rng(3)
    instants = random.uniform(0, 1.3, 4000)
    together = path.states_at(instants)
    order = random.permutation(4000)
    assert np.array_equal(path.states_at(instants[order]), together[:, order])
    for group in np.array_split(order, 40):
        assert np.array_equal(path.states_at(instants[group]), together[:, group])
    again = sample_bridged_path(PROCESSES[name], GRID, 2, [1])
    for i in order[:50]:
        assert np.array_equal(again.states_at(instants[[i]])[0], together[1, [i]])


@pytest.mark.parametrize("name", PROCESSES)
def test_covariances_between_grid_points_agree_with_theory(name: str) -> None:
    """20 000 paths, seed 21: all pairs of instants, components and grid points within 5 standard deviations."""
    process, M = PROCESSES[name], 20_000
    times = np.sort(np.concatenate([OFF_GRID, GRID[1:]]))
    path = sample_bridged_path(process, GRID, 21, M, tolerance=0.02)
    w = path.at(times).reshape(M, -1)
    theory = np.block([[process.covariance(t, s) for s in times] for t in times])
    margin = 5 * np.sqrt((np.outer(np.diag(theory), np.diag(theory)) + theory**2) / M)
    # leaves keep their mean: tolerance² = 4e-4 of the variance may be missing
    missing = 4e-4 * np.max(np.diag(theory))
    assert np.all(np.abs(w.T @ w / M - theory) < margin + missing)


def test_derivatives_between_grid_points_are_slopes() -> None:
    path = sample_bridged_path(single(resonance(4.0, 0.1)), GRID, 1, 3, depth=2)
    t, d = np.linspace(0.05, 1.25, 40), 1e-5
    slopes = (path.at(t + d) - path.at(t - d)) / (2 * d)
    assert np.allclose(path.at(t, derivative=1), slopes, atol=1e-7)


@pytest.mark.parametrize("order", [1, 2, 3, 6, 8])
def test_paths_are_continuous_at_grid_points_and_leaves(order: int) -> None:
    path = sample_bridged_path(single(lowpass(2.0, order)), GRID, 1, 5, depth=3)
    edges = np.concatenate([GRID[1:-1], 0.4 * np.arange(1, 8) / 8])
    assert np.max(np.abs(path.at(edges) - path.at(edges - 1e-14))) < 1e-12


@pytest.mark.parametrize("name", ["lowpass", "resonance", "correlated"])
def test_pieces_are_the_path(name: str) -> None:
    path = sample_bridged_path(PROCESSES[name], GRID, 1, 3, depth=3)
    breaks, pieces = path.pieces()
    assert pieces.shape[:3] == (3, 24, len(path.process.names))
    t = np.random.default_rng(1).uniform(0, 1.3, 200)
    segment = np.searchsorted(breaks, t, side="right") - 1
    powers = (t - breaks[segment])[:, None, None] ** np.arange(pieces.shape[-1])
    assert np.allclose(np.sum(pieces[:, segment] * powers, axis=-1), path.at(t), atol=1e-11)


def test_pieces_of_a_derivative_are_derivatives_of_pieces() -> None:
    path = sample_bridged_path(PROCESSES["resonance"], GRID, 1, 2, depth=1)
    (breaks, plain), slope = path.pieces(), path.pieces(derivative=1)[1]
    powers = np.arange(plain.shape[-1])
    weight = (np.diff(breaks)[:, None] ** powers)[:, None, :-1]
    assert np.allclose((plain * powers)[..., 1:] * weight, slope[..., :-1] * weight, atol=1e-12)


def test_depth_is_the_first_below_the_tolerance() -> None:
    """A Wiener process over h halves its bridge's variance at each level: √(h/4·2^{−l}) against √h."""
    assert choose_depth(single(integrated()), 0.3, 2.0**-5) == 8
    assert choose_depth(single(resonance(4.0, 0.1)), 0.01, 1e-3) == 0
    assert choose_depth(single(lowpass(1.0)), 1e4, 1e-2) > 13


def test_pendulum_disturbance_hardly_moves_between_points() -> None:
    """At a step of 0.01 the bridge of 1/(s² + 0.8s + 16) deviates by 4e-4 of the stationary deviation."""
    process = single(resonance(4.0, 0.1))
    root = build_bridge(process, 0.01, depth=1).root[0]
    share = np.linalg.norm(process.C @ root) / np.sqrt(process.stationary_variance()[0, 0])
    assert share == pytest.approx(4e-4, rel=0.2)


def test_refining_the_tolerance_keeps_the_path() -> None:
    """Deeper trees add detail to the same path: the difference is of the order of the coarse tolerance."""
    t = np.linspace(0, 1.3, 500)
    coarse, fine = (sample_bridged_path(single(lowpass(2.0)), GRID, 1, 3, tolerance=e).at(t) for e in (3e-2, 1e-3))
    assert 0 < np.sqrt(np.mean((coarse - fine) ** 2)) < 0.05


def test_antithetic_paths_mirror_each_other_between_points() -> None:
    path = sample_bridged_path(single(lowpass(2.0)), GRID, 1, 4, antithetic=True)
    w = path.at(OFF_GRID)
    assert np.array_equal(w[1::2], -w[::2])


def test_data_and_model_have_other_bridges() -> None:
    """Also when they share grid values: the purpose is part of every number drawn."""
    data, model = (sample_bridged_path(single(lowpass(2.0)), GRID, 1, 1, p) for p in ("data", "model"))
    shared = BridgedPath(**{**vars(model), "states": data.states})
    assert np.all(np.abs(shared.at([0.2, 0.6]) - data.at([0.2, 0.6])) > 1e-6)


def test_uneven_grids_have_one_bridge_for_each_step() -> None:
    assert len(sample_bridged_path(single(lowpass(2.0)), GRID, 1).bridges) == 2


@pytest.mark.parametrize("name", ["lowpass", "correlated", "matern52"])
def test_c_gives_the_same_states(native: ctypes.CDLL, name: str) -> None:
    grid = np.arange(6) * 0.4
    path = sample_bridged_path(PROCESSES[name], grid, 4, [9], "model")
    bridge, n = path.bridges[0], path.states.shape[-1]
    cells = np.random.default_rng(1).integers(0, 5, 500).astype(np.dtype(ctypes.c_long))
    fractions = np.random.default_rng(2).uniform(0, 1, 500)
    ends = path.states[0][cells], path.states[0][cells + 1]
    ours = bridge.states(path.stream, 9, cells, fractions, *ends)
    theirs = np.empty_like(ours)
    parts = (bridge.transition, bridge.gain, bridge.root, bridge.leaf_transition, bridge.leaf_gain)
    matrices = [np.ascontiguousarray(m) for m in (*parts, path.states[0])]
    key = [ctypes.c_uint32(k) for k in (*stream_key(4, "model", path.process.names[0]), 9)]
    sizes = [ctypes.c_long(i) for i in (n, bridge.depth, len(bridge.leaf_gain) - 1)]
    native.bridged(
        *key, *sizes, *map(pointer, matrices), ctypes.c_long(500), pointer(cells), pointer(fractions), pointer(theirs)
    )
    assert np.array_equal(ours, theirs)


def test_leaf_polynomials_agree_with_the_conditional_mean() -> None:
    """Against K = Q(s) F(h−s)ᵀ Q(h)⁻¹ computed at the instant itself."""
    process, h = correlated(), 0.1
    bridge = build_bridge(process, h, depth=0)
    for f in (0.1, 0.5, 0.77):
        F, Q = discretize(process.A, process.intensity, np.array([f * h, h - f * h, h]))
        K = Q[0] @ F[1].T @ np.linalg.inv(Q[2])
        powers = (f ** np.arange(len(bridge.leaf_gain)))[:, None, None]
        assert np.allclose(np.sum(bridge.leaf_gain * powers, axis=0), K, atol=1e-10)
        assert np.allclose(np.sum(bridge.leaf_transition * powers, axis=0), F[0], atol=1e-13)


def test_refusals() -> None:
    path = sample_bridged_path(single(lowpass(2.0)), GRID, 1)
    with pytest.raises(DataError, match=r"disturbance w was asked for at t = -0.1 … 0.5, but its grid spans 0 … 1.3"):
        path.at([0.5, -0.1])
    with pytest.raises(DataError, match="Use a deeper bridge"):
        build_bridge(single(lowpass(100.0)), 1.0, depth=2)
    with pytest.raises(DataError, match="needs a tolerance above zero"):
        choose_depth(single(lowpass(1.0)), 1.0, 0.0)
