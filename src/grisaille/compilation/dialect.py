"""How CasADi's operations are spelled in C: for plain numbers, and for several realizations abreast (gr_wide.h)."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import casadi as ca

_ARITHMETIC = {
    "ADD": "{0} + {1}", "SUB": "{0} - {1}", "MUL": "{0} * {1}", "DIV": "{0} / {1}",
    "ASSIGN": "{0}", "NEG": "-{0}", "SQ": "{0} * {0}", "TWICE": "{0} + {0}",
    # these two have effects only inside CasADi; their value is the first operand
    "PRINTME": "{0}", "LIFT": "{0}",
}  # fmt: skip
_COMPARISONS = {"LT": "{0} < {1}", "LE": "{0} <= {1}", "EQ": "{0} == {1}", "NE": "{0} != {1}", "NOT": "{0} == 0.0"}
_CALLS = {
    "EXP": "exp", "LOG": "log", "POW": "pow", "CONSTPOW": "pow", "SQRT": "sqrt", "SIN": "sin", "COS": "cos",
    "TAN": "tan", "ASIN": "asin", "ACOS": "acos", "ATAN": "atan", "ATAN2": "atan2", "SINH": "sinh", "COSH": "cosh",
    "TANH": "tanh", "ASINH": "asinh", "ACOSH": "acosh", "ATANH": "atanh", "FLOOR": "floor", "CEIL": "ceil",
    "FMOD": "fmod", "REMAINDER": "remainder", "COPYSIGN": "copysign", "ERF": "erf", "LOG1P": "log1p",
    "EXPM1": "expm1", "HYPOT": "hypot", "SIGN": "gr_sign", "FMIN": "gr_min", "FMAX": "gr_max", "ERFINV": "gr_erfinv",
}  # fmt: skip


@dataclass(frozen=True)
class Dialect:
    """``number`` is the C type, ``spread`` makes one of a double, ``operations`` format operands by operation code."""

    number: str
    spread: str
    operations: Mapping[int, Callable[..., str]]

    def literal(self, value: float) -> str:
        return self.spread.format(literal(value))


def literal(value: float) -> str:
    """Return a double as C text that reads back to the same bits."""
    if math.isnan(value):
        return "NAN"
    if math.isinf(value):
        return "INFINITY" if value > 0 else "(-INFINITY)"
    return repr(value) if math.copysign(1.0, value) > 0 else f"({value!r})"


def _by_code(templates: Mapping[str, str]) -> dict[int, Callable[..., str]]:
    return {getattr(ca, f"OP_{name}"): template.format for name, template in templates.items()}


def _each(call: str) -> Callable[..., str]:
    return lambda *operands: f"GR_EACH{len(operands)}({call}, {', '.join(operands)})"


PLAIN_DIALECT = Dialect(
    "double",
    "{}",
    _by_code(_ARITHMETIC | _COMPARISONS)
    | _by_code(
        {
            "INV": "1.0 / {0}",
            "FABS": "fabs({0})",
            "AND": "{0} != 0.0 && {1} != 0.0",
            "OR": "{0} != 0.0 || {1} != 0.0",
            "IF_ELSE_ZERO": "{0} != 0.0 ? {1} : 0.0",
        }
    )
    | {getattr(ca, f"OP_{n}"): (lambda c: lambda *a: f"{c}({', '.join(a)})")(call) for n, call in _CALLS.items()},
)

WIDE_DIALECT = Dialect(
    "gr_wide",
    "GR_SPLAT({})",
    _by_code(_ARITHMETIC)
    | _by_code({name: f"GR_TRUTH({text.replace('0.0', 'GR_SPLAT(0.0)')})" for name, text in _COMPARISONS.items()})
    | _by_code(
        {
            "INV": "GR_SPLAT(1.0) / {0}",
            "FABS": "GR_ABS({0})",
            "AND": "GR_TRUTH(({0} != GR_SPLAT(0.0)) & ({1} != GR_SPLAT(0.0)))",
            "OR": "GR_TRUTH(({0} != GR_SPLAT(0.0)) | ({1} != GR_SPLAT(0.0)))",
            "IF_ELSE_ZERO": "GR_SELECT({0}, {1})",
        }
    )
    | {getattr(ca, f"OP_{n}"): _each(call) for n, call in _CALLS.items()},
)

STEP_DIALECT = replace(
    WIDE_DIALECT,
    operations={
        **WIDE_DIALECT.operations,
        **_by_code({"DIV": "GR_OVER({0}, {1})", "INV": "GR_OVER(GR_SPLAT(1.0), {0})"}),
    },
)
"""With quotients that are quick on graphics processors (gr_quick.h)."""
