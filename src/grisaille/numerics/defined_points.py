"""Outputs where nothing was measured: there their formulas may be undefined, as log(c) is where c is zero.

A missing measurement has the weight zero, but zero times infinity is not zero, neither in the criterion nor in its
derivatives. So a formula that may be undefined is evaluated at a fixed point where it is not, wherever its output is
missing: value and derivatives are finite there, and the weight makes nothing of them.
"""

from __future__ import annotations

from collections.abc import Sequence

import casadi as ca
import numpy as np

PARTIAL_OPERATIONS = frozenset(
    (ca.OP_DIV, ca.OP_INV, ca.OP_LOG, ca.OP_LOG1P, ca.OP_SQRT, ca.OP_POW, ca.OP_CONSTPOW, ca.OP_TAN, ca.OP_ASIN,
     ca.OP_ACOS, ca.OP_ACOSH, ca.OP_ATANH, ca.OP_FMOD, ca.OP_REMAINDER, ca.OP_ATAN2)
)  # fmt: skip
"""Operations that are not defined everywhere, or have no derivative somewhere."""
MAX_TRIES = 50
"""Points that are tried, of every size."""
TRIED_SIZES = (1.0, 10.0, 0.1, 1e3, 1e-3)


def find_defined_points(formulas: ca.SX, arguments: Sequence[ca.SX]) -> dict[int, np.ndarray]:
    """Find for each row of ``formulas`` that may be undefined a point at which it is defined, with derivatives
    up to the second; a row for which none is found is left out."""
    v = ca.vertcat(*(ca.vec(a) for a in arguments))
    found = {}
    for k, formula in enumerate(ca.vertsplit(ca.densify(formulas)) if formulas.numel() else ()):
        if not _may_be_undefined(formula, v):
            continue
        hessian, gradient = ca.hessian(formula, v)
        function = ca.Function("defined", [v], [formula, gradient, hessian])
        point = next((p for p in _candidates(v.numel()) if _is_finite(function, p)), None)
        if point is not None:
            found[k] = point
    return found


def at_defined_point(arguments: Sequence[ca.SX], is_measured: ca.SX, point: np.ndarray) -> list[ca.SX]:
    """Return the arguments where an output was measured, else ``point``."""
    moved, at = [], 0
    for argument in arguments:
        n = argument.numel()
        fixed = ca.reshape(ca.SX(point[at : at + n]), *argument.shape)
        moved.append(ca.if_else(is_measured, argument, fixed) if n else argument)
        at += n
    return moved


def _may_be_undefined(formula: ca.SX, v: ca.SX) -> bool:
    function = ca.Function("formula", [v], [formula])
    return any(function.instruction_id(k) in PARTIAL_OPERATIONS for k in range(function.n_instructions()))


def _candidates(n: int) -> list[np.ndarray]:
    random = np.random.default_rng(11)
    one = [np.ones(n), np.full(n, 0.5)]
    return one + [
        size * random.uniform(low, 1.0, n) for size in TRIED_SIZES for low in (0.1, -1.0) for _ in range(MAX_TRIES)
    ]  # fmt: skip


def _is_finite(function: ca.Function, point: np.ndarray) -> bool:
    return all(np.isfinite(np.array(part.nonzeros())).all() for part in function(point))
