"""Standard errors of another kind from the residuals that a fit has: the contract of ``fit.with_errors``."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from grisaille.estimation.estimate import Estimate
    from grisaille.estimation.estimator import ReviewedEstimate


class OtherErrors(ABC):
    """The kinds that an option ``errors=`` of a method chooses between."""

    words: ClassVar[str] = "Standard errors of several kinds"
    instead: ClassVar[str] = "fit again and again by gr.monte_carlo(fit.model, fit.experiments, …)"

    @abstractmethod
    def by(self, estimate: Estimate, errors: str) -> ReviewedEstimate:
        """Return an estimate with the standard errors of a kind, and the method that has them."""
