"""Batches of trajectories on a frozen grid, one fused step per cell (or a fixed number of them).

Every trajectory is the same sequence of the same smooth formulas (``step``), so criteria built on it are smooth in the
parameters and sensitivities are exact. Signals are tables on the grid, or disturbances that filters make on the way
(``filters``). Kept are observed quantities at chosen grid points, per realization, as moments over the realizations
(``moments``), or both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import casadi as ca

from grisaille.cache import Cache
from grisaille.compilation.batch import BatchArguments, BatchInput, BatchResult, Progress, check_batch
from grisaille.compilation.batch_native import BatchStructure, run_native
from grisaille.compilation.coloured_noise_source import ColouredNoiseLayout, coloured_noise_source
from grisaille.compilation.compiler import find_compiler
from grisaille.compilation.dialect import STEP_DIALECT, WIDE_DIALECT
from grisaille.compilation.hoisting import hoist
from grisaille.compilation.printer import INSTRUCTIONS_PER_FUNCTION, PRELUDE, print_function
from grisaille.compilation.shared_library import SharedLibrary, build_library
from grisaille.compilation.step import StepFormula, formulate_step, step_sensitivity
from grisaille.structure.system import System

NO_COLOURED_NOISE = ColouredNoiseLayout()
MAX_WHOLE_INSTRUCTIONS = 20_000
"""Instructions of a step up to which a graphics processor gets it as one function: values that parts would hand on in
memory stay in registers, which halves the time of a robot's step and makes its compilation twice as long."""


@dataclass(frozen=True, eq=False)
class FusedStep:
    """The fused step of a system without implicit unknowns; build it with ``build_step``."""

    formula: StepFormula
    nx: int
    nu: int
    np: int
    ny: int
    ns: int
    layout: ColouredNoiseLayout
    once: ca.Function
    step: ca.Function
    observe: ca.Function

    @cached_property
    def library(self) -> SharedLibrary:
        """Return the C file built, or taken from the cache."""
        instructions = sum(f.n_instructions() for f in (self.once, self.step, self.observe))
        library = build_library(self.source, instructions, often=True)
        library.check_size("gr_batch_size", BatchStructure)
        return library

    @cached_property
    def source(self) -> str:
        """Return the C file."""
        return c_source(self.formula, self.once, self.step, self.observe, self.ns, self.layout)

    @property
    def instructions(self) -> int:
        """Of one step."""
        return int(self.step.n_instructions())

    def run(
        self,
        *given: Any,
        reduce: bool = False,
        rows: bool | None = None,
        threads: int | None = None,
        progress: Progress | None = None,
        **further: Any,
    ) -> BatchResult:
        """Steps every realization along the grid; what ``BatchArguments`` takes, and

        reduce : moments over the realizations
        rows : each realization's own; by default unless ``reduce``
        threads : all processors by default
        """
        return self.execute(self.batch(BatchArguments(*given, **further)), reduce, rows, threads, progress)

    def execute(
        self, batch: BatchInput, reduce: bool, rows: bool | None, threads: int | None, progress: Progress | None
    ) -> BatchResult:
        """Call ``run`` with the arrays of ``batch``."""
        rows = not reduce if rows is None else rows
        return run_native(self.library, self, batch, reduce, rows, threads, progress)

    def batch(self, given: BatchArguments) -> BatchInput:
        """Return the arrays of one run, checked."""
        return check_batch(self, given)


def build_step(
    system: System,
    *,
    observed: Sequence[int] | None = None,
    directions: int = 0,
    filters: ColouredNoiseLayout = NO_COLOURED_NOISE,
    formula: StepFormula | None = None,
) -> FusedStep:
    """Return the fused step, which is compiled when it first runs.

    ``observed`` picks rows of ``system.observed`` (all by default), ``directions`` is the number of sensitivity
    directions it carries, ``filters`` the disturbances it drives; ``formula`` replaces the Runge–Kutta step (its p may
    be longer than the system's).
    """
    chosen = tuple(range(system.ny)) if observed is None else tuple(int(i) for i in observed)
    compiler = find_compiler()
    given = "" if formula is None else formula.content
    key = (system.content, given, system.constraint_levels, chosen, directions, filters, compiler and compiler.identity)
    return _known.get(key, lambda: _build(system, formula or formulate_step(system), chosen, directions, filters))


_known: Cache[FusedStep] = Cache()


def _build(
    system: System, formula: StepFormula, chosen: tuple[int, ...], ns: int, layout: ColouredNoiseLayout
) -> FusedStep:
    functions = _functions(system, formula, chosen, ns, layout)
    return FusedStep(formula, system.nx, system.nu, formula.p.numel(), len(chosen), ns, layout, *functions)


def _functions(
    system: System, step: StepFormula, chosen: tuple[int, ...], ns: int, layout: ColouredNoiseLayout
) -> tuple[ca.Function, ca.Function, ca.Function]:
    u, seen = step.signals[0], ca.Function("o", [system.t, system.x, system.u, system.p], [system.observed])
    y = ca.densify(seen(step.t, step.x, u, step.p[: system.np])[list(chosen)])
    fast, slow = [step.t, step.h, step.x, *step.signals, step.noise], [step.p, step.nominal]
    looking, moved, seen_now = [step.t, step.x, u, step.p], [step.after], [y]
    if ns:
        sx, dp = ca.SX.sym("sx", system.nx, ns), ca.SX.sym("dp", step.p.numel(), ns)
        places = layout.places if layout.sensitive else ()
        du = [ca.SX.sym(name, len(places), ns) for name in ("da", "dm", "db")]
        moved.append(step_sensitivity(step, sx, dp, places, du))
        by = ca.vertcat(step.x, step.p, *(u[i] for i in places))
        seen_now.append(ca.densify(ca.jtimes(y, by, ca.vertcat(sx, dp, du[0]))))
        fast, slow, looking = [*fast, sx, *du], [*slow, dp], [*looking, sx, du[0], dp]
    split = hoist(fast, slow, moved)
    return (
        ca.Function("once", slow, [ca.densify(split.once)]),
        ca.Function("step", [*fast, *slow, split.constants], [ca.densify(f) for f in split.formulas]),
        ca.Function("observe", looking, ca.cse(seen_now)),
    )


def c_source(
    formula: StepFormula,
    once: ca.Function,
    step: ca.Function,
    observe: ca.Function,
    ns: int,
    layout: ColouredNoiseLayout,
) -> str:
    """Return the C file of a fused step. No name of the user's is in it."""
    nu = formula.signals[0].numel()
    sizes = {"NX": formula.x.numel(), "NU": nu, "NP": formula.p.numel(), "NY": observe.size1_out(0), "NS": ns}
    sizes["NK"] = once.numel_out(0)
    fast = ("t", "h", "x", "ua", "um", "ub", "v")
    dp, results = (("dp",), ("out", "sout")) if ns else ((), ("out",))
    moving, seen = (("sx", "da", "dm", "db"), ("sx", "du")) if ns else ((), ())
    return "\n".join(
        [
            *(f"#define GR_{name} {size}" for name, size in sizes.items()),
            *([] if _is_short(step) else ["#ifndef GR_STEP_PLAIN\n#define GR_STEP_PLAIN\n#endif"]),
            *(["#define GR_WHOLE"] if step.n_instructions() <= MAX_WHOLE_INSTRUCTIONS else []),
            '#include "gr_task.h"',
            '#include "gr_wide.h"',
            PRELUDE,
            coloured_noise_source(layout, nu),
            print_function(once, "gr_once", ("p", "nominal", *dp), dialect=WIDE_DIALECT),
            _print_step(step, (*fast, *moving, "p", "nominal", *dp, "c"), results),
            print_function(observe, "gr_observe", ("t", "x", "u", "p", *seen, *dp), results, WIDE_DIALECT),
            '#include "gr_step.h"',
            "",
        ]
    )


def _is_short(step: ca.Function) -> bool:
    """Return whether a step is one C function."""
    return bool(step.n_instructions() <= INSTRUCTIONS_PER_FUNCTION)


def _print_step(step: ca.Function, inputs: Sequence[str], results: Sequence[str]) -> str:
    if not _is_short(step):
        return print_function(step, "gr_step", inputs, results, WIDE_DIALECT)
    return print_function(step, "gr_step", inputs, results, STEP_DIALECT, also=" GR_ALSO")
