"""Central differences of a log-likelihood, for filters without derivatives: two passes for each unknown.

    ∂log L/∂θ_k ≈ (log L(θ + h_k e_k) − log L(θ − h_k e_k)) / 2h_k,        h_k = 1e-5 |θ_k|

The same passes give the derivatives of the innovations and of their covariances, and with these the information

    I_kl = Σ ∂e/∂θ_kᵀ S⁻¹ ∂e/∂θ_l + ½ tr(S⁻¹ ∂S/∂θ_k S⁻¹ ∂S/∂θ_l)

by which a search steps. A log-likelihood must be a smooth function for that: a filter that draws numbers must draw the
same at every call. An unknown that is zero gets the longest step, a power of ten, along which log L hardly bends.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeAlias

import numpy as np

from grisaille.disturbance.duals import Floats
from grisaille.filtering.filter import FilterPoint
from grisaille.filtering.kalman import Likelihood

Running: TypeAlias = Callable[[FilterPoint], Likelihood]
MAX_CURVATURE_EFFECT = 1e-2
"""Change of log L by its curvature along a step that is still short."""
MIN_STEP = 1e-12


def differentiate_likelihood(run: Running, at: FilterPoint, theta: Floats, step: float) -> Likelihood:
    """Return log L, its gradient and information by differences along the directions of a point.

    theta : values of the unknowns, whose directions these are
    step : relative to an unknown
    """
    here = run(at.plain)
    if here.failed >= 0 or not len(theta):
        return here
    ends = [_ends(run, at, k, step * abs(value), here) for k, value in enumerate(theta.tolist())]
    gradient = np.array([(there.value - back.value) / width for width, back, there in ends])
    slopes = np.stack([(there.innovations - back.innovations) / width for width, back, there in ends], axis=1)
    moved = [(_covariances(there) - _covariances(back)) / width for width, back, there in ends]
    return replace(
        here, gradient=gradient, slopes=np.where(np.isfinite(slopes), slopes, 0.0),
        information=_information(here, slopes, np.array(moved)),
    )  # fmt: skip


def _ends(run: Running, at: FilterPoint, k: int, step: float, here: Likelihood) -> tuple[float, Likelihood, Likelihood]:
    """Return the width of a difference and the likelihoods at its ends; one-sided beside a point that has no
    likelihood.
    """
    h = step or 1.0
    while True:
        back, there = (run(at.moved(k, side)) for side in (-h, h))
        if step or h < MIN_STEP or abs(back.value + there.value - 2 * here.value) < MAX_CURVATURE_EFFECT:
            break
        h /= 10
    is_there = [end.failed < 0 for end in (back, there)]
    width = h * max(sum(is_there), 1)
    return width, back if is_there[0] else here, there if is_there[1] else here


def _covariances(found: Likelihood) -> Floats:
    """Return (N, ny, ny)"""
    if found.covariances is not None:
        return found.covariances
    return np.asarray(found.variances[:, :, None] * np.eye(found.variances.shape[1]))


def _information(here: Likelihood, slopes: Floats, moved: Floats) -> Floats:
    """Return I of innovations that moved by ``slopes``, (N, ns, ny), and covariances by ``moved``, (ns, N, ny, ny)."""
    total = np.zeros((len(moved), len(moved)))
    for sample, S in enumerate(_covariances(here)):
        seen = np.flatnonzero(np.isfinite(here.innovations[sample]))
        if not len(seen):
            continue
        inverse = np.linalg.inv(S[np.ix_(seen, seen)])
        de, whitened = slopes[sample][:, seen], inverse @ moved[:, sample][:, seen[:, None], seen]
        total += de @ inverse @ de.T + 0.5 * np.einsum("aij,bji->ab", whitened, whitened)
    return total
