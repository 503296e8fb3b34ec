"""The pencil sE − F of E z' = F z + …: is it regular, how many finite modes, what is its index.

QZ alone cannot count: modes that are infinite show up as large finite ones (|β/α| up to 5e-4 at index 4), among which
a fast mode of the plant disappears. The count comes from a staircase of rank decisions instead. One step compresses the
rows of E, and then the columns of those rows of F that E does not reach,

    Uᵀ(sE − F)V = [ sE₁₁ − F₁₁   sE₁₂ − F₁₂ ]
                  [      0          −F₂₂    ],       F₂₂ square and nonsingular,

and goes on with the upper left corner until E is nonsingular there. The size of that corner is the number of finite
modes, the number of steps the index; F₂₂ without full rank means that the pencil is singular. The end of the staircase
is block triangular already, with exact zeros: what an ordered QZ only reaches to rounding.

All transformations are orthogonal, after one scaling of rows, columns and the unit of time (Curtis–Reid: a fit to
the logarithms of the entries), so that rank decisions do not depend on units.

Reference: P. Van Dooren, The computation of Kronecker's canonical form of a singular pencil (1979).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import scipy.linalg
    import scipy.sparse

Matrix = np.ndarray

RANK_TOLERANCE = 1e-10
"""Singular values below this, relative to the largest of the scaled matrix, count as zero."""
CLEAR_BELOW, CLEAR_ABOVE = 1e-12, 1e-7
"""Between these a singular value is neither rounding nor clearly there: the decision is called close."""
MAX_DENSE_ENTRIES = 40_000
"""Entries of a matrix up to which arithmetic with its zeros is quicker than a sparse one's bookkeeping."""


class CloseDecisionWarning(UserWarning):
    """A rank or a zero was decided on a number that is neither rounding nor clearly different from zero."""


@dataclass(frozen=True)
class Decision:
    """How many singular values counted, the smallest that did and the largest that did not (relative)."""

    what: str
    rank: int
    smallest_kept: float
    largest_dropped: float

    @property
    def is_close(self) -> bool:
        return self.smallest_kept < CLEAR_ABOVE or self.largest_dropped > CLEAR_BELOW

    def __str__(self) -> str:
        kept, dropped = f"smallest kept {self.smallest_kept:.1e}", f"largest dropped {self.largest_dropped:.1e}"
        return f"{self.what}: {self.rank} ({kept}, {dropped})"


@dataclass(frozen=True)
class Scaling:
    """rows[i] · E[i, j] · columns[j] · time and rows[i] · F[i, j] · columns[j] have entries near one."""

    rows: Matrix
    columns: Matrix
    time: float


@dataclass(frozen=True)
class Staircase:
    """U · E · V and U · F · V block upper triangular: finite modes first, then the steps of the staircase.

    ``E`` and ``F`` are the transformed matrices. Where the pencil is not regular they are as far as the staircase came.
    """

    E: Matrix
    F: Matrix
    U: Matrix
    V: Matrix
    scaling: Scaling
    is_regular: bool
    finite_modes: int
    steps: tuple[int, ...]
    """Sizes of F₂₂, from the first step to the last."""
    decisions: tuple[Decision, ...]

    @property
    def index(self) -> int:
        """Return nilpotency index of the infinite part: 0 for an ordinary differential equation."""
        return len(self.steps)

    @cached_property
    def close(self) -> tuple[Decision, ...]:
        """Return the decisions that a small change of the numbers could turn round."""
        return tuple(d for d in self.decisions if d.is_close)


def build_staircase(E: Matrix, F: Matrix) -> Staircase:
    """Return the staircase of a square pencil; ``is_regular`` is False where det(sE − F) vanishes for all s."""
    scaling = scale_pencil(E, F)
    e = scaling.rows[:, None] * E * scaling.columns * scaling.time
    f = scaling.rows[:, None] * F * scaling.columns
    return _StaircaseBuilder(e, f, scaling).build()


class _StaircaseBuilder:
    """The staircase under way; ``active`` is the size of the corner that is not yet finished."""

    def __init__(self, E: Matrix, F: Matrix, scaling: Scaling) -> None:
        self.E, self.F, self.scaling = E, F, scaling
        self.active = len(E)
        self.U, self.V = np.diag(scaling.rows), np.diag(scaling.columns)
        self.size_E, self.size_F = _spectral(E), _spectral(F)
        self.steps: list[int] = []
        self.decisions: list[Decision] = []

    def build(self) -> Staircase:
        is_regular = True
        while is_regular and self.active:
            rank = self._compress_rows()
            if rank == self.active:
                break
            is_regular = self._compress_columns(rank)
        return Staircase(
            self.E, self.F, self.U, self.V, self.scaling, is_regular,
            self.active if is_regular else 0, tuple(self.steps), tuple(self.decisions),
        )  # fmt: skip

    def _compress_rows(self) -> int:
        k = self.active
        left, values, _ = np.linalg.svd(self.E[:k, :k])
        rank = self._decide(f"rank of E in step {len(self.steps) + 1}", values, self.size_E)
        if rank < k:
            for matrix in (self.E, self.F, self.U):
                matrix[:k] = left.T @ matrix[:k]
            self.E[rank:k, :k] = 0.0
        return rank

    def _compress_columns(self, rank: int) -> bool:
        k, size = self.active, self.active - rank
        _, values, right = np.linalg.svd(self.F[rank:k, :k])
        if self._decide(f"rank of F where E vanishes in step {len(self.steps) + 1}", values, self.size_F) < size:
            return False
        turn = np.hstack([right[size:].T, right[:size].T])
        for matrix in (self.E, self.F, self.V):
            matrix[:, :k] = matrix[:, :k] @ turn
        self.F[rank:k, :rank] = 0.0
        self.E[rank:k, :k] = 0.0
        self.active = rank
        self.steps.append(size)
        return True

    def _decide(self, what: str, values: Matrix, size: float) -> int:
        relative = values / size if size else values
        rank = int(np.sum(relative > RANK_TOLERANCE))
        kept = float(relative[rank - 1]) if rank else np.inf
        dropped = float(relative[rank]) if rank < len(relative) else 0.0
        self.decisions.append(Decision(what, rank, kept, dropped))
        return rank


def scale_pencil(E: Matrix, F: Matrix) -> Scaling:
    """Return the Curtis–Reid scaling with the unit of time as one more unknown; factors are powers of two (no
    rounding).
    """
    import scipy.linalg
    import scipy.sparse

    n = len(E)
    entries = [(M, k) for M, k in ((E, 1.0), (F, 0.0))]
    rows, columns, times, logs = [], [], [], []
    for matrix, in_time in entries:
        i, j = np.nonzero(matrix)
        rows.append(i)
        columns.append(j)
        times.append(np.full(len(i), in_time))
        logs.append(np.log2(np.abs(matrix[i, j])))
    i, j, t, b = (np.concatenate(part) for part in (rows, columns, times, logs))
    each = np.arange(len(i))
    unknown = np.concatenate([i, n + j, np.full(len(i), 2 * n)])
    share = np.concatenate([np.ones(2 * len(i)), t])
    A = scipy.sparse.csr_array((share, (np.tile(each, 3), unknown)), shape=(len(i), 2 * n + 1))
    factors = np.exp2(np.round(_fit_robustly(A, -b)))
    return Scaling(factors[:n], factors[n : 2 * n], float(factors[-1]))


def _fit_robustly(A: scipy.sparse.csr_array, b: Matrix) -> Matrix:
    """Minimise nearly the least absolute deviations: an entry that is only rounding (1e-17 beside 1) must not pull the
    scales.
    """
    found, weight = np.zeros(A.shape[1]), np.ones(len(b))
    few = A.toarray() if A.shape[0] * A.shape[1] <= MAX_DENSE_ENTRIES else None
    for _ in range(6 if len(b) else 0):
        weighted = A.T * weight if few is None else few.T * weight
        # rows times a and columns divided by a fit equally well: a little weight on zero chooses
        normal = (weighted @ A).toarray() if few is None else weighted @ few
        normal.flat[:: len(normal) + 1] += 1e-4
        found = np.linalg.solve(normal, weighted @ b)
        weight = 1.0 / np.maximum(np.abs(A @ found - b), 1.0)
    return found


@dataclass(frozen=True)
class PencilDependence:
    """The cause of a singular pencil: equations that repeat others, and variables that nothing determines."""

    equations: tuple[int, ...]
    variables: tuple[int, ...]


def find_dependence(E: Matrix, F: Matrix) -> PencilDependence:
    """Return the supports of the left and right null vectors of sE − F at two values of s away from any spectrum."""
    scaling = scale_pencil(E, F)
    scaled = (scaling.rows[:, None] * M * scaling.columns for M in (scaling.time * E, F))
    e, f = scaled
    equations: set[int] = set()
    variables: set[int] = set()
    for s in (0.7310585, -1.3247179):
        left, values, right = np.linalg.svd(s * e - f)
        null = values <= RANK_TOLERANCE * max(values[0], 1e-300)
        equations |= set(np.flatnonzero(np.abs(left[:, null]).max(axis=1, initial=0.0) > 1e-8).tolist())
        variables |= set(np.flatnonzero(np.abs(right[null]).max(axis=0, initial=0.0) > 1e-8).tolist())
    return PencilDependence(tuple(sorted(equations)), tuple(sorted(variables)))


def invertible_shift(E: Matrix, F: Matrix) -> float:
    """Return a number λ for which λE + F is far from singular; any that is not will do in theory."""
    scaling = scale_pencil(E, F)
    e, f = (scaling.rows[:, None] * M * scaling.columns for M in (scaling.time * E, F))
    return best_shift(e, f) * scaling.time


def best_shift(E: Matrix, F: Matrix) -> float:
    """Return the same for a pencil that is scaled already (entries that are only rounding must not be scaled up)."""
    candidates = [sign * 2.0**k for k in (-2, 0, 4) for sign in (1.0, -1.0)]
    return min(candidates, key=lambda shift: _condition(shift * E + F))


def _condition(matrix: Matrix) -> float:
    import scipy.linalg
    import scipy.sparse

    values = scipy.linalg.svdvals(matrix) if matrix.size else np.ones(1)
    return float(values[0] / values[-1]) if values[-1] > 0 else np.inf


def _spectral(matrix: Matrix) -> float:
    return float(np.linalg.norm(matrix, 2)) if matrix.size else 0.0
