"""Forward derivatives printed as C with several directions abreast.

What depends on a direction is a ``gr_lanes`` (gr_lanes.h), everything else a ``double``: the values are computed once
for all directions of a call. Derivatives are linear in the directions, so products, sums and quotients are all the
lanes need; anything else is refused. Long functions are cut into parts as in ``printer``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import groupby

import casadi as ca

from grisaille.compilation.dialect import PLAIN_DIALECT
from grisaille.compilation.printer import (
    INSTRUCTIONS_PER_FUNCTION,
    ON_STACK,
    RUN_OF_ZEROS,
    _assign_slots,
    _last_uses,
    _Result,
    _soon,
    _Statement,
    _statements,
)
from grisaille.errors import CompilationError

MAX_WHOLE_LINES = 16_000
"""Lines up to which a function stays in one piece: in parts 15 000 compile in 3 s instead of 5, and run a seventh
slower; 70 000 take a compiler 50 s whole."""
_CHOICE = " : 0.0"
_CALL = re.compile(r"[a-z_]\w*\(")


def print_tangent(
    function: ca.Function, name: str, inputs: Sequence[str], lanes: Sequence[str], outputs: Sequence[str], skip: int
) -> str:
    """Return ``GR_FN void name(…)``; inputs named in ``lanes`` and all outputs are lanes, the first ``skip`` are left
    out.
    """
    lines, results = _statements(_without(function, skip), inputs, outputs, PLAIN_DIALECT)
    wide: set[str] = set()
    for s in lines:
        if s.text.split("[")[0] in lanes if not s.operands else any(o in wide for o in s.operands):
            wide.add(s.target)
    declared = [
        f"double {n}" if n in ("t", "h") else f"const {'gr_lanes' if n in lanes else 'double'} *{n}" for n in inputs
    ]
    declaration = ", ".join([*declared, *(f"gr_lanes *{n}" for n in outputs)])
    if len(lines) > MAX_WHOLE_LINES:
        return _in_parts(name, declaration, ", ".join([*inputs, *outputs]), lines, results, wide)
    body = [f"  const {_declared(s, wide)};" for s in lines]
    return "\n".join([f"GR_FN void {name}({declaration}) {{", *body, *_stores(results, wide, {}), "}", ""])


def _declared(s: _Statement, wide: set[str]) -> str:
    is_wide = s.target in wide
    return f"{'gr_lanes' if is_wide else 'double'} {s.target} = {_text(s.text, is_wide)}"


def _stores(results: Sequence[_Result], wide: set[str], slots: Mapping[str, str]) -> list[str]:
    """Return one line per entry, or per run of zeros."""
    lines: list[str] = []
    for (output, is_zero), group in groupby(results, key=lambda r: (r.output, r.value == "0.0")):
        run = list(group)
        if is_zero and len(run) >= RUN_OF_ZEROS:
            first, last = run[0].position, run[-1].position
            lines.append(f"  for (long i = {first}; i <= {last}; i++) {output}[i] = GR_ALL(0.0);")
            continue
        for r in run:
            value = slots.get(r.value, r.value)
            lines.append(f"  {output}[{r.position}] = {value if r.value in wide else f'GR_ALL({value})'};")
    return lines


def _in_parts(
    name: str, declaration: str, call: str, lines: list[_Statement], results: list[_Result], wide: set[str]
) -> str:
    """Return parts that hand numbers on in ``w`` and lanes in ``v``."""
    lines = _soon(lines, results, results[0].output)
    part_of = {s.target: k // INSTRUCTIONS_PER_FUNCTION for k, s in enumerate(lines)}
    n_parts = (len(lines) - 1) // INSTRUCTIONS_PER_FUNCTION + 1
    last_use = _last_uses(lines, part_of, results, n_parts)
    slots: dict[str, str] = {}
    counts = []
    for array, names in (("w", part_of.keys() - wide), ("v", wide)):
        found, count = _assign_slots(lines, part_of, {n: k for n, k in last_use.items() if n in names})
        slots |= {n: f"{array}[{k}]" for n, k in found.items()}
        counts.append(count)
    texts = []
    for part in range(n_parts):
        mine = lines[part * INSTRUCTIONS_PER_FUNCTION : (part + 1) * INSTRUCTIONS_PER_FUNCTION]
        needed = dict.fromkeys(o for s in mine for o in s.operands if part_of.get(o, part) < part)
        body = [f"  const {'gr_lanes' if o in wide else 'double'} {o} = {slots[o]};" for o in needed]
        body += [f"  const {_declared(s, wide)};" for s in mine]
        body += [f"  {slots[s.target]} = {s.target};" for s in mine if s.target in slots]
        texts += [f"GR_FN GR_ALONE void {name}_{part}({declaration}, double *w, gr_lanes *v) {{", *body, "}", ""]
    storage = "GR_KEPT " if counts[0] + 2 * counts[1] > ON_STACK else ""
    calls = [f"  {storage}double w[{counts[0]}];", f"  {storage}gr_lanes v[{counts[1]}];"]
    calls += [f"  {name}_{part}({call}, w, v);" for part in range(n_parts)]
    return "\n".join([*texts, f"GR_FN void {name}({declaration}) {{", *calls, *_stores(results, wide, slots), "}", ""])


def _text(text: str, is_wide: bool) -> str:
    if not is_wide:
        return text
    if text.endswith(_CHOICE):
        return text.removesuffix(_CHOICE) + " : GR_ALL(0.0)"
    if _CALL.search(text):
        raise CompilationError(f"A derivative is not linear in its directions: {text}. This is an error in grisaille.")
    return text


def _without(function: ca.Function, skip: int) -> ca.Function:
    arguments = [ca.SX.sym(f"i{i}", function.sparsity_in(i)) for i in range(function.n_in())]
    return ca.Function("tangent", arguments, ca.cse(function.call(arguments)[skip:]))
