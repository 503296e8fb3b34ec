"""Predictions from the data up to some samples before: the contract of ``fit.predict(horizon=k)``.

The cases of such a method are run by filters, so that its residuals are innovations and a record that continues another
one begins with what the filter knows at its end.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    import xarray as xr

    from grisaille.estimation.estimator import Estimator
    from grisaille.estimation.fitted import Fitted
    from grisaille.estimation.predictions.band_kinds import Bands
    from grisaille.estimation.predictions.horizons import Horizon
    from grisaille.experiment.experiment import Experiment


class Ahead(ABC):
    """Predictions k samples ahead, and the start of a record from the end of the one before."""

    words: ClassVar[str] = "Predictions from the data up to some samples before"
    instead: ClassVar[str] = "simulate by horizon=None"

    @abstractmethod
    def predict(self, fit: Fitted, experiment: Experiment | str | None, horizon: Horizon) -> xr.Dataset:
        """Return predictions from the data up to ``horizon`` before, with the band of noise and state."""

    @abstractmethod
    def predict_with_bands(
        self, fit: Fitted, experiment: Experiment, horizon: Horizon | None, bands: Bands
    ) -> xr.Dataset:
        """Return predictions with bands that contain the uncertainty of the estimates, or of the noise alone."""

    @abstractmethod
    def filtered_means(self, fit: Fitted, experiment: Experiment, names: Sequence[str]) -> Mapping[str, xr.DataArray]:
        """Return variables over a fitted record and beyond it: what one that continues it begins with."""

    @abstractmethod
    def continuing(self, fit: Fitted, experiment: Experiment) -> Estimator:
        """Return the method for a record that continues an experiment, with what is known at its last instant."""
