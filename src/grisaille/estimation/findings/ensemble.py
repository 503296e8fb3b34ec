"""What a criterion on the mean of simulated ensembles finds beside its estimates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np


@dataclass(frozen=True)
class ErrorSize:
    """How large the errors of one output in one experiment are beside those of simulated records."""

    output: str
    experiment: str
    ratio: float
    """Sum of squares over its median in records simulated from the fitted model."""
    p: float
    """Twice its rank among them, from the nearer end."""


@dataclass(frozen=True)
class UnexplainedErrors:
    """Errors of one output in one experiment that are larger than in every simulated record."""

    output: str
    experiment: str
    times: float
    """Root mean square over its median in simulated records."""


@dataclass(frozen=True)
class EnsembleResult:
    """The number of realizations of a mean, the error that it leaves, and a check with simulated records.

    The residuals of such a fit hold the disturbances of the record, and are compared with those of simulated records.
    """

    realizations: int
    monte_carlo_share: float = np.nan
    """Of the variance of an estimate, at most, that is due to the number of realizations."""
    correction: float = np.nan
    """Standard error of the criterion's correction for that number, in standard errors of an estimate, at most."""
    sizes: tuple[ErrorSize, ...] = ()
    unexplained: tuple[UnexplainedErrors, ...] = ()
    bias: Mapping[str, float] = field(default_factory=dict)
    """Of an estimate by its name, in standard errors, over records simulated with the fit."""
    covered: Mapping[str, float] = field(default_factory=dict)
    """Share of these records whose 95 % intervals hold the estimate they were simulated with, by its name."""

    def size_of(self, output: str, experiment: str) -> ErrorSize:
        """Return how large the errors of an output in an experiment are; NaN where that was not found."""
        found = (s for s in self.sizes if (s.output, s.experiment) == (output, experiment))
        return next(found, ErrorSize(output, experiment, np.nan, np.nan))
