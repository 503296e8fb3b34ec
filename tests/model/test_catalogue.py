"""The catalogue of spectra: what each filter is, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from grisaille.disturbance import build_process
from grisaille.errors import ModelError
from grisaille.model import (
    Name,
    Spectrum,
    catalogue,
    double_integrated,
    from_spectral_density,
    matern12,
    matern32,
    matern52,
    ornstein_uhlenbeck,
    periodic,
    quasi_periodic,
)

OMEGA = np.array([0.0, 0.3, 1.0, 2.0, 30.0])


def density(spectrum: Spectrum, values: dict[str, float] | None = None) -> np.ndarray:
    return build_process(["w"], [spectrum], [1.0], values=values).spectral_density(OMEGA)[:, 0, 0].real


@pytest.mark.parametrize("name", catalogue.__all__)
def test_each_says_when_to_use_it(name: str) -> None:
    assert "Use it when" in (getattr(catalogue, name).__doc__ or "")


def test_ornstein_uhlenbeck() -> None:
    assert np.allclose(density(ornstein_uhlenbeck(2.0)), 1 / (OMEGA**2 + 4))


@pytest.mark.parametrize(("spectrum", "excess"), [(matern12(2.0), 1), (matern32(2.0), 2), (matern52(2.0), 3)])
def test_matern_processes_have_unit_variance_and_their_pole_excess(spectrum: Spectrum, excess: int) -> None:
    assert spectrum.pole_excess == excess and spectrum.is_stationary
    assert build_process(["w"], [spectrum], [1.0]).stationary_variance()[0, 0] == pytest.approx(1)


def test_wandering_ones_start_from_zero() -> None:
    for spectrum, excess in ((double_integrated(), 2), (periodic(2.0), 2)):
        assert spectrum.start == "zero" and not spectrum.is_stationary and spectrum.pole_excess == excess


def test_parameters_may_stand_inside() -> None:
    values = {"T": 3.0, "tau": 2.0}
    for spectrum, numbers in (
        (matern52(Name("tau")), matern52(2.0)),
        (quasi_periodic(Name("T"), Name("tau")), quasi_periodic(3.0, 2.0)),
        (ornstein_uhlenbeck(1 / Name("tau")), ornstein_uhlenbeck(0.5)),
    ):
        assert np.allclose(density(spectrum, values), density(numbers))
    assert density(periodic(Name("T")), values)[1] == pytest.approx(density(periodic(3.0))[1])


@pytest.mark.parametrize(
    ("num", "den"),
    [
        ([2.0], [1.0, 3.0]),
        ([1.0], [1.0, 0.0, 0.0, 16.0]),
        ([1.0, 1.0], [1.0, -1.0, 0.5, 3.0]),
        ([1.0, 0.0], [1.0, 2.0, 1.0]),
        ([1.0, -2.0, 1.0], [1.0, 0.0, 0.0, 1.0]),
        ([0.0, 3.0, -12.0, 12.0, 0.0], [2.0, 1.0, 5.0, 1.0, 1.0]),
    ],
)
def test_spectral_factorisation(num: list[float], den: list[float]) -> None:
    """|G(iω)|² is what was asked for, zeros on the axis included, and the filter is stable."""
    spectrum = from_spectral_density(num, den)
    exact = np.polyval(num, OMEGA**2) / np.polyval(den, OMEGA**2)
    assert np.allclose(density(spectrum), exact, rtol=1e-6, atol=1e-12)
    assert spectrum.is_stationary


@pytest.mark.parametrize(
    ("num", "den", "words"),
    [
        ([1.0, -1.0], [1.0, 0.0, 1.0], "negative, for example at ω = 0.7071"),
        ([-1.0], [1.0, 1.0], "negative"),
        ([1.0], [1.0, -1.0], "infinite at ω = 1"),
        ([1.0], [1.0, 0.0], "infinite at ω = 0"),
        ([1.0, 1.0], [1.0, 1.0], r"does not vanish at high frequencies \(degree 1 over 1"),
        ([0.0], [1.0, 1.0], "num has no coefficient"),
        ([Name("k")], [1.0, 1.0], r"num must hold numbers.*rational\(num, den\)"),
    ],
)
def test_impossible_spectra_are_refused(num: list[float], den: list[float], words: str) -> None:
    with pytest.raises(ModelError, match=words):
        from_spectral_density(num, den)


def test_times_and_rates_must_be_positive() -> None:
    with pytest.raises(ModelError, match="matern32: timescale must be positive, got -1"):
        matern32(-1.0)
    with pytest.raises(ModelError, match="periodic: period must be positive, got 0"):
        periodic(0.0)
