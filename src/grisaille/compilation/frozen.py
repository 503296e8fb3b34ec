"""Batches of trajectories on a frozen grid, one fused step per cell (or a fixed number of them).

Every trajectory is the same sequence of the same smooth formulas (``step``), so criteria built on it are smooth in the
parameters and sensitivities are exact. Signals are tables on the grid, linear or held between its points. Kept are
observed quantities at chosen grid points, per realization or as moments over the realizations (``moments``).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass

import casadi as ca
from numpy.typing import ArrayLike

from grisaille.compilation.batch import Frozen, Progress, check_batch
from grisaille.compilation.batch_interpreted import run_interpreted
from grisaille.compilation.batch_native import BatchStructure, run_native
from grisaille.compilation.compiler import find_compiler, is_switched_off, notice_interpreted
from grisaille.compilation.library import Library, build_library, no_compiler
from grisaille.compilation.printer import PRELUDE, print_function
from grisaille.compilation.step import formulate_step, step_sensitivity
from grisaille.structure.system import System


@dataclass(frozen=True, eq=False)
class FusedStep:
    """The fused step of a system without implicit unknowns; build it with ``build_step``."""

    nx: int
    nu: int
    np: int
    ny: int
    ns: int
    library: Library | None
    step: ca.Function
    observe: ca.Function

    @property
    def is_compiled(self) -> bool:
        return self.library is not None

    def run(
        self,
        x0: ArrayLike,
        grid: ArrayLike,
        signals: Sequence[ArrayLike] = (),
        p: ArrayLike = (),
        *,
        hold: str | Sequence[str] = "foh",
        nominal: ArrayLike = 1.0,
        substeps: int = 1,
        keep: int | ArrayLike = 1,
        reduce: bool = False,
        realizations: int | None = None,
        dp: ArrayLike | None = None,
        sx0: ArrayLike | None = None,
        threads: int | None = None,
        progress: Progress | None = None,
    ) -> Frozen:
        """Steps every realization along the grid.

        x0 : (nx,) or (M, nx); on the constraints to the accuracy of one Gauss–Newton correction
        grid : (K + 1,) increasing times; every cell is cut into ``substeps`` equal steps
        signals : per signal a number, (K + 1,) for all realizations, or (M, K + 1)
        p : (np,) or (M, np)
        hold : ``"foh"`` (linear) or ``"zoh"`` (constant over a cell, from its left end), for all signals or each
        keep : observe every ``keep``-th grid point, or at these grid indices
        reduce : moments over the realizations instead of one row each
        dp, sx0 : (ns, np) and (ns, nx) or (M, ns, nx), the seeds of the sensitivity directions
        threads : of the compiled code; all processors by default
        """
        batch = check_batch(self, x0, grid, signals, p, hold, nominal, substeps, keep, realizations, dp, sx0)
        if self.library is None:
            return run_interpreted(self.step, self.observe, self, batch, reduce, progress)
        return run_native(self.library, self, batch, reduce, threads, progress)


def build_step(
    system: System, *, observed: Sequence[int] | None = None, directions: int = 0, compiled: bool | None = None
) -> FusedStep:
    """The fused step; ``observed`` picks rows of ``system.observed`` (all by default), ``directions`` the number of
    sensitivity directions it carries; ``compiled`` as in ``build_kernel``."""
    chosen = tuple(range(system.ny)) if observed is None else tuple(int(i) for i in observed)
    compiler = None if compiled is False else find_compiler()
    arguments = [system.t, system.x, system.z, system.u, system.p]
    content = ca.Function("c", arguments, [system.rhs, system.constraints, system.observed]).serialize()
    mode = (compiled, is_switched_off(), compiler and compiler.identity)
    key = (content, system.constraint_levels, chosen, directions, mode)
    if key not in _known:
        _known[key] = _build(system, chosen, directions, compiled)
        while len(_known) > 64:
            _known.popitem(last=False)
    return _known[key]


_known: OrderedDict[tuple[object, ...], FusedStep] = OrderedDict()


def _build(system: System, chosen: tuple[int, ...], ns: int, compiled: bool | None) -> FusedStep:
    step, observe = _functions(system, chosen, ns)
    library = None
    if compiled is not False:
        library = build_library(c_source(system, step, observe, ns), step.n_instructions() + observe.n_instructions())
    if library is None and compiled:
        raise no_compiler()
    if library is None and compiled is None and not is_switched_off():
        notice_interpreted()
    if library is not None:
        library.check_size("gr_batch_size", BatchStructure)
    return FusedStep(system.nx, system.nu, system.np, len(chosen), ns, library, step, observe)


def _functions(system: System, chosen: tuple[int, ...], ns: int) -> tuple[ca.Function, ca.Function]:
    step = formulate_step(system)
    u, seen = step.signals[0], ca.Function("o", [system.t, system.x, system.u, system.p], [system.observed])
    y = ca.densify(ca.vertcat(*(seen(step.t, step.x, u, step.p)[i] for i in chosen)))
    given, looking = step.arguments, [step.t, step.x, u, step.p]
    if ns == 0:
        return ca.Function("step", given, [step.after]), ca.Function("observe", looking, [y])
    sx, dp = ca.SX.sym("sx", system.nx, ns), ca.SX.sym("dp", system.np, ns)
    sy = ca.densify(ca.jtimes(y, ca.vertcat(step.x, step.p), ca.vertcat(sx, dp)))
    moved = ca.cse([step.after, step_sensitivity(step, sx, dp)])
    return ca.Function("step", [*given, sx, dp], moved), ca.Function("observe", [*looking, sx, dp], ca.cse([y, sy]))


def c_source(system: System, step: ca.Function, observe: ca.Function, ns: int) -> str:
    """The C file of a fused step. No name of the user's is in it."""
    sizes = {"NX": system.nx, "NU": system.nu, "NP": system.np, "NY": observe.size1_out(0), "NS": ns}
    more, results = (("sx", "dp"), ("out", "sout")) if ns else ((), ("out",))
    return "\n".join(
        [
            *(f"#define GR_{name} {size}" for name, size in sizes.items()),
            '#include "gr_task.h"',
            PRELUDE,
            print_function(step, "gr_step", ("t", "h", "x", "ua", "um", "ub", "p", "nominal", *more), results),
            print_function(observe, "gr_observe", ("t", "x", "u", "p", *more), results),
            '#include "gr_step.h"',
            "",
        ]
    )
