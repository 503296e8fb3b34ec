"""Connectors: the places where components meet.

A connector class declares potentials (equal where connected) and flows (positive into the component, summing to zero
where connected). ``connect(a, b, …)`` joins any number of ends of one class, or one signal and the inputs it drives.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from grisaille.errors import ModelError
from grisaille.model.content import ConnectorContent, element_names
from grisaille.model.declarations import Declaration, Variable
from grisaille.model.expression import Call, Constant, Expression, Reference
from grisaille.model.names import Labelled, UnknownMember, suggestion
from grisaille.model.namespace import MemberNamespace, split_members
from grisaille.model.recording import register
from grisaille.model.symbol_arrays import SymbolArray
from grisaille.model.views import ComponentView, ConnectorView, refuse_equation

if TYPE_CHECKING:
    from grisaille.model.expression import FormulaLike
    from grisaille.model.given import End, Size


class Potential(Variable):
    """A field of a connector that is equal at all connected ends (voltage, position, temperature).

    unit, description : for tables and axes; units are labels and never converted
    start, nominal : as of ``gr.Variable``
    size : None for one, n for a vector of them
    """

    __slots__ = ()

    def __new__(
        cls,
        unit: str = "",
        description: str = "",
        *,
        start: FormulaLike | None = None,
        nominal: FormulaLike | None = None,
        size: Size = None,
    ) -> Any:
        return cls._make(
            size, start=start, unit=unit, description=description, fixed=False, nominal=nominal, bounds=None
        )


class Flow(Variable):
    """A field of a connector that sums to zero over connected ends, positive into the component (current, force).

    unit, description : for tables and axes; units are labels and never converted
    start, nominal : as of ``gr.Variable``
    size : None for one, n for a vector of them
    """

    __slots__ = ()

    def __new__(
        cls,
        unit: str = "",
        description: str = "",
        *,
        start: FormulaLike | None = None,
        nominal: FormulaLike | None = None,
        size: Size = None,
    ) -> Any:
        return cls._make(
            size, start=start, unit=unit, description=description, fixed=False, nominal=nominal, bounds=None
        )


def _is_field(value: object) -> bool:
    return isinstance(value, Expression | np.ndarray | Labelled)


def _check_field(owner: str, name: str, value: object) -> None:
    for item in value.flat if isinstance(value, np.ndarray) else [value]:
        if not isinstance(item, Variable | Labelled):
            kind = f"a {item.kind}" if isinstance(item, Declaration) else f"`{item}`"
            raise ModelError(
                f"{owner}.{name}: a connector holds gr.Potential, gr.Flow and gr.Variable only, not {kind}."
            )


class ConnectorType(type):
    """Collects the fields of a connector class."""

    _fields: dict[str, Any]

    @classmethod
    def __prepare__(mcs, name: str, bases: tuple[type, ...], **options: Any) -> MemberNamespace:  # type: ignore[override]
        return MemberNamespace(name)

    def __new__(mcs, name: str, bases: tuple[type, ...], namespace: dict[str, Any]) -> Any:
        fields, rest = split_members(name, namespace, _is_field)
        inherited: dict[str, Any] = {}
        for base in reversed(bases):
            inherited.update(getattr(base, "_fields", {}))
        cls = super().__new__(mcs, name, bases, rest)
        cls._fields = {**inherited, **fields}
        for field, value in fields.items():
            _check_field(name, field, value)
        return cls

    def __getattr__(cls, name: str) -> Any:
        try:
            return cls.__dict__["_fields"][name]
        except KeyError:
            raise AttributeError(f"{cls.__name__} has no field '{name}'.") from None


class Connector(Labelled, metaclass=ConnectorType):
    """Base of connector classes::

    class Pin(gr.Connector):
        v = gr.Potential("V")
        i = gr.Flow("A")
    """

    def __getattr__(self, name: str) -> Any:
        fields = type(self)._fields
        if name not in fields:
            if name.startswith("_"):
                raise AttributeError(name)
            raise UnknownMember(f"{type(self).__name__} has no field '{name}'. {suggestion(name, fields)}")
        value = fields[name]
        if isinstance(value, Connector):
            return _NestedConnector(self, f"{name}.", value)
        return _references(self, name, value)

    def __setattr__(self, name: str, value: object) -> None:
        if name != "_label":
            raise ModelError(f"Connectors do not change: {name} cannot be assigned; write an equation with ==.")
        object.__setattr__(self, name, value)

    def __eq__(self, other: Any) -> Any:
        refuse_equation(self, other)

    __hash__ = object.__hash__

    def __repr__(self) -> str:
        return self._label or f"{type(self).__name__}()"

    def __dir__(self) -> list[str]:
        return list(type(self)._fields)


class _NestedConnector:
    """A connector inside a connector."""

    def __init__(self, root: Connector, prefix: str, inner: Connector) -> None:
        self._root, self._prefix, self._inner = root, prefix, inner

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        value = type(self._inner)._fields.get(name)
        if value is None:
            raise UnknownMember(f"{self._inner} has no field '{name}'. {suggestion(name, dir(self._inner))}")
        if isinstance(value, Connector):
            return _NestedConnector(self._root, f"{self._prefix}{name}.", value)
        return _references(self._root, self._prefix + name, value)


def _references(root: Connector, path: str, value: Variable | SymbolArray) -> Expression | SymbolArray:
    if not isinstance(value, np.ndarray):
        return Reference(root, path, "variable")
    result = np.empty(value.size, dtype=object)
    result[:] = [Reference(root, name, "variable") for name in element_names(path, value.shape)]
    return result.reshape(value.shape).view(SymbolArray)


def connector_fields(cls: ConnectorType, prefix: str = "") -> list[tuple[str, Variable]]:
    """(name, declaration) of every single field, elements of vectors and nested connectors included."""
    found: list[tuple[str, Any]] = []
    for name, value in cls._fields.items():
        if isinstance(value, Connector):
            found += connector_fields(type(value), f"{prefix}{name}.")
        elif isinstance(value, np.ndarray):
            found += zip(element_names(prefix + name, value.shape), value.flat, strict=True)
        else:
            found.append((prefix + name, value))
    return found


def connector_arrays(cls: ConnectorType) -> dict[str, tuple[int, ...]]:
    """Return shapes of the vector fields."""
    return {name: value.shape for name, value in cls._fields.items() if isinstance(value, np.ndarray)}


def describe_connector(cls: ConnectorType) -> ConnectorContent:
    """Return the plain description of a connector class."""
    fields = tuple(
        (name, "flow" if isinstance(item, Flow) else "potential", item.fields["unit"])
        for name, item in connector_fields(cls)
    )
    return ConnectorContent(cls.__qualname__.rpartition(".")[2], fields)


class Connection:
    """``connect(...)``; becomes part of a model when it is listed in ``equations``."""

    __slots__ = ("ends", "source")

    def __init__(self, ends: tuple[End, ...]) -> None:
        self.ends = ends
        self.source = register(self)

    @property
    def is_signal(self) -> bool:
        return isinstance(self.ends[0], Expression)

    def __bool__(self) -> NoReturn:
        raise ModelError(f"`{self}` has no truth value: list it in `equations`.")

    def __repr__(self) -> str:
        return f"connect({', '.join(str(end) for end in self.ends)})"


def connect(*ends: Any) -> Any:
    """Join connectors of one class, or a signal with the inputs it drives; list the result in ``equations``.

    At joined connectors potentials are equal and flows add up to zero.

    ends : two or more connectors; or a formula and the inputs that follow it; or arrays of either
    """
    if len(ends) < 2:
        raise ModelError(f"connect needs at least two ends, got {len(ends)}.")
    if all(isinstance(end, np.ndarray) for end in ends):
        return _connect_arrays(ends)
    for i, end in enumerate(ends):
        _check_end(end)
        if any(_same_end(end, other) for other in ends[:i]):
            raise ModelError(f"connect: {end} is connected with itself; each end may be named once.")
    if len({isinstance(end, Expression) for end in ends}) == 2:
        raise ModelError(f"connect({', '.join(map(str, ends))}) mixes connectors and signals.")
    if not isinstance(ends[0], Expression):
        for end in ends[1:]:
            check_compatible(str(ends[0]), describe_fields(ends[0]), str(end), describe_fields(end))
    return Connection(ends)


def _connect_arrays(ends: tuple[np.ndarray, ...]) -> list[Any]:
    if len({end.shape for end in ends}) > 1:
        raise ModelError(f"connect: arrays of shapes {' and '.join(str(e.shape) for e in ends)} do not match.")
    return [connect(*items) for items in zip(*(end.flat for end in ends), strict=True)]


def _check_end(end: End) -> None:
    if isinstance(end, Connector | ConnectorView | Reference | Declaration):
        return
    if isinstance(end, Call | Constant | int | float):
        raise ModelError(
            f"connect: `{end}` is a formula; only connectors, outputs, variables and inputs can be connected. Bind the "
            "formula when the component is made: Component(u=formula)."
        )
    if isinstance(end, ComponentView | Labelled):
        raise ModelError(f"connect: {end!r} is a whole component; name one of its connectors, such as component.p.")
    raise ModelError(f"connect: {end!r} ({type(end).__name__}) is neither a connector nor a signal.")


def _same_end(a: End, b: End) -> bool:
    if a is b:
        return True
    if isinstance(a, ConnectorView) and isinstance(b, ConnectorView):
        return a._root is b._root and a._path == b._path
    return isinstance(a, Reference) and isinstance(b, Reference) and a.root is b.root and a.path == b.path


def describe_fields(end: Connector | ConnectorView) -> ConnectorContent:
    """Return the plain description of a connector or of a view of one."""
    if isinstance(end, ConnectorView):
        return end._connector
    assert isinstance(end, Connector)
    return describe_connector(type(end))


def check_compatible(a: str, first: ConnectorContent, b: str, second: ConnectorContent) -> None:
    """Two ends fit when they have the same class, the same fields and the same units."""
    units = {name: unit for name, _, unit in second.fields}
    for name, _, unit in first.fields:
        if name in units and units[name] != unit:
            raise ModelError(
                f"connect({a}, {b}): the unit of {name} is '{unit}' in {a} and '{units[name]}' in {b}; convert between "
                "them with a component."
            )
    if first.class_name != second.class_name or [f[:2] for f in first.fields] != [f[:2] for f in second.fields]:
        raise ModelError(
            f"connect({a}, {b}): {a} is a {first.class_name} and {b} is a {second.class_name}; only connectors of one "
            "class can be connected."
        )
