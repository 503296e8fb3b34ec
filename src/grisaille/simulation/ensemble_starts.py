"""Consistent starts of an ensemble.

Where hidden constraints, implicit equations or demanded values contain a disturbance, every realization has a start of
its own: the disturbances at the first instant become parameters of the start problem, so that its derivatives follow
the ordinary way. Otherwise one start serves all; a steady one is then that of the undisturbed model.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from grisaille.structure.initialization import Initializer, Start
from grisaille.structure.reduction import Structure
from grisaille.structure.start_functions import StartFunctions

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Starts:
    """x (nx,) and sx (ns, nx) for all, or with one more leading dimension, the realization; z likewise."""

    x: Floats
    z: Floats
    sx: Floats
    sz: Floats


@dataclass(frozen=True, eq=False)
class StartRequest:
    """One start as the undisturbed run has it, and the directions in which it is differentiated."""

    t: float
    u: Floats
    p: Floats
    found: Start
    demands: Mapping[str, float]
    steady: bool
    dp: Floats
    dstarts: Mapping[str, Floats]


def solve_starts(structure: Structure, request: StartRequest, places: Sequence[int], w: Floats, dw: Floats) -> Starts:
    """Starts for disturbances ``w`` (M, nd) at the first instant, at ``places`` of u; ``dw`` (M, ns, nd)."""
    ns = len(request.dp)
    if not places or not depends_on_disturbances(structure, request, places):
        common = Initializer(structure)
        s = (
            common.sensitivity(
                request.t, request.u, request.p, request.found, request.dp, request.demands, request.dstarts,
                steady=request.steady,
            )
            if ns
            else None
        )  # fmt: skip
        nx, nz = structure.system.nx, structure.system.nz
        sx, sz = (np.zeros((0, nx)), np.zeros((0, nz))) if s is None else (s.sx, s.sz)
        return Starts(request.found.x, request.found.z, sx, sz)
    initializer = Initializer(with_disturbances_as_parameters(structure, places))
    guess = np.concatenate([request.found.x, request.found.z])
    found = [_one(initializer, request, w[m], dw[m], guess) for m in range(len(w))]
    return Starts(*(np.array(part) for part in zip(*found, strict=True)))


def depends_on_disturbances(structure: Structure, request: StartRequest, places: Sequence[int]) -> bool:
    """Whether a consistent start moves with the disturbances."""
    system = structure.system
    declared = [n for n, v in structure.model.variables.items() if v.start is not None]
    rows = [system.observed_names.index(n) for n in {*declared, *request.demands} if n in system.observed_names]
    formulas = ca.vertcat(system.constraints, system.residual, *(system.observed[i] for i in rows))
    return bool(formulas.numel()) and bool(ca.depends_on(formulas, ca.vertcat(*(system.u[i] for i in places))))


def with_disturbances_as_parameters(structure: Structure, places: Sequence[int]) -> Structure:
    """The structure with those entries of u appended to p."""
    system = structure.system
    old, new = ca.vertcat(*(system.u[i] for i in places)), ca.SX.sym("w", len(places))
    names = ("rhs", "residual", "constraints", "observed")
    moved = ca.substitute([getattr(system, n) for n in names], [old], [new])
    changed = replace(system, p=ca.vertcat(system.p, new), **dict(zip(names, moved, strict=True)))
    return replace(structure, system=changed, start_functions=StartFunctions(changed))


def _one(
    initializer: Initializer, request: StartRequest, w: Floats, dw: Floats, guess: Floats
) -> tuple[Floats, Floats, Floats, Floats]:
    p, ns = np.concatenate([request.p, w]), len(request.dp)
    start = initializer.solve(request.t, request.u, p, request.demands, steady=request.steady, guess=guess)
    if not ns:
        nx = start.x.size
        return start.x, start.z, np.zeros((0, nx)), np.zeros((0, start.z.size))
    dp = np.column_stack([request.dp, dw if dw.shape[0] else np.zeros((ns, w.size))])
    s = initializer.sensitivity(
        request.t, request.u, p, start, dp, request.demands, request.dstarts, steady=request.steady
    )
    return start.x, start.z, s.sx, s.sz
