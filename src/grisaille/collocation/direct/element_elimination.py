"""The Newton step of direct collocation: elimination inside elements, then along time; θ stays as a border.

A step minimises ½ dᵀH d + gᵀd under J d + c = 0. In each element the inner unknowns follow from the equations,

    dy = T s,      s = (1, dθ, dX_prev, dv),

which leaves a quadratic form in s. Along time the cost to go is a quadratic form ½ ςᵀP ς of ς = (1, dθ, dX), and

    M = S_vv + BᵀPB,   K = −M⁻¹(S_vς + BᵀPA),   P ← S_ςς + AᵀPA + (S_vς + BᵀPA)ᵀK        (Riccati)

The reduced Hessian is positive definite exactly when every M is, its determinant is the product of theirs, and the
paths scatter about their optimum with dv = K ς + N(0, M⁻¹): that gives covariances by one sweep forward. Reference:
C. V. Rao, S. J. Wright, J. B. Rawlings, J. Optim. Theory Appl. 99 (1998) 723.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotrs

from grisaille.collocation.array_types import Floats, Integers
from grisaille.collocation.compiled_functions import compiled_function
from grisaille.collocation.direct.element import ElementDerivatives, ElementSizes

ARRAYS_BY_FUNCTION = {"gr_condense": 10, "gr_sweep": 7, "gr_substitute": 6, "gr_scatter": 7}
"""Functions in C and how many arrays each takes."""


@dataclass(frozen=True, eq=False)
class CondensedElements:
    """Elements after elimination of their inner unknowns."""

    sizes: ElementSizes
    M: Floats
    """(E, N, 1 + slots + past + noise): a-step of s."""
    S: Floats
    """(E, …, …) the quadratic form of s."""
    onto: Floats
    """(E, 1 + slots + n, …): s → (1, dθ, dX at the end of the element)."""

    @property
    def end(self) -> Floats:
        """(E, n, …): s → dX at the end."""
        return self.onto[:, 1 + self.sizes.slots :]

    def part(self, first: int, last: int) -> CondensedElements:
        """Return some of the elements."""
        return CondensedElements(self.sizes, self.M[first:last], self.S[first:last], self.onto[first:last])


@dataclass(frozen=True, eq=False)
class CondensedWithDerivatives(CondensedElements):
    """With the derivatives that it comes from."""

    derivatives: ElementDerivatives


@dataclass(frozen=True, eq=False)
class BackwardSweep:
    """What the sweep from the end to the start leaves, for one record: of its first point and of its elements."""

    start: CondensedElements
    elements: CondensedElements
    P: Floats
    """(E + 1, 1 + slots + n, …): cost to go from each end, zero at the last."""
    first: Floats
    """(1 + slots, 1 + slots): the whole record as a quadratic form of (1, dθ)."""
    first_K: Floats
    K: Floats
    """(E, noise, 1 + slots + n)"""
    first_root: Floats
    root: Floats
    """(E, noise, noise): Cholesky factors of M."""
    log_determinant: float


class IndefiniteError(Exception):
    """The reduced Hessian is not positive definite at some element."""


def condense(
    d: ElementDerivatives, sizes: ElementSizes, n: int, nz: int, damping: Floats | None = None
) -> CondensedWithDerivatives:
    """Eliminate the inner unknowns of every element.

    damping : (E, noise) added to the curvature in v
    """
    return CondensedWithDerivatives(sizes, *_condensed(d, sizes, n, nz, damping), d)


def sweep(start: CondensedElements, elements: CondensedElements) -> BackwardSweep:
    """Return the backward sweep over the elements of a record, which begins at one first point."""
    try:
        P, K, roots = _swept(elements.S, elements.onto, elements.sizes)
    except np.linalg.LinAlgError:
        raise IndefiniteError from None
    whole, K0, root0 = _back(start.S[0], start.onto[0], P[0], 1 + elements.sizes.slots)
    pivots = np.concatenate([root0.diagonal(), roots.diagonal(axis1=1, axis2=2).ravel()])
    return BackwardSweep(start, elements, P, whole, K0, K, root0, roots, 2.0 * float(np.log(pivots).sum()))


def _back(S: Floats, onto: Floats, P: Floats, q: int) -> tuple[Floats, Floats, Floats]:
    """Return one element: the cost to go from its left end, K and the factor of M; s = (ς, v), ς of length q."""
    full = S + onto.T @ (P @ onto)
    if len(full) == q:
        return full, np.zeros((0, q)), np.zeros((0, 0))
    root, failed = dpotrf(full[q:, q:], lower=1, clean=1)
    if failed:
        raise np.linalg.LinAlgError
    K = -dpotrs(root, full[q:, :q], lower=1)[0]
    left = full[:q, :q] + full[:q, q:] @ K
    return 0.5 * (left + left.T), K, root


@dataclass(frozen=True, eq=False)
class RecordSteps:
    """Of one record, (…, D): steps of a of the first point and of every element, and costates at the ends."""

    start: Floats
    elements: Floats
    costates: Floats
    """(E + 1, n, D): ∂(cost to go)/∂X at each end."""


def substitute(swept: BackwardSweep, head: Floats) -> RecordSteps:
    """Return the forward sweep at (1, dθ), or at several of them side by side: head is (1 + slots, D)."""
    start, elements, h = swept.start, swept.elements, len(head)
    s0 = np.concatenate([head, swept.first_K @ head])
    path = _substituted(elements.onto, swept.K, start.end[0] @ s0, head, elements.sizes)
    costates = np.zeros((len(path) + 1, elements.end.shape[1], head.shape[1]))
    costates[:-1] = swept.P[:-1, h:] @ path[:, : swept.P.shape[1]]
    return RecordSteps(start.M[0] @ s0, elements.M @ path, costates)


def multipliers(condensed: CondensedWithDerivatives, steps: Floats, costates: Floats, nz: int) -> Floats:
    """Return λ of the step's equations: J_yᵀλ = −(g + H d)_y − costate at the end, (E, m)."""
    d, sizes = condensed.derivatives, condensed.sizes
    _, inner, _, _ = sizes.parts
    n = condensed.end.shape[1]
    right = d.gradient[:, inner] + np.einsum("eij,ej->ei", d.hessian[:, inner, :], steps)
    last = sizes.inner - (n + nz)
    right[:, last : last + n] += costates
    solved = np.linalg.solve(d.jacobian[:, :, inner].swapaxes(1, 2), -right[:, :, None])
    return cast(Floats, solved[:, :, 0])


def scatter(swept: BackwardSweep) -> tuple[Floats, list[Floats]]:
    """Return covariances at fixed θ: of X at every end, (E + 1, n, n), and of (X_prev, v) of the first point and
    elements.
    """
    elements, end = swept.elements, swept.start.end[0][:, 1 + swept.elements.sizes.slots :]
    joint0 = _inverse(swept.first_root)
    ends, joint = _scattered(elements.onto, swept.K, swept.root, end @ joint0 @ end.T, elements.sizes)
    return ends, [joint0, *joint]


def _inverse(root: Floats) -> Floats:
    """Return (L Lᵀ)⁻¹"""
    return root if not len(root) else cast(Floats, dpotrs(root, np.eye(len(root)), lower=1)[0])


def _condensed(
    d: ElementDerivatives, sizes: ElementSizes, n: int, nz: int, damping: Floats | None
) -> tuple[Floats, Floats, Floats]:
    """Return M, S and onto of every element; raises ``LinAlgError`` where the equations of one are singular."""
    E, N, w = len(d.c), sizes.total, 1 + sizes.slots + sizes.past + sizes.noise
    M, S, onto = np.empty((E, N, w)), np.empty((E, w, w)), np.empty((E, 1 + sizes.slots + n, w))
    given = [np.ascontiguousarray(x) for x in (d.jacobian.swapaxes(1, 2), d.hessian, d.gradient, d.c)]
    given.append(np.zeros((E, sizes.noise)) if damping is None else np.ascontiguousarray(damping))
    work = np.empty(sizes.inner**2 + N * w)
    if _call("gr_condense", _size(E, sizes, n, nz), *given, M, S, onto, work):
        raise np.linalg.LinAlgError("Singular matrix")
    return M, S, onto


def _swept(S: Floats, onto: Floats, sizes: ElementSizes) -> tuple[Floats, Floats, Floats]:
    """Return P, K and the Cholesky factors of M for the elements of a record; raises ``LinAlgError`` where one has
    none.
    """
    E, q, w = onto.shape
    P, K, root = np.zeros((E + 1, q, q)), np.empty((E, w - q, q)), np.empty((E, w - q, w - q))
    if _call("gr_sweep", _size(E, sizes, sizes.past, 0), S, onto, P, K, root, np.empty((q + w) * w)):
        raise np.linalg.LinAlgError("Matrix is not positive definite")
    return P, K, root


def _substituted(onto: Floats, K: Floats, X: Floats, head: Floats, sizes: ElementSizes) -> Floats:
    """Return s of every element, (E, w, D), for (1, dθ) = head, (1 + slots, D), from X, (n, D), at the first one's
    start.
    """
    path = np.empty((len(onto), onto.shape[2], head.shape[1]))
    path[:, : len(head)] = head
    columns = np.array([head.shape[1]], dtype=np.int64)
    _call("gr_substitute", _size(len(onto), sizes, sizes.past, 0), columns, onto, K, np.array(X, order="C"), path)
    return path


def _scattered(onto: Floats, K: Floats, root: Floats, X: Floats, sizes: ElementSizes) -> tuple[Floats, Floats]:
    """Return covariances of X at every end, (E + 1, n, n), from that at the first one's start, and of (X_prev, v)."""
    n, noise = sizes.past, sizes.noise
    ends, joint = np.empty((len(onto) + 1, n, n)), np.empty((len(onto), n + noise, n + noise))
    ends[0] = X
    work = np.empty(2 * noise**2 + n * (n + noise))
    _call("gr_scatter", _size(len(onto), sizes, n, 0), onto, K, root, ends, joint, work)
    return ends, joint


def _size(E: int, sizes: ElementSizes, n: int, nz: int) -> Integers:
    return np.array([E, sizes.past, sizes.inner, sizes.noise, sizes.slots, n, nz], dtype=np.int64)


def _call(name: str, *arrays: np.ndarray) -> int:
    return compiled_function("direct_elimination.c", name, ARRAYS_BY_FUNCTION[name])(*arrays)
