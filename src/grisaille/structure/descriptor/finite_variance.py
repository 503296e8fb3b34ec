"""Which variables of a linear stochastic descriptor system have finite variance.

    E z' = F z + Σ_l J_l w_l,     w_l = C_l z_l + D_l v_l,  z_l' = A_l z_l + B_l v_l,     v white,     y = H z

An output has finite variance when neither white noise nor a derivative of it reaches it directly. Decided twice:

- on the system augmented by its disturbance filters, (B.9): every W_l of the standard form vanishes (and, where the
  white noises are correlated, every W_l times a factor of their covariance);
- literally by eq. (7): [Ēʲ(λE + F)⁻¹J_l] projected along R(Ēⁿ) on N(Ēⁿ) lies in N(H) for all j ≥ p_l, where 2p_l is the
  pole excess of the spectrum of w_l. This one takes disturbances singly: with correlated ones it is only sufficient.

Reference: M. Gerdin, T. Schön, T. Glad, F. Gustafsson, L. Ljung, On parameter and state estimation for linear
differential-algebraic equations (2007), Theorems 3 and 5.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from grisaille.structure.descriptor.pencil import (
    CLEAR_ABOVE,
    CLEAR_BELOW,
    RANK_TOLERANCE,
    Matrix,
    invertible_shift,
    scale_pencil,
)
from grisaille.structure.descriptor.standard_form import Separation, separate_modes

Flags = np.ndarray
Counts = np.ndarray


@dataclass(frozen=True)
class NoiseFilter:
    """w = C z_w + D v,  z_w' = A z_w + B v: one disturbance and its white noise."""

    A: Matrix
    B: Matrix
    C: Matrix
    D: float = 0.0

    @property
    def pole_excess(self) -> int:
        """Return p of C(sI − A)⁻¹B + D ~ s⁻ᵖ: how often w may be integrated back to white noise."""
        if self.D != 0.0:
            return 0
        b, bound = self.B, np.abs(self.B)
        for k in range(1, len(self.A) + 1):
            if np.abs(self.C @ b).max() > RANK_TOLERANCE * (np.abs(self.C) @ bound).max():
                return k
            b, bound = self.A @ b, np.abs(self.A) @ bound
        return len(self.A) + 1  # the noise does not reach w at all


def white_filter(scale: float = 1.0) -> NoiseFilter:
    """Return w = scale · v."""
    return NoiseFilter(np.zeros((0, 0)), np.zeros((0, 1)), np.zeros((1, 0)), scale)


@dataclass(frozen=True)
class DisturbedSystem:
    """E z' = F z + J w, y = H z; column l of J belongs to filter l; ``correlation`` is that of the white noises."""

    E: Matrix
    F: Matrix
    J: Matrix
    H: Matrix
    filters: tuple[NoiseFilter, ...]
    correlation: Matrix | None = None


@dataclass(frozen=True)
class VarianceDecision:
    """Rows are outputs, columns disturbances."""

    finite: Flags
    """(outputs,) by the augmented pencil, correlation included."""
    finite_under: Flags
    """By the augmented pencil, each white noise alone."""
    finite_by_projection: Flags
    """By eq. (7), each disturbance alone."""
    differentiations: Counts
    """How often the disturbance itself is differentiated on the way: 0 enters directly, −1 only through states."""
    pole_excess: tuple[int, ...]
    close: tuple[str, ...]
    """Decisions that a small change of the numbers could turn round, in words."""
    separation: Separation
    """Of the system without its filters."""

    @property
    def views_agree(self) -> bool:
        by_count = self.differentiations < np.array(self.pole_excess, dtype=int)
        same = np.array_equal(self.finite_under, self.finite_by_projection)
        return same and np.array_equal(self.finite_under, by_count)


def decide_variance(system: DisturbedSystem) -> VarianceDecision:
    """Return both views of Theorem 3/5 on one system; raises ``StructureError`` where the pencil is singular."""
    plain = separate_modes(system.E, system.F)
    direct = _direct_terms(plain, system.J, system.H)
    augmented = augment(system)
    whole = plain if len(augmented.E) == len(system.E) else separate_modes(augmented.E, augmented.F)
    white = _direct_terms(whole, augmented.J, augmented.H)
    excess = tuple(f.pole_excess for f in system.filters)
    projected = projected_terms(system, plain)
    beyond = [p.nonzero & (np.array(excess) <= j)[None, :] for j, p in enumerate(projected)]
    shape = (len(system.H), len(system.filters))
    return VarianceDecision(
        finite=np.all(~_any([_correlated(w, system.correlation).nonzero for w in white], shape), axis=1),
        finite_under=~_any([w.nonzero for w in white], shape),
        finite_by_projection=~_any(beyond, shape),
        differentiations=_highest([d.nonzero for d in direct], shape),
        pole_excess=excess,
        close=_close(plain, whole, [*direct, *white]),
        separation=plain,
    )


def augment(system: DisturbedSystem) -> DisturbedSystem:
    """(B.9): disturbances as states, white noise as the only input."""
    import scipy.linalg

    A = scipy.linalg.block_diag(*(f.A for f in system.filters)) if system.filters else np.zeros((0, 0))
    n, m, nv = len(system.E), len(A), len(system.filters)
    B, C = np.zeros((m, nv)), np.zeros((nv, m))
    at = 0
    for k, f in enumerate(system.filters):
        size = len(f.A)
        B[at : at + size, k], C[k, at : at + size] = f.B.ravel(), f.C.ravel()
        at += size
    D = np.diag([f.D for f in system.filters]) if nv else np.zeros((0, 0))
    F = np.block([[system.F, system.J @ C], [np.zeros((m, n)), A]])
    J = np.vstack([system.J @ D, B])
    H = np.hstack([system.H, np.zeros((len(system.H), m))])
    return DisturbedSystem(scipy.linalg.block_diag(system.E, np.eye(m)), F, J, H, system.filters, system.correlation)


@dataclass(frozen=True)
class _Term:
    """A product and the bound that its rounding errors scale with; zero is what vanishes against the bound."""

    value: Matrix
    bound: Matrix

    @property
    def relative(self) -> Matrix:
        relative: Matrix = np.abs(self.value) / np.where(self.bound > 0, self.bound, 1.0)
        return relative

    @property
    def nonzero(self) -> Flags:
        return np.asarray(self.relative > RANK_TOLERANCE)

    @property
    def worst_doubt(self) -> float:
        """Return the entry that is least clearly zero or nonzero; 0 where all are clear."""
        doubtful = self.relative[(self.relative > CLEAR_BELOW) & (self.relative < CLEAR_ABOVE)]
        return float(doubtful.max(initial=0.0))


def _direct_terms(parts: Separation, J: Matrix, H: Matrix) -> list[_Term]:
    """Return c_a Nʲ J_a for j = 0, 1, …: the factor of the j-th derivative of the noise (up to its sign)."""
    _, J_a = parts.left(J)
    _, C_a = parts.right(H)
    size_left, size_right = np.abs(H) @ parts.rounding_Q, parts.rounding_P @ np.abs(J)
    terms = []
    for _ in range(parts.index):
        terms.append(_Term(C_a @ J_a, size_left @ size_right))
        C_a, size_left = C_a @ parts.N, size_left @ np.abs(parts.N)
    return terms


def projected_terms(system: DisturbedSystem, parts: Separation, shift: float | None = None) -> list[_Term]:
    """Return H Ēʲ(λE + F)⁻¹J_l along R(Ēⁿ) on N(Ēⁿ), j = 0, 1, …; from λ on independent of the staircase but for its
    index.

    ``shift`` is λ; by default one that makes λE + F well conditioned.
    """
    scaling = scale_pencil(system.E, system.F)
    E, F, J = (scaling.rows[:, None] * M for M in (system.E, system.F, system.J))
    E, F, H = (M * scaling.columns for M in (E, F, system.H))
    shift = invertible_shift(E, F) if shift is None else shift
    solve = np.linalg.solve(shift * E + F, np.hstack([E, J]))
    E_bar, X = solve[:, : len(E)], solve[:, len(E) :]
    onto = projector_on_null(E_bar)
    value, bound = onto @ X, np.linalg.norm(onto) * np.linalg.norm(X, axis=0)
    terms = []
    for _ in range(max(parts.index, 1)):
        terms.append(_Term(H @ value, np.abs(H).sum(axis=1)[:, None] * bound))
        value, bound = E_bar @ value, np.linalg.norm(E_bar) * bound
    return terms


def projector_on_null(E_bar: Matrix) -> Matrix:
    """Return the oblique projection along R(Ēⁿ) on N(Ēⁿ), Definition 2."""
    along, onto = range_of_power(E_bar), _complement(range_of_power(E_bar.T))
    basis = np.hstack([along, onto])
    return np.hstack([np.zeros_like(along), onto]) @ np.linalg.solve(basis, np.eye(len(basis)))


def range_of_power(matrix: Matrix) -> Matrix:
    """Return an orthonormal basis of R(Mⁿ), one factor at a time: powers themselves would drown small eigenvalues."""
    basis = np.eye(len(matrix))
    size = max(float(np.linalg.norm(matrix, 2)), 1e-300) if matrix.size else 1.0
    while True:
        left, values, _ = np.linalg.svd(matrix @ basis, full_matrices=False)
        kept = left[:, values > RANK_TOLERANCE * size]
        if kept.shape[1] == basis.shape[1]:
            return kept
        basis = kept


def _complement(basis: Matrix) -> Matrix:
    left, _, _ = np.linalg.svd(basis, full_matrices=True)
    return left[:, basis.shape[1] :]


def _correlated(term: _Term, correlation: Matrix | None) -> _Term:
    if correlation is None:
        return term
    values, vectors = np.linalg.eigh(correlation)
    factor = vectors * np.sqrt(np.where(values > 1e-12, values, 0.0))
    return _Term(term.value @ factor, term.bound @ np.abs(factor))


def _any(flags: Sequence[Flags], shape: tuple[int, ...]) -> Flags:
    found: Flags = np.logical_or.reduce([np.zeros(shape, dtype=bool), *flags])
    return found


def _highest(flags: Sequence[Flags], shape: tuple[int, ...]) -> Counts:
    highest = np.full(shape, -1)
    for j, flag in enumerate(flags):
        highest = np.where(flag, j, highest)
    return highest


def _close(plain: Separation, whole: Separation, terms: Sequence[_Term]) -> tuple[str, ...]:
    ranks = {str(d): None for parts in (plain, whole) for d in parts.staircase.close}
    doubts = [t.worst_doubt for t in terms if t.worst_doubt]
    factors = [f"a factor of white noise is {max(doubts):.1e} of its parts"] if doubts else []
    return (*ranks, *factors)
