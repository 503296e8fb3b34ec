"""The priors of all unknowns as one part of a log-density, with their constants.

The residual form of ``laws.prior_measure``, which least squares needs, lacks these: it is zero at the mode of each law.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from grisaille.bound_experiment.unknown import Unknown
from grisaille.estimation.density.density_value import DensityPart
from grisaille.estimation.prior_terms import scalar_prior
from grisaille.laws import JointLaw, Law
from grisaille.laws.prior_measure import log_priors


def prior_part(unknowns: Sequence[Unknown], theta: np.ndarray, derivatives: bool = True) -> DensityPart | None:
    """Return Σ ℓ(θ) of all priors, each in its own measure; None where there are none, −∞ outside a support."""
    if all(u.prior is None for u in unknowns):
        return None
    total, slope = 0.0, np.zeros(len(theta))
    places, laws = _laws(unknowns)
    if laws:
        values = theta[list(places)]
        found, pull = log_priors(laws, values)
        total, slope[list(places)] = float(sum(found.tolist())), pull
    joint, pulls = _joint(unknowns, theta)
    return DensityPart("prior", "prior", total + joint, slope + pulls if derivatives else np.zeros(0))


def counts_by_logarithm(unknown: Unknown) -> bool:
    """Return whether the prior of an unknown counts per unit of its logarithm."""
    return isinstance(unknown.prior, Law) and unknown.prior.measure == "log"


def _laws(unknowns: Sequence[Unknown]) -> tuple[tuple[int, ...], tuple[Law, ...]]:
    """Return the priors of single unknowns, and whose they are."""
    pairs = []
    for k, unknown in enumerate(unknowns):
        prior = unknown.prior
        if prior is None or isinstance(prior, JointLaw):
            continue
        if not isinstance(prior, Law):
            scalar_prior(unknown, unknown.guess)  # refuses it
        pairs.append((k, prior))
    return tuple(k for k, _ in pairs), tuple(law for _, law in pairs)


def _joint(unknowns: Sequence[Unknown], theta: np.ndarray) -> tuple[float, np.ndarray]:
    """Return Σ (log |det A| − ½ |A θ + b|² − ½ n log 2π) and its gradient.

    A law whose rows do not determine all of its unknowns has no constant: it is improper.
    """
    names, total, slope = [u.name for u in unknowns], 0.0, np.zeros(len(theta))
    joint = {id(u.prior): u.prior for u in unknowns if isinstance(u.prior, JointLaw)}
    for law in joint.values():
        places = [names.index(n) for n in law.names]
        matrix, offset = law.residual_rows()
        r = matrix @ theta[places] + offset
        total -= 0.5 * float(r @ r)
        slope[places] -= matrix.T @ r
        if matrix.shape[0] == matrix.shape[1]:
            total += float(np.linalg.slogdet(matrix)[1]) - 0.5 * len(places) * float(np.log(2 * np.pi))
    return total, slope
