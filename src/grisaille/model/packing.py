"""The content of a model as text (JSON), and fingerprints of it.

Formulas become rows of one table, each row an operation on earlier rows; equal sub-formulas share a row, so the text
depends on what is written and not on how Python objects are shared, and depth is no problem.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import fields, is_dataclass, replace
from typing import Any

from grisaille.errors import ModelError
from grisaille.laws import Law, MultivariateNormal, Smoothness
from grisaille.model import content as _content, flat, spectra
from grisaille.model.content import Content
from grisaille.model.expression import Call, Condition, Constant, Expression, Name, postorder
from grisaille.model.measurement.distributions import mapped_law

_CLASSES: dict[str, type] = {
    "Content": Content,
    "Law": _content.WrittenEquation,
    "Action": _content.WrittenAction,
    "Branch": _content.WhenBranch,
    "Occasion": _content.WhenClause,
    "Check": _content.Assertion,
    "Joint": _content.WrittenConnection,
    "ConnectorContent": _content.ConnectorContent,
    "Component": _content.ComponentContent,
    "Origin": _content.ModelicaOrigin,
    "FlatParameter": flat.FlatParameter,
    "FlatVariable": flat.FlatVariable,
    "FlatDiscrete": flat.FlatDiscrete,
    "FlatInput": flat.FlatInput,
    "FlatDisturbance": flat.FlatDisturbance,
    "FlatOutput": flat.FlatOutput,
    "Spectrum": spectra.Spectrum,
    "MultivariateNormal": MultivariateNormal,
    "Smoothness": Smoothness,
}
"""Classes by the names under which files and fingerprints have them, which stay when a class is renamed."""
_SAVED_NAMES = {cls: name for name, cls in _CLASSES.items()}


def pack(content: Content) -> str:
    """Return ``content`` as JSON text."""
    table = _Table()
    body = table.encode(content)
    return json.dumps({"format": 1, "rows": table.rows, "body": body}, separators=(",", ":"))


def unpack(text: str) -> Content:
    """Return the content that :func:`pack` wrote."""
    packed = json.loads(text)
    result = _decode(packed["body"], _nodes(packed["rows"]))
    assert isinstance(result, Content)
    return result


def fingerprint(content: Content) -> str:
    """Return SHA-256 over names, values and equations; comments and places in files are left out."""
    return digest(_without_remarks(content))


def structure_key(content: Content) -> str:
    """Return a :func:`fingerprint` that leaves out the values of parameters, starts, scales and noises."""
    plain = _without_remarks(content)
    return digest(
        replace(
            plain,
            parameters={
                n: replace(p, value=_shape(p.value), bounds=None, prior=None, transform=None)
                for n, p in plain.parameters.items()
            },
            variables={n: replace(v, start=_shape(v.start), bounds=None) for n, v in plain.variables.items()},
            discretes={
                n: replace(d, start=Constant(0.0) if isinstance(d.start, Constant) else d.start)
                for n, d in plain.discretes.items()
            },
            inputs={n: replace(i, default=None) for n, i in plain.inputs.items()},
            disturbances={n: replace(d, scale=_shape(d.scale)) for n, d in plain.disturbances.items()},
            outputs={
                n: replace(o, noise=_shape(o.noise), distribution=o.distribution and mapped_law(o.distribution, _shape))
                for n, o in plain.outputs.items()
            },
        )
    )


def _shape(value: Expression | None) -> Expression | None:
    return Constant(0.0) if isinstance(value, Constant) else value


def _without_remarks(content: Content) -> Content:
    def bare(table: dict[str, Any]) -> dict[str, Any]:
        return {name: replace(item, description="") for name, item in table.items()}

    return replace(
        content,
        description="",
        parameters=bare(content.parameters),
        variables=bare(content.variables),
        discretes=bare(content.discretes),
        inputs=bare(content.inputs),
        disturbances=bare(content.disturbances),
        outputs=bare(content.outputs),
        components=bare(content.components),
        equations=tuple(replace(law, source="") for law in content.equations),
        whens=tuple(replace(when, source="") for when in content.whens),
        initial=tuple(replace(law, source="") for law in content.initial),
        joints=tuple(replace(joint, source="") for joint in content.joints),
        hints=(),
        checks=(),
        origin=None,
    )


def digest(content: Content) -> str:
    """Return SHA-256 of all that a model consists of."""
    return hashlib.sha256(pack(content).encode()).hexdigest()


class _Table:
    """Rows of formulas, equal ones once."""

    def __init__(self) -> None:
        self.rows: list[Any] = []
        self._known: dict[Any, int] = {}
        self._numbers: dict[int, int] = {}
        self._alive: list[Expression] = []

    def encode(self, value: Any) -> Any:
        if value is None or isinstance(value, bool | int | float | str):
            return value
        if isinstance(value, Expression):
            return {"e": self._row(value)}
        if isinstance(value, dict):
            return {"d": [[self.encode(k), self.encode(v)] for k, v in value.items()]}
        if isinstance(value, list | tuple):
            return [self.encode(item) for item in value]
        if is_dataclass(value) and (type(value) in _SAVED_NAMES or isinstance(value, Law)):
            found = [self.encode(getattr(value, f.name)) for f in fields(value)]
            # what was added as a last field is left out where there is none: texts of other models stay as they were
            lacks_last = isinstance(value, Content | flat.FlatOutput) and found[-1] is None
            name = _SAVED_NAMES.get(type(value), type(value).__name__)
            return {"c": name, "f": found[:-1] if lacks_last else found}
        raise TypeError(f"{type(value).__name__} cannot be part of a model's content")

    def _row(self, root: Expression) -> int:
        self._alive.append(root)
        for node in postorder((root,)):
            if id(node) not in self._numbers:
                self._numbers[id(node)] = self._enter(_row_of(node, self._numbers))
        return self._numbers[id(root)]

    def _enter(self, row: tuple[Any, ...]) -> int:
        if row not in self._known:
            self._known[row] = len(self.rows)
            self.rows.append(row)
        return self._known[row]


def _row_of(node: Expression, numbers: dict[int, int]) -> tuple[Any, ...]:
    if isinstance(node, Constant):
        return ("#", node.value)
    if isinstance(node, Name):
        return ("$", node.path)
    if isinstance(node, Call):
        return (node.operation, tuple(numbers[id(a)] for a in node.arguments), node.data)
    raise ModelError(
        f"The formula uses `{node}`, which belongs to another model. A component bound to members of an enclosing "
        "model can only be used inside that model."
    )


_LEAVES: dict[str, Any] = {"#": (int, float), "$": str}
_LOGICAL = {"lt", "le", "gt", "ge", "and", "or", "not", "clock", "edge", "change", "initial", "terminal",
            "whenever"}  # fmt: skip


def _nodes(rows: Iterable[Any]) -> list[Expression]:
    nodes: list[Expression] = []
    for row in rows:
        if row[0] in _LEAVES and not isinstance(row[1], _LEAVES[row[0]]):
            raise ModelError(f"A formula of the model holds {repr(row[1])[:60]} in the place of a number or a name.")
        if row[0] == "#":
            nodes.append(Constant(row[1]))
        elif row[0] == "$":
            nodes.append(Name(row[1]))
        else:
            node = Condition if row[0] in _LOGICAL else Call
            nodes.append(node(row[0], tuple(nodes[i] for i in row[1]), _tuples(row[2])))
    return nodes


def _tuples(value: Any) -> Any:
    return tuple(_tuples(item) for item in value) if isinstance(value, list) else value


def _decode(value: Any, nodes: list[Expression]) -> Any:
    if isinstance(value, list):
        return tuple(_decode(item, nodes) for item in value)
    if not isinstance(value, dict):
        return value
    if "e" in value:
        return nodes[value["e"]]
    if "d" in value:
        return {_decode(k, nodes): _decode(v, nodes) for k, v in value["d"]}
    found = _CLASSES.get(value["c"]) or Law.known.get(value["c"])
    if found is None:
        raise ModelError(
            f"The model has the law {value['c']}, which is not known here: import the module that defines it first."
        )
    return found(*(_decode(item, nodes) for item in value["f"]))
