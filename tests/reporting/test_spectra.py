"""Pictures of spectra: three panels, and the paths drawn are those of the process."""

from __future__ import annotations

import numpy as np
import pytest

import grisaille as gr
from grisaille.errors import ModelError
from grisaille.reporting.spectra import plot_spectrum

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


def test_white_noise_is_refused() -> None:
    with pytest.raises(ModelError, match="has no paths to draw"):
        plot_spectrum(gr.spectra.white())


@pytest.mark.parametrize("name", sorted(set(gr.spectra.__all__) - {"Spectrum"}))
def test_every_spectrum_says_when_to_use_it(name: str) -> None:
    assert "Use it when" in getattr(gr.spectra, name).__doc__
