"""Messages of a filter's likelihood about its fits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from grisaille.estimation.abilities.advice import Advice
from grisaille.estimation.estimate import Estimate
from grisaille.filtering.initial_moments import is_flat

if TYPE_CHECKING:
    from grisaille.estimators.kalman_ml.kalman_ml import KalmanML


@dataclass(frozen=True)
class FilterAdvice(Advice):
    """Innovations may be counted robustly; what outputs share belongs into the model."""

    method: KalmanML

    @property
    def against_outliers(self) -> str:
        return (
            "gr.KalmanML(robust=3.0)"
            if self.method.robust is None and not is_flat(self.method.initial_covariance)
            else ""
        )

    def about_shared_noise(self, estimate: Estimate, first: str, second: str) -> str:
        return (
            f"Declare in the model what they share: a disturbance in both outputs, or the covariance of their noise, "
            f'def noise_covariance(self): return {{("{first}", "{second}"): "full"}}, which the fit then estimates. '
            f'gr.OutputError(errors="robust") has errors that take it into account, where no disturbance acts.'
        )
