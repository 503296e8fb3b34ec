"""Finite and infinite modes apart: the standard form of a linear descriptor system.

    E z' = F z + G u + J v,    y = H z

With P and Q from the staircase and a generalised Sylvester equation, z = Q (x_s, x_a) gives

    x_s' = A x_s + G_s u + J_s v,    N x_a' = x_a + G_a u + J_a v,    N nilpotent, Nᵐ = 0,

so that x_a = −Σ_{l=1}^{m} N^{l−1} (G_a u + J_a v)^{(l−1)} and

    y = C x_s + Σ_l D_l u^{(l−1)} + Σ_l W_l v^{(l−1)},    D_l = −C_a N^{l−1} G_a,    W_l = −C_a N^{l−1} J_a.

The start z(t₀) is free only in its part Q₁ x_s: the oblique projection along the infinite modes on the finite ones.

Reference: M. Gerdin, T. Schön, T. Glad, F. Gustafsson, L. Ljung, On parameter and state estimation for linear
differential-algebraic equations (2007), eqs. (8), (13), (20)–(23), (B.9)–(B.14), with the signs of (B.13).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from grisaille.errors import StructureError
from grisaille.structure.descriptor.pencil import Matrix, Staircase, best_shift, build_staircase


@dataclass(frozen=True)
class Separation:
    """P E Q = diag(I, N) and P F Q = diag(A, I)."""

    A: Matrix
    N: Matrix
    P: Matrix
    Q: Matrix
    rounding_P: Matrix
    rounding_Q: Matrix
    """Sizes that rounding errors of the infinite rows of P and columns of Q scale with."""
    index: int
    staircase: Staircase

    @property
    def finite_modes(self) -> int:
        return len(self.A)

    @property
    def free_basis(self) -> Matrix:
        """Return columns that span the free part of z(t₀): z(t₀) = T₁ x_s(t₀) + what inputs and disturbances
        dictate.
        """
        return self.Q[:, : self.finite_modes]

    @property
    def free_projector(self) -> Matrix:
        """Return the projection of eq. (8): what of z(t₀) may be chosen; a zero row is a variable without any
        freedom.
        """
        projector: Matrix = self.free_basis @ _inverse(self.Q)[: self.finite_modes]
        return projector

    def left(self, B: Matrix) -> tuple[Matrix, Matrix]:
        """Return an input matrix in the new coordinates: its finite and its infinite part."""
        turned = self.P @ B
        return turned[: self.finite_modes], turned[self.finite_modes :]

    def right(self, H: Matrix) -> tuple[Matrix, Matrix]:
        """Return an output matrix in the new coordinates."""
        turned = H @ self.Q
        return turned[:, : self.finite_modes], turned[:, self.finite_modes :]


@dataclass(frozen=True)
class StandardForm:
    """x' = A x + B u + L v,   y = C x + Σ_l D[l] u^{(l)} + Σ_l W[l] v^{(l)}; all W vanish for a well-posed problem."""

    A: Matrix
    B: Matrix
    L: Matrix
    C: Matrix
    D: tuple[Matrix, ...]
    W: tuple[Matrix, ...]
    separation: Separation


def separate_modes(E: Matrix, F: Matrix) -> Separation:
    """Return the finite and the infinite part of a regular pencil; raises ``StructureError`` for a singular one."""
    staircase = build_staircase(E, F)
    if not staircase.is_regular:
        raise StructureError(
            "The pencil sE − F is singular: its determinant vanishes for every s, so the equations leave some variable "
            f"undetermined or contradict each other. Decided by {staircase.decisions[-1]}."
        )
    return _finish(staircase)


def standard_form(E: Matrix, F: Matrix, G: Matrix, J: Matrix, H: Matrix) -> StandardForm:
    """Return the standard form of E z' = F z + G u + J v, y = H z (all matrices two-dimensional)."""
    parts = separate_modes(E, F)
    B, G_a = parts.left(G)
    L, J_a = parts.left(J)
    C, C_a = parts.right(H)
    levels = [C_a]
    for _ in range(1, parts.index):
        levels.append(levels[-1] @ parts.N)
    used = levels[: parts.index]
    return StandardForm(parts.A, B, L, C, tuple(-c @ G_a for c in used), tuple(-c @ J_a for c in used), parts)


def solve_sylvester(E1: Matrix, E2: Matrix, E3: Matrix, F1: Matrix, F2: Matrix, F3: Matrix) -> tuple[Matrix, Matrix]:
    """Return L and R of E₁R + LE₃ = −E₂, F₁R + LF₃ = −F₂, eq. (23).

    With W_i = λE_i + F_i and R eliminated it is an ordinary Sylvester equation, S L − L 𝐍 = (E₂ − S W₂)W₃⁻¹, where
    S = E₁W₁⁻¹ is nonsingular and 𝐍 = E₃W₃⁻¹ nilpotent. (The series in powers of E₁⁻¹F₁ ends as well, but loses all
    digits once a mode is fast.) Two rounds of refinement bring the residual back to rounding at high index.
    """
    import scipy.linalg

    L, R = np.zeros(E2.shape), np.zeros(E2.shape)
    if not E2.size:
        return L, R
    shift = best_shift(E1, F1)
    W1, W3 = shift * E1 + F1, shift * E3 + F3
    S, N = _divide(E1, W1), _divide(E3, W3)
    for _ in range(3):
        rest_E, rest_F = E2 + E1 @ R + L @ E3, F2 + F1 @ R + L @ F3
        rest_W = shift * rest_E + rest_F
        step = scipy.linalg.solve_sylvester(S, -N, _divide(rest_E - S @ rest_W, W3))
        L, R = L + step, R - np.linalg.solve(W1, rest_W + step @ W3)
    return L, R


def _divide(A: Matrix, B: Matrix) -> Matrix:
    """Return A B⁻¹."""
    return np.linalg.solve(B.T, A.T).T


def _finish(s: Staircase) -> Separation:
    import scipy.linalg

    k = s.finite_modes
    blocks = [M[rows, columns] for M in (s.E, s.F) for rows, columns in _upper(k)]
    E1, E2, E3, F1, F2, F3 = blocks
    L, R = solve_sylvester(E1, E2, E3, F1, F2, F3)
    n = len(s.E)
    P, Q = np.eye(n), np.eye(n)
    P[:k, k:], Q[:k, k:] = L, R
    # rows of U and V are orthonormal up to the scaling: entries are wrong by rounding of one, not of themselves
    rounding_P = np.abs(_inverse(F3)).sum(axis=1)[:, None] * s.scaling.rows
    rounding_Q = s.scaling.columns[:, None] * np.abs(Q[:, k:]).sum(axis=0)
    P = scipy.linalg.block_diag(_inverse(E1) * s.scaling.time, _inverse(F3)) @ P @ s.U
    A = np.linalg.solve(E1, F1) * s.scaling.time
    N = _strictly_upper(np.linalg.solve(F3, E3), s.steps[::-1]) / s.scaling.time
    return Separation(A, N, P, s.V @ Q, rounding_P, rounding_Q, s.index, s)


def _upper(k: int) -> tuple[tuple[slice, slice], ...]:
    head, tail = slice(None, k), slice(k, None)
    return (head, head), (head, tail), (tail, tail)


def _inverse(matrix: Matrix) -> Matrix:
    return np.linalg.solve(matrix, np.eye(len(matrix)))


def _strictly_upper(matrix: Matrix, sizes: tuple[int, ...]) -> Matrix:
    """Clear the blocks on and below the diagonal, zero by construction: without their rounding, Nᵐ = 0 holds
    exactly.
    """
    block = np.repeat(np.arange(len(sizes)), sizes)
    return np.where(block[:, None] < block[None, :], matrix, 0.0)
