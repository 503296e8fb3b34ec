"""Pictures of spectra: three panels, and the paths drawn are those of the process."""

from __future__ import annotations

import numpy as np
import pytest

import grisaille as gr
from grisaille.errors import ModelError
from grisaille.reporting import plot_spectrum

CATALOGUE = [
    gr.spectra.lowpass(2.0, order=2),
    gr.spectra.resonance(4.0, 0.1),
    gr.spectra.integrated(),
    gr.spectra.double_integrated(),
    gr.spectra.matern32(1.0),
    gr.spectra.quasi_periodic(2.0, 5.0),
    gr.spectra.rational([1.0, 2.0], [1.0, 3.0, 2.0]),
]


@pytest.mark.parametrize("spectrum", CATALOGUE, ids=str)
def test_three_panels(spectrum) -> None:
    figure = plot_spectrum(spectrum)
    assert [len(axes.lines) > 0 for axes in figure.axes] == [True] * 3
    assert len(figure.axes[2].lines) == 4


def test_variance_of_what_is_drawn() -> None:
    """Matérn processes have variance one: the covariance starts there."""
    figure = plot_spectrum(gr.spectra.matern52(0.5), scale=3.0)
    assert figure.axes[1].lines[0].get_ydata()[0] == pytest.approx(9.0, rel=1e-10)
    assert np.isfinite(figure.axes[2].lines[0].get_ydata()).all()


@pytest.mark.parametrize(
    ("spectrum", "variance"),
    [
        (gr.spectra.lowpass(3.0), 1.5),
        (gr.spectra.resonance(4.0, 0.1), 1 / (4 * 0.1 * 64)),
        (gr.spectra.matern52(2.0), 1.0),
        (gr.spectra.integrated(), np.inf),
        (gr.spectra.white(), np.inf),
    ],
    ids=str,
)
def test_variance_in_closed_form(spectrum, variance: float) -> None:
    assert spectrum.stationary_variance == pytest.approx(variance, rel=1e-12)


def test_density_integrates_to_the_variance() -> None:
    spectrum = gr.spectra.quasi_periodic(2.0, 5.0)
    omega = np.linspace(-400.0, 400.0, 400_001)
    total = np.trapezoid(spectrum.spectral_density(omega), omega) / (2 * np.pi)
    assert total == pytest.approx(spectrum.stationary_variance, rel=2e-3)


def test_density_of_a_spectrum_with_parameters_is_refused() -> None:
    with pytest.raises(ModelError, match="contains parameters"):
        _ = gr.spectra.lowpass(gr.Parameter(1.0)).stationary_variance


def test_white_noise_is_refused() -> None:
    with pytest.raises(ModelError, match="has no paths to draw"):
        plot_spectrum(gr.spectra.white())


@pytest.mark.parametrize("name", sorted(set(gr.spectra.__all__) - {"Spectrum"}))
def test_every_spectrum_says_when_to_use_it(name: str) -> None:
    assert "Use it when" in getattr(gr.spectra, name).__doc__
