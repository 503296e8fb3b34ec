"""What errors of integration do to estimates from means of ensembles, and steps that are short enough for the noise.

A mean ȳ that is off by δ moves the estimates, in their standard errors, by

    Δθ / s = J⁺ (L δ) / s,       s² = diag (JᵀJ)⁻¹,

where J is the Jacobian of the whitened errors L (y − ȳ). δ is the difference from an ensemble of the same paths with
steps half as long, made only where the tolerance itself does not rule a noticeable shift out.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from grisaille.estimation.uncertainty import gauss_newton_covariance
from grisaille.estimators.simulated_pem.mean_criterion import MeanCriterion, MeanValue
from grisaille.estimators.simulated_pem.mean_search import MeanSearch, free_unknowns, seen_unknowns

NOTICED, WANTED = 0.1, 0.03
"""Standard errors from which on steps are made shorter, and what is aimed at then."""
ACCUMULATION_FACTOR = 30.0
"""How much larger than the tolerance errors of a mean are taken to be, before that is computed."""
STEP_ORDER = 4
"""Of the steps: errors fall with this power of their length."""
MAX_ROUNDS = 2
"""In which steps are made shorter, at most."""
MAX_CUTS = 8
"""Parts that a step is cut into at a time."""


@dataclass(frozen=True)
class EnsembleIntegrationShift:
    """By how many standard errors the errors of integration change estimates."""

    name: str
    """Of the unknown that is moved most."""
    worst: float

    @property
    def is_noticed(self) -> bool:
        return self.worst > NOTICED

    @property
    def cuts(self) -> int:
        """Parts of a step, a power of two, that make the shift small enough."""
        wanted = (self.worst / WANTED) ** (1 / STEP_ORDER)
        return int(min(2 ** np.ceil(np.log2(max(wanted, 2.0))), MAX_CUTS))

    def note(self, rtol: float) -> str:
        """Return the note on a fit that could not be made more accurate."""
        return (
            f"integration: errors of the simulation move {self.name} by about {self.worst:.2g} standard errors, which "
            f"do not contain them; use a smaller tolerance, gr.SimulatedPEM(rtol={max(rtol / 100, 1e-13):.0e}), or a "
            f"shorter step=."
        )


def shorten_for_noise(search: MeanSearch, value: MeanValue, *, may_shorten: bool) -> tuple[bool, list[str]]:
    """Shorten steps enough for the noise; return whether that was possible, and a note where it was not."""
    shift = integration_shift(search, value)
    if shift is None or not shift.is_noticed:
        return False, []
    across_jumps = any(runner.differences is not None for runner in search.criterion.runners)
    if may_shorten and not across_jumps and not search.is_spent and search.criterion.shorten(shift.cuts):
        return True, []
    return False, [shift.note(search.criterion.runners[0].options.rtol)]


def integration_shift(search: MeanSearch, value: MeanValue) -> EnsembleIntegrationShift | None:
    """Return what errors of integration do to the estimates; None where they are too small, or not known."""
    criterion = search.criterion
    if not value.jacobian.size or not _may_be_felt(criterion, value):
        return None
    moving = free_unknowns(criterion, value) & seen_unknowns(search, value)
    finer = criterion.on_shorter_steps(2)
    if not moving.any() or finer is None:
        return None
    there = finer.without_slopes(value.theta)
    if not there.completed:
        return None
    moved = np.linalg.lstsq(value.jacobian[:, moving], there.residuals - value.residuals, rcond=1e-13)[0]
    covariance = value.level * gauss_newton_covariance(value.jacobian, moving)
    errors = np.sqrt(np.clip(np.diag(covariance)[moving], 0.0, None))
    shares = np.divide(np.abs(moved), errors, out=np.zeros(len(moved)), where=errors > 0)
    k = int(np.argmax(shares))
    return EnsembleIntegrationShift(criterion.unknowns[int(np.flatnonzero(moving)[k])].name, float(shares[k]))


def _may_be_felt(criterion: MeanCriterion, value: MeanValue) -> bool:
    """Return whether errors as large as the tolerance allows, so many times, would change the estimates noticeably."""
    rtol, total = criterion.runners[0].options.rtol, 0.0
    for part in value.parts:
        mean = value.predictions[part.pattern.case].mean[:, part.pattern.columns]
        size = np.nanmax(np.abs(mean), axis=0, initial=0.0) * part.factor
        total += float(np.einsum("ti,tij,tj->", size, part.W, size))
    return bool(ACCUMULATION_FACTOR * rtol * np.sqrt(total / max(value.level, 1e-300)) > NOTICED)
