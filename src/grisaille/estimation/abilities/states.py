"""Trajectories that a method estimates from the data: the contract of ``fit.states()``."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, ClassVar

import numpy as np

if TYPE_CHECKING:
    import xarray as xr

    from grisaille.estimation.fitted import Fitted
    from grisaille.estimation.predictions.band_kinds import Bands
    from grisaille.estimation.problem import EstimationProblem
    from grisaille.experiment.experiment import Experiment
    from grisaille.model.expression import Expression

    Wanted = str | Iterable[str | Expression] | Mapping[str, str | Expression] | None
    """Quantities that a user names, as ``Fit.states`` takes them."""


class States(ABC):
    """Filtered or smoothed trajectories of everything that a model names."""

    words: ClassVar[str] = "States given the data"
    instead: ClassVar[str] = "simulate by fit.predict()"
    follow_data: ClassVar[bool] = False
    """Whether residuals are what these trajectories leave: they are not white then, and contain no prediction."""

    @abstractmethod
    def of(
        self, fit: Fitted, experiment: Experiment | str | None, names: Wanted, level: float, bands: Bands | None = None
    ) -> xr.Dataset:
        """Return trajectories given the data, with the bands asked for, or those that the method usually has."""

    @abstractmethod
    def at(self, problem: EstimationProblem, theta: np.ndarray) -> dict[str, xr.Dataset]:
        """Return the same at given values of the unknowns, by experiment."""

    def arrays_to_save(self, fit: Fitted) -> dict[str, np.ndarray]:
        """Return the arrays by which a saved fit has the same trajectories again."""
        return {}
