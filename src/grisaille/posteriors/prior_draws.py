"""Draws of unknowns from their priors, cut off at their bounds.

    θ = F⁻¹(F(a) + (F(b) − F(a)) u),      u uniform, F the distribution function of the prior, a and b the bounds

Joint normal priors are drawn together; draws outside of the bounds are drawn again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from grisaille.bound_experiment.unknown import Unknown
from grisaille.errors import EstimationError
from grisaille.laws import JointLaw, Law, MultivariateNormal
from grisaille.laws.random import uniforms
from grisaille.posteriors.proper_priors import improper_refusal, is_proper

MAX_ROUNDS = 1000
"""How often joint draws that lie outside of bounds are drawn again."""


def draws_from_priors(unknowns: Sequence[Unknown], count: int, seed: int) -> dict[str, np.ndarray]:
    """Return draws of every unknown by name; refuse those without a proper prior."""
    limits = [prior_limits(u) for u in unknowns]
    improper = [u for u, pair in zip(unknowns, limits, strict=True) if not is_proper(u, pair)]
    if improper:
        raise EstimationError(improper_refusal(improper))
    drawn: dict[str, np.ndarray] = {}
    for unknown, (low, high) in zip(unknowns, limits, strict=True):
        if not isinstance(unknown.prior, JointLaw):
            u = uniforms(count, seed, f"prior {unknown.name}")
            drawn[unknown.name] = _of_law(unknown.prior, low, high, u)
    return {**drawn, **_joint(unknowns, dict(zip((u.name for u in unknowns), limits, strict=True)), count, seed)}


def prior_limits(unknown: Unknown) -> tuple[float, float]:
    """Return the bounds of an unknown within the support of its prior, above zero where its logarithm is searched."""
    low, high = unknown.prior.support if isinstance(unknown.prior, Law) else (-np.inf, np.inf)
    low = max(low, 0.0) if unknown.logarithmic else low
    return max(unknown.lower, float(low)), min(unknown.upper, float(high))


def _of_law(law: Law | None, low: float, high: float, u: np.ndarray) -> np.ndarray:
    if law is None or law.is_flat:
        return np.asarray(low + (high - low) * u)
    ends = law.distribution(np.array([low, high]))
    below, above = float(ends[0]) if np.isfinite(low) else 0.0, float(ends[1]) if np.isfinite(high) else 1.0
    return np.asarray(np.clip(law.quantile(below + (above - below) * u), low, high))


def _joint(
    unknowns: Sequence[Unknown], limits: Mapping[str, tuple[float, float]], count: int, seed: int
) -> dict[str, np.ndarray]:
    laws = {id(u.prior): u.prior for u in unknowns if isinstance(u.prior, JointLaw)}
    drawn: dict[str, np.ndarray] = {}
    for law in laws.values():
        if not isinstance(law, MultivariateNormal):
            bounds = [limits[n] for n in law.names]
            raise EstimationError(
                f"{type(law).__name__} over {', '.join(law.names)} cannot be drawn from within {bounds}: it leaves "
                f"level and slope free. Give these unknowns priors of their own."
            )
        low, high = np.array([limits[n] for n in law.names]).T
        rng = np.random.default_rng([seed, *(ord(c) for c in law.names[0])])
        root, found = np.linalg.cholesky(np.asarray(law.cov)), np.zeros((0, len(law.names)))
        for _ in range(MAX_ROUNDS):
            z = np.asarray(law.mean) + rng.standard_normal((count, len(law.names))) @ root.T
            found = np.concatenate([found, z[((z >= low) & (z <= high)).all(axis=1)]])[:count]
            if len(found) == count:
                break
        else:
            raise EstimationError(
                f"The joint prior of {', '.join(law.names)} has next to no probability within the bounds: widen them."
            )
        drawn |= {n: found[:, k] for k, n in enumerate(law.names)}
    return drawn
