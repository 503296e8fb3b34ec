"""Directions of a batch dealt out to threads: each takes the realization itself along, and a few of its derivatives.

What is computed for a direction does not depend on the others, so a batch with ns directions is ns/d batches with d
each, run side by side as if they were parameter values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from grisaille.compilation.batch import BatchInput, BatchResult, Floats
from grisaille.compilation.coloured_noise_source import ColouredNoise, NoiseFilterGroup
from grisaille.compilation.sample_moments import SampleMoments


def split_directions(batch: BatchInput, each: int) -> list[BatchInput]:
    """Return batches of ``each`` directions, which divides their number."""
    count = len(batch.dp)
    if count == each:
        return [batch]
    return [_some(batch, slice(k, k + each)) for k in range(0, count, each)]


def _some(batch: BatchInput, at: slice) -> BatchInput:
    filters = batch.filters
    groups = tuple(_group(g, at) for g in filters.groups)
    dw = None if filters.dw is None else np.ascontiguousarray(filters.dw[:, at])
    mine: ColouredNoise = replace(filters, groups=groups, dw=dw)
    return replace(batch, dp=batch.dp[at].copy(), sx0=batch.sx0[..., at, :].copy(), filters=mine)


def _group(group: NoiseFilterGroup, at: slice) -> NoiseFilterGroup:
    if group.dF is None or group.dL is None or group.dR is None or group.dC is None:
        return group
    return replace(group, dF=group.dF[:, at], dL=group.dL[:, at], dR=group.dR[at], dC=group.dC[at])


def join_directions(parts: Sequence[BatchResult]) -> BatchResult:
    """Return the answer of all directions."""
    if len(parts) == 1:
        return parts[0]
    first = parts[0]
    moments = None
    if first.moments is not None:
        all_parts = [p.moments for p in parts if p.moments is not None]
        m = first.moments
        smean, scross = (np.concatenate([getattr(p, n) for p in all_parts], axis=1) for n in ("smean", "scross"))
        moments = SampleMoments(m.count, m.mean, m.spread, smean, scross)
    sy = None if first.sy is None else np.concatenate([_known(p.sy) for p in parts], axis=2)
    sx, dw = (np.concatenate([getattr(p, n) for p in parts], axis=1) for n in ("sx", "dw"))
    return replace(first, sx=sx, dw=dw, sy=sy, moments=moments)


def _known(sy: Floats | None) -> Floats:
    assert sy is not None
    return sy
