"""A nonlinear filter in C as loops over functions of one point: its text grows with the model, not with the matrices of
its filter.

``program`` writes steps and updates out as formulas, which is quickest for a few states; with sixteen they are ten
thousand lines, and derivatives three times as many. Here a model brings its rates and outputs at a point, with
derivatives along directions or in reverse, and gr_filter_extended.h or gr_filter_sigma.h have the sums, products and
solutions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import casadi as ca

from grisaille.compilation.kalman.builds import FilterLibrary, build_filter
from grisaille.compilation.kalman.directional_functions import reversed_function, with_directions
from grisaille.compilation.printer import PRELUDE, print_function
from grisaille.compilation.shared_library import CSource
from grisaille.compilation.tangent_printer import print_tangent


@dataclass(frozen=True, eq=False)
class PointFunction:
    """A function by its C name; derivatives are taken by those of its inputs that are ``moving``."""

    name: str
    function: ca.Function
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    moving: tuple[str, ...]

    @property
    def value(self) -> str:
        """Return its C text."""
        return print_function(self.function, self.name, self.inputs, self.outputs)

    @property
    def forward(self) -> str:
        """Return the C text of its derivatives along directions."""
        along = with_directions(self.function, self.moving, self.inputs, 1)
        seeds, results = tuple(f"d{n}" for n in self.moving), tuple(f"d{o}" for o in self.outputs)
        return print_tangent(along, f"{self.name}_forward", (*self.inputs, *seeds), seeds, results, len(results))

    @property
    def reverse(self) -> str:
        """Return the C text of its adjoints."""
        back = reversed_function(self.function, self.inputs, self.moving)
        given, results = tuple(f"l{o}" for o in self.outputs), tuple(f"l{n}" for n in self.moving)
        return print_function(back, f"{self.name}_reverse", (*self.inputs, *given), results)


@dataclass(frozen=True, eq=False)
class FilterLoops:
    """What one of the headers asks for: functions of a point, sizes and switches."""

    header: str
    functions: tuple[PointFunction, ...]
    sizes: Mapping[str, int | str]
    calls: Mapping[str, int]
    """How often a step and an update together call a function, where not once."""
    products: int
    """Multiplications in products of matrices of a step and an update."""
    moving: tuple[int, ...]
    """1 for entries of the drift's slope that are not zero whatever the arguments, row by row."""

    @property
    def content(self) -> tuple[str, ...]:
        """Equal where the C text is."""
        return (self.header, repr(sorted(self.sizes.items())), *(f.function.serialize() for f in self.functions))

    @cached_property
    def instructions(self) -> int:
        """Of a step and an update, about: the same on every machine."""
        of_model = (self.calls.get(f.name, 1) * int(f.function.n_instructions()) for f in self.functions)
        return sum(of_model) + self.products

    @property
    def text_length(self) -> int:
        """Return the number of instructions that are written out."""
        return sum(int(f.function.n_instructions()) for f in self.functions)

    @cached_property
    def values(self) -> FilterLibrary:
        """Return the compiled pass without derivatives."""
        return build_filter(CSource(self.source("values"), self.text_length, often=True), self.instructions)

    def source(self, derivatives: str) -> str:
        """Return the C file with ``"forward"`` or ``"reverse"`` derivatives, or ``"values"`` alone. No name of the
        user's is in it.
        """
        shared = [
            *(f"#define GR_{name} ({value})" for name, value in self.sizes.items()), "#define GR_LOOPS 1",
            "#define GR_PAIRS 1", *self._there, '#include "gr_task.h"', PRELUDE, *(f.value for f in self.functions),
        ]  # fmt: skip
        own = ["#define GR_VALUES 1"]
        if derivatives == "forward":
            own = ['#include "gr_lanes.h"', *(f.forward for f in self.functions)]
        elif derivatives == "reverse":
            own = [f.reverse for f in self.functions]
        passes = {"forward": "gr_filter.h", "reverse": "gr_filter_reverse.h", "values": "gr_filter_values.h"}[
            derivatives
        ]
        return "\n".join([*shared, *own, f'#include "{self.header}"', f'#include "{passes}"', ""])

    @property
    def _there(self) -> list[str]:
        """``gr_there``: which coefficients of a linearised step may be nonzero; all entries of G, which follow those of
        A.
        """
        if "LINEARIZED" not in self.sizes:
            return []
        is_turned = "CONSTRAINED" in self.sizes
        there = [1] * len(self.moving) if is_turned else list(self.moving)
        there += [1] * (int(self.sizes["NM"]) * int(self.sizes["NG"]))
        return [f"static const unsigned char gr_there[] = {{{', '.join(map(str, there))}}};"]
