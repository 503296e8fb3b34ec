"""The unscented filter in C as loops over sigma points, for values without derivatives.

``program`` writes every sigma point out, which lets the derivatives be printed but makes text that grows with the cube
of the number of states: eight states take a compiler 40 s. Here a model brings functions of one point, and
gr_filter_sigma.h has the loops: half a second, whatever the number of states.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import casadi as ca

from grisaille.compilation.library import Library, build_library
from grisaille.compilation.printer import PRELUDE, print_function

POINT = ("t", "x", "z", "u", "q")
CARRIED = ("t", "s", "u", "q", "nominal")
ON_CONSTRAINTS = ("t", "x", "u", "q", "nominal")


@dataclass(frozen=True, eq=False)
class PointFormulas:
    """Functions of one point, as gr_filter_sigma.h wants them.

    flow, slope, seen : of (t, x, z, u, q)
    settle, after_update : of (t, s, u, q, nominal)
    tangent, turning : of hidden constraints, at (t, x, u, q, nominal), and along c; None where there are none
    spread, weights : of the points, and weights of the centre and the others in means, of the centre in covariances
    powers : columns of the forcing between samples, 1 where it is constant and 3 otherwise
    is_still : whether the drift does not depend on the states
    """

    flow: ca.Function
    slope: ca.Function
    seen: ca.Function
    settle: ca.Function
    after_update: ca.Function
    tangent: ca.Function | None
    turning: ca.Function | None
    spread: float
    weights: tuple[float, float, float]
    powers: int
    is_still: bool

    @property
    def functions(self) -> list[tuple[str, ca.Function, tuple[str, ...], tuple[str, ...]]]:
        """C name, function, inputs and outputs of each."""
        found: list[tuple[str, ca.Function, tuple[str, ...], tuple[str, ...]]] = [
            ("gr_flow", self.flow, POINT, ("f", "W", "z_out")),
            ("gr_slope", self.slope, POINT, ("A",)),
            ("gr_seen", self.seen, POINT, ("y", "R", "z_out")),
            ("gr_settle", self.settle, CARRIED, ("s_out",)),
            ("gr_after_update", self.after_update, CARRIED, ("s_out",)),
        ]
        if self.tangent is not None and self.turning is not None:
            found.append(("gr_tangent", self.tangent, ON_CONSTRAINTS, ("Pi",)))
            found.append(("gr_turning", self.turning, (*ON_CONSTRAINTS, "c"), ("N",)))
        return found

    @property
    def instructions(self) -> int:
        """Of all functions together."""
        return sum(int(function.n_instructions()) for _, function, _, _ in self.functions)

    @cached_property
    def library(self) -> Library | None:
        """The compiled pass; ``None`` where compilation is switched off."""
        return build_library(self.source(), self.instructions, often=True)

    def source(self) -> str:
        """The C file. No name of the user's is in it."""
        n, size = int(self.flow.numel_out(0)), int(self.settle.numel_out(0))
        nz, g = int(self.flow.numel_out(2)), self.powers
        sizes: dict[str, int | str] = {
            "NS": size, "NY": int(self.seen.numel_out(0)), "NU": int(self.flow.numel_in(3)),
            "NQ": int(self.flow.numel_in(4)), "NM": n, "NZ": nz, "NG": g,
            "NK": n * n + n * g + n * (n + 1) // 2 + nz,
            "SPREAD": float.hex(self.spread), "CENTRE": float.hex(self.weights[0]),
            "OTHERS": float.hex(self.weights[1]), "CENTRE_SPREAD": float.hex(self.weights[2]),
        }  # fmt: skip
        if self.is_still:
            sizes["STILL"] = 1
        if self.tangent is not None:
            sizes["CONSTRAINED"] = 1
        return "\n".join(
            [
                *(f"#define GR_{name} ({value})" for name, value in sizes.items()),
                '#include "gr_task.h"',
                PRELUDE,
                *(print_function(function, name, inputs, outs) for name, function, inputs, outs in self.functions),
                '#include "gr_filter_task.h"',
                '#include "gr_filter_sigma.h"',
                '#include "gr_filter_values.h"',
                "",
            ]
        )
