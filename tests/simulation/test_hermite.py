"""Hermite polynomials: ends are met, polynomials of the right degree are reproduced, derivatives belong together."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.polynomial import Polynomial

from grisaille.simulation.ensembles import mixing, piece_polynomials


@pytest.mark.parametrize("d", [0, 1, 2, 3])
def test_polynomials_are_reproduced_with_all_derivatives(d):
    p = Polynomial(np.random.default_rng(d).normal(size=2 * d + 2))
    h, derivatives = 0.3, [p.deriv(j) if j else p for j in range(d + 1)]
    ends = [q(t) for t in (0.0, h) for q in derivatives]
    for fraction in (0.0, 0.25, 0.5, 1.0):
        found = mixing(d, h, fraction) @ ends
        np.testing.assert_allclose(found, [q(fraction * h) for q in derivatives], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("d", [0, 2])
def test_pieces_take_the_values_of_both_ends(d):
    random = np.random.default_rng(7)
    values, h = random.normal(size=(4, 6, d + 1)), random.uniform(0.1, 2.0, 5)
    for order in range(d + 1):
        pieces = piece_polynomials(values[:, :-1], values[:, 1:], h, order)
        np.testing.assert_allclose(pieces[..., 0], values[:, :-1, order], rtol=1e-12)
        ends = (pieces * h[:, None] ** np.arange(pieces.shape[-1])).sum(axis=-1)
        np.testing.assert_allclose(ends, values[:, 1:, order], rtol=1e-9, atol=1e-9)
    fraction = 0.4
    at = (pieces * (fraction * h[:, None]) ** np.arange(pieces.shape[-1])).sum(axis=-1)
    mixed = mixing(d, h[2], fraction) @ np.concatenate([values[1, 2], values[1, 3]])
    np.testing.assert_allclose(at[1, 2], mixed[d], rtol=1e-9)
