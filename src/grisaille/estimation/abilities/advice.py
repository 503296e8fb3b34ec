"""Messages of a method about its fits."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from grisaille.estimation.estimate import Estimate
    from grisaille.model.flat import FlatModel


class Advice:
    """Sentences that hold for any method; a method overrides those for which it has better ones."""

    @property
    def against_outliers(self) -> str:
        """Return how the method would count outliers less, as a call; empty where it does, or where it cannot."""
        return ""

    def about_correlation(self, estimate: Estimate) -> str:
        """Say what correlated residuals do to standard errors, and what to do."""
        return (
            "Where they are not, errors are usually too small: dynamics or a disturbance are missing from the model "
            "(fit.diagnose() shows which)."
        )

    def about_shared_noise(self, estimate: Estimate, first: str, second: str) -> str:
        """Describe the effect of correlated residuals of two outputs on standard errors, and what to do."""
        return self.about_correlation(estimate)

    def remarks(self, flat: FlatModel) -> list[str]:
        """Return what a user must know about any fit of this model by this method."""
        return []

    def ways_out(self, disturbed: bool) -> list[str]:
        """Return what leads out of a minimum that explains nothing.

        disturbed : whether the model is
        """
        return []
