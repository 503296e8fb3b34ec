"""From spectra with scales and correlations to one process.

Correlated disturbances (``Disturbance(size=n, correlation=R)``) stand side by side in one process,

    A = diag(A₁, …)        B = diag(B₁, …)·chol(R)        C = diag(scale₁ C₁, …)

and white ones become D = diag(scale)·chol(R). Formulas of parameters are inserted, as numbers or as symbols.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from grisaille.disturbance.factorization import factorize, factorize_symbolic, nonzero_pivots
from grisaille.disturbance.process import Process
from grisaille.errors import ModelError
from grisaille.model.expression import Constant, Expression, as_expression
from grisaille.model.flat import FlatDisturbance
from grisaille.model.lowering.lowering import lower
from grisaille.model.spectra import Spectrum

if TYPE_CHECKING:
    pass

Floats = NDArray[np.float64]
Leaf = Callable[[str], ca.SX]


def build_process(
    names: Sequence[str], spectra: Sequence[Spectrum], scales: Sequence[float | Expression], correlation: Any = None,
    values: Mapping[str, float] | None = None,
) -> Process:  # fmt: skip
    """Return the process of one or several disturbances at given values of the parameters in their formulas.

    correlation : (m, m) of the driving white noises, numbers or formulas; ``None`` for independent ones
    """
    known = values or {}
    symbolic = build_symbolic_process(names, spectra, scales, correlation, lambda path: ca.SX(known[path]), known)
    A, B, C, D = (_numbers(m) for m in (symbolic.A, symbolic.B, symbolic.C, symbolic.D))
    return Process(symbolic.names, A, B, C, D, symbolic.blocks, symbolic.starts)


def build_symbolic_process(
    names: Sequence[str], spectra: Sequence[Spectrum], scales: Sequence[float | Expression], correlation: Any,
    leaf: Leaf, values: Mapping[str, float],
) -> Process:  # fmt: skip
    """Return the same with ``leaf`` giving the symbol of a parameter; ``values`` only decide the rank of the
    correlation.
    """
    if any(s.is_white for s in spectra) and not all(s.is_white for s in spectra):
        raise ModelError(
            f"{', '.join(names)}: white noise and filtered noise cannot be correlated with each other in one process. "
            "Give white noise a wide band instead: lowpass(b)."
        )
    root = _correlation_root(names, correlation, leaf, values)
    gain = ca.diag(ca.vertcat(*lower([as_expression(s) for s in scales], leaf)))
    filters = [[_lowered(m, leaf) for m in s.state_space()] for s in spectra]
    blocks = tuple(s.order for s in spectra)
    n, m = sum(blocks), len(blocks)
    white = spectra[0].is_white
    return Process(
        names=tuple(names),
        A=ca.SX(0, 0) if white else ca.diagcat(*(f[0] for f in filters)),
        B=ca.SX(n, m) if white else ca.diagcat(*(f[1] for f in filters)) @ root,
        C=ca.SX(m, n) if white else gain @ ca.diagcat(*(f[2] for f in filters)),
        D=gain @ root if white else ca.SX(m, m),
        blocks=blocks,
        starts=tuple(s.start for s in spectra),
    )


def group_correlated(disturbances: Mapping[str, FlatDisturbance]) -> list[tuple[FlatDisturbance, ...]]:
    """Return disturbances of a model, those correlated with each other together, in order of declaration."""
    group = {name: name for name in disturbances}
    for name, d in disturbances.items():
        for other, _ in d.correlation or ():
            old, new = sorted((group[name], group[other]), key=list(disturbances).index, reverse=True)
            group.update({member: new for member, g in group.items() if g == old})
    return [tuple(disturbances[n] for n in disturbances if group[n] == g) for g in dict.fromkeys(group.values())]


def correlation_matrix(group: Sequence[FlatDisturbance]) -> list[list[Expression]]:
    """Return the correlation of the driving noises of a group, with zeros where nothing was said."""
    place = {d.name: i for i, d in enumerate(group)}
    rows: list[list[Expression]] = [[Constant(float(i == j)) for j in place.values()] for i in place.values()]
    for d in group:
        for other, value in d.correlation or ():
            rows[place[d.name]][place[other]] = rows[place[other]][place[d.name]] = as_expression(value)
    return rows


def _correlation_root(names: Sequence[str], correlation: Any, leaf: Leaf, values: Mapping[str, float]) -> ca.SX:
    m = len(names)
    if correlation is None:
        return ca.SX.eye(m)
    entries = np.array(correlation, dtype=object)
    if entries.shape != (m, m):
        raise ModelError(f"{', '.join(names)}: the correlation must be {m} × {m}, got shape {entries.shape}.")
    rows = [[as_expression(e) for e in row] for row in entries]
    numbers = _numbers(_lowered(rows, lambda path: ca.SX(values[path])))
    if not (np.allclose(np.diag(numbers), 1.0) and np.allclose(numbers, numbers.T)):
        raise ModelError(
            f"{', '.join(names)}: a correlation has ones on its diagonal and is symmetric; use scale= for sizes."
        )
    lowest = float(np.min(np.linalg.eigvalsh(numbers)))
    if lowest < -1e-10:
        raise ModelError(
            f"{', '.join(names)}: no noises can have this correlation: its smallest eigenvalue is {lowest:.3g}, "
            "below zero. Move the correlations closer to zero."
        )
    return factorize_symbolic(_lowered(rows, leaf), nonzero_pivots(factorize(numbers)))


def _lowered(rows: list[list[Expression]], leaf: Leaf) -> ca.SX:
    width = len(rows[0]) if rows else 0
    flat = lower([e for row in rows for e in row], leaf)
    return ca.sparsify(ca.reshape(ca.vertcat(*flat), width, len(rows)).T) if flat else ca.SX(0, 0)


def _numbers(matrix: ca.SX) -> Floats:
    return np.array(ca.DM(ca.evalf(matrix)).full(), dtype=float).reshape(matrix.shape)
