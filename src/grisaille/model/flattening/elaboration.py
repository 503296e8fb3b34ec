"""Makes the content of an instance from its class: every member gets its full name, every formula its names.

Sub-models bring their own content, which is put below their name.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from grisaille.errors import ModelError
from grisaille.laws import Normal
from grisaille.model.connectors import (
    Connection,
    Connector,
    connector_arrays,
    connector_fields,
    describe_connector,
)
from grisaille.model.content import (
    ComponentContent,
    Content,
    WhenBranch,
    WhenClause,
    WrittenAction,
    WrittenConnection,
    WrittenEquation,
)
from grisaille.model.correlation import check_correlation
from grisaille.model.declarations import CorrelatedArray, Declaration
from grisaille.model.expression import Equation, Expression, Name, as_expression
from grisaille.model.flat import FlatDiscrete, FlatDisturbance, FlatInput, FlatOutput, FlatParameter, FlatVariable
from grisaille.model.flattening.covariances import read_covariances, returned_covariances
from grisaille.model.flattening.listing import check_listed, flatten_lists, missing_super
from grisaille.model.flattening.scope import Scope
from grisaille.model.measurement.distributions import mapped_law
from grisaille.model.names import element_name
from grisaille.model.recording import recording
from grisaille.model.whens import Reset, When

if TYPE_CHECKING:
    from grisaille.model.rewriting import Rewriter


def elaborate(instance: Any, layers: list[dict[str, Any]], contents: Any) -> Iterator[Content]:
    """Yield first the members, then the whole: the instance must hold the first while its ``equations`` method runs."""
    cls = type(instance)
    scope = Scope(cls.__name__, layers, instance)
    content = Content(cls.__name__, _description(cls))
    for name, member in scope.members.items():
        _ContentBuilder(scope, content).add(name, member, contents)
    yield content
    with recording() as recorder:
        listed = list(flatten_lists(cls.__name__, _called(cls, instance)))
        returned = returned_covariances(cls, instance)
    check_listed(cls.__name__, listed, recorder)
    own = [_law(scope, item) for item in listed if isinstance(item, Equation)]
    whens = [_occasion(scope, item) for item in listed if isinstance(item, When)]
    joints = [_joint(scope, item) for item in listed if isinstance(item, Connection)]
    shared = read_covariances(scope, content, returned)
    yield replace(
        content,
        parameters={**content.parameters, **shared.correlations},
        equations=(*own, *content.equations),
        whens=(*whens, *content.whens),
        joints=(*joints, *content.joints),
        noise_covariance={**content.noise_covariance, **shared.formulas},
        hints=(*content.hints, *missing_super(cls, listed, recorder)),
        initial=(*(_law(scope, item) for item in _initial(cls)), *content.initial),
    )


def _description(cls: type) -> str:
    return " ".join((cls.__dict__.get("__doc__") or "").split())


class _ContentBuilder:
    """Enters members into a content."""

    def __init__(self, scope: Scope, content: Content) -> None:
        self.scope, self.content = scope, content

    def add(self, name: str, member: Any, contents: Any) -> None:
        if isinstance(member, np.ndarray):
            self._array(name, member)
        elif isinstance(member, list | tuple):
            self.content.lists[name] = len(member)
            for i, item in enumerate(member):
                self.add(f"{name}[{i}]", item, contents)
        elif isinstance(member, Connector):
            self._connector(name, member)
        elif isinstance(member, Declaration) and self.scope.name_of(member) == name:
            enter_declaration(self.content, name, member, self.scope.resolve)
        elif isinstance(member, Expression):
            self.content.quantities[name] = self.scope.open(member)
        else:
            insert_component(self.content, name, contents(member), self.scope.below(name))

    def _array(self, name: str, member: Any) -> None:
        self.content.arrays[name] = member.shape
        for index in np.ndindex(*member.shape):
            self.add(element_name(name, index), as_expression(member[index]), None)
        if isinstance(member, CorrelatedArray) and member.correlation is not None:
            _correlate(self.content, name, member, self.scope)

    def _connector(self, name: str, member: Connector) -> None:
        cls = type(member)
        self.content.connectors[name] = describe_connector(cls)
        for field, declaration in connector_fields(cls):
            enter_declaration(self.content, f"{name}.{field}", declaration, self.scope.resolve)
        for field, shape in connector_arrays(cls).items():
            self.content.arrays[f"{name}.{field}"] = shape


def insert_component(content: Content, name: str, part: Content, change: Rewriter) -> None:
    """Put the content of a sub-model below ``name``."""
    moved = part.mapped(change, name)
    content.components[name] = ComponentContent(part.name, part.description)
    for table in (
        "parameters", "variables", "discretes", "inputs", "bindings", "disturbances", "outputs", "quantities",
        "connectors",
        "components", "arrays", "lists", "noise_covariance",
    ):  # fmt: skip
        getattr(content, table).update(getattr(moved, table))
    content.equations += moved.equations
    content.whens += moved.whens
    content.joints += moved.joints
    content.initial += moved.initial
    content.checks += moved.checks
    content.settled.update(moved.settled)
    content.hints += moved.hints


def enter_declaration(content: Content, name: str, declaration: Declaration, resolve: Any) -> None:
    """A declaration as an entry of the tables, formulas resolved."""
    f = {
        key: resolve(as_expression(value)) if _is_formula(key, value) else value
        for key, value in declaration.fields.items()
    }
    labels = {"unit": f["unit"], "description": f["description"]}
    for table in (
        content.parameters, content.variables, content.discretes, content.inputs, content.disturbances, content.outputs,
    ):  # fmt: skip
        table.pop(name, None)
    if declaration.kind == "parameter":
        content.parameters[name] = FlatParameter(
            name, f["value"], bounds=f["bounds"], prior=f["prior"], transform=f["transform"], **labels
        )
    elif declaration.kind == "variable":
        nominal = None if f["nominal"] is None else float(f["nominal"])
        content.variables[name] = FlatVariable(
            name, f["start"], fixed=f["fixed"], nominal=nominal, bounds=f["bounds"], **labels
        )
    elif declaration.kind == "discrete":
        content.discretes[name] = FlatDiscrete(name, f["start"], **labels)
    elif declaration.kind == "input":
        default = None if f["default"] is None else float(f["default"])
        content.inputs[name] = FlatInput(name, default, **labels)
    elif declaration.kind == "disturbance":
        content.disturbances[name] = FlatDisturbance(name, f["spectrum"].mapped(resolve), f["scale"], **labels)
    else:
        definition = f["definition"]
        if definition is None:
            definition = Name(name)
            content.variables[name] = FlatVariable(name, **labels)
        law = f["distribution"] and mapped_law(f["distribution"], lambda e: resolve(as_expression(e)))
        if isinstance(law, Normal):
            content.outputs[name] = FlatOutput(name, definition, law.std, **labels)  # type: ignore[arg-type]
        else:
            content.outputs[name] = FlatOutput(name, definition, f["noise"], distribution=law, **labels)


def _is_formula(field: str, value: object) -> bool:
    return value is not None and field in ("value", "start", "definition", "noise", "scale")


def _correlate(content: Content, name: str, member: CorrelatedArray, scope: Scope) -> None:
    rows = check_correlation(f"{scope.owner}.{name}", member.correlation, member.size)
    names = [element_name(name, index) for index in np.ndindex(*member.shape)]
    for i, own in enumerate(names):
        others = tuple((names[j], scope.resolve(rows[i][j])) for j in range(len(names)) if j != i)
        content.disturbances[own] = replace(content.disturbances[own], correlation=others or None)


def _called(cls: type, instance: Any) -> Any:
    result = instance.equations()
    if result is None:
        raise ModelError(
            f"{cls.__name__}.equations() returned nothing: use `yield equation` for each one, or return a list."
        )
    return result


def _initial(cls: type) -> list[Equation]:
    """Return what a class and its parents list under ``initial``, parents first."""
    own = [vars(c).get("initial", ()) for c in reversed(cls.__mro__)]
    return [item for listed in own if isinstance(listed, list | tuple) for item in listed]


def _law(scope: Scope, equation: Equation) -> WrittenEquation:
    return WrittenEquation(scope.resolve(equation.left), scope.resolve(equation.right), equation.source)


def _occasion(scope: Scope, item: When) -> WhenClause:
    return WhenClause(
        tuple(
            WhenBranch(scope.resolve(c.condition), tuple(_action(scope, item, a) for a in c.actions))
            for c in item.clauses
        ),
        item.source,
    )


def _action(scope: Scope, item: When, action: Equation | Reset) -> WrittenAction:
    if isinstance(action, Reset):
        return WrittenAction("reinit", scope.resolve(action.target), scope.resolve(action.value))
    if getattr(action.left, "kind", "") != "discrete":
        raise ModelError(
            f"{scope.owner}: `{action}` in `{item}` ({item.source}): on the left of an equation inside gr.when stands "
            f"a gr.Discrete, which gets the value on the right. A state is set by gr.reinit(x, formula)."
        )
    return WrittenAction("assign", scope.resolve(action.left), scope.resolve(action.right))


def _joint(scope: Scope, connection: Connection) -> WrittenConnection:
    names = []
    for end in connection.ends:
        name = scope.name_of(end)
        if name is None:
            raise ModelError(
                f"{scope.owner}: {connection} ({connection.source}): `{end}` is not a member of {scope.owner}."
            )
        names.append(name)
    return WrittenConnection(tuple(names), connection.is_signal, connection.source)
