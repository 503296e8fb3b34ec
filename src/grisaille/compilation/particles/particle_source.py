"""The C file of a particle filter: what a model does in a step and shows at a sample, printed for several particles at
once, before the loop of gr_particles.h.

What depends on parameters alone is computed once for each set of them (``hoisting``).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import casadi as ca

from grisaille.compilation.dialect import WIDE_DIALECT
from grisaille.compilation.hoisting import hoist
from grisaille.compilation.particles.particle_task import ParticleTask
from grisaille.compilation.printer import PRELUDE, print_function
from grisaille.compilation.shared_library import SharedLibrary, build_library


@dataclass(frozen=True, eq=False)
class ParticleFormulas:
    """A step from s to ``after``, and what is seen of s; every formula may contain q and ``nominal`` too."""

    t: ca.SX
    h: ca.SX
    s: ca.SX
    signals: tuple[ca.SX, ca.SX, ca.SX]
    """At t, t + h/2 and t + h."""
    v: ca.SX
    """Standard normals of the step."""
    q: ca.SX
    nominal: ca.SX
    after: ca.SX
    u: ca.SX
    """Signals at an instant, of what follows."""
    begin: ca.SX
    """s drawn at the start, put on the constraints and with algebraic unknowns solved."""
    seen: ca.SX
    """Outputs, then what laws of measurements need besides."""
    variance: ca.SX
    """R of the outputs, (ny, ny)."""
    states: int
    """How many of s are states of the model; the others belong to algebraic unknowns."""
    normals_per_noise: int
    event: ca.SX = field(default_factory=lambda: ca.SX(0, 1))
    """s after one pass through the events, of s, u, q and pulses; empty where a model has none."""
    fired: ca.SX = field(default_factory=lambda: ca.SX(0, 1))
    """How many clauses have fired in it."""
    pulses: ca.SX = field(default_factory=lambda: ca.SX(0, 1))
    """1 for clocks that tick."""
    counters: tuple[int, ...] = ()
    """Places in u of the signals that count ticks."""

    def __post_init__(self) -> None:
        sizes = {int(f.numel()) for f in (self.s, self.after, self.begin, self.nominal, self.event) if f.numel()}
        assert len(sizes) == 1, f"formulas of a particle have {sizes} entries"

    @property
    def outputs(self) -> int:
        return int(self.variance.size1())


@dataclass(frozen=True, eq=False)
class ParticleCode:
    """The code of a model's particle filter.

    guided : with derivatives along a step, for proposals that use the next measurement
    """

    formulas: ParticleFormulas
    guided: bool

    @cached_property
    def library(self) -> SharedLibrary:
        """The C file built, or taken from the cache."""
        instructions = sum(int(f.n_instructions()) for f in self._functions.values())
        library = build_library(self.source, instructions, often=True)
        library.check_size("gr_particle_size", ParticleTask)
        return library

    @cached_property
    def _functions(self) -> dict[str, ca.Function]:
        """Functions by their C names, with what follows from parameters alone taken out."""
        f = self.formulas
        step, shown = [f.t, f.h, f.s, *f.signals, f.v], [f.t, f.s, f.u]
        packed = ca.vertcat(*(f.variance[i, j] for j in range(f.outputs) for i in range(j, f.outputs)))
        formulas = {"gr_move": [f.after], "gr_begin": [f.begin], "gr_look": [f.seen, packed]}
        own = {"gr_move": step, "gr_begin": shown, "gr_look": shown}
        if f.event.numel():
            formulas["gr_event"], own["gr_event"] = [f.event, f.fired], [*shown, f.pulses]
        adjoint = ca.SX.sym("l", f.s.numel())
        if self.guided:
            back = ca.jtimes(f.after, ca.vertcat(f.s, f.v), adjoint, True)
            formulas["gr_back"] = [back[: f.s.numel()], back[f.s.numel() :]]
            formulas["gr_slope"] = [ca.vec(ca.densify(ca.jacobian(f.seen[: f.outputs], f.s)).T)]
            own["gr_back"], own["gr_slope"] = step, shown
        fast, slow = [f.t, f.h, f.s, *f.signals, f.v, f.u, f.pulses, adjoint], [f.q, f.nominal]
        flat = [ca.densify(ca.vec(e)) for every in formulas.values() for e in every]
        split = hoist(fast, slow, flat)
        made = {"gr_once": ca.Function("once", slow, [ca.densify(split.once)])}
        left = list(split.formulas)
        for name, every in formulas.items():
            mine, left = left[: len(every)], left[len(every) :]
            last = [adjoint] if name == "gr_back" else []
            arguments = [*own[name], *slow, split.constants, *last]
            made[name] = ca.Function(name, arguments, [ca.densify(e) for e in mine])
        return made

    @cached_property
    def source(self) -> str:
        """The C file. No name of the user's is in it."""
        f, made = self.formulas, self._functions
        sizes = {
            "NS": f.s.numel(), "NM": f.states, "NV": f.v.numel(), "NU": f.u.numel(), "NQ": f.q.numel(),
            "NY": f.outputs, "NO": f.seen.numel(), "NP": f.outputs * (f.outputs + 1) // 2,
            "NK": made["gr_once"].numel_out(0),
        }  # fmt: skip
        switches = ["#define GR_GUIDED 1"] if self.guided else []
        if f.normals_per_noise in (1, 2):
            switches.append(f"#define GR_COARSE {f.normals_per_noise}")
        if f.event.numel():
            places = ", ".join(map(str, f.counters)) or "0"
            switches += [f"#define GR_EVENTS {len(f.counters)}", f"static const long gr_counter[] = {{{places}}};"]
        slow = ("q", "nominal", "c")
        step, shown = ("t", "h", "s", "ua", "um", "ub", "v", *slow), ("t", "s", "u", *slow)
        signatures = {
            "gr_once": (("q", "nominal"), ("out",)), "gr_move": (step, ("out",)), "gr_begin": (shown, ("out",)),
            "gr_look": (shown, ("seen", "R")), "gr_event": (("t", "s", "u", "pulse", *slow), ("out", "fired")),
            "gr_back": ((*step, "l"), ("ls", "lv")), "gr_slope": (shown, ("H",)),
        }  # fmt: skip
        return "\n".join(
            [
                *(f"#define GR_{name} {size}" for name, size in sizes.items()),
                *switches,
                '#include "gr_task.h"',
                '#include "gr_wide.h"',
                PRELUDE,
                *(print_function(made[n], n, *signatures[n], dialect=WIDE_DIALECT) for n in signatures if n in made),
                '#include "gr_particles.h"',
                "",
            ]
        )
