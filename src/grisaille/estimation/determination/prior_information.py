"""The information of the data without that of priors.

With the information H = D + Λ of data and priors, the variance of an unknown, (H⁻¹)_kk, has the share

    s_k = (H⁻¹ D H⁻¹)_kk / (H⁻¹)_kk

from the noise of the data: one without priors, zero where the prior alone decides. n_eff = tr(H⁻¹ D) is the number of
unknowns that the data determined.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from grisaille.bound_experiment.unknown import Unknown
from grisaille.estimation.prior_terms import prior_term
from grisaille.estimation.uncertainty import inverse_information

MIN_DATA_SHARE = 0.5
"""Of the variance: below, an unknown is the prior's."""
PRIOR_ROUNDING = 1e-6
"""Of a prior's information: what an information may lack that contains it."""
MAX_NAMED = 6
"""Unknowns that a sentence names at most."""


@dataclass(frozen=True, eq=False)
class DataInformation:
    """How much of what is known comes from the data."""

    data: np.ndarray
    """D"""
    believed: np.ndarray
    """Λ"""
    inverse: np.ndarray
    """H⁻¹ on the free unknowns, zero elsewhere."""
    undetermined: np.ndarray

    def shares(self, rows: np.ndarray) -> np.ndarray:
        """Return the share of the data in the variances of linear combinations of the unknowns."""
        variance = np.einsum("ki,ij,kj->k", rows, self.inverse, rows)
        by_data = np.einsum("ki,ij,kj->k", rows, self.inverse @ self.data @ self.inverse, rows)
        share = np.divide(by_data, variance, out=np.ones(len(rows)), where=variance > 0)
        return np.asarray(np.clip(share, 0.0, 1.0))

    @property
    def unknowns(self) -> float:
        """n_eff"""
        determined = (np.diag(self.inverse) > 0) & ~self.undetermined
        return float(determined.sum()) - float(np.sum(self.inverse * self.believed))


def data_information(
    unknowns: Sequence[Unknown], theta: np.ndarray, information: np.ndarray, free: np.ndarray
) -> DataInformation | None:
    """Return the parts of an information that contains priors; None where there are none, or nothing is known of
    them.
    """
    believed = prior_term(unknowns, theta).believed
    if not believed.any() or information.shape != (len(theta), len(theta)):
        return None
    if (np.diag(information) < (1 - PRIOR_ROUNDING) * np.diag(believed)).any():
        return None
    inverse, undetermined = inverse_information(information, free)
    return DataInformation(information - believed, believed, inverse, undetermined)


def prior_note(unknowns: Sequence[Unknown], theta: np.ndarray, information: np.ndarray, free: np.ndarray) -> list[str]:
    """Return which unknowns their priors determine and not the data, in words; empty where there are none."""
    found = data_information(unknowns, theta, information, free)
    if found is None:
        return []
    share = found.shares(np.eye(len(unknowns)))
    mine = [k for k in np.flatnonzero(free & ~found.undetermined).tolist() if share[k] < MIN_DATA_SHARE]
    if not mine:
        return []
    names = [unknowns[k].name for k in mine]
    listed = ", ".join(names[:MAX_NAMED]) + (f" and {len(names) - MAX_NAMED} more" if len(names) > MAX_NAMED else "")
    most = 100 * float(share[mine].max())
    verb, part = ("rests", f"{most:.2g} %") if len(mine) == 1 else ("rest", f"at most {most:.2g} %")
    return [f"prior: {listed} {verb} on priors more than on the data, whose share of the variance is {part}."]
