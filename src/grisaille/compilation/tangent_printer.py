"""Forward derivatives printed as C with several directions abreast.

What depends on a direction is a ``gr_lanes`` (gr_lanes.h), everything else a ``double``: the values are computed once
for all directions of a call. Derivatives are linear in the directions, so products, sums and quotients are all the
lanes need; anything else is refused.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import casadi as ca

from grisaille.compilation.dialect import SINGLE
from grisaille.compilation.printer import _statements
from grisaille.errors import CompilationError

_CHOICE = " : 0.0"
_CALL = re.compile(r"[a-z_]\w*\(")


def print_tangent(
    function: ca.Function, name: str, inputs: Sequence[str], lanes: Sequence[str], outputs: Sequence[str], skip: int
) -> str:
    """``GR_FN void name(…)``; inputs named in ``lanes`` and all outputs are lanes, the first ``skip`` are left out."""
    lines, results = _statements(_without(function, skip), inputs, outputs, SINGLE)
    wide: set[str] = set()
    body = []
    for s in lines:
        is_wide = s.text.split("[")[0] in lanes if not s.operands else any(o in wide for o in s.operands)
        if is_wide:
            wide.add(s.target)
        body.append(f"  const {'gr_lanes' if is_wide else 'double'} {s.target} = {_text(s.text, is_wide)};")
    stores = [f"  {r.output}[{r.position}] = {r.value if r.value in wide else f'GR_ALL({r.value})'};" for r in results]
    declared = [
        f"double {n}" if n in ("t", "h") else f"const {'gr_lanes' if n in lanes else 'double'} *{n}" for n in inputs
    ]
    declaration = ", ".join([*declared, *(f"gr_lanes *{n}" for n in outputs)])
    return "\n".join([f"GR_FN void {name}({declaration}) {{", *body, *stores, "}", ""])


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
