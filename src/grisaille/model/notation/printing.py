"""``print(model)``: the model as it would stand in a paper, with values and units and numbered equations."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from grisaille.model.content import Content, WhenClause
from grisaille.model.expression import Constant, Expression, Name
from grisaille.model.flat import FlatDiscrete, FlatDisturbance, FlatInput, FlatOutput, FlatParameter, FlatVariable
from grisaille.model.measurement.distributions import law_text
from grisaille.model.notation.shown_tables import rows as table_rows
from grisaille.model.notation.text import number, render

Row = tuple[str, ...]


def summarize(content: Content) -> str:
    """Return one line: the class and its values."""
    values = [
        f"{name}={number(p.value.value)}" for name, p in content.parameters.items() if isinstance(p.value, Constant)
    ]
    shown = values if len(values) <= 8 else [*values[:8], "…"]
    return f"{content.name}({', '.join(shown)})"


def describe(content: Content) -> str:
    """Return the whole model, section by section."""
    own = {name for name, output in content.outputs.items() if is_variable(output)}
    variables = (v for v in content.variables.values() if v.name not in own)
    sections = [
        ("Parameters", map(_parameter, content.parameters.values())),
        ("Variables", map(_variable, variables)),
        ("Discrete variables", map(_discrete, content.discretes.values())),
        ("Inputs", (_input(content, i) for i in content.inputs.values())),
        ("Disturbances", map(_disturbance, content.disturbances.values())),
        ("Quantities", ((f"{name} = {render(e)}",) for name, e in content.quantities.items())),
        ("Outputs", map(_output, content.outputs.values())),
        ("Noise covariances", map(_covariance, content.noise_covariance.items())),
        ("Equations", _equations(content)),
        ("Events", ((line,) for when in content.whens for line in when_lines(when))),
        ("Tables", table_rows(content)),
    ]
    lines = [f"{content.name}: {content.description}" if content.description else content.name]
    for title, rows in sections:
        table = _aligned(rows)
        if table:
            lines += ["", title, *table]
    return "\n".join(lines)


def is_variable(output: FlatOutput) -> bool:
    """Return whether an equation, not a definition, determines the output."""
    return isinstance(output.definition, Name) and output.definition.path == output.name


def _aligned(rows: Iterable[Row]) -> list[str]:
    table = list(rows)
    width = min(40, max((len(row[0]) for row in table), default=0))
    return [f"  {row[0]:<{width}}  {'  '.join(part for part in row[1:] if part)}".rstrip() for row in table]


def _parameter(p: FlatParameter) -> Row:
    value = "to be given" if p.value is None else render(p.value)
    limits = f"in [{p.bounds[0]:g}, {p.bounds[1]:g}]" if p.bounds else ""
    prior = f"prior {p.prior}" if p.prior is not None else ""
    return f"{p.name} = {value} {p.unit}".rstrip(), limits, prior, _remark(p.description)


def _variable(v: FlatVariable) -> Row:
    start = "" if v.start is None else f"{'fixed at' if v.fixed else 'start'} {render(v.start)}"
    return f"{v.name}{_unit(v.unit)}", start, _limits(v.bounds), _remark(v.description)


def _discrete(d: FlatDiscrete) -> Row:
    return f"{d.name}{_unit(d.unit)}", f"start {render(d.start)}", _remark(d.description)


def when_lines(occasion: WhenClause) -> list[str]:
    """Return a ``when`` as lines: its conditions, and below each what is done."""
    lines = []
    for k, branch in enumerate(occasion.branches):
        lines.append(f"{'otherwise when' if k else 'when'} {render(branch.condition)}:")
        for action in branch.actions:
            target, value = render(action.target), render(action.value)
            lines.append(f"    reinit({target}, {value})" if action.kind == "reinit" else f"    {target} == {value}")
    return lines


def _limits(bounds: tuple[float, float] | None) -> str:
    return f"in [{bounds[0]:g}, {bounds[1]:g}]" if bounds and bool(np.isfinite(bounds).any()) else ""


def _input(content: Content, i: FlatInput) -> Row:
    bound = f"= {render(content.bindings[i.name])}" if i.name in content.bindings else ""
    default = "" if i.default is None or bound else f"default {number(i.default)}"
    return f"{i.name}{_unit(i.unit)}", bound, default, _remark(i.description)


def _disturbance(d: FlatDisturbance) -> Row:
    scale = "" if d.scale is None else f"scale {render(d.scale)}"
    return f"{d.name}{_unit(d.unit)}", str(d.spectrum), scale, _remark(d.description)


def _output(o: FlatOutput) -> Row:
    definition = o.name if is_variable(o) else f"{o.name} = {render(o.definition)}"
    noise = "" if o.noise is None else f"noise {render(o.noise)}"
    law = noise if o.distribution is None else law_text(o.distribution, render)
    return f"{definition}{_unit(o.unit)}", law, _remark(o.description)


def _covariance(item: tuple[tuple[str, str], Expression]) -> Row:
    (a, b), formula = item
    return (f"cov({a}, {b}) = {render(formula)}",)


def _equations(content: Content) -> list[Row]:
    texts = [f"{render(law.left)} == {render(law.right)}" for law in content.equations]
    texts += [f"connect({', '.join(joint.ends)})" for joint in content.joints]
    texts += [f"{render(law.left)} == {render(law.right)}  (at the start)" for law in content.initial]
    digits = len(str(len(texts)))
    return [(f"({i + 1})".rjust(digits + 2) + f" {text}",) for i, text in enumerate(texts)]


def _unit(unit: str) -> str:
    return f" [{unit}]" if unit else ""


def _remark(description: str) -> str:
    return f"# {description}" if description else ""
