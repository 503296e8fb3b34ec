"""Connections become equations.

Ends that are connected, directly or through others, form a set. In each set potentials are equal and flows sum to zero:
flows count positive into a component; seen from inside a composite its own connectors therefore count with the
opposite sign. A connector that nobody connects from outside lets nothing through: its flows are zero. One signal may
drive any number of inputs.
"""

from __future__ import annotations

from itertools import combinations

from grisaille.errors import ModelError
from grisaille.model.connectors import check_compatible
from grisaille.model.content import Content, WrittenConnection
from grisaille.model.expression import Call, Constant, Expression, Name
from grisaille.model.flat import FlatEquation
from grisaille.model.notation.text import render

End = tuple[str, bool]
"""A connector and whether it is seen from inside the component that owns it."""


def merge_connectors(content: Content) -> list[FlatEquation]:
    """Return the equations of all connected sets, and those of unconnected flows."""
    joints = [joint for joint in content.joints if not joint.signal]
    sets = _merged(content, joints)
    equations: list[FlatEquation] = []
    for ends, source in sets:
        equations += _set_equations(content, ends, source)
    connected = {end for ends, _ in sets for end in ends}
    for path, connector in content.connectors.items():
        if (path, False) not in connected:
            equations += [_zero_flow(f"{path}.{name}", path) for name, kind, _ in connector.fields if kind == "flow"]
    return equations


def _merged(content: Content, joints: list[WrittenConnection]) -> list[tuple[list[End], str]]:
    """Return connected sets, ends in the order they were written, with the places of their connections."""
    leader: dict[End, End] = {}
    pairs: dict[frozenset[End], str] = {}

    def find(end: End) -> End:
        while leader.setdefault(end, end) != end:
            leader[end] = leader[leader[end]]
            end = leader[end]
        return end

    for joint in joints:
        ends = [_end(content, joint, path) for path in joint.ends]
        _check_pairs(content, joint, ends, pairs)
        for end in ends[1:]:
            leader[find(end)] = find(ends[0])
    groups: dict[End, tuple[list[End], list[str]]] = {}
    for end in leader:
        groups.setdefault(find(end), ([], []))[0].append(end)
    for joint in joints:
        sources = groups[find(_end(content, joint, joint.ends[0]))][1]
        sources.append(f"connect({', '.join(joint.ends)})" + (f" ({joint.source})" if joint.source else ""))
    return [(ends, "; ".join(sources)) for ends, sources in groups.values()]


def _end(content: Content, joint: WrittenConnection, path: str) -> End:
    connector = content.connectors.get(path)
    if connector is None:
        raise ModelError(
            f"connect({', '.join(joint.ends)}) ({joint.source}): {content.name} has no connector '{path}'."
        )
    return path, connector.owner == joint.owner


def _check_pairs(content: Content, joint: WrittenConnection, ends: list[End], pairs: dict[frozenset[End], str]) -> None:
    for a, b in combinations(ends, 2):
        if a == b:
            raise ModelError(f"connect({', '.join(joint.ends)}) ({joint.source}): {a[0]} is connected with itself.")
        check_compatible(a[0], content.connectors[a[0]], b[0], content.connectors[b[0]])
        pair = frozenset((a, b))
        if pair in pairs:
            raise ModelError(
                f"{a[0]} and {b[0]} are connected twice: at {pairs[pair]} and at {joint.source}. Remove one of them."
            )
        pairs[pair] = joint.source


def _set_equations(content: Content, ends: list[End], source: str) -> list[FlatEquation]:
    equations = []
    outside_first = sorted(ends, key=lambda end: end[1])
    for name, kind, _ in content.connectors[ends[0][0]].fields:
        if kind == "flow":
            equations.append(_sum(name, outside_first, source))
        else:
            first = f"{ends[0][0]}.{name}"
            others = dict.fromkeys(f"{path}.{name}" for path, _ in ends[1:] if f"{path}.{name}" != first)
            equations += [_equal(first, other, source) for other in others]
    return equations


def _equal(first: str, other: str, source: str) -> FlatEquation:
    return FlatEquation(Name(first), Name(other), f"{first} == {other}", source, "connection")


def _sum(name: str, ends: list[End], source: str) -> FlatEquation:
    path, inside = ends[0]
    total: Expression = Name(f"{path}.{name}")
    if inside:
        total = Call("neg", (total,))
    for path, inside in ends[1:]:
        total = Call("sub" if inside else "add", (total, Name(f"{path}.{name}")))
    return FlatEquation(total, Constant(0.0), f"{render(total)} == 0", source, "flow")


def _zero_flow(name: str, path: str) -> FlatEquation:
    return FlatEquation(Name(name), Constant(0.0), f"{name} == 0", f"{path} is not connected", "flow")


def bind_signals(content: Content) -> dict[str, Expression]:
    """Return what drives each driven input or undefined output: formulas given to components, and connections."""
    bound = dict(content.bindings)
    origin = {name: f"bound to `{formula}`" for name, formula in bound.items()}
    for joint in content.joints:
        if not joint.signal:
            continue
        text = f"connect({', '.join(joint.ends)}) ({joint.source})"
        sinks = [end for end in joint.ends if _is_sink(content, joint, end)]
        sources = [end for end in joint.ends if end not in sinks]
        if len(sources) != 1:
            found = ", ".join(sources) if sources else "none"
            raise ModelError(f"{text}: exactly one end must be a signal that drives the inputs; found {found}.")
        for sink in sinks:
            if sink in bound:
                raise ModelError(f"{sink} is driven twice: it is {origin[sink]}, and by {text}.")
            _check_units(content, sources[0], sink, text)
            bound[sink], origin[sink] = Name(sources[0]), f"connected by {text}"
    return bound


def _is_sink(content: Content, joint: WrittenConnection, name: str) -> bool:
    """Return inputs of components, and outputs of the owner that no formula defines."""
    own = name.rpartition(".")[0] == joint.owner
    if name in content.inputs:
        return not own
    return own and name in content.outputs and name in content.variables


def _check_units(content: Content, source: str, sink: str, text: str) -> None:
    units = [_unit(content, name) for name in (source, sink)]
    if all(units) and units[0] != units[1]:
        raise ModelError(f"{text}: {source} is in '{units[0]}' and {sink} in '{units[1]}'; convert between them.")


def _unit(content: Content, name: str) -> str:
    for table in (content.outputs, content.variables, content.inputs, content.disturbances, content.parameters):
        if name in table:
            return str(table[name].unit)
    return ""
