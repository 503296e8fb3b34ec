"""Repairs a wrong structural index: equations whose derivatives cancel in a combination.

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
from grisaille.model.ordering import strong_components
from grisaille.structure.differentiability import refuse_jump
from grisaille.structure.equations import EquationRow, Equations
from grisaille.structure.row_slopes import slopes_of
from grisaille.structure.signature import Offsets
from grisaille.structure.singular.cancellation import (
    SIZE_FACTORS,
    random_point,
    typical_sizes,
    vanishes,
    without_cancelling_terms,
)
from grisaille.structure.singular.like_terms import without_like_terms
from grisaille.structure.singular.null_vectors import SampledJacobian
from grisaille.structure.singular.scaling import RANK_TOLERANCE, balanced


@dataclass(frozen=True)
class RowDependence:
    """Equations (indices) that are combined, with their factors, and the one that is replaced."""

    equations: tuple[int, ...]
    factors: tuple[ca.SX, ...]
    replaced: int


def repair_singular_block(equations: Equations, offsets: Offsets) -> Equations | None:
    """Return the equations with one dependent row replaced by its combination; None where no block is singular."""
    matrix, rows_of_block = _system_jacobian(equations, offsets)
    jacobian = SampledJacobian(equations, matrix)
    if not jacobian.points:
        return None
    for block in rows_of_block:
        columns = [offsets.transversal[i] for i in block]
        seen = jacobian.closer(block, columns) if jacobian.is_singular(block, columns) else None
        if seen is not None:
            dependence = _dependence(block, columns, seen, offsets)
            if dependence is not None:
                return _combine(equations, offsets, dependence, columns, seen.block(0, block, columns))
            names = ", ".join(equations.unknowns[j] for j in columns)
            raise StructureError(
                f"The equations {_list_texts(equations, block)} do not determine {{{names}}}: their derivatives cancel "
                f"in every combination. One of them follows from the others; replace it by an independent one."
            )
    return None


def _system_jacobian(equations: Equations, offsets: Offsets) -> tuple[ca.SX, list[list[int]]]:
    n = len(equations.rows)
    position = {name: j for j, name in enumerate(equations.unknowns)}
    entries: list[tuple[int, int, ca.SX]] = []
    users: list[set[int]] = [set() for _ in range(n)]
    owner = {j: i for i, j in enumerate(offsets.transversal)}
    tight = [
        [
            (position[name], equations.jets.symbol(name, order))
            for name, order in equations.jets.unknowns(row.residual).items()
            if offsets.is_tight(i, position[name], order)
        ]
        for i, row in enumerate(equations.rows)
    ]
    slopes = slopes_of([row.residual for row in equations.rows], [[symbol for _, symbol in row] for row in tight])
    for i, row in enumerate(tight):
        for (j, _), slope in zip(row, slopes[i], strict=True):
            entries.append((i, j, slope))
            users[i].add(owner[j])
    return _assembled(n, entries), strong_components(users)


def _assembled(n: int, entries: list[tuple[int, int, ca.SX]]) -> ca.SX:
    """Return the square matrix with these entries: put in one by one they would be moved again and again."""
    ordered = sorted(((j, i, value) for i, j, value in entries if value.nnz()), key=lambda e: e[:2])
    places = ca.Sparsity.triplet(n, n, [i for _, i, _ in ordered], [j for j, _, _ in ordered])
    return ca.SX(places, ca.vertcat(*(value for _, _, value in ordered))) if ordered else ca.SX(n, n)


def _dependence(
    block: list[int], columns: list[int], jacobian: SampledJacobian, offsets: Offsets
) -> RowDependence | None:
    """Return a left null vector of the block with as few entries as possible."""
    picked = jacobian.dependent_rows(block, columns)
    lowest = min(offsets.equations[i] for i in picked)
    replaced = next(i for i in reversed(picked) if offsets.equations[i] == lowest)
    factors = jacobian.null_vector(picked, columns, picked.index(replaced))
    return None if factors is None else RowDependence(tuple(picked), factors, replaced)


def _combine(
    equations: Equations, offsets: Offsets, dependence: RowDependence, columns: Sequence[int], block: np.ndarray
) -> Equations:
    jets = equations.jets
    base = offsets.equations[dependence.replaced]
    residuals = [equations.rows[i].residual for i in dependence.equations]
    times = [offsets.equations[i] - base for i in dependence.equations]
    for level in range(max(times)):
        # a jump may cancel in the combination, as it does where equations were written as sums of others
        rising = [k for k, n in enumerate(times) if n > level]
        together = sum((dependence.factors[k] * residuals[k] for k in rising), start=ca.SX(0))
        refuse_jump(jets, equations.parameters, together, _list_texts(equations, dependence.equations))
        for k in rising:
            residuals[k] = jets.differentiate(residuals[k])
    parts = without_like_terms([f * r for f, r in zip(dependence.factors, residuals, strict=True)])
    # the highest derivatives of the block's own unknowns cancel identically, so any value may stand for them
    cancelled = [
        jets.symbol(equations.unknowns[j], offsets.unknowns[j] - base)
        for j in columns
        if offsets.unknowns[j] - base >= 0
    ]
    _require_cancelling(equations, dependence, parts, cancelled)
    parts = [ca.substitute(part, ca.vertcat(*cancelled), ca.SX.zeros(len(cancelled))) for part in parts]
    parts = without_cancelling_terms(equations, parts)
    total = ca.simplify(sum(parts, start=ca.SX(0)))
    if vanishes(equations, parts):
        total = ca.SX(0)
    if not jets.unknowns(total):
        free = [equations.unknowns[columns[k]] for k in _undetermined(block)]
        _refuse_dependent(equations, dependence, total, free)
    rows = list(equations.rows)
    old = rows[dependence.replaced]
    others = ", ".join(f"'{equations.rows[i].text}'" for i in dependence.equations if i != dependence.replaced)
    raised = max((equations.rows[i].raised or 0) + n for i, n in zip(dependence.equations, times, strict=True))
    rows[dependence.replaced] = EquationRow(total, f"'{old.text}' combined with {others}", old.source, old.kind, raised)
    return replace(equations, rows=tuple(rows))


def _list_texts(equations: Equations, indices: Sequence[int]) -> str:
    return ", ".join(f"'{equations.rows[i].text}'" for i in indices)


def _require_cancelling(
    equations: Equations, dependence: RowDependence, parts: Sequence[ca.SX], cancelled: Sequence[ca.SX]
) -> None:
    """Refuse a combination that does not do what it was made for.

    Where the factors depend on what is to cancel, Σ λ f contains it through them, and no value may stand for it.
    """
    symbols = ca.symvar(ca.vertcat(*parts))
    if not symbols or not cancelled:
        return
    own = [s for s in cancelled if any(ca.depends_on(factor, s) for factor in dependence.factors)]
    if own:
        names = ", ".join(m.text for s in own if (m := equations.jets.meaning(s)))
        raise StructureError(
            f"The equations {_list_texts(equations, dependence.equations)} hide another one, which follows by "
            f"combining them with factors that depend on {{{names}}}, the very unknowns they are to be solved for: "
            f"such a combination is not made. Write them without sums of one another, so that the hidden one is alone."
        )
    slopes = ca.jacobian(ca.vertcat(*parts), ca.vertcat(*cancelled))
    function = ca.Function("slopes", [ca.vertcat(*symbols)], [slopes])
    random, units = np.random.default_rng(5), typical_sizes(equations, cancelled)
    for sample in range(len(SIZE_FACTORS)):
        value = np.array(function(random_point(equations, symbols, random, sample)).full()) * units
        largest = np.abs(value).max(axis=0)
        counts = largest > 1e-12 * largest.max(initial=0.0)  # the others are rounding themselves
        if np.isfinite(value).all() and (np.abs(value.sum(axis=0)) > 1e-6 * largest)[counts].any():
            raise StructureError(
                f"The derivatives in {_list_texts(equations, dependence.equations)} nearly cancel, not to rounding: "
                f"whether they do decides what the model is. Write them without sums of one another, or in units in "
                f"which their terms are of one size (nominal= gives the sizes of variables)."
            )


def _undetermined(block: np.ndarray) -> list[int]:
    """Return columns that a right null vector of the block moves."""
    _, singular, vt = np.linalg.svd(balanced(block)[0])
    null = vt[singular <= RANK_TOLERANCE * max(singular[0], 1e-300)]
    return [int(k) for k in np.flatnonzero(np.abs(null).max(axis=0) > 1e-6)]


def _refuse_dependent(equations: Equations, dependence: RowDependence, total: ca.SX, free: list[str]) -> NoReturn:
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
