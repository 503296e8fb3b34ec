"""A spectrum as a picture: its density, its covariance, and sample paths."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from grisaille.disturbance.paths import sample_path
from grisaille.disturbance.process_assembly import build_process
from grisaille.drawing import panels
from grisaille.errors import ModelError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from grisaille.model.spectra import Spectrum

PATHS = 4


def plot_spectrum(
    spectrum: Spectrum,
    span: float = 10.0,
    *,
    scale: float = 1.0,
    values: Mapping[str, float] | None = None,
    seed: int = 0,
    ax: Axes | None = None,
) -> Figure:
    """Spectral density, covariance function (where there is one) and sample paths of a disturbance over ``span``.

    values : numbers for the parameters inside the spectrum, by their full names
    ax : three axes to draw on instead of a new figure
    """
    if spectrum.is_white:
        raise ModelError(
            "White noise has no paths to draw: its spectrum is flat. Draw lowpass(b) with a large b instead."
        )
    process = build_process(["w"], [spectrum], [scale], values=values)
    times = np.linspace(0.0, span, 1001)
    paths = (sample_path(process, times, seed, PATHS) @ process.C.T)[:, :, 0]
    figure, ((density, covariance, samples),) = panels(ax, 1, 3, size=(11, 3.2), title=str(spectrum))
    omega = np.geomspace(2 * np.pi / span / 4, 2 * np.pi / span * 400, 400)
    density.loglog(omega, process.spectral_density(omega)[:, 0, 0].real)
    density.set(title="spectral density", xlabel="ω [rad per unit of time]")
    if spectrum.is_stationary:
        lags = np.linspace(0.0, span / 2, 400)
        covariance.plot(lags, process.covariance_function(lags)[:, 0, 0])
        covariance.set(title="covariance", xlabel="lag")
    else:
        covariance.plot(times[1:], [process.covariance(t, t)[0, 0] for t in times[1:]])
        covariance.set(title="variance (not stationary)", xlabel="time")
    samples.plot(times, paths.T, linewidth=0.8)
    samples.set(title="sample paths", xlabel="time")
    for axes in (density, covariance, samples):
        axes.grid(alpha=0.3)
    return figure
