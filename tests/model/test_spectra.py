"""Spectra and priors: their realizations and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import signal

import grisaille as gr
from grisaille import spectra
from grisaille.errors import ModelError
from grisaille.model import Name
from grisaille.model.lowering import evaluate

b = Name("b")


def numbers(matrix, values):
    return np.array([evaluate(row, values) for row in matrix])


def transfer(spectrum, s, values):
    A, B, C = (numbers(m, values) for m in spectrum.state_space())
    return (C @ np.linalg.solve(s * np.eye(len(A)) - A, B))[0, 0]


@pytest.mark.parametrize(
    ("spectrum", "expected", "excess"),
    [
        (spectra.lowpass(2.0), lambda s: 2 / (s + 2), 1),
        (spectra.lowpass(b, order=3), lambda s: (0.7 / (s + 0.7)) ** 3, 3),
        (spectra.resonance(frequency=4.0, damping=0.1), lambda s: 1 / (s**2 + 0.8 * s + 16), 2),
        (spectra.integrated(), lambda s: 1 / s, 1),
        (spectra.rational([1, 2], [2, 3, 4, b]), lambda s: (s + 2) / (2 * s**3 + 3 * s**2 + 4 * s + 0.7), 2),
        (spectra.rational([0, 1], [1, b]), lambda s: 1 / (s + 0.7), 1),
        (spectra.state_space([[0, 1], [-b, -1]], [0, 1], [1, 0]), lambda s: 1 / (s**2 + s + 0.7), 2),
        (spectra.state_space([[-1]], [[2]], [[3]]), lambda s: 6 / (s + 1), 1),
    ],
)
def test_realizations(spectrum, expected, excess):
    s = 0.3 + 1.7j
    assert transfer(spectrum, s, {"b": 0.7}) == pytest.approx(expected(s), rel=1e-12)
    assert spectrum.pole_excess == excess
    assert spectrum.order == len(spectrum.state_space()[0])


def test_canonical_form_agrees_with_scipy():
    num, den = [1.0, 2.0], [1.0, 3.0, 5.0, 4.0]
    A, B, C, _ = signal.tf2ss(num, den)
    ours = [numbers(m, {}) for m in spectra.rational(num, den).state_space()]
    for k in range(4):
        markov = (ours[2] @ np.linalg.matrix_power(ours[0], k) @ ours[1])[0, 0]
        assert markov == pytest.approx((C @ np.linalg.matrix_power(A, k) @ B)[0, 0])


def test_white_noise_has_no_states():
    white = spectra.white()
    assert white.is_white and white.pole_excess == 0 and white.state_space() == ([], [], [])


def test_stationarity():
    assert spectra.lowpass(1.0).is_stationary and spectra.lowpass(b).is_stationary
    assert not spectra.integrated().is_stationary
    assert not spectra.resonance(2.0, 0.0).is_stationary
    assert spectra.lowpass(1.0, start="zero").start == "zero"


def test_texts():
    assert str(spectra.resonance(frequency=4.0, damping=b)) == "resonance(frequency=4, damping=b)"
    assert str(spectra.lowpass(2.0, order=2, start="zero")) == "lowpass(bandwidth=2, order=2, start='zero')"
    assert str(spectra.rational([1], [1, b])) == "rational(num=[1], den=[1, b])"


@pytest.mark.parametrize(
    ("action", "words"),
    [
        (lambda: spectra.lowpass(-1.0), "lowpass: bandwidth must be positive, got -1"),
        (lambda: spectra.lowpass(1.0, order=0), "order must be a whole number from 1"),
        (lambda: spectra.resonance(0.0, 0.1), "frequency must be positive"),
        (lambda: spectra.resonance(1.0, -0.1), "damping must be zero or positive"),
        (lambda: spectra.rational([1, 2], [1, 2]), "improper: the numerator has degree 1 and the denominator 1"),
        (lambda: spectra.rational([0.0], [1, 2]), "no coefficient that differs from zero"),
        (lambda: spectra.rational([1], [1, -2]), r"unstable: a pole lies at 2\+0j"),
        (lambda: spectra.state_space(np.eye(2), [1], [1, 0]), "B and C must have n entries"),
        (lambda: spectra.state_space([[-1, 0], [0, -1]], [1, 0], [0, 1]).pole_excess, "does not depend on the noise"),
        (lambda: spectra.lowpass(1.0, start="warm"), "start must be 'stationary' or 'zero'"),
        (lambda: gr.Normal(0.0, -1.0), "Normal: std must be positive"),
        (lambda: gr.Normal("a", 1.0), "mean must be a finite number"),
        (lambda: gr.LogNormal(0.0, 1.0), "LogNormal: median must be positive"),
        (lambda: gr.Uniform(2.0, 1.0), "low = 2 must be below high = 1"),
        (lambda: gr.MultivariateNormal(["a"], [0.0, 1.0], np.eye(2)), "1 names need a mean of shape"),
        (lambda: gr.MultivariateNormal(["a", "b"], [0, 1], [[1, 2], [2, 1]]), "not positive definite"),
        (lambda: gr.MultivariateNormal(["a", "b"], [0, 1], [[1, 0.1], [0.2, 1]]), "not symmetric"),
        (lambda: gr.MultivariateNormal("ab", [0, 1], np.eye(2)), "names must be a list of parameter names"),
    ],
)
def test_refusals(action, words):
    with pytest.raises(ModelError, match=words):
        action()


def test_priors_are_plain_data():
    prior = gr.MultivariateNormal(["a", "b"], np.array([0, 1]), np.eye(2))
    assert prior == gr.MultivariateNormal(("a", "b"), (0.0, 1.0), ((1.0, 0.0), (0.0, 1.0)))
    assert hash(gr.Normal(1, 2)) == hash(gr.Normal(1.0, 2.0))
