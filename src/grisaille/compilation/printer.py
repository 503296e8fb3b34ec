"""CasADi ``SX`` functions printed as straight-line C.

Each instruction of the function becomes one ``const double`` (or ``gr_wide``), so the compiler is free to keep
everything in registers; outputs are dense, column-major, every entry written, and written last, so an output may
overwrite an input; runs of zeros are written by loops (160 000 stores took gcc three minutes).
Inputs appear as ``x[3]``, never under the names their symbols carry.

Long functions are cut into parts of ``INSTRUCTIONS_PER_FUNCTION`` instructions that hand values on through an array:
the time a compiler
needs grows faster than linearly with the length of one function (106 000 instructions, gcc 12 -O1: 51 s whole, 20 s in
parts; 24 000: 5.1 s and 4.4 s).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import groupby

import casadi as ca

from grisaille.compilation.dialect import PLAIN_DIALECT, Dialect
from grisaille.errors import CompilationError

INSTRUCTIONS_PER_FUNCTION = 2000
"""Instructions per C function; also the length up to which a function stays in one piece."""

RUN_OF_ZEROS = 8
"""Zeros in a row from which on a loop writes them."""

ON_STACK = 2048
"""Numbers between parts of a function that lie on the stack (half a megabyte in threads of some systems); more lie in
memory of the thread's own."""

PRELUDE = """\
#include <math.h>

#if defined(__CUDACC__)
#ifdef GR_WHOLE
#define GR_ALONE __forceinline__
#else
#define GR_ALONE __noinline__
#endif
#elif defined(__GNUC__)
#define GR_ALONE __attribute__((noinline))
#else
#define GR_ALONE
#endif
#if defined(__CUDACC__)
#define GR_KEPT
#else
#define GR_KEPT static __thread
#endif

GR_FN double gr_sign(double a) { return a < 0 ? -1.0 : a > 0 ? 1.0 : a; }
GR_FN double gr_min(double a, double b) { return a < b || b != b ? a : b; }
GR_FN double gr_max(double a, double b) { return a > b || b != b ? a : b; }

/* Winitzki's closed form, then Halley's iteration on erf (on erfc in the tails, where erf has no digits left). */
GR_FN double gr_erfinv(double y) {
  double a = fabs(y), l, b, x, f;
  int i;
  if (!(a < 1.0)) return a == 1.0 ? y * INFINITY : NAN;
  l = log1p(-y * y);
  b = 4.330746750799873 + 0.5 * l;
  x = sqrt(sqrt(b * b - l / 0.147) - b);
  for (i = 0; i < 3; i++) {
    f = a < 0.5 ? erf(x) - a : (1.0 - a) - erfc(x);
    f /= 1.1283791670955126 * exp(-x * x);
    x -= f / (1.0 + x * f);
  }
  return copysign(x, y);
}
"""

_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def print_function(
    function: ca.Function,
    name: str,
    inputs: Sequence[str],
    outputs: Sequence[str] = ("out",),
    dialect: Dialect = PLAIN_DIALECT,
    sparse: bool = False,
    also: str = "",
) -> str:
    """Return the C text of ``function``: ``GR_FN void name(double t, const double *x, …, double *out)``.

    ``inputs`` and ``outputs`` are C names chosen by us, one per argument; those in ``{"t", "h"}`` are passed by value.
    ``sparse`` writes the structural nonzeros of outputs only, one after the other; ``also`` is a macro after the last
    argument.
    """
    for word in (name, *inputs, *outputs):
        if not _IDENTIFIER.fullmatch(word):
            raise CompilationError(f"{word!r} is not a C identifier; generated code takes its own names only.")
    signature = _Signature(tuple(inputs), tuple(outputs), dialect.number)
    lines, results = _statements(function, inputs, outputs, dialect, sparse)
    if len(lines) <= INSTRUCTIONS_PER_FUNCTION:
        body = [f"  const {dialect.number} {s.target} = {s.text};" for s in lines]
        stores = _stores(results, {}, dialect.literal(0.0))
        return _definition(name, f"{signature.declaration}{also}", [*body, *stores])
    return _in_parts(name, signature, _soon(lines, results, outputs[0]), results, dialect.literal(0.0))


@dataclass(frozen=True)
class _Signature:
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    number: str

    @property
    def declaration(self) -> str:
        given = [f"double {n}" if n in ("t", "h") else f"const {self.number} *{n}" for n in self.inputs]
        return ", ".join([*given, *(f"{self.number} *{n}" for n in self.outputs)])

    @property
    def call(self) -> str:
        return ", ".join([*self.inputs, *self.outputs])


@dataclass(frozen=True)
class _Statement:
    target: str
    text: str
    operands: tuple[str, ...] = field(default=())


@dataclass(frozen=True)
class _Result:
    """One entry of an output and where its value is stored."""

    output: str
    position: int
    value: str


def _definition(name: str, declaration: str, body: list[str], storage: str = "GR_FN") -> str:
    return "\n".join([f"{storage} void {name}({declaration}) {{", *body, "}", ""])


def _statements(
    function: ca.Function, inputs: Sequence[str], outputs: Sequence[str], dialect: Dialect, sparse: bool = False
) -> tuple[list[_Statement], list[_Result]]:
    """Return the instruction list with every work slot renamed at each assignment, and the values of all output
    entries.
    """
    current: dict[int, str] = {}
    loaded: dict[tuple[int, int], str] = {}
    lines: list[_Statement] = []
    positions = [dense_positions(function.sparsity_in(i)) for i in range(function.n_in())]
    written: dict[tuple[int, int], str] = {}
    for k in range(function.n_instructions()):
        operation = function.instruction_id(k)
        if operation == ca.OP_OUTPUT:
            where = function.instruction_output(k)
            written[where[0], where[1]] = current[function.instruction_input(k)[0]]
            continue
        target = function.instruction_output(k)[0]
        if operation == ca.OP_CONST:
            current[target] = dialect.literal(function.instruction_constant(k))
            continue
        variable = f"a{len(lines)}"
        if operation == ca.OP_INPUT:
            source, entry = function.instruction_input(k)
            if (source, entry) not in loaded:
                loaded[source, entry] = variable
                name = inputs[source]
                text = dialect.spread.format(name) if name in ("t", "h") else f"{name}[{positions[source][entry]}]"
                lines.append(_Statement(variable, text))
            current[target] = loaded[source, entry]
            continue
        if operation not in dialect.operations:
            raise CompilationError(f"CasADi operation number {operation} is not elementary and cannot be printed as C.")
        operands = tuple(current[i] for i in function.instruction_input(k))
        lines.append(_Statement(variable, dialect.operations[operation](*operands), operands))
        current[target] = variable
    return lines, (_sparse_results if sparse else _dense_results)(function, outputs, written, dialect.literal(0.0))


def dense_positions(pattern: ca.Sparsity) -> list[int]:
    """Return the position of each entry of a pattern in the full matrix, column after column."""
    rows, columns = pattern.get_triplet()
    height = pattern.size1()
    return [r + height * c for r, c in zip(rows, columns, strict=True)]


def _sparse_results(
    function: ca.Function, outputs: Sequence[str], written: dict[tuple[int, int], str], zero: str
) -> list[_Result]:
    return [
        _Result(name, entry, written.get((o, entry), zero))
        for o, name in enumerate(outputs)
        for entry in range(function.nnz_out(o))
    ]


def _dense_results(
    function: ca.Function, outputs: Sequence[str], written: dict[tuple[int, int], str], zero: str
) -> list[_Result]:
    results = []
    for o, name in enumerate(outputs):
        where = {position: entry for entry, position in enumerate(dense_positions(function.sparsity_out(o)))}
        for position in range(function.numel_out(o)):
            value = written.get((o, where[position]), zero) if position in where else zero
            results.append(_Result(name, position, value))
    return results


def between_parts(number: str, count: int) -> str:
    """Return the array ``w`` in which parts of a function hand values on; printed functions do not call each other."""
    return f"  {'GR_KEPT ' if count > ON_STACK else ''}{number} w[{count}];"


def _stores(results: list[_Result], slots: dict[str, int], zero: str) -> list[str]:
    """Return one line per entry, or per run of zeros."""
    lines: list[str] = []
    for (output, is_zero), group in groupby(results, key=lambda r: (r.output, r.value == zero)):
        run = list(group)
        if is_zero and len(run) >= RUN_OF_ZEROS:
            first, last = run[0].position, run[-1].position
            lines.append(f"  for (long i = {first}; i <= {last}; i++) {output}[i] = {zero};")
        else:
            values = (f"w[{slots[r.value]}]" if r.value in slots else r.value for r in run)
            lines += [f"  {output}[{r.position}] = {value};" for r, value in zip(run, values, strict=True)]
    return lines


def _in_parts(name: str, signature: _Signature, lines: list[_Statement], results: list[_Result], zero: str) -> str:
    """Cut after every ``INSTRUCTIONS_PER_FUNCTION`` statements; a value needed in a later part travels in ``w``, slots
    are reused.
    """
    part_of = {s.target: k // INSTRUCTIONS_PER_FUNCTION for k, s in enumerate(lines)}
    n_parts = (len(lines) - 1) // INSTRUCTIONS_PER_FUNCTION + 1
    last_use = _last_uses(lines, part_of, results, n_parts)
    slots, n_slots = _assign_slots(lines, part_of, last_use)
    texts = []
    for part in range(n_parts):
        mine = lines[part * INSTRUCTIONS_PER_FUNCTION : (part + 1) * INSTRUCTIONS_PER_FUNCTION]
        # in the order of first use: a set's own order follows PYTHONHASHSEED, and the text is the key of the cache
        needed = dict.fromkeys(o for s in mine for o in s.operands if part_of.get(o, part) < part)
        number = signature.number
        body = [f"  const {number} {o} = w[{slots[o]}];" for o in needed]
        body += [f"  const {number} {s.target} = {s.text};" for s in mine]
        body += [f"  w[{slots[s.target]}] = {s.target};" for s in mine if s.target in slots]
        texts.append(_definition(f"{name}_{part}", f"{signature.declaration}, {number} *w", body, "GR_FN GR_ALONE"))
    calls = [between_parts(signature.number, n_slots)]
    calls += [f"  {name}_{part}({signature.call}, w);" for part in range(n_parts)]
    calls += _stores(results, slots, zero)
    return "\n".join([*texts, _definition(name, signature.declaration, calls)])


def _soon(lines: list[_Statement], results: list[_Result], first: str) -> list[_Statement]:
    """Return the same statements; what the ``first`` output does not need follows what it is made of at once.

    Derivatives come after all values otherwise, which then wait for them: of a robot's step with one direction, 1 340
    numbers at a time instead of 640.
    """
    needed = {r.value for r in results if r.output == first}
    for s in reversed(lines):
        if s.target in needed:
            needed.update(s.operands)
    rank: dict[str, int] = {}
    for k, s in enumerate(lines):
        rank[s.target] = k if s.target in needed else max((rank.get(o, -1) for o in s.operands), default=-1)
    known = {s.target: s for s in lines}
    ordered: dict[str, _Statement] = {}
    for s in sorted(lines, key=lambda s: rank[s.target]):
        if s.operands:
            # what is read from an argument is read where it is first used
            ordered.update({o: known[o] for o in s.operands if o in known and not known[o].operands})
            ordered[s.target] = s
    return list((ordered | {s.target: s for s in lines if s.target not in ordered}).values())


def _last_uses(
    lines: list[_Statement], part_of: dict[str, int], results: list[_Result], n_parts: int
) -> dict[str, int]:
    last: dict[str, int] = {}
    for k, s in enumerate(lines):
        for o in s.operands:
            if o in part_of:
                last[o] = k // INSTRUCTIONS_PER_FUNCTION
    last.update({r.value: n_parts for r in results if r.value in part_of})
    return last


def _assign_slots(
    lines: list[_Statement], part_of: dict[str, int], last_use: dict[str, int]
) -> tuple[dict[str, int], int]:
    slots: dict[str, int] = {}
    free: list[int] = []
    expiring: dict[int, list[int]] = {}
    count = 0
    for k, s in enumerate(lines):
        part = k // INSTRUCTIONS_PER_FUNCTION
        if k % INSTRUCTIONS_PER_FUNCTION == 0:
            # what was last read in an earlier part is over; this part's own stores come after all its loads
            free.extend(expiring.pop(part - 1, []))
        if last_use.get(s.target, -1) > part:
            if not free:
                free.append(count)
                count += 1
            slots[s.target] = free.pop()
            expiring.setdefault(last_use[s.target], []).append(slots[s.target])
    return slots, max(count, 1)
