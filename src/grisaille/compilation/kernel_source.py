"""The C text of a model's integrators, one for each: sizes, functions and integrator in one file, or, of sparse
kernels, in four that are linked.

Most of a compiler's time goes into the integrators. Those of small models know all sizes and have the functions inside;
those of sparse ones read sizes from the model's object, so that one object serves nearly all models, and a run and a
fit of one model share its functions too (gr_linked.h). Sparse equations are solved in an object for all models. No name
of the user's is in any of it, unless it is to be looked at, and then in comments (``debugging``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

import casadi as ca

from grisaille.compilation.debugging import annotated, is_debugging
from grisaille.compilation.derivatives import PARAMETRIC, SENSITIVE, SPARSE
from grisaille.compilation.library import Source
from grisaille.compilation.printer import PRELUDE, print_function
from grisaille.compilation.rolled import print_rolled
from grisaille.compilation.schemes import Scheme, tableau_source
from grisaille.compilation.sparse import source as sparse_source
from grisaille.structure.system import System

ARGUMENTS = ("t", "x", "z", "u", "p")
ROLLED = 300
"""Instructions of a sparse kernel's function above which what repeats is printed as loops, which compilers read sooner
(derivatives of 1 000 cells by parameters, gcc 12: 0.1 s instead of 0.7 s) and which take as long to run."""
KINDS = ("lt", "le", "sign", "floor", "ceil")

_NO_SLOPES = [
    *(f"const long gr_{name}_size = 0;" for name in PARAMETRIC),
    *(f"const int gr_{name}_{what}[1] = {{0}};" for name in PARAMETRIC for what in ("begin", "row")),
    *(f"void gr_{name}(void) {{}}" for name in SENSITIVE),
]
"""What stands for derivatives by parameters in a kernel without them, where nothing calls them."""


def c_source(
    system: System, sensitive: bool, functions: Mapping[str, ca.Function], sparse: bool = False,
    words: bool | None = None,
) -> str:  # fmt: skip
    """Sizes and functions of a model, to be followed by the headers of what calls them. A sparse one is to be linked
    with ``solvers``.

    words : with the user's as comments; None: where GRISAILLE_DEBUG is set
    """
    text = _plain_source(system, sensitive, functions, sparse)
    return annotated(text, system, functions, sparse) if _has(words) else text


def _has(words: bool | None) -> bool:
    return is_debugging() if words is None else words


def _plain_source(system: System, sensitive: bool, functions: Mapping[str, ca.Function], sparse: bool) -> str:
    macros = sparse_source.matrices(functions, system.nx, system.nz).as_macros() if sparse else []
    return "\n".join(
        [
            *_macros(_sizes(system, functions) | _features(system, functions)),
            f"#define GR_SENSITIVE {int(sensitive)}",
            *(["#define GR_SPARSE 1", "#define GR_SOLVERS_ELSEWHERE 1", *macros] if sparse else []),
            '#include "gr_task.h"',
            *_modes(system),
            PRELUDE,
            *(_printed(name, function, sparse) for name, function in functions.items()),
            "",
        ]
    )


Sources: TypeAlias = Callable[[Scheme], list[Source]]
"""The C files that an integrator is built from."""


def whole_sources(
    system: System, sensitive: bool, functions: Mapping[str, ca.Function], words: bool | None = None
) -> Sources:
    """One C file for each integrator."""
    count = sum(f.n_instructions() for f in functions.values())
    common = c_source(system, sensitive, functions, words=words)
    return lambda scheme: [Source(common + _included(scheme), count)]


def linked_sources(system: System, functions: Mapping[str, ca.Function], words: bool | None = None) -> Sources:
    """C files of each integrator of a sparse kernel: the integrator, which is that of other models too, the model's
    functions, their derivatives by parameters (gr_linked.h), and how equations are solved."""
    plain = {name: f for name, f in functions.items() if name not in SENSITIVE}
    slopes = {name: f for name, f in functions.items() if name in SENSITIVE}
    sizes = _sizes(system, functions)
    numbers = [f"const long gr_{name.lower()} = {size};" for name, size in sizes.items()]
    has = {f"HAS_{name.removeprefix('N')}": int(sizes[name] > 0) for name in ("NZ", "NU", "NC", "SIDES")}
    has["HAS_BENDS"] = int(sizes["BENDS"] + sizes["WHOLES"] > 0)
    # with events sizes of a model's own are in the text anyway
    known = sizes if system.modes else {}
    head = [*_macros(has | known | _features(system, functions)), '#include "gr_linked.h"', '#include "gr_task.h"']
    common = "\n".join([*head, *_modes(system), ""])
    slopes_source = _object_source(system, slopes, [] if slopes else _NO_SLOPES, words)
    parts = [_object_source(system, plain, numbers, words), slopes_source, solvers()]
    return lambda scheme: [Source(common + _included(scheme), 0, shared=True), *parts]


def _included(scheme: Scheme) -> str:
    tables = tableau_source(scheme.tableaux)
    return f'{tables}#include "{scheme.header}.h"\nGR_API long gr_task_size(void) {{ return (long)sizeof(gr_task); }}\n'


def solvers() -> Source:
    """The C file of sparse equations, the same for all models (gr_sparse_factors.h)."""
    sizes = _macros({"NX": 1, "NZ": 0, "NU": 0, "NP": 0, "NC": 0, "NY": 0, "SPARSE": 1, "SOLVERS_HERE": 1})
    return Source("\n".join([*sizes, '#include "gr_sparse_factors.h"', ""]), 0)


def kinds(system: System) -> tuple[int, ...]:
    """Numbers of gr_events.h, below zero where a relation cannot slide."""
    return tuple(KINDS.index(m.kind) + 1 if m.can_slide else -KINDS.index(m.kind) - 1 for m in system.modes)


def when_tables(system: System) -> tuple[tuple[int, ...], ...]:
    """Numbers of gr_when.h: the ``when`` of each clause, whether it lasts, counting signals, targets, which clause sets
    which state, how soon states yield, and which clauses must not fire at once (pairs, -1 at the end), ranks of
    clauses, places of what is remembered, and which clauses may fire during initialization."""
    r = system.reactions
    if r is None or not system.modes:
        return ()
    resets = tuple(int(k in places) for places in r.resets for k in range(system.nx))
    clashes = (*(number for clash in r.clashes for number in clash[:2]), -1)
    lasting = tuple(map(int, r.lasting))
    begins = tuple(map(int, r.begins))
    return r.group, lasting, r.counters, r.targets, resets, r.yields, clashes, r.ranks, (*r.remembered, -1), begins


def _object_source(
    system: System, functions: Mapping[str, ca.Function], lines: list[str], words: bool | None
) -> Source:
    tables = sparse_source.matrices(functions, system.nx, system.nz).as_objects()
    printed = [_printed(name, function, True) for name, function in functions.items()]
    head = ["#define GR_FN static inline", PRELUDE, "#undef GR_FN", "#define GR_FN"]
    text = "\n".join([*head, *lines, *tables, *printed, ""])
    count = text.count("\n")
    return Source(annotated(text, system, functions, True) if _has(words) else text, count)


def _printed(name: str, function: ca.Function, sparse: bool) -> str:
    compressed = sparse and name in SPARSE
    if sparse and function.n_instructions() > ROLLED:
        return print_rolled(function, f"gr_{name}", ARGUMENTS, compressed)
    return print_function(function, f"gr_{name}", ARGUMENTS, sparse=compressed)


def _sizes(system: System, functions: Mapping[str, ca.Function]) -> dict[str, int]:
    return {
        "NX": system.nx, "NZ": system.nz, "NU": system.nu, "NP": system.np, "NC": system.nc, "NY": system.ny,
        "SIDES": functions["S"].numel_out(0), "BENDS": functions["B"].numel_out(0),
        "WHOLES": functions["BW"].numel_out(0),
    }  # fmt: skip


def _features(system: System, functions: Mapping[str, ca.Function]) -> dict[str, int]:
    """Numbers of pieces and of what belongs to events."""
    numbers = {"NM": len(system.pieces), "NE": len(system.modes)}
    if system.modes:
        bends = {"GAP_BENDS": functions["GB"].numel_out(0), "GAP_WHOLES": functions["GW"].numel_out(0)}
        numbers |= {"BENT": 1, **bends} if any(bends.values()) else {}
    if system.modes and (r := system.reactions) is not None:
        numbers |= {"NW": len(r.texts), "NR": len(r.targets), "NB": int(r.was.numel()), "NQ": len(r.ticks)}
    return numbers


def _macros(numbers: Mapping[str, int]) -> list[str]:
    return [f"#define GR_{name} {number}" for name, number in numbers.items()]


def _modes(system: System) -> list[str]:
    signs = ", ".join(map(str, kinds(system)))
    tables = [f"static const long gr_kind[GR_NE] = {{{signs}}};"] if system.modes else []
    names = ("gr_group", "gr_lasting", "gr_counter", "gr_target", "gr_resets", "gr_yields", "gr_clash", "gr_rank",
             "gr_remembered", "gr_begins")  # fmt: skip
    for name, entries in zip(names, when_tables(system), strict=False):
        tables.append(f"static const long {name}[] = {{{', '.join(map(str, entries or (0,)))}}};")
    return tables
