"""Predictions over several samples: the distribution at each instant from the data up to k samples before.

    x_{j|j−k}, P_{j|j−k}:  filtered moments at sample j − k, carried to sample j without looking at what lies between

Instants before sample k are predicted from the start. k = 1 is the filter itself, k = ∞ a simulation with growing
covariance. The criterion Σ_j log N(y_j; ŷ_{j|j−k}, S_{j|j−k}) makes models fit for forecasting; the errors of
neighbouring predictions overlap, so it is not a likelihood for k > 1.
"""

from __future__ import annotations

import numpy as np

from grisaille.bound_experiment import BoundExperiment
from grisaille.bound_experiment.discretisation import Discretisation
from grisaille.disturbance.duals import Floats
from grisaille.filtering.filter import Filter, FilterPoint
from grisaille.filtering.filter_runner import FilterOptions, FilterResult, FilterRunner
from grisaille.filtering.kalman import Likelihood


class HorizonRunner(FilterRunner):
    """One trial whose criterion is that of predictions from data that are older.

    origins : the last sample whose data are used for each, never decreasing; −1 for none
    """

    def __init__(self, trial: BoundExperiment, options: FilterOptions, origins: np.ndarray) -> None:
        super().__init__(trial, options)
        self.origins = origins

    @property
    def reach(self) -> int:
        rows = np.arange(len(self.origins))
        return int(np.max(rows - self.origins, where=self.origins >= 0, initial=1))

    def likelihood(self, theta: Floats, steps: Discretisation, *, sensitive: bool) -> FilterResult:
        def run(filter: Filter, at: FilterPoint) -> Likelihood:
            return filter.require_ahead().log_likelihood(at, self.origins)

        return self._likelihood(theta, steps, sensitive, run)

    def gradient(self, theta: Floats, steps: Discretisation) -> FilterResult:
        return self.likelihood(theta, steps, sensitive=True)
