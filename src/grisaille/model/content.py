"""The content of a model instance: flat, plain data under full dotted names, connections not yet expanded.

Everything an instance can do works on its content, so a model that was pickled, sent to another process or loaded from
a file needs no class. Formulas have :class:`Name` leaves; other leaves belong to an enclosing model that is still being
written and are resolved when that one is elaborated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np

from grisaille.model.expression import Expression
from grisaille.model.flat import FlatDiscrete, FlatDisturbance, FlatInput, FlatOutput, FlatParameter, FlatVariable
from grisaille.model.measurement.distributions import mapped_law
from grisaille.model.names import join


@dataclass(frozen=True, eq=False)
class WrittenEquation:
    """One equation of the component ``owner`` (``""``: the model itself)."""

    left: Expression
    right: Expression
    source: str
    owner: str = ""


@dataclass(frozen=True, eq=False)
class WrittenAction:
    """An action at an event: a name gets a value."""

    kind: str
    """``"reinit"`` or ``"assign"``."""
    target: Expression
    value: Expression


@dataclass(frozen=True, eq=False)
class WhenBranch:
    """A condition and the actions of the instant at which it becomes true."""

    condition: Expression
    actions: tuple[WrittenAction, ...]


@dataclass(frozen=True, eq=False)
class WhenClause:
    """One ``when`` of the component ``owner``; the first of its branches fires."""

    branches: tuple[WhenBranch, ...]
    source: str
    owner: str = ""


@dataclass(frozen=True, eq=False)
class Assertion:
    """A condition that trajectories shall fulfil; ``severe`` where a run that breaks it is an error."""

    condition: Expression
    message: str
    severe: bool
    source: str
    owner: str = ""


@dataclass(frozen=True, eq=False)
class WrittenConnection:
    """``connect(...)`` written in the component ``owner``: full names of connectors, or of one signal and its sinks."""

    ends: tuple[str, ...]
    signal: bool
    source: str
    owner: str = ""


@dataclass(frozen=True)
class ConnectorContent:
    """A connector: its class and, for each field, (name, ``"potential"`` or ``"flow"``, unit)."""

    class_name: str
    fields: tuple[tuple[str, str, str], ...]
    owner: str = ""


@dataclass(frozen=True)
class ComponentContent:
    """A sub-model, as far as it is known by name."""

    class_name: str
    description: str = ""


@dataclass(frozen=True)
class ModelicaOrigin:
    """Which Modelica model a model was read from, and what of it was changed since."""

    name: str
    """Of its class, in full."""
    is_flat: bool
    file: str = ""
    """The name of its file; empty where it was given as a text."""
    text: str = ""
    """The text, where it stands in no file."""
    changed: tuple[str, ...] = ()
    """Parameters with other values, and ``start(x)`` with another start."""

    def after(self, changed: Iterable[str]) -> ModelicaOrigin:
        """Return the same with more changes."""
        return replace(self, changed=tuple(dict.fromkeys((*self.changed, *changed))))


@dataclass(eq=False)
class Content:
    """The content of a model as plain data. It is treated as immutable once an instance holds it."""

    name: str
    description: str = ""
    parameters: dict[str, FlatParameter] = field(default_factory=dict)
    variables: dict[str, FlatVariable] = field(default_factory=dict)
    discretes: dict[str, FlatDiscrete] = field(default_factory=dict)
    inputs: dict[str, FlatInput] = field(default_factory=dict)
    bindings: dict[str, Expression] = field(default_factory=dict)
    """Inputs that a formula drives."""
    disturbances: dict[str, FlatDisturbance] = field(default_factory=dict)
    outputs: dict[str, FlatOutput] = field(default_factory=dict)
    quantities: dict[str, Expression] = field(default_factory=dict)
    equations: tuple[WrittenEquation, ...] = ()
    whens: tuple[WhenClause, ...] = ()
    joints: tuple[WrittenConnection, ...] = ()
    connectors: dict[str, ConnectorContent] = field(default_factory=dict)
    components: dict[str, ComponentContent] = field(default_factory=dict)
    arrays: dict[str, tuple[int, ...]] = field(default_factory=dict)
    """Shapes of vector members, whose elements are ``"r[0]"`` or ``"R[0,1]"``."""
    lists: dict[str, int] = field(default_factory=dict)
    """Lengths of lists of components or connectors, whose elements are ``"legs[0]"``."""
    noise_covariance: dict[tuple[str, str], Expression] = field(default_factory=dict)
    hints: tuple[str, ...] = ()
    initial: tuple[WrittenEquation, ...] = ()
    """Equations that hold at the first instant only."""
    settled: dict[str, str] = field(default_factory=dict)
    """Names that decided the shape of the model while it was read, with their values: they cannot be changed."""
    checks: tuple[Assertion, ...] = ()
    """Conditions on trajectories."""
    starts_are_guesses: bool = False
    """Whether declared starts that are not fixed only say where to look for a start, as in Modelica."""
    origin: ModelicaOrigin | None = None
    """What was read, if anything was: the last field, which texts and fingerprints of other models leave out."""

    def copy(self) -> Content:
        """Return a copy whose tables can be changed."""
        values: dict[str, Any] = {f.name: getattr(self, f.name) for f in fields(self)}
        tables: dict[str, Any] = {name: dict(v) for name, v in values.items() if isinstance(v, dict)}
        return Content(**{**values, **tables})

    def kind(self, name: str) -> str:
        """Return what a full name stands for; ``""`` when it is unknown."""
        for kind, table in self._kinds():
            if name in table:
                return kind
        return ""

    def names(self) -> Iterator[str]:
        """Yield every name that can be asked for, symbols first."""
        seen: set[str] = set()
        for _, table in self._kinds():
            yield from (name for name in table if name not in seen)
            seen.update(table)

    def _kinds(self) -> tuple[tuple[str, dict[str, Any]], ...]:
        return (
            ("parameter", self.parameters), ("output", self.outputs), ("variable", self.variables),
            ("discrete", self.discretes), ("input", self.inputs), ("disturbance", self.disturbances),
            ("quantity", self.quantities),
            ("connector", self.connectors), ("component", self.components), ("array", self.arrays),
            ("list", self.lists),
        )  # fmt: skip

    def mapped(self, change: Callable[[Expression], Expression], prefix: str = "") -> Content:
        """Return the same content with every formula changed and every name put below ``prefix``."""
        return _Mapping(change, prefix).content(self)

    def formulas(self) -> Iterator[Expression]:
        """Yield every formula inside, with its parts not opened."""
        found: list[Expression] = []
        self.mapped(lambda e: found.append(e) or e)  # type: ignore[func-returns-value]
        yield from found


class _Mapping:
    def __init__(self, change: Callable[[Expression], Expression], prefix: str) -> None:
        self.change, self.prefix = change, prefix

    def content(self, old: Content) -> Content:
        table, maybe = self._table, self._maybe
        return replace(
            old,
            parameters=table(old.parameters, lambda p, n: replace(p, name=n, value=maybe(p.value))),
            variables=table(old.variables, lambda v, n: replace(v, name=n, start=maybe(v.start))),
            discretes=table(old.discretes, lambda d, n: replace(d, name=n, start=self.change(d.start))),
            inputs=table(old.inputs, lambda i, n: replace(i, name=n)),
            bindings=table(old.bindings, lambda e, n: self.change(e)),
            disturbances=table(old.disturbances, self._disturbance),
            outputs=table(
                old.outputs,
                lambda o, n: replace(
                    o,
                    name=n,
                    definition=self.change(o.definition),
                    noise=maybe(o.noise),
                    distribution=o.distribution and mapped_law(o.distribution, self.change),
                ),
            ),
            quantities=table(old.quantities, lambda e, n: self.change(e)),
            equations=tuple(
                replace(law, left=self.change(law.left), right=self.change(law.right), owner=self._owner(law.owner))
                for law in old.equations
            ),
            whens=tuple(
                replace(w, branches=tuple(map(self._branch, w.branches)), owner=self._owner(w.owner)) for w in old.whens
            ),
            initial=tuple(
                replace(law, left=self.change(law.left), right=self.change(law.right), owner=self._owner(law.owner))
                for law in old.initial
            ),
            checks=tuple(
                replace(c, condition=self.change(c.condition), owner=self._owner(c.owner)) for c in old.checks
            ),
            settled=table(old.settled, lambda value, n: value),
            joints=tuple(
                replace(j, ends=tuple(join(self.prefix, e) for e in j.ends), owner=self._owner(j.owner))
                for j in old.joints
            ),
            connectors=table(old.connectors, lambda c, n: replace(c, owner=self._owner(c.owner))),
            components=table(old.components, lambda c, n: c),
            arrays=table(old.arrays, lambda shape, n: shape),
            lists=table(old.lists, lambda length, n: length),
            noise_covariance={
                (join(self.prefix, a), join(self.prefix, b)): self.change(e)
                for (a, b), e in old.noise_covariance.items()
            },
        )

    def _table(self, old: dict[str, Any], change: Callable[[Any, str], Any]) -> dict[str, Any]:
        if not self.prefix:
            return {name: change(item, name) for name, item in old.items()}
        return {f"{self.prefix}.{name}": change(item, f"{self.prefix}.{name}") for name, item in old.items()}

    def _maybe(self, expression: Expression | None) -> Expression | None:
        return None if expression is None else self.change(expression)

    def _owner(self, owner: str) -> str:
        return join(self.prefix, owner) if owner else self.prefix

    def _branch(self, old: WhenBranch) -> WhenBranch:
        actions = tuple(replace(a, target=self.change(a.target), value=self.change(a.value)) for a in old.actions)
        return WhenBranch(self.change(old.condition), actions)

    def _disturbance(self, old: FlatDisturbance, name: str) -> FlatDisturbance:
        correlation = tuple((join(self.prefix, other), self.change(e)) for other, e in old.correlation or ())
        return replace(
            old,
            name=name,
            spectrum=old.spectrum.mapped(self.change),
            scale=self._maybe(old.scale),
            correlation=correlation or None,
        )


def element_names(name: str, shape: tuple[int, ...]) -> list[str]:
    """Return ``["r[0]", "r[1]", …]`` in C order."""
    return [f"{name}[{','.join(map(str, index))}]" for index in np.ndindex(*shape)]


def is_below(name: str, prefix: str) -> bool:
    """Return whether ``name`` is ``prefix`` or lies inside it."""
    return name == prefix or name.startswith((prefix + ".", prefix + "["))
