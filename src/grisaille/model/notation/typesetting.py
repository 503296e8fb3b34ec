"""A model as HTML: what ``print(model)`` says, with typeset equations. Shown by notebooks, and part of reports."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from grisaille.laws import Law
from grisaille.markup import Html, joined, table, tag
from grisaille.model.content import Content, WhenBranch
from grisaille.model.expression import Expression, as_expression
from grisaille.model.flat import FlatDiscrete, FlatDisturbance, FlatInput, FlatOutput, FlatParameter, FlatVariable
from grisaille.model.measurement.distributions import given_arguments
from grisaille.model.notation.mathml import assignment, equation, formula, symbol
from grisaille.model.notation.printing import is_variable
from grisaille.model.notation.shown_tables import ShownTable, shown_tables
from grisaille.model.table_functions import table_arguments

MAX_ROWS = 200
"""Longer lists are cut, and say so."""


def typeset(content: Content) -> Html:
    """Return the whole model: equations first, then what its symbols are."""
    title = tag("p", tag("strong", content.name), f": {content.description}" if content.description else None)
    return tag("div", title, equations(content), *symbols(content), class_="grisaille-model")


def equations(content: Content) -> Html:
    """Return the equations, numbered in the order in which they were written; then connections."""
    lines = [equation(law.left, law.right) for law in content.equations[:MAX_ROWS]]
    lines += [tag("code", f"connect({', '.join(joint.ends)})") for joint in content.joints[:MAX_ROWS]]
    lines += [
        joined((equation(law.left, law.right), tag("span", " (at the start)"))) for law in content.initial[:MAX_ROWS]
    ]
    left_out = max(len(content.equations) - MAX_ROWS, 0) + max(len(content.joints) - MAX_ROWS, 0)
    more = tag("p", f"… and {left_out} more.") if left_out else None
    if not lines:
        return tag("p", "No equations: outputs are formulas of inputs and parameters.")
    return joined((tag("ol", *(tag("li", line) for line in lines), class_="equations"), more, _events(content)))


def _events(content: Content) -> Html | None:
    branches = [
        _branch("otherwise when " if k else "when ", branch)
        for occasion in content.whens[:MAX_ROWS]
        for k, branch in enumerate(occasion.branches)
    ]
    return tag("ul", *branches, class_="events") if branches else None


def _branch(word: str, branch: WhenBranch) -> Html:
    actions = [tag("li", assignment(a.target, a.value)) for a in branch.actions]
    return tag("li", word, formula(branch.condition), tag("ul", *actions))


def symbols(content: Content) -> Iterable[Html]:
    """Return a table for each kind of member."""
    own = {name for name, output in content.outputs.items() if is_variable(output)}
    variables = [v for v in content.variables.values() if v.name not in own]
    yield from _listed("Outputs", ("", "definition", "unit", "noise", ""), map(_output, content.outputs.values()))
    shared = ((tag("code", f"cov({a}, {b})"), formula(e)) for (a, b), e in content.noise_covariance.items())
    yield from _listed("Noise covariances", ("", ""), shared)
    parameters = map(_parameter, content.parameters.values())
    yield from _listed("Parameters", ("", "value", "unit", "bounds", "prior", ""), parameters)
    yield from _listed("Variables", ("", "unit", "start", "bounds", ""), map(_variable, variables))
    discretes = map(_discrete, content.discretes.values())
    yield from _listed("Discrete variables", ("", "unit", "start", ""), discretes)
    yield from _listed("Inputs", ("", "unit", "value", ""), (_input(content, i) for i in content.inputs.values()))
    yield from _listed(
        "Disturbances", ("", "spectrum", "scale", "unit", ""), map(_disturbance, content.disturbances.values())
    )
    quantities = ((symbol(name), formula(e)) for name, e in content.quantities.items())
    yield from _listed("Quantities", ("", "definition"), quantities)
    yield from _listed("Tables", ("", "argument", "knots", "values", ""), map(_table, shown_tables(content)))


def _listed(title: str, head: Sequence[str], rows: Iterable[Sequence[Any]]) -> Iterable[Html]:
    """Return the table without its empty columns; nothing when there are no rows."""
    listed = list(rows)
    if not listed:
        return
    kept = [k for k in range(len(head)) if k == 0 or any(row[k] for row in listed)]
    shown = [[row[k] for k in kept] for row in listed[:MAX_ROWS]]
    if len(listed) > MAX_ROWS:
        shown.append([f"… and {len(listed) - MAX_ROWS} more", *[""] * (len(kept) - 1)])
    described = [at for at, k in enumerate(kept) if k and not head[k]]
    yield table([head[k] for k in kept], shown, caption=title, prose=described)


def _maybe(expression: Expression | None) -> Html | str:
    return "" if expression is None else formula(expression)


def _parameter(p: FlatParameter) -> tuple[Any, ...]:
    prior = "" if p.prior is None else str(p.prior)
    return symbol(p.name), _maybe(p.value) or "to be given", p.unit, _limits(p.bounds), prior, p.description


def _variable(v: FlatVariable) -> tuple[Any, ...]:
    start = joined((_maybe(v.start), " (fixed)" if v.fixed else None)) if v.start is not None else ""
    return symbol(v.name), v.unit, start, _limits(v.bounds), v.description


def _discrete(d: FlatDiscrete) -> tuple[Html, str, Html, str]:
    return symbol(d.name), d.unit, formula(d.start), d.description


def _input(content: Content, i: FlatInput) -> tuple[Html, str, str, str]:
    bound = content.bindings.get(i.name)
    default = "" if i.default is None else f"{i.default:g} unless given"
    return symbol(i.name), i.unit, default if bound is None else formula(bound), i.description


def _disturbance(d: FlatDisturbance) -> tuple[Any, ...]:
    return symbol(d.name), tag("code", str(d.spectrum)), _maybe(d.scale), d.unit, d.description


def _output(o: FlatOutput) -> tuple[Any, ...]:
    definition = "" if is_variable(o) else formula(o.definition)
    noise = _maybe(o.noise) or "unknown, estimated"
    scatter = noise if o.distribution is None else typeset_law(o.distribution)
    return symbol(o.name), definition, o.unit, scatter, o.description


def typeset_law(law: Law) -> Html:
    """Return a law with its formulas, as it is written in Python."""
    inside = [
        joined((f"{name} = ", typeset_law(value) if isinstance(value, Law) else formula(as_expression(value))))
        for name, value in given_arguments(law)
    ]
    return joined((f"{type(law).__name__}(", joined(inside, ", "), ")"))


def _table(shown: ShownTable) -> tuple[Any, ...]:
    arguments = joined((formula(a) for a in table_arguments(shown.node)[0]), " × ")
    values = symbol(shown.name) if shown.name else shown.values
    return formula(shown.node), arguments, " × ".join(shown.knots), values, shown.manner


def _limits(bounds: tuple[float, float] | None) -> str:
    if not bounds or not np.isfinite(bounds).any():
        return ""
    return " … ".join(f"{b:g}".replace("inf", "∞").replace("-", "−") for b in bounds)
