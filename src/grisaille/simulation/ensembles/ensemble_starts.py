"""Consistent starts of an ensemble.

Where hidden constraints, implicit equations or demanded values contain a disturbance, every realization has a start of
its own: the disturbances at the first instant become parameters of the start problem, so that its derivatives follow
the ordinary way. Otherwise one start serves all; a steady one is then that of the undisturbed model.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from grisaille.bound_experiment import ExperimentPoint
from grisaille.cache import IdentityKey, LastValues
from grisaille.compilation.kalman.coloured_noise_numpy import ColouredNoiseStates
from grisaille.errors import ModelError
from grisaille.structure.reduction import Structure
from grisaille.structure.starts.initialization import Initializer
from grisaille.structure.starts.start_functions import StartFunctions
from grisaille.structure.system import FORMULA_FIELDS

Floats = NDArray[np.float64]
MAX_PROJECTIONS = 20
"""Most steps onto hidden constraints."""


@dataclass(frozen=True, eq=False)
class EnsembleStarts:
    """x (nx,) and sx (ns, nx) for all, or with one more leading dimension, the realization; z likewise."""

    x: Floats
    z: Floats
    sx: Floats
    sz: Floats


def solve_starts(
    point: ExperimentPoint, places: Sequence[int], first: Callable[[], ColouredNoiseStates], last: LastValues
) -> EnsembleStarts:
    """Return starts for the disturbances at the first instant, at ``places`` of u."""
    key = (IdentityKey(point.structure.system), tuple(places), *sorted(point.demands))
    if not places or not last.get("starts", key, lambda: _depends(point, places)):
        return EnsembleStarts(point.start.x, point.start.z, point.dstart.sx, point.dstart.sz)
    _refuse_past(point)
    structure = last.get("structure", key, lambda: with_disturbances_as_parameters(point.structure, places))
    initializer = last.get("initializer", IdentityKey(structure), lambda: Initializer(structure))
    guess = np.concatenate([point.start.x, point.start.z])
    disturbed = first()
    w, dw = disturbed.signals, disturbed.dsignals
    found = [_one(initializer, point, w[m], dw[m], guess) for m in range(len(w))]
    return EnsembleStarts(*(np.array(part) for part in zip(*found, strict=True)))


def _depends(point: ExperimentPoint, places: Sequence[int]) -> bool:
    """Return whether a consistent start moves with signals at these places of u."""
    system = point.structure.system
    declared = [n for n, v in point.structure.model.variables.items() if v.start is not None]
    rows = [system.observed_names.index(n) for n in {*declared, *point.demands} if n in system.observed_names]
    formulas = ca.vertcat(system.constraints, system.residual, *(system.observed[i] for i in rows))
    return bool(formulas.numel()) and bool(ca.depends_on(formulas, ca.vertcat(*(system.u[i] for i in places))))


def _refuse_past(point: ExperimentPoint) -> None:
    """Refuse starts that move with a disturbance and with what is delayed, which begins with the start."""
    system, places = point.structure.system, point.structure.system.has.pasts
    if places and _depends(point, places):
        raise ModelError(
            f"{point.structure.model.name}: each realization has a start of its own, which is solved from "
            f"{system.signals[places[0]].name}, and that begins with the start: give start values, or before= in "
            f"gr.delay(…)."
        )


def with_disturbances_as_parameters(structure: Structure, places: Sequence[int]) -> Structure:
    """Return the structure with those entries of u appended to p."""
    system = structure.system
    old, new = ca.vertcat(*(system.u[i] for i in places)), ca.SX.sym("w", len(places))
    moved = ca.substitute([getattr(system, n) for n in FORMULA_FIELDS], [old], [new])
    changed = replace(system, p=ca.vertcat(system.p, new), **dict(zip(FORMULA_FIELDS, moved, strict=True)))
    return replace(structure, system=changed, start_functions=StartFunctions(changed))


def _one(
    initializer: Initializer, point: ExperimentPoint, w: Floats, dw: Floats, guess: Floats
) -> tuple[Floats, Floats, Floats, Floats]:
    p, ns, steady = np.concatenate([point.p, w]), len(point.dp), point.trial.steady
    start = initializer.solve(point.t0, point.u, p, point.demands, steady=steady, guess=guess)
    if not ns:
        nx = start.x.size
        return start.x, start.z, np.zeros((0, nx)), np.zeros((0, start.z.size))
    dp = np.column_stack([point.dp, dw if dw.shape[0] else np.zeros((ns, w.size))])
    s = initializer.sensitivity(point.t0, point.u, p, start, dp, point.demands, point.ddemands, steady=steady)
    return start.x, start.z, s.sx, s.sz


def onto_constraints(point: ExperimentPoint, x: Floats, z: Floats) -> Floats:
    """Return states (M, nx) moved onto the hidden constraints, by Gauss and Newton in units of their nominal sizes."""
    system = point.structure.system
    if not system.constraints.numel():
        return x
    symbols = [system.t, system.x, system.z, system.u, system.p]
    slopes = ca.densify(ca.jacobian(system.constraints, system.x))
    function = ca.Function("constraints", symbols, [system.constraints, slopes])
    nominal, moved = point.initializer.nominal[: system.nx], x.copy()
    for m, own in enumerate(moved):
        for _ in range(MAX_PROJECTIONS):
            given = z if z.ndim == 1 else z[m]
            left, J = (part.full() for part in function(point.t0, own, given, point.u, point.p))
            step = nominal * np.linalg.lstsq(J * nominal, left[:, 0], rcond=1e-10)[0]
            own -= step
            if np.all(np.abs(step) <= 1e-13 * np.maximum(np.abs(own), nominal)):
                break
    return moved
