"""Messages of least squares about its fits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from grisaille.estimation.abilities.advice import Advice
from grisaille.estimation.estimate import Estimate
from grisaille.estimators.output_error.covariances import FitResiduals, estimate_covariance
from grisaille.model.flat import FlatModel

if TYPE_CHECKING:
    from grisaille.estimators.output_error.output_error import OutputError


@dataclass(frozen=True)
class LeastSquaresAdvice(Advice):
    """Messages on options of least squares: disturbances are at zero; robust losses, robust errors and multiple
    shooting.
    """

    method: OutputError

    @property
    def against_outliers(self) -> str:
        return 'gr.OutputError(loss="soft_l1")' if self.method.loss == "linear" else ""

    def remarks(self, flat: FlatModel) -> list[str]:
        if not flat.disturbances:
            return []
        return [
            f"output error holds the disturbances {', '.join(flat.disturbances)} at zero; method=gr.SimulatedPEM() "
            f"takes them into account."
        ]

    def ways_out(self, disturbed: bool) -> list[str]:
        ways = ["gr.OutputError(shooting='multiple')"] if self.method.shooting == "single" else []
        return ways + (["method=gr.KalmanML(), for what disturbances do"] if disturbed else [])

    def about_shared_noise(self, estimate: Estimate, first: str, second: str) -> str:
        said = self.about_correlation(estimate)
        flat = estimate.cases[0].trial.flat
        if any(flat.outputs[n].distribution is not None for n in (first, second)):
            return said
        return (
            f'{said} Where they share noise, a method of the model, def noise_covariance(self): return "full", lets '
            f"the fit estimate what they share and weigh the data by it."
        )

    def about_correlation(self, estimate: Estimate) -> str:
        if not estimate.evaluation.is_least_squares:
            return super().about_correlation(estimate)
        offered = "fit.with_errors('robust'), or gr.OutputError(errors='robust'), takes the correlation into account"
        if self.method.shooting == "multiple":
            offered = "gr.fit(…, method=gr.OutputError(errors='robust'), guess=fit) takes the correlation into account"
        plain = np.sqrt(np.clip(np.diag(estimate.covariance), 0.0, None))
        usable = (plain > 0) & np.isfinite(plain)
        if not usable.any():
            return f"{offered}."
        names = [u.name for u in estimate.unknowns]
        left = FitResiduals(
            estimate.evaluation,
            estimate.cases,
            estimate.count,
            usable,
            names,
            self.method.loss,
            self.method.loss_scale,
            "gauss-newton",
        )
        found = estimate_covariance(left, "robust", calibrated=False).covariance
        factor = np.where(usable, np.sqrt(np.clip(np.diag(found), 0.0, None)) / np.where(usable, plain, 1.0), 0.0)
        worst = int(np.argmax(factor))
        if not np.isfinite(factor[worst]):
            return f"Here they say nothing: the correlation reaches as far as the record. {offered}."
        small = f"They are off by a factor of about {factor[worst]:.2g} ({names[worst]})" if factor[worst] > 1.1 else (
            "Here they are hardly smaller for it"
        )  # fmt: skip
        return f"{small}; {offered}."
