"""The C text of a model's integrators, one for each: sizes, functions and integrator in one file, or in several that
are linked.

Most of a compiler's time goes into the integrators. Linked ones read sizes from the model's object, so that one object
serves nearly all models, and all integrators of a model share its functions (gr_linked.h); a further model costs its
functions alone. In one file the integrator knows all sizes and has the functions inside: slower to build, quicker to
run, the same operations in the same order and so the same digits (``integrators`` says when). Sparse kernels are always
linked, and their equations are solved in an object for all models. No name of the user's is in any of it, unless it is
to be looked at, and then in comments (``debugging``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

import casadi as ca

from grisaille.compilation.debugging import annotate_source, is_debugging
from grisaille.compilation.derivatives import PARAMETER_DERIVATIVES, SENSITIVITY_FUNCTIONS, SPARSE_MATRICES
from grisaille.compilation.loop_printer import print_with_loops
from grisaille.compilation.printer import PRELUDE, print_function
from grisaille.compilation.schemes import Scheme
from grisaille.compilation.schemes.tableau_source import tableau_source
from grisaille.compilation.shared_library import LINKED_OPTIMIZATION, QUICK_OPTIMIZATION, CSource
from grisaille.compilation.sparse import source as sparse_source
from grisaille.structure.system import System

MODEL_ARGUMENTS = ("t", "x", "z", "u", "p")
MIN_INSTRUCTIONS_FOR_LOOPS = 300
"""Instructions of a sparse kernel's function above which what repeats is printed as loops, which compilers read sooner
(derivatives of 1 000 cells by parameters, gcc 12: 0.1 s instead of 0.7 s) and which take as long to run."""
RELATION_KINDS = ("lt", "le", "sign", "floor", "ceil")
MAX_LINKED_SIZES = (256, 512, 256, 4096, 256, 64)
"""States, implicit unknowns, signals, parameters, relations that are held and clocks, for which linked integrators with
held relations have room: GR_MOST_X and those after it in gr_linked.h."""

_NO_SLOPES = [
    *(f"const long gr_{name}_size = 0;" for name in PARAMETER_DERIVATIVES),
    *(f"const int gr_{name}_{what}[1] = {{0}};" for name in PARAMETER_DERIVATIVES for what in ("begin", "row")),
    *(f"void gr_{name}(void) {{}}" for name in SENSITIVITY_FUNCTIONS),
]
"""What stands for derivatives by parameters in a kernel without them, where nothing calls them."""
_NO_SENSITIVE = [line for line in _NO_SLOPES if line.startswith("void")]


def c_source(
    system: System, sensitive: bool, functions: Mapping[str, ca.Function], sparse: bool = False,
    words: bool | None = None,
) -> str:  # fmt: skip
    """Return sizes and functions of a model, to be followed by the headers of what calls them. A sparse one is to be
    linked with ``solver_source``.

    words : with the user's as comments; None: where GRISAILLE_DEBUG is set
    """
    text = _plain_source(system, sensitive, functions, sparse)
    return annotate_source(text, system, functions, sparse) if _has(words) else text


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
            *(f"static {table}" for table in _modes(system)),
            PRELUDE,
            *(_printed(name, function, sparse) for name, function in functions.items()),
            "",
        ]
    )


Sources: TypeAlias = Callable[[Scheme], list[CSource]]
"""The C files that an integrator is built from."""


def whole_sources(
    system: System, sensitive: bool, functions: Mapping[str, ca.Function], words: bool | None = None
) -> Sources:
    """Return one C file for each integrator."""
    count = sum(f.n_instructions() for f in functions.values())
    common = c_source(system, sensitive, functions, words=words)
    return lambda scheme: [CSource(common + _included(scheme), count)]


def linked_sources(
    system: System, functions: Mapping[str, ca.Function], words: bool | None = None, sparse: bool = True
) -> Sources:
    """Return C files of each integrator: the integrator, which is that of other models too, and the model's functions
    (gr_linked.h). Of a sparse kernel their derivatives by parameters are a file of their own, and how equations are
    solved is one for all models.
    """
    sizes, exact = _sizes(system, functions), sparse and bool(system.modes)
    common = linked_kind(system, functions, sparse)
    numbers = sizes if exact else sizes | _features(system, functions)
    numbers_here = [f"const long gr_size_{name.lower()} = {size};" for name, size in numbers.items()]
    numbers_here += [] if exact else _modes(system)
    if not sparse:
        lines = numbers_here if "FP" in functions else [*numbers_here, *_NO_SENSITIVE]
        own = _object_source(system, functions, lines, words, sparse)
        return lambda scheme: [shared_source(common, scheme, sparse), own]
    plain = {name: f for name, f in functions.items() if name not in SENSITIVITY_FUNCTIONS}
    slopes = {name: f for name, f in functions.items() if name in SENSITIVITY_FUNCTIONS}
    slopes_source = _object_source(system, slopes, [] if slopes else _NO_SLOPES, words, sparse)
    parts = [_object_source(system, plain, numbers_here, words, sparse), slopes_source, solver_source()]
    return lambda scheme: [shared_source(common, scheme, sparse), *parts]


def linked_kind(system: System, functions: Mapping[str, ca.Function], sparse: bool) -> str:
    """Return what the text of a linked integrator knows of a model."""
    sizes = _sizes(system, functions)
    features = _features(system, functions)
    has = {"HAS_Z": sizes["NZ"], "HAS_C": sizes["NC"], "HAS_SIDES": sizes["SIDES"], "HAS_E": features["NE"]}
    has |= {"HAS_W": features.get("NW", 0)}
    has |= {"HAS_BENDS": sizes["BENDS"] + sizes["WHOLES"], "BENT": features.get("BENT", 0)}
    kind = {name: int(size > 0) for name, size in has.items()}
    if not sparse:
        return dense_kind(kind)
    kind |= {"HAS_U": int(sizes["NU"] > 0)}
    tables = [f"static {table}" for table in _modes(system)]
    return kind_text(kind | sizes | features if system.modes else kind, sparse, tables)


def dense_kind(has: Mapping[str, int]) -> str:
    """Return the text of linked integrators of dense equations. With signals or without, all are of one kind."""
    return kind_text({**{name: has[name] for name in sorted(has)}, "HAS_U": 1}, False)


def can_be_linked(system: System) -> bool:
    """Return whether integrators of dense equations for models of all sizes can be linked with this one, within their
    capacity where relations are held.
    """
    if not system.modes:
        return True
    clocks = 0 if system.reactions is None else len(system.reactions.ticks)
    sizes = (system.nx, system.nz, system.nu, system.np, len(system.modes), clocks)
    return all(size <= most for size, most in zip(sizes, MAX_LINKED_SIZES, strict=True))


def kind_text(numbers: Mapping[str, int], sparse: bool, tables: Sequence[str] = ()) -> str:
    """Return the text before a linked integrator, from GR_HAS_… and what is known beside."""
    head = [f"#define GR_SPARSE {int(sparse)}", *_macros(numbers), '#include "gr_linked.h"', '#include "gr_task.h"']
    return "\n".join([*head, *tables, ""])


def shared_source(kind: str, scheme: Scheme, sparse: bool) -> CSource:
    """Return the C file of a linked integrator. That of dense equations is built in the time that a whole file takes,
    so that the first model of its kind does not wait longer than it would for one.
    """
    return CSource(kind + _included(scheme), 0, shared=LINKED_OPTIMIZATION if sparse else QUICK_OPTIMIZATION)


def _included(scheme: Scheme) -> str:
    tables = tableau_source(scheme.tableaux)
    return f'{tables}#include "{scheme.header}.h"\nGR_API long gr_task_size(void) {{ return (long)sizeof(gr_task); }}\n'


def solver_source() -> CSource:
    """Return the C file of sparse equations, the same for all models (gr_sparse_factors.h)."""
    sizes = _macros({"NX": 1, "NZ": 0, "NU": 0, "NP": 0, "NC": 0, "NY": 0, "SPARSE": 1, "SOLVERS_HERE": 1})
    return CSource("\n".join([*sizes, '#include "gr_sparse_factors.h"', ""]), 0)


def relation_kinds(system: System) -> tuple[int, ...]:
    """Return numbers of gr_events.h, below zero where a relation cannot slide."""
    return tuple(
        RELATION_KINDS.index(m.kind) + 1 if m.can_slide else -RELATION_KINDS.index(m.kind) - 1 for m in system.modes
    )


def when_tables(system: System) -> tuple[tuple[int, ...], ...]:
    """Return numbers of gr_when.h: the ``when`` of each clause, whether it lasts, counting signals, targets, which
    clause sets which state, how soon states yield, and which clauses must not fire at once (pairs, -1 at the end),
    ranks of clauses, places of what is remembered, and which clauses may fire during initialization.
    """
    r = system.reactions
    if r is None or not system.modes:
        return ()
    resets = tuple(int(k in places) for places in r.resets for k in range(system.nx))
    clashes = (*(number for clash in r.clashes for number in clash[:2]), -1)
    lasting = tuple(map(int, r.lasting))
    begins = tuple(map(int, r.begins))
    return r.group, lasting, r.counters, r.targets, resets, r.yields, clashes, r.ranks, (*r.remembered, -1), begins


def _object_source(
    system: System, functions: Mapping[str, ca.Function], lines: list[str], words: bool | None, sparse: bool
) -> CSource:
    tables = sparse_source.matrices(functions, system.nx, system.nz).as_objects() if sparse else []
    printed = [_printed(name, function, sparse) for name, function in functions.items()]
    head = ["#define GR_FN static inline", PRELUDE, "#undef GR_FN", "#define GR_FN"]
    text = "\n".join([*head, *lines, *tables, *printed, ""])
    count = text.count("\n")
    text = annotate_source(text, system, functions, sparse) if _has(words) else text
    return CSource(text, count, is_quick=not sparse)


def _printed(name: str, function: ca.Function, sparse: bool) -> str:
    compressed = sparse and name in SPARSE_MATRICES
    if sparse and function.n_instructions() > MIN_INSTRUCTIONS_FOR_LOOPS:
        return print_with_loops(function, f"gr_{name}", MODEL_ARGUMENTS, compressed)
    return print_function(function, f"gr_{name}", MODEL_ARGUMENTS, sparse=compressed)


def _sizes(system: System, functions: Mapping[str, ca.Function]) -> dict[str, int]:
    return {
        "NX": system.nx, "NZ": system.nz, "NU": system.nu, "NP": system.np, "NC": system.nc, "NY": system.ny,
        "SIDES": functions["S"].numel_out(0), "BENDS": functions["B"].numel_out(0),
        "WHOLES": functions["BW"].numel_out(0),
    }  # fmt: skip


def _features(system: System, functions: Mapping[str, ca.Function]) -> dict[str, int]:
    """Return numbers of pieces and of what belongs to events."""
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
    """Return tables of relations that are held, and of clauses of events."""
    tables = {"gr_kind": relation_kinds(system)} if system.modes else {}
    names = ("gr_group", "gr_lasting", "gr_counter", "gr_target", "gr_resets", "gr_yields", "gr_clash", "gr_rank",
             "gr_remembered", "gr_begins")  # fmt: skip
    tables |= dict(zip(names, when_tables(system), strict=False))
    return [f"const long {name}[] = {{{', '.join(map(str, entries or (0,)))}}};" for name, entries in tables.items()]
