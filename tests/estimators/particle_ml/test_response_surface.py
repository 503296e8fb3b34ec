"""Quadratics through values: exact ones are found, noise is told, and flat directions are no peak."""

from __future__ import annotations

import numpy as np
import pytest

from grisaille.estimators.particle_ml import RepeatedLikelihood, coefficient_count, design_points, fit_surface

H = np.array([[1.2, 0.3, 0.0], [0.3, 0.8, -0.2], [0.0, -0.2, 1.0]])
PEAK = np.array([0.4, -0.7, 0.2])


def values(z):
    off = z - PEAK
    return -12.0 - 0.5 * np.einsum("mi,ij,mj->m", off, H, off)


def test_a_quadratic_is_found_exactly():
    z = design_points(40, 3, 1.5, 1)
    surface = fit_surface(z, values(z), 1e-3)
    assert np.allclose(surface.step, PEAK, atol=1e-9) and np.allclose(surface.hessian, H, atol=1e-9)
    assert surface.is_peak and surface.noise < 1e-9
    assert np.abs(surface.step_error()).max() < 1e-15


def test_noise_of_the_maximum_is_as_large_as_it_is_told():
    """The covariance of the maximum over 60 sets of noise, within a third."""
    z, random, found = design_points(60, 3, 1.5, 1), np.random.default_rng(2), []
    for _ in range(60):
        surface = fit_surface(z, values(z) + 0.05 * random.standard_normal(len(z)), 0.05)
        found.append((surface.step, np.diag(surface.step_error())))
    steps, told = (np.array(part) for part in zip(*found, strict=True))
    assert np.abs(steps.mean(axis=0) - PEAK).max() < 0.03
    assert np.sqrt(told.mean(axis=0)) == pytest.approx(steps.std(axis=0), rel=0.34)


def test_points_without_a_likelihood_are_left_out():
    z = design_points(40, 3, 1.5, 1)
    y = values(z)
    y[::5] = -np.inf
    assert np.allclose(fit_surface(z, y, 1e-3).step, PEAK, atol=1e-9)
    y[coefficient_count(3) :] = -np.inf
    assert fit_surface(z, y, 1e-3) is None


def test_a_ridge_is_no_peak():
    z = design_points(40, 2, 1.5, 1)
    assert not fit_surface(z, -((z[:, 0] - 0.2) ** 2), 1e-3).is_peak


def test_designs_fill_a_ball():
    z = design_points(256, 3, 1.5, 4)
    size = np.linalg.norm(z, axis=1)
    assert size.max() <= 1.5 and size.min() > 0.15 and np.abs(z.mean(axis=0)).max() < 0.1


def test_means_of_likelihoods():
    """Not of logarithms; the error is that of the logarithm of the mean, by first order."""
    found = RepeatedLikelihood(np.log([1.0, 2.0, 3.0, 2.5]))
    assert found.log_likelihood == pytest.approx(np.log(8.5 / 4))
    assert found.error == pytest.approx(np.std([1, 2, 3, 2.5], ddof=1) / 2 / (8.5 / 4), rel=0.1)
    assert np.isnan(RepeatedLikelihood(np.array([-3.0])).error)
    assert RepeatedLikelihood(np.array([-3.0, -np.inf])).spread == np.inf
