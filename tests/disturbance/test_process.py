"""Processes of spectra: theory against closed forms, correlation, derivatives, formulas of parameters."""

from __future__ import annotations

import casadi as ca
import numpy as np
import pytest
from scipy.integrate import quad

from grisaille.disturbance import (
    Process,
    build_process,
    build_symbolic_process,
    correlation_matrix,
    factorize,
    group_correlated,
    make_transitions,
    start_root_symbolic,
    transition_symbolic,
)
from grisaille.errors import ModelError
from grisaille.model import (
    Constant,
    FlatDisturbance,
    Name,
    Spectrum,
    integrated,
    lowpass,
    matern12,
    matern32,
    matern52,
    quasi_periodic,
    rational,
    resonance,
    state_space,
    white,
)

LAGS = np.array([0.0, 0.1, 0.7, 2.0, 15.0])


def single(spectrum: Spectrum, scale: float = 1.0) -> Process:
    return build_process(["w"], [spectrum], [scale])


def pair(correlation: float = 0.5) -> Process:
    spectra = [lowpass(2.0), resonance(4.0, 0.1)]
    return build_process(["w[0]", "w[1]"], spectra, [0.6, 2.0], [[1, correlation], [correlation, 1]])


COVARIANCES = {
    "lowpass": (lowpass(2.0), lambda t: np.exp(-2 * t)),
    "matern12": (matern12(2.0), lambda t: np.exp(-t / 2)),
    "matern32": (matern32(2.0), lambda t: (1 + 3**0.5 * t / 2) * np.exp(-(3**0.5) * t / 2)),
    "matern52": (matern52(2.0), lambda t: (1 + (a := 5**0.5 * t / 2) + a**2 / 3) * np.exp(-a)),
    "quasi_periodic": (quasi_periodic(3.0, 2.0), lambda t: np.exp(-t / 2) * np.cos(2 * np.pi * t / 3)),
}


@pytest.mark.parametrize("name", COVARIANCES)
def test_covariance_functions_are_the_textbook_ones(name: str) -> None:
    spectrum, exact = COVARIANCES[name]
    assert np.allclose(single(spectrum).covariance_function(LAGS)[:, 0, 0], exact(LAGS), atol=1e-13)


@pytest.mark.parametrize(
    "spectrum",
    [lowpass(2.0, 3), resonance(4.0, 0.1), matern52(1.0), rational([1, 0.5], [1, 2, 3, 1]), quasi_periodic(3.0, 2.0)],
    ids=str,
)
def test_spectrum_integrates_to_the_variance(spectrum: Spectrum) -> None:
    process = single(spectrum, 0.6)
    power = quad(lambda w: process.spectral_density(w)[0, 0].real, 0, np.inf, limit=400, epsabs=1e-12)[0] / np.pi
    assert power == pytest.approx(process.stationary_variance()[0, 0], rel=1e-6)


def test_scale_multiplies() -> None:
    assert single(lowpass(2.0), 0.6).stationary_variance() == pytest.approx(
        0.36 * single(lowpass(2.0)).stationary_variance()
    )
    assert not single(lowpass(2.0), 0.0).C.any()


def test_correlated_components() -> None:
    """The cross-spectrum at zero frequency is correlation times the geometric mean, with both filters real there."""
    process = pair()
    density = process.spectral_density(0.0).real
    assert density[0, 1] == pytest.approx(0.5 * np.sqrt(density[0, 0] * density[1, 1]))
    forward, backward = process.covariance_function(0.3), process.covariance_function(-0.3)
    assert np.allclose(forward, backward.T)
    assert abs(forward[0, 1] - forward[1, 0]) > 1e-3


def test_diagonals_do_not_feel_the_correlation() -> None:
    alone = [single(lowpass(2.0), 0.6), single(resonance(4.0, 0.1), 2.0)]
    both = pair(0.9).covariance_function(LAGS)
    for i, one in enumerate(alone):
        assert np.allclose(both[:, i, i], one.covariance_function(LAGS)[:, 0, 0], atol=1e-15)


def test_perfect_correlation() -> None:
    process = build_process(["a", "b"], [lowpass(1.0)] * 2, [1.0, 3.0], [[1, 1], [1, 1]])
    assert np.allclose(process.stationary_variance(), 0.5 * np.array([[1, 3], [3, 9]]))


def test_white_noise_has_no_states() -> None:
    process = build_process(["a", "b"], [white(), white()], [2.0, 1.0], [[1, 0.5], [0.5, 1]])
    assert process.is_white
    assert np.allclose(process.spectral_density([0.0, 1e9]).real, [[4.0, 1.0], [1.0, 1.0]])
    assert np.all(np.isinf(np.diag(process.stationary_variance())))


def test_growing_variance_of_an_integrator() -> None:
    process = single(integrated(), 2.0)
    assert process.covariance(3.0, 1.0)[0, 0] == pytest.approx(4.0)
    assert process.covariance(1.0, 3.0)[0, 0] == pytest.approx(4.0)


def test_zero_start_grows_to_the_stationary_variance() -> None:
    process = single(lowpass(2.0, start="zero"))
    assert not process.start_covariance().any()
    assert process.covariance(0.5, 0.5)[0, 0] == pytest.approx(1 - np.exp(-2))
    assert process.covariance(50.0, 50.0)[0, 0] == pytest.approx(1)


def test_mixed_starts() -> None:
    process = build_process(["a", "b"], [integrated(), lowpass(2.0)], [1.0, 1.0])
    assert np.allclose(process.start_covariance(), np.diag([0.0, 1.0]))


def test_derivatives_come_from_the_states() -> None:
    """The variance of w' is −R''(0); resonances have one derivative of finite variance, low-passes none."""
    process = single(resonance(4.0, 0.1))
    rows = process.output_map(1)
    assert (rows @ process.start_covariance() @ rows.T)[0, 0] == pytest.approx(1 / (4 * 0.1 * 4))
    with pytest.raises(ModelError, match=r"differentiated 1 times, but derivative 2 is needed.*pole excess"):
        process.output_map(2)
    with pytest.raises(ModelError, match="disturbance w can be differentiated 0 times"):
        single(lowpass(1.0)).output_map(1)


def test_formulas_take_values_of_parameters() -> None:
    spectrum = resonance(Name("f"), Name("z"))
    process = build_process(["w"], [spectrum], [2 * Name("s")], values={"f": 4.0, "z": 0.1, "s": 0.3})
    assert np.allclose(process.A, single(resonance(4.0, 0.1)).A)
    assert process.C[0, 0] == pytest.approx(0.6)


def test_symbols_agree_with_numbers_and_differences() -> None:
    """F, chol Q and chol P of two correlated filters with a parameter in poles, correlation and scale."""
    spectra, scales = [lowpass(Name("b")), resonance(Name("b") * 2, 0.1)], [Name("b"), 1.0]
    correlation = [[1, Name("b") / 4], [Name("b") / 4, 1]]
    symbol = ca.SX.sym("b")

    def numbers(b: float) -> Process:
        return build_process(["u", "v"], spectra, scales, correlation, {"b": b})

    symbolic = build_symbolic_process(["u", "v"], spectra, scales, correlation, lambda _: symbol, {"b": 2.0})
    F, L = transition_symbolic(symbolic, numbers(2.0), 0.1, 0.1)
    formulas = ca.vertcat(
        *(ca.vec(ca.densify(m)) for m in (F, L, start_root_symbolic(symbolic, numbers(2.0)), symbolic.C))
    )
    evaluate = ca.Function("all", [symbol], [formulas, ca.jacobian(formulas, symbol)])

    def flat(b: float) -> np.ndarray:
        process = numbers(b)
        steps = make_transitions(process, [0.0, 0.1])
        matrices = (steps.F[0], steps.L[0], factorize(process.start_covariance()), process.C)
        return np.concatenate([m.ravel("F") for m in matrices])

    for b in (1.3, 2.0, 3.0):
        values, slopes = (v.full().ravel() for v in evaluate(b))
        assert np.allclose(values, flat(b), rtol=1e-10, atol=1e-14)
        assert np.allclose(slopes, (flat(b + 1e-4) - flat(b - 1e-4)) / 2e-4, rtol=1e-5, atol=1e-7)


def test_correlated_disturbances_of_a_model_are_grouped() -> None:
    def flat(name: str, *others: tuple[str, float]) -> FlatDisturbance:
        return FlatDisturbance(name, white(), Constant(1.0), tuple((o, Constant(c)) for o, c in others) or None)

    model = {d.name: d for d in (flat("v"), flat("w[0]", ("w[2]", 0.3)), flat("w[1]"), flat("w[2]", ("w[0]", 0.3)))}
    groups = group_correlated(model)
    assert [[d.name for d in g] for g in groups] == [["v"], ["w[0]", "w[2]"], ["w[1]"]]
    process = build_process(["w[0]", "w[2]"], [white()] * 2, [1, 1], correlation_matrix(groups[1]))
    assert np.allclose(process.D @ process.D.T, [[1, 0.3], [0.3, 1]])


@pytest.mark.parametrize(
    ("correlation", "words"),
    [
        ([[1, 0.9, -0.9], [0.9, 1, 0.9], [-0.9, 0.9, 1]], "smallest eigenvalue is -0.8"),
        (np.eye(2), "must be 3 × 3"),
        (2 * np.eye(3), "ones on its diagonal"),
        ([[1, 0.5, 0], [0, 1, 0], [0, 0, 1]], "symmetric"),
    ],
)
def test_impossible_correlations_are_refused(correlation: object, words: str) -> None:
    with pytest.raises(ModelError, match=words):
        build_process(["a", "b", "c"], [lowpass(1.0)] * 3, [1.0] * 3, correlation)


def test_white_and_filtered_noise_do_not_mix() -> None:
    with pytest.raises(ModelError, match="cannot be correlated"):
        build_process(["a", "b"], [white(), lowpass(1.0)], [1.0, 1.0], np.eye(2))


def test_unstable_parameters_are_named() -> None:
    process = build_process(["w"], [state_space([[Name("a")]], [1], [1])], [1.0], values={"a": 0.2})
    with pytest.raises(ModelError, match=r"disturbance w has no stationary distribution.*0\.2"):
        process.start_covariance()
