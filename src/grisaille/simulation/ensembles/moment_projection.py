"""One short vector per realization instead of its trajectory: what sandwiches are made of.

With d = ŷ_m − ȳ the deviation of realization m from the mean and D_s = ∂ŷ_m − ∂ȳ that of its slopes, a form gives

    v_m = Σ_k [ lᵀd + dᵀQ d ]_k   and, in the direction s,   + Σ_k [ aᵀD_s + D_sᵀ K d ]_k.

Forms of records have d + ε in place of d, with measurement noise ε that is a function of (seed, realization, instant).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from grisaille.disturbance import Stream
from grisaille.simulation.ensembles.reducers import RealizationBlock, Statistic


@dataclass(frozen=True)
class ProjectionForm:
    """The coefficients of one vector with n entries, at every output time."""

    linear: np.ndarray
    """l (times, outputs, n)"""
    quadratic: np.ndarray | None = None
    """Q (times, outputs, outputs, n)"""
    slope_linear: np.ndarray | None = None
    """a (times, outputs)"""
    slope_cross: np.ndarray | None = None
    """K (times, outputs, outputs)"""
    columns: tuple[int, ...] = ()
    """Entry of v that each direction s belongs to."""
    of_records: bool = False
    """Whether measurement noise is added to d."""


@dataclass(frozen=True)
class RecordNoise:
    """Measurement noise on realizations from ``first`` on."""

    deviations: np.ndarray
    """(times, outputs)"""
    stream: Stream
    first: int = 0

    def draw(self, members: np.ndarray, at: slice) -> np.ndarray:
        """Return (members, instants, outputs)"""
        instants, q = np.arange(len(self.deviations))[at], self.deviations.shape[1]
        return np.asarray(self.stream.normals(self.first + members[:, None], instants, q) * self.deviations[at])


class MomentProjection:
    """A reducer that keeps v_m of every realization, forms side by side: values (M, n₁ + n₂ + …)."""

    suffix, needs_rows = "projection", True

    def __init__(
        self,
        forms: tuple[ProjectionForm, ...],
        mean: np.ndarray,
        slopes: np.ndarray | None,
        columns: list[int],
        noise: RecordNoise | None = None,
        compared: np.ndarray | None = None,
    ) -> None:
        self.forms, self.mean, self.slopes, self.columns, self.noise = forms, mean, slopes, columns, noise
        self.compared = compared
        self.rows: list[np.ndarray] = []
        self.total: np.ndarray | None = None

    def update(self, block: RealizationBlock) -> None:
        if block.y is not None:
            d = _defined(block.y[:, :, self.columns] - self.mean[block.instants], self.compared, block.instants)
            D = None
            if block.sy is not None and self.slopes is not None:
                # (realizations, instants, outputs, directions)
                D = np.swapaxes(block.sy[..., self.columns], 2, 3) - self.slopes[block.instants]
                D = _defined(D, self.compared, block.instants)
            noisy = d if self.noise is None else d + self.noise.draw(self._members(len(d)), block.instants)
            parts = [_apply(f, noisy if f.of_records else d, D, block.instants) for f in self.forms]
            self.rows.append(np.concatenate(parts, axis=1))
        if block.is_last and self.rows:
            part = np.concatenate(self.rows)
            self.total = part if self.total is None else self.total + part
            self.rows = []

    def _members(self, count: int) -> np.ndarray:
        """Return numbers of the next realizations, in the order in which they come."""
        return sum(map(len, self.rows)) + np.arange(count)

    def result(self) -> Statistic:
        assert self.total is not None
        return Statistic((), self.total)


class SlopeEnergy:
    """A reducer that sums D_sᵀ W D_r over instants and realizations: values (directions, directions)."""

    suffix, needs_rows = "energy", True

    def __init__(
        self, weights: np.ndarray, slopes: np.ndarray, columns: list[int], compared: np.ndarray | None = None
    ) -> None:
        self.weights, self.slopes, self.columns, self.compared = weights, slopes, columns, compared
        self.total = np.zeros((slopes.shape[-1], slopes.shape[-1]))

    def update(self, block: RealizationBlock) -> None:
        if block.sy is not None:
            D = np.swapaxes(block.sy[..., self.columns], 2, 3) - self.slopes[block.instants]
            D = _defined(D, self.compared, block.instants)
            WD = np.einsum("top,mtps->mtos", self.weights[block.instants], D)
            n = D.shape[-1]
            self.total = self.total + D.reshape(-1, n).T @ WD.reshape(-1, n)

    def result(self) -> Statistic:
        return Statistic((), self.total)


def _defined(d: np.ndarray, compared: np.ndarray | None, at: slice) -> np.ndarray:
    """Return deviations (realizations, instants, outputs, …), zero where an output is undefined and is not ``compared``
    with data: the coefficients are zero there, and zero times infinity is not.
    """
    if compared is None or np.isfinite(d).all():
        return d
    there = compared[at].reshape(1, *compared[at].shape, *(1,) * (d.ndim - 3))
    return np.where(there, d, 0.0)


def _apply(form: ProjectionForm, d: np.ndarray, D: np.ndarray | None, at: slice) -> np.ndarray:
    m, n = len(d), form.linear.shape[-1]
    v = d.reshape(m, -1) @ form.linear[at].reshape(-1, n)
    if form.quadratic is not None:
        v = v + (d[..., :, None] * d[..., None, :]).reshape(m, -1) @ form.quadratic[at].reshape(-1, n)
    if D is not None and form.slope_linear is not None:
        moved = np.einsum("mtos,to->ms", D, form.slope_linear[at])
        if form.slope_cross is not None:
            moved += np.einsum("mtos,mto->ms", D, np.einsum("top,mtp->mto", form.slope_cross[at], d))
        v[:, list(form.columns)] += moved
    return np.asarray(v)
