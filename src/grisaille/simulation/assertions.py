"""Conditions that a model requires of its trajectories (Modelica's ``assert``), checked on the rows of a run.

Numbers are known to the tolerance of a run only, so a relation counts as broken where its sides differ by more than
that, relative to the largest values they take; whole numbers that it tells apart are taken exactly.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, cast

import casadi as ca
import numpy as np

from grisaille.errors import SimulationError
from grisaille.model.classes import Model, restore_model
from grisaille.model.content import Assertion
from grisaille.model.expression import Call, Expression, Name, postorder
from grisaille.model.lowering.lowering import lower
from grisaille.model.notation.text import render

if TYPE_CHECKING:
    import xarray as xr
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Bools = NDArray[np.bool_]

ASSERTION_ROUNDING = 1e-15
MAX_SHOWN_CONDITIONS = 8
"""Broken conditions that one message tells."""
_RELATIONS = ("lt", "le", "gt", "ge")
_JOINED = ("and", "or", "not")


def without_assertions(model: Model) -> Model:
    """Return the model without its conditions, for runs on the way to something else."""
    content = model._content
    if not content.checks:
        return model
    return cast("Model", model._cached("unchecked", lambda: restore_model(replace(content, checks=()))))


def check_rows(model: Model, result: xr.Dataset, known: Mapping[str, float], rtol: float, *, strict: bool) -> None:
    """Tell which conditions the rows break: an error where they are demanded and ``strict``, else a warning."""
    checks = model._content.checks
    if not checks or not result.sizes["time"]:
        return
    errors: list[str] = []
    remarks: list[str] = []
    for formulas in cast("list[ConditionFormulas]", model._cached("checks", lambda: _formulas(model))):
        broken = formulas.broken(result, known, rtol)
        if broken.any():
            severe = strict and formulas.check.severe
            (errors if severe else remarks).append(_condition_text(formulas.check, broken, result["time"].values))
    if remarks:
        warnings.warn(f"{_head(model, remarks)}\n{_listed(remarks)}", UserWarning, stacklevel=4)
    if errors:
        way = "strict=False gives the result with a warning."
        raise SimulationError(f"{_head(model, errors)}\n{_listed(errors)}\n{way}", result)


def _head(model: Model, found: Sequence[str]) -> str:
    return f"The run of {model._content.name} breaks {len(found)} of its assertions:"


def _listed(found: Sequence[str]) -> str:
    more = [f"  … and {len(found) - MAX_SHOWN_CONDITIONS} more"] if len(found) > MAX_SHOWN_CONDITIONS else []
    return "\n".join([*(f"  {sentence}" for sentence in found[:MAX_SHOWN_CONDITIONS]), *more])


def _condition_text(check: Assertion, broken: Bools, times: Floats) -> str:
    rows = np.flatnonzero(broken)
    where = f"first at t = {times[rows[0]]:g}, at {len(rows)} of {len(times)} times"
    text = render(check.condition)
    shown = text if len(text) <= 200 else f"{text[:200]}…"
    return f"{check.source}: {check.message or 'no message'} (`{shown}` does not hold, {where})"


def _formulas(model: Model) -> list[ConditionFormulas]:
    nominal = {name: v.nominal for name, v in model._content.variables.items() if v.nominal}
    return [ConditionFormulas(check, nominal) for check in model._content.checks]


class ConditionFormulas:
    """The sides of a condition's relations as one function of the names in it."""

    def __init__(self, check: Assertion, nominal: Mapping[str, float] = MappingProxyType({})) -> None:
        self.check = check
        self.names = sorted({n.path for n in postorder((check.condition,)) if isinstance(n, Name)})
        self.size = min((nominal.get(name, 1.0) for name in self.names), default=1.0)
        """Nominal: what is zero up to rounding of it is zero."""
        symbols = {name: ca.SX.sym(f"v{k}") for k, name in enumerate(self.names)}
        self.sides = list(_sides(check.condition))
        lowered = lower(self.sides, symbols.__getitem__)
        self._function = ca.Function("sides", [ca.vertcat(*symbols.values())], [ca.vertcat(*lowered)])

    def broken(self, result: xr.Dataset, known: Mapping[str, float], rtol: float) -> Bools:
        """Return where the condition certainly does not hold; nowhere if a name in it is not observed."""
        times = result["time"].values
        columns = []
        for name in self.names:
            if name not in result and name not in known:
                return np.zeros(len(times), dtype=bool)
            value = times if name == "time" else result[name].values if name in result else known[name]
            columns.append(np.broadcast_to(np.asarray(value, dtype=float), times.shape))
        given = np.stack(columns) if columns else np.zeros((0, len(times)))
        values = dict(zip(map(id, self.sides), np.asarray(self._function(given)), strict=True))
        return _verdict(self.check.condition, values, rtol, self.size)[0]


def _sides(condition: Expression) -> list[Expression]:
    found: dict[int, Expression] = {}
    waiting = [condition]
    while waiting:
        node = waiting.pop()
        if isinstance(node, Call) and node.operation in _JOINED:
            waiting.extend(node.arguments)
        else:
            sides = node.arguments if isinstance(node, Call) and node.operation in _RELATIONS else (node,)
            found |= {id(side): side for side in sides}
    return list(found.values())


def _verdict(node: Expression, values: Mapping[int, Floats], rtol: float, size: float) -> tuple[Bools, Bools]:
    """Return (where it is certainly false, where it is certainly true)."""
    operation = node.operation if isinstance(node, Call) else ""
    if not isinstance(node, Call) or operation not in (*_JOINED, *_RELATIONS):
        return values[id(node)] == 0, values[id(node)] != 0
    if operation in _RELATIONS:
        left, right = (values[id(side)] for side in node.arguments)
        more, less = (left, right) if operation in ("gt", "ge") else (right, left)
        return _relation(more - less, _slack(left, right, rtol, size), strict=operation in ("lt", "gt"))
    parts = [_verdict(a, values, rtol, size) for a in node.arguments]
    if operation == "not":
        return parts[0][1], parts[0][0]
    (a_no, a_yes), (b_no, b_yes) = parts
    return (a_no | b_no, a_yes & b_yes) if operation == "and" else (a_no & b_no, a_yes | b_yes)


def _relation(gap: Floats, slack: float, *, strict: bool) -> tuple[Bools, Bools]:
    if slack:
        return gap < -slack, gap > slack
    return (gap <= 0, gap > 0) if strict else (gap < 0, gap >= 0)


def _slack(left: Floats, right: Floats, rtol: float, size: float) -> float:
    sides = np.concatenate([left, right])
    finite = sides[np.isfinite(sides)]
    slack = max(rtol * float(np.abs(finite).max(initial=0.0)), ASSERTION_ROUNDING * size)
    return 0.0 if slack < 0.5 and bool(np.all(finite == np.round(finite))) else slack
