"""Where the structural index is wrong: equations whose derivatives cancel in a combination.

The signature method trusts that the system Jacobian

    𝐉_ij = ∂f_i / ∂x_j^(d_j − c_i)

is nonsingular. In a capacitor between two free nodes (C(y₁' − y₂') in two equations) or in a robot arm with redundant
equations it is singular *identically*. Then a vector λ with λᵀ𝐉 = 0 combines the equations into one of lower order,

    f_l  ←  Σ_i λ_i f_i^(c_i − c_l),   c_l = min c_i over λ_i ≠ 0,

which replaces equation l; the sum of σ over the best transversal falls, so the process ends. λ is found numerically at
random points, per diagonal block; it is used as numbers where it does not depend on the point, as cofactors otherwise.

Reference: G. Tan, N. Nedialkov, J. Pryce, Conversion methods for improving structural analysis of DAEs (2017).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NoReturn

import casadi as ca
import numpy as np

from grisaille.errors import StructureError
from grisaille.structure.differentiability import differentiate
from grisaille.structure.equations import Equations, Row
from grisaille.structure.matching import strong_components
from grisaille.structure.signature import Offsets

SAMPLES = 4
RANK_TOLERANCE = 1e-9
"""Relative to the largest singular value of the scaled block; rounding is 1e-15, generic blocks lie above 1e-4."""


@dataclass(frozen=True)
class Dependence:
    """Equations (indices) that are combined, with their factors, and the one that is replaced."""

    equations: tuple[int, ...]
    factors: tuple[ca.SX, ...]
    replaced: int


def repair_singular_block(equations: Equations, offsets: Offsets) -> Equations | None:
    """The equations with one dependent row replaced by its combination; None where no block is singular."""
    jacobian, rows_of_block = _system_jacobian(equations, offsets)
    samples = _sample(equations, jacobian)
    if not samples:
        return None
    for block in rows_of_block:
        columns = [offsets.transversal[i] for i in block]
        values = [s[np.ix_(block, columns)] for s in samples]
        if all(_nullity(v) > 0 for v in values):
            dependence = _dependence(block, columns, values, jacobian, offsets)
            if dependence is not None:
                return _combine(equations, offsets, dependence, columns, values[0])
            names = ", ".join(equations.unknowns[j] for j in columns)
            raise StructureError(
                f"The equations {_list_texts(equations, block)} do not determine {{{names}}}: their derivatives cancel "
                f"in every combination. One of them follows from the others; replace it by an independent one."
            )
    return None


def _system_jacobian(equations: Equations, offsets: Offsets) -> tuple[ca.SX, list[list[int]]]:
    n = len(equations.rows)
    position = {name: j for j, name in enumerate(equations.unknowns)}
    jacobian = ca.SX(n, n)
    users: list[set[int]] = [set() for _ in range(n)]
    owner = {j: i for i, j in enumerate(offsets.transversal)}
    for i, row in enumerate(equations.rows):
        tight = [
            (position[name], order)
            for name, order in equations.jets.unknowns(row.residual).items()
            if offsets.is_tight(i, position[name], order)
        ]
        symbols = [equations.jets.symbol(equations.unknowns[j], order) for j, order in tight]
        slopes = ca.jacobian(row.residual, ca.vertcat(*symbols))
        for k, (j, _) in enumerate(tight):
            jacobian[i, j] = slopes[0, k]
            users[i].add(owner[j])
    return jacobian, strong_components(users)


def _sample(equations: Equations, jacobian: ca.SX) -> list[np.ndarray]:
    """Finite values of the Jacobian at random points."""
    symbols = ca.symvar(jacobian)
    function = ca.Function("jacobian", [ca.vertcat(*symbols)] if symbols else [ca.SX(0, 1)], [jacobian])
    random = np.random.default_rng(20011)
    samples = []
    for attempt in range(6 * SAMPLES):
        # positive first: logarithms, roots and concentrations live there; then of any sign
        low = 0.3 if attempt < 3 * SAMPLES else -1.3
        value = np.array(function(random.uniform(low, 1.7, len(symbols))).full())
        if np.isfinite(value).all():
            samples.append(value)
        if len(samples) == SAMPLES:
            break
    return samples


def _equilibrated(block: np.ndarray) -> np.ndarray:
    scaled = block.copy()
    for axis in (1, 0):
        largest = np.abs(scaled).max(axis=axis, keepdims=True)
        scaled = scaled / np.where(largest > 0, largest, 1.0)
    return scaled


def _nullity(block: np.ndarray) -> int:
    singular = np.linalg.svd(_equilibrated(block), compute_uv=False)
    return int(np.sum(singular <= RANK_TOLERANCE * max(singular[0], 1e-300)))


def _dependence(
    block: list[int], columns: list[int], values: Sequence[np.ndarray], jacobian: ca.SX, offsets: Offsets
) -> Dependence | None:
    """A left null vector of the block with as few entries as possible."""
    members = _dependent_rows(values[0])
    factors = [_left_null(v[members]) for v in values]
    if any(f is None for f in factors):
        return None
    numbers = np.array(factors)
    picked = [block[m] for m in members]
    lowest = min(offsets.equations[i] for i in picked)
    replaced = next(i for i in reversed(picked) if offsets.equations[i] == lowest)
    anchor = picked.index(replaced)
    numbers = numbers / numbers[:, [anchor]]
    if np.abs(numbers - numbers[0]).max() <= 1e-7 * np.abs(numbers).max():
        return Dependence(tuple(picked), tuple(ca.SX(_tidy(v)) for v in numbers[0]), replaced)
    return Dependence(tuple(picked), _cofactors(picked, columns, values[0][members], jacobian), replaced)


def _dependent_rows(value: np.ndarray) -> list[int]:
    """A minimal set of linearly dependent rows: rows are dropped while the rest stays dependent."""
    members = list(range(value.shape[0]))
    for row in list(members):
        fewer = [m for m in members if m != row]
        if fewer and _row_nullity(value[fewer]) > 0:
            members = fewer
    return members


def _row_nullity(rows: np.ndarray) -> int:
    singular = np.linalg.svd(_equilibrated(rows), compute_uv=False)
    return int(rows.shape[0] - np.sum(singular > RANK_TOLERANCE * max(singular[0], 1e-300)))


def _left_null(rows: np.ndarray) -> np.ndarray | None:
    scale = np.abs(rows).max(axis=1)
    scale[scale == 0] = 1.0
    u, singular, _ = np.linalg.svd(rows / scale[:, None])
    rank = int(np.sum(singular > RANK_TOLERANCE * max(singular[0] if singular.size else 0.0, 1e-300)))
    if rank != rows.shape[0] - 1:
        return None
    return np.asarray(u[:, -1] / scale)


def _tidy(value: float) -> float:
    """±1, 2, ½ … as they are meant, not as the decomposition found them."""
    for denominator in range(1, 13):
        nearest = round(value * denominator) / denominator
        if abs(value - nearest) <= 1e-9 * max(1.0, abs(value)):
            return nearest
    return value


def _cofactors(picked: list[int], columns: list[int], value: np.ndarray, jacobian: ca.SX) -> tuple[ca.SX, ...]:
    """λ_i = (−1)^i · minor without row i, over columns on which the rows have full rank but one."""
    chosen: list[int] = []
    for k in range(len(columns)):
        if np.linalg.matrix_rank(value[:, [*chosen, k]], tol=1e-9) == len(chosen) + 1:
            chosen.append(k)
    factors = []
    for i in range(len(picked)):
        rest = [r for k, r in enumerate(picked) if k != i]
        minor = jacobian[rest, [columns[k] for k in chosen]]
        factors.append((-1.0) ** i * (ca.det(ca.densify(minor)) if rest else ca.SX(1)))
    return tuple(factors)


def _combine(
    equations: Equations, offsets: Offsets, dependence: Dependence, columns: Sequence[int], block: np.ndarray
) -> Equations:
    jets = equations.jets
    base = offsets.equations[dependence.replaced]
    total = ca.SX(0)
    for i, factor in zip(dependence.equations, dependence.factors, strict=True):
        residual = equations.rows[i].residual
        for _ in range(offsets.equations[i] - base):
            residual = differentiate(jets, equations.parameters, residual, equations.rows[i].text)
        total += factor * residual
    # the highest derivatives of the block's own unknowns cancel identically, so any value may stand for them
    cancelled = [
        jets.symbol(equations.unknowns[j], offsets.unknowns[j] - base)
        for j in columns
        if offsets.unknowns[j] - base >= 0
    ]
    total = ca.simplify(ca.substitute(total, ca.vertcat(*cancelled), ca.SX.zeros(len(cancelled))))
    if _vanishes(total):
        total = ca.SX(0)
    if not jets.unknowns(total):
        free = [equations.unknowns[columns[k]] for k in _undetermined(block)]
        _refuse_dependent(equations, dependence, total, free)
    rows = list(equations.rows)
    old = rows[dependence.replaced]
    others = ", ".join(f"'{equations.rows[i].text}'" for i in dependence.equations if i != dependence.replaced)
    rows[dependence.replaced] = Row(total, f"'{old.text}' combined with {others}", old.source, old.kind)
    return replace(equations, rows=tuple(rows))


def _list_texts(equations: Equations, indices: Sequence[int]) -> str:
    return ", ".join(f"'{equations.rows[i].text}'" for i in indices)


def _vanishes(formula: ca.SX) -> bool:
    """Whether a formula is zero at random points, up to the rounding of its largest derivative."""
    symbols = ca.symvar(formula)
    if not symbols:
        return False
    v = ca.vertcat(*symbols)
    function = ca.Function("total", [v], [formula, ca.jacobian(formula, v)])
    random = np.random.default_rng(5)
    seen = [function(random.uniform(0.3, 1.7, len(symbols))) for _ in range(SAMPLES)]
    return all(
        np.isfinite(float(value)) and abs(float(value)) < 1e-12 and np.abs(slope.full()).max() < 1e-12
        for value, slope in seen
    )


def _undetermined(block: np.ndarray) -> list[int]:
    """Columns that a right null vector of the block moves."""
    scale = np.abs(block).max(axis=0)
    scale[scale == 0] = 1.0
    _, singular, vt = np.linalg.svd(block / scale)
    null = vt[singular <= RANK_TOLERANCE * max(singular[0], 1e-300)]
    return [int(k) for k in np.flatnonzero(np.abs(null).max(axis=0) > 1e-6)]


def _refuse_dependent(equations: Equations, dependence: Dependence, total: ca.SX, free: list[str]) -> NoReturn:
    texts = _list_texts(equations, dependence.equations)
    if total.is_constant() and float(total) == 0:
        raise StructureError(
            f"The equations {texts} follow from each other, so the unknowns {{{', '.join(free)}}} are underdetermined: "
            f"one equation is missing. Add one that fixes a value among them; in a circuit or mechanism without a "
            f"reference, connect a Ground or Fixed."
        )
    raise StructureError(
        f"The equations {texts} contradict each other: a combination of them contains no unknown but does not vanish. "
        f"Remove one of them, or turn a parameter or input in them into a variable."
    )
