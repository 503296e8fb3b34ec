"""Changing members by name: ``Pendulum(k=6.25)``, ``model.replace({"r.R": 2e3})``.

A parameter takes a number or a formula; an input a number or formula that drives it; any member a declaration of its
kind; a sub-model an instance. Formulas may belong to an enclosing model that is still being written.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from grisaille.errors import ModelError
from grisaille.model.checking import check_inside, check_value
from grisaille.model.content import Content, element_names, is_below
from grisaille.model.declarations import Declaration
from grisaille.model.expression import Equation, Expression, Name, as_expression, postorder
from grisaille.model.flattening.elaboration import enter_declaration, insert_component
from grisaille.model.names import matching, suggestion
from grisaille.model.rewriting import Rewriter

if TYPE_CHECKING:
    from grisaille.model.expression import FormulaLike
    from grisaille.model.given import Change


def override(content: Content, changes: Mapping[str, Change], start: Mapping[str, FormulaLike]) -> Content:
    """Return a changed copy of ``content``."""
    for what, given in (("the changes", changes), ("start", start)):
        if not hasattr(given, "items"):
            raise ModelError(
                f"{content.name}: {what} must be a dict such as {{'name': 1.0}}, got {given!r} "
                f"({type(given).__name__})."
            )
    new = content.copy()
    changed: list[str] = []
    for name, value in changes.items():
        for single in _names(content, name):
            _change(new, single, value)
            changed.append(single)
    for name, value in start.items():
        for single in _names(content, name):
            _change_start(new, single, value)
            changed.append(f"start({single})")
    if new.origin is not None:
        new.origin = new.origin.after(changed)
    return new


def _names(content: Content, name: Any) -> list[str]:
    path = getattr(name, "path", name)
    if not isinstance(path, str):
        raise ModelError(f'{content.name}: members are named by text such as "r.R", got {name!r}.')
    # Python folds look-alike letters of identifiers (µ and μ), but not of texts
    path = path if content.kind(path) else unicodedata.normalize("NFKC", path)
    if path in content.settled:
        raise ModelError(
            f"{content.name}: '{path}' was settled at {content.settled[path]} when the model was read, because the "
            "equations themselves depend on it. Change it in the text and read that."
        )
    found = matching(path, content.names())
    if not found:
        raise ModelError(f"{content.name} has no member that matches '{path}'. {suggestion(path, content.names())}")
    return found


def _change(content: Content, name: str, value: Change) -> None:
    kind = content.kind(name)
    if not kind:
        raise ModelError(f"{content.name} has no member '{name}'. {suggestion(name, content.names())}")
    if isinstance(value, Equation):
        raise ModelError(f"{content.name}.{name}: `{value}` is an equation; give a number, a formula or a declaration.")
    _CHANGES[kind](content, name, value)


def _change_declared(content: Content, name: str, value: Change, kind: str) -> bool:
    """Enter a declaration of the right kind; return False when ``value`` is not a fresh declaration."""
    if not isinstance(value, Declaration) or value.label:
        return False
    if value.kind != kind:
        raise ModelError(
            f"{content.name}.{name} is declared as {_article(kind)} and cannot be replaced by {_article(value.kind)}."
        )
    value.check(f"{content.name}.{name}")
    value.used_for = f"{content.name}.{name}"
    content.bindings.pop(name, None)
    content.quantities.pop(name, None)
    enter_declaration(content, name, value, lambda e: e)
    return True


def _change_parameter(content: Content, name: str, value: Any) -> None:
    if _change_declared(content, name, value, "parameter"):
        return
    where = f"{content.name}.{name}"
    if value is None:
        raise ModelError(f"{where}: None is not a value; give a number, a formula or gr.Parameter(…).")
    check_value(where, "value", value, constant=True)
    old = content.parameters[name]
    check_inside(where, value, old.bounds)
    content.parameters[name] = replace(old, value=as_expression(value))


def _change_variable(content: Content, name: str, value: Change) -> None:
    if not _change_declared(content, name, value, "variable"):
        raise ModelError(
            f"{content.name}.{name} is a variable: its value follows from the equations. Give its start value by "
            f"start={{'{name}': {value!r}}}, or replace it by gr.Variable(…)."
        )


def _change_discrete(content: Content, name: str, value: Change) -> None:
    if not _change_declared(content, name, value, "discrete"):
        raise ModelError(
            f"{content.name}.{name} is a discrete variable: events give it its values. Give its start value by "
            f"start={{'{name}': {value!r}}}, or replace it by gr.Discrete(…)."
        )


def _change_input(content: Content, name: str, value: Change) -> None:
    if _change_declared(content, name, value, "input"):
        return
    if value is None:
        content.bindings.pop(name, None)
        return
    check_value(f"{content.name}.{name}", "value", value)
    content.bindings[name] = as_expression(value)


def _change_disturbance(content: Content, name: str, value: Change) -> None:
    old = content.disturbances[name]
    if not _change_declared(content, name, value, "disturbance"):
        raise ModelError(
            f"{content.name}.{name} is a disturbance; replace it by gr.Disturbance(spectrum, scale=…), got {value!r}."
        )
    if old.correlation:
        content.disturbances[name] = replace(content.disturbances[name], correlation=old.correlation)


def _change_output(content: Content, name: str, value: Change) -> None:
    if not _change_declared(content, name, value, "output"):
        raise ModelError(
            f"{content.name}.{name} is an output; replace it by gr.Output(formula, noise=…), got {value!r}."
        )


def _change_quantity(content: Content, name: str, value: Change) -> None:
    if isinstance(value, Declaration) and not value.label:
        raise ModelError(
            f"{content.name}.{name} is a formula and cannot be replaced by {_article(value.kind)}; give a formula or "
            "number."
        )
    check_value(f"{content.name}.{name}", "formula", value)
    content.quantities[name] = as_expression(value)


def _change_array(content: Content, name: str, value: Any) -> None:
    shape = content.arrays[name]
    if isinstance(value, list | tuple | np.ndarray):
        given = np.array(value, dtype=object)
        if given.shape != shape:
            raise ModelError(f"{content.name}.{name} has shape {shape}, but the value given has shape {given.shape}.")
        values = list(given.flat)
    else:
        names = element_names(name, shape)
        fresh = isinstance(value, Declaration) and not value.label
        values = [value.changed() if fresh else value for _ in names]
    for element, item in zip(element_names(name, shape), values, strict=True):
        _change(content, element, item)


def _change_list(content: Content, name: str, value: Change) -> None:
    length = content.lists[name]
    if not isinstance(value, list | tuple) or len(value) != length:
        raise ModelError(f"{content.name}.{name} is a list of {length} members; give a list of as many.")
    for i, item in enumerate(value):
        _change(content, f"{name}[{i}]", item)


def _change_component(content: Content, name: str, value: Change) -> None:
    part = getattr(value, "_content", None)
    if not isinstance(part, Content) or type(value).__name__.endswith("View"):
        raise ModelError(
            f"{content.name}.{name} is a sub-model ({content.components[name].class_name}); replace it by an instance "
            f"of a model, got {value!r}."
        )
    for table in _TABLES:
        entries = getattr(content, table)
        for key in [key for key in entries if is_below(key[0] if isinstance(key, tuple) else key, name)]:
            del entries[key]
    content.equations = tuple(law for law in content.equations if not is_below(law.owner, name))
    content.whens = tuple(when for when in content.whens if not is_below(when.owner, name))
    content.initial = tuple(law for law in content.initial if not is_below(law.owner, name))
    content.checks = tuple(check for check in content.checks if not is_below(check.owner, name))
    content.joints = tuple(joint for joint in content.joints if not is_below(joint.owner, name))
    insert_component(content, name, part, _prefixing(name))


_TABLES = (
    "parameters", "variables", "discretes", "inputs", "bindings", "disturbances", "outputs", "quantities", "connectors",
    "components", "arrays", "lists", "noise_covariance",
)  # fmt: skip


def _prefixing(prefix: str) -> Rewriter:
    def change(node: Expression) -> Expression | None:
        if isinstance(node, Name) and node.path != "time":
            return Name(f"{prefix}.{node.path}")
        return None

    return Rewriter(change)


def _change_connector(content: Content, name: str, value: Change) -> None:
    raise ModelError(
        f"{content.name}.{name} is a connector and cannot be replaced; use gr.connect in an enclosing model."
    )


_CHANGES: dict[str, Callable[[Content, str, Any], None]] = {
    "parameter": _change_parameter,
    "variable": _change_variable,
    "discrete": _change_discrete,
    "input": _change_input,
    "disturbance": _change_disturbance,
    "output": _change_output,
    "quantity": _change_quantity,
    "array": _change_array,
    "list": _change_list,
    "component": _change_component,
    "connector": _change_connector,
}


def _change_start(content: Content, name: str, value: FormulaLike) -> None:
    if name in content.arrays:
        shape = content.arrays[name]
        try:
            values = np.broadcast_to(np.array(value, dtype=object), shape)
        except ValueError:
            raise ModelError(f"start: {name} has shape {shape}, but the value given does not fit.") from None
        for element, item in zip(element_names(name, shape), values.flat, strict=True):
            _change_start(content, element, item)
        return
    if name in content.discretes:
        check_value(f"{content.name}.{name}", "start", value, constant=True)
        content.discretes[name] = replace(content.discretes[name], start=as_expression(value))
        return
    if name not in content.variables:
        kind = content.kind(name)
        what = f"'{name}' is {_article(kind)}, not a variable" if kind else f"{content.name} has no variable '{name}'"
        raise ModelError(f"start: {what}. {suggestion(name, content.variables)}")
    check_value(f"{content.name}.{name}", "start", value)
    check_inside(f"{content.name}.{name}", value, content.variables[name].bounds)
    for leaf in postorder((as_expression(value),)):
        if getattr(leaf, "operation", "") == "der":
            raise ModelError(f"{content.name}.{name}: a start value cannot contain der(…).")
    content.variables[name] = replace(content.variables[name], start=as_expression(value))


def _article(kind: str) -> str:
    return f"an {kind}" if kind[:1] in "aeiou" else f"a {kind}"
