"""The splines of all states laid out as one vector of coefficients, and what acts where.

Coefficients of all states are sorted by the place where they act, so that the matrix of a least-squares problem over
them is a band. On a cell between neighbouring knots (of any state) and breaks of the inputs m = Σ orders coefficients
act; ``LocalBasis`` holds their places and the basis as matrices: X = φ β[index], Ẋ = φ̇ β[index].
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np

from grisaille.bound_experiment.discretisation import Discretisation
from grisaille.collocation.array_types import Floats, Integers
from grisaille.collocation.splines import Spline, spline_of


@dataclass(frozen=True, eq=False)
class LocalBasis:
    """Points (P,) with the coefficients that act there."""

    index: Integers
    """(P, m)"""
    phi: Floats
    """(P, n, m)"""
    slope: Floats
    """(P, n, m)"""

    def values(self, beta: Floats) -> Floats:
        """Return X at every point, (P, n)."""
        return np.asarray((self.phi @ beta[self.index][:, :, None])[:, :, 0])

    def slopes(self, beta: Floats) -> Floats:
        return np.asarray((self.slope @ beta[self.index][:, :, None])[:, :, 0])


@dataclass(frozen=True, eq=False)
class SplineMesh:
    """One spline per state and the order of all coefficients."""

    splines: tuple[Spline, ...]

    @cached_property
    def places(self) -> tuple[Integers, ...]:
        """Return the indices in β of the coefficients of each state."""
        where = np.concatenate([s.averages for s in self.splines])
        state = np.concatenate([np.full(s.count, i) for i, s in enumerate(self.splines)])
        order = np.lexsort((state, where))
        place = np.empty(len(order), dtype=np.int64)
        place[order] = np.arange(len(order))
        return tuple(np.split(place, np.cumsum([s.count for s in self.splines])[:-1]))

    @property
    def count(self) -> int:
        return sum(s.count for s in self.splines)

    @cached_property
    def first(self) -> Integers:
        """Places of the values at the first instant, one per state."""
        return np.array([p[0] for p in self.places], dtype=np.int64)

    @cached_property
    def bounds(self) -> Floats:
        """All knots of all states."""
        return np.unique(np.concatenate([s.breaks for s in self.splines]))

    def local(self, inside: Floats, t: Floats) -> LocalBasis:
        """Return the basis at instants t; ``inside`` is an instant in the interior of the cell each belongs to."""
        n, m = len(self.splines), sum(s.order for s in self.splines)
        index = np.zeros((len(t), m), dtype=np.int64)
        phi, slope = np.zeros((len(t), n, m)), np.zeros((len(t), n, m))
        at = 0
        for i, s in enumerate(self.splines):
            own = slice(at, at + s.order)
            spans = s.spans(inside)
            index[:, own] = self.places[i][s.first_active(spans)[:, None] + np.arange(s.order)]
            phi[:, i, own], slope[:, i, own] = s.basis(spans, t)
            at += s.order
        return LocalBasis(index, phi, slope)

    def at(self, t: Floats) -> LocalBasis:
        """Return the basis at instants; limits from the right at knots, from the left at the end."""
        bounds = self.bounds
        cell = np.clip(np.searchsorted(bounds, t, side="right") - 1, 0, len(bounds) - 2)
        return self.local((bounds[cell] + bounds[cell + 1]) / 2, t)

    def interpolated(self, states: Sequence[Floats]) -> Floats:
        """Return β with the coefficients of state i equal to ``states[i]``, values at its ``averages``."""
        beta = np.zeros(self.count)
        for place, values in zip(self.places, states, strict=True):
            beta[place] = values
        return beta

    def moved_to(self, other: SplineMesh, beta: Floats) -> Floats:
        """Return the same trajectory on a mesh that contains the knots of this one (least squares on a fine grid)."""
        bounds = other.bounds
        fractions = np.polynomial.legendre.leggauss(max(s.order for s in other.splines) + 1)[0]
        t = (bounds[:-1, None] + np.diff(bounds)[:, None] * (1 + fractions) / 2).ravel()
        inside = np.repeat((bounds[:-1] + bounds[1:]) / 2, len(fractions))
        mine, theirs = self.local(inside, t), other.local(inside, t)
        values, moved = mine.values(beta), np.zeros(other.count)
        from scipy.sparse import csr_matrix
        from scipy.sparse.linalg import spsolve

        for i, place in enumerate(other.places):
            rows, columns = np.nonzero(theirs.phi[:, i])
            own = np.full(other.count, -1)
            own[place] = np.arange(len(place))
            entries = (theirs.phi[rows, i, columns], (rows, own[theirs.index[rows, columns]]))
            Phi = csr_matrix(entries, shape=(len(t), len(place)))
            moved[place] = spsolve((Phi.T @ Phi).tocsc(), Phi.T @ values[:, i])
        return moved


@dataclass(frozen=True)
class SplineKnots(Discretisation, saved_as="Knots"):
    """Of trajectories that are splines."""

    states: tuple[tuple[float, ...], ...]
    """The knots of each, one as often as it coincides with others."""
    quadrature: str | int
    """How the integral is summed up between knots."""
    noise_states: tuple[tuple[float, ...], ...] = ()
    """States at the samples, where formulas of noise contain states: minimised along with the residuals they would make
    the noise large."""

    @classmethod
    def on(cls, mesh: SplineMesh, quadrature: str | int, noise_states: Floats | None = None) -> Self:
        frozen = () if noise_states is None else tuple(map(tuple, noise_states.tolist()))
        return cls(tuple(tuple(s.knots.tolist()) for s in mesh.splines), quadrature, frozen)

    def __str__(self) -> str:
        orders = " and ".join(map(str, sorted({s.order for s in self.mesh.splines})))
        return f"splines of order {orders} on {len(self.mesh.bounds)} knots"

    @cached_property
    def mesh(self) -> SplineMesh:
        return SplineMesh(tuple(spline_of(np.array(knots)) for knots in self.states))
