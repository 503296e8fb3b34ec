"""A nonlinear filter's step and update as one program, compiled with its loop over the record.

    step     s ← step(t, h, s, u(t), u(t + h/2), u(t + h), q, nominal)
    update   s, e, V ← update(t, s, u, q, nominal, y, mask, scale)

A linearised step has two functions instead, and matrix exponentials between them (``linearized``): coefficients,
with the arguments of a step, and settle, s ← settle(t, s, u, q, nominal).

s is what the filter carries from instant to instant, e an innovation and V its covariance (lower triangle, column by
column). Both are CasADi functions of our own argument names; derivatives along directions of (s, q) are formed here,
forward (all directions, with those of e and V) and in reverse (the gradient of one number).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import casadi as ca

from grisaille.cache import Cache
from grisaille.compilation.casadi_evaluation import FlatEvaluation, flat_over_points
from grisaille.compilation.compiler import find_compiler, is_switched_off
from grisaille.compilation.kalman.builds import FilterLibrary, build_filter
from grisaille.compilation.kalman.directional_functions import reversed_function, with_directions
from grisaille.compilation.kalman.loop_source import FilterLoops
from grisaille.compilation.printer import PRELUDE, print_function
from grisaille.compilation.shared_library import CSource
from grisaille.compilation.tangent_printer import print_tangent

STEP_ARGUMENTS = ("t", "h", "s", "ua", "um", "ub", "q", "nominal")
SETTLE_ARGUMENTS = ("t", "s", "u", "q", "nominal")
UPDATE_ARGUMENTS = ("t", "s", "u", "q", "nominal", "y", "mask", "scale")
TERMS = 26
"""Products of matrices in a linearised step, about."""
MAX_COMPILED_INSTRUCTIONS = 25_000
"""Instructions that are written out from which on nothing is optimized: a compiler would need minutes."""
MAX_UNROLLED_PRODUCTS = 500
"""Multiplications of matrices up to which compiled code has them written out: it then runs as quickly as loops or up
to a tenth quicker, and compiles as quickly."""


@dataclass(frozen=True, eq=False)
class FilterFormulas:
    """The generated functions; with ``settle``, ``step`` gives the coefficients of a linearised step of n states."""

    step: ca.Function
    update: ca.Function
    settle: ca.Function | None = None
    n: int = 0

    @property
    def powers(self) -> int:
        """Columns of G."""
        rest = self.n * self.n + self.n * (self.n + 1) // 2 + self.update.numel_out(0) - self.n * (self.n + 3) // 2
        return int(self.step.numel_out(0) - rest) // max(self.n, 1)

    @property
    def moving(self) -> list[int]:
        """1 for coefficients that are not zero whatever the arguments."""
        arguments = [ca.SX.sym(n, self.step.sparsity_in(i)) for i, n in enumerate(STEP_ARGUMENTS)]
        return [int(not entry.is_zero()) for entry in ca.vertsplit(self.step.call(arguments)[0])]

    @property
    def parts(self) -> list[tuple[str, ca.Function, tuple[str, ...], tuple[str, ...]]]:
        """C name, function, inputs and outputs of each."""
        update = ("gr_update", self.update, UPDATE_ARGUMENTS, ("s_out", "e", "V"))
        if self.settle is None:
            return [("gr_step", self.step, STEP_ARGUMENTS, ("s_out",)), update]
        settle = ("gr_settle", self.settle, SETTLE_ARGUMENTS, ("s_out",))
        return [("gr_coefficients", self.step, STEP_ARGUMENTS, ("c",)), settle, update]

    @property
    def instructions(self) -> int:
        return sum(int(f.n_instructions()) for _, f, _, _ in self.parts)


@dataclass(frozen=True, eq=False)
class Formulation:
    """A filter's formulas, and the loops that do the same; either is made when it is first asked for."""

    write: Callable[[], FilterFormulas]
    loop: Callable[[], FilterLoops] | None = None
    """None where there are formulas alone."""
    products: int = 0
    """Multiplications in products of matrices of a step and an update."""

    @property
    def has_loops(self) -> bool:
        """Return whether compiled code may run loops, as long as steps and updates written out would be."""
        return self.loop is not None

    @cached_property
    def formulas(self) -> FilterFormulas:
        """Step and update written out."""
        return self.write()

    @cached_property
    def looped(self) -> FilterLoops | None:
        """Return the formulas of step and update as loops."""
        return self.loop() if self.loop else None

    @property
    def loops(self) -> FilterLoops | None:
        """Return what compiled code runs in place of the formulas; none where these are short."""
        return self.looped if self.products > MAX_UNROLLED_PRODUCTS else None

    @cached_property
    def content(self) -> tuple[str, ...]:
        """Equal where programs are."""
        return self.loops.content if self.loops else tuple(f.serialize() for _, f, _, _ in self.formulas.parts)


@dataclass(frozen=True, eq=False)
class FilterProgram:
    """Formulas with their derivatives."""

    formulation: Formulation

    @property
    def formulas(self) -> FilterFormulas:
        """Step and update written out."""
        return self.formulation.formulas

    @property
    def loops(self) -> FilterLoops | None:
        """Return what compiled code runs in place of the formulas; none where these are short."""
        return self.formulation.loops

    @property
    def instructions(self) -> int:
        """Of a step and an update, about: the same on every machine."""
        return self.loops.instructions if self.loops else self.formulas.instructions

    @property
    def text_length(self) -> int:
        """Instructions that are written out."""
        return self.loops.text_length if self.loops else self.formulas.instructions

    @property
    def product(self) -> int:
        """Multiplications in one product of matrices of a linearised step; zero for others."""
        if self.loops:
            n, powers = int(self.loops.sizes["NM"]), int(self.loops.sizes.get("NG", 0))
        else:
            n, powers = self.formulas.n, self.formulas.powers if self.formulas.settle is not None else 0
        return n**2 * (n + powers) if powers else 0

    @property
    def size(self) -> int:
        """Of s."""
        return int(self.formulas.update.numel_out(0))

    @property
    def ny(self) -> int:
        return int(self.formulas.update.numel_out(1))

    def evaluate_points(self, name: str, count: int) -> FlatEvaluation:
        """Return a step by its C name at many points in one call: a row for each, q and nominal values shared."""
        function, inputs = next((f, inputs) for n, f, inputs, _ in self.formulas.parts if n == name)
        shared = [k for k, i in enumerate(inputs) if i in ("q", "nominal")]
        return self._known.get((name, count), lambda: flat_over_points(function, count, shared))

    @cached_property
    def _known(self) -> Cache[FlatEvaluation]:
        return Cache(16)

    @cached_property
    def forward(self) -> FilterLibrary:
        """Compiled with forward derivatives."""
        return self._library(self.forward_source)

    @cached_property
    def reverse(self) -> FilterLibrary:
        """Compiled with reverse derivatives."""
        return self._library(self.reverse_source)

    def _library(self, text: Callable[[], str]) -> FilterLibrary:
        return build_filter(self.source(text()), self.instructions + TERMS * self.product)

    def source(self, text: str) -> CSource:
        """Return a C file of this program as it is compiled in the end."""
        length = self.text_length
        return (
            CSource(text, 5 * length, shared="-O0")
            if length > MAX_COMPILED_INSTRUCTIONS
            else CSource(text, 5 * length, often=True)
        )

    def forward_source(self) -> str:
        """Return the C file with values and forward derivatives. No name of the user's is in it."""
        if self.loops:
            return self.loops.source("forward")
        tangents = []
        for name, function, inputs, outputs in self.formulas.parts:
            along = with_directions(function, ("s", "q"), inputs, 1)
            results = tuple(f"d{o}" for o in outputs)
            given = (*inputs, "ds", "dq")
            tangents.append(print_tangent(along, f"{name}_forward", given, ("ds", "dq"), results, len(outputs)))
        return "\n".join([*self._head(), '#include "gr_lanes.h"', *tangents, '#include "gr_filter.h"', ""])

    def reverse_source(self) -> str:
        """Return the C file with values and reverse derivatives."""
        if self.loops:
            return self.loops.source("reverse")
        adjoints = [
            print_function(
                reversed_function(f, inputs), f"{name}_reverse", (*inputs, *(f"l{o}" for o in outputs)), ("ls", "lq")
            )
            for name, f, inputs, outputs in self.formulas.parts
        ]
        return "\n".join([*self._head(), *adjoints, '#include "gr_filter_reverse.h"', ""])

    def _head(self) -> list[str]:
        f = self.formulas
        sizes = {"PAIRS": 1, "NS": self.size, "NY": self.ny, "NU": f.step.numel_in(3), "NQ": f.step.numel_in(6)}
        if f.settle is not None:
            sizes |= {"LINEARIZED": 1, "NM": f.n, "NG": f.powers, "NK": f.step.numel_out(0)}
        there = f"static const unsigned char gr_there[] = {{{', '.join(map(str, f.moving))}}};"
        return [
            *(f"#define GR_{name} {size}" for name, size in sizes.items()),
            *([there] if f.settle is not None else []),
            '#include "gr_task.h"',
            PRELUDE,
            *(print_function(function, name, inputs, outputs) for name, function, inputs, outputs in f.parts),
        ]


def build_program(formulation: Formulation) -> FilterProgram:
    """Return the program of some formulas, from earlier in this process where it was built before."""
    compiler = find_compiler()
    key = (formulation.content, is_switched_off(), compiler and compiler.identity)
    return _programs.get(key, lambda: FilterProgram(formulation))


_programs: Cache[FilterProgram] = Cache()
