"""What functions do beside giving results: random numbers from a hidden state, and files.

``impureRandom`` draws from a generator that all models of a process share and that is seeded elsewhere: what it gives
is not part of a text. A variable that only such draws set and that nothing else reads is left out of the model; where
it is read, the function stays refused by name. Statements that call a function for the file that it writes, and need no
result of it, are left out: simulations write nothing. Both are told in a warning.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from grisaille.modelica import tree

_DRAWS = (
    "ModelicaRandom_impureRandom_", "Modelica.Math.Random.Utilities.impureRandom",
)  # fmt: skip
_WRITES = (
    "ModelicaIO_write", "Modelica.Utilities.Streams.writeRealMatrix",
    "ModelicaInternal_removeFile", "Modelica.Utilities.Files.remove",
)  # fmt: skip
Remark = Callable[[int, str], None]


def without_side_effects(made: tree.Class, classes: Mapping[str, tree.Class], remark: Remark) -> tree.Class:
    """Return the model without what hidden states decide and what only writes files; itself where there is neither."""
    sections = (made.equations, *made.algorithms)
    called = {n.name for s in sections for n in tree.walk(*s) if isinstance(n, tree.Calling)}
    drawing, writing = (called & _doing(names, called, classes) for names in (_DRAWS, _WRITES))
    if drawing:
        made = _without_draws(made, drawing, remark)
    if writing:
        made = _without_files(made, writing, remark)
    return made


def _doing(names: tuple[str, ...], called: set[str], classes: Mapping[str, tree.Class]) -> set[str]:
    """Return the functions whose names, or those of external functions in them, begin so, and those that call such
    ones.
    """
    functions = {name: made for name, made in classes.items() if made.kind == "function"}
    calls = {
        name: {n.name for s in made.algorithms for n in tree.walk(*s) if isinstance(n, tree.Calling)}
        | ({made.external.function} if made.external else set())
        for name, made in functions.items()
    }
    known = {*called, *functions, *(c for inside in calls.values() for c in inside)}
    found = {name for name in known if name.startswith(names)}
    more = found
    while more:
        more = {name for name, inside in calls.items() if name not in found and inside & found}
        found |= more
    return found


def _without_draws(made: tree.Class, drawing: set[str], remark: Remark) -> tree.Class:
    """Return the model without the variables that draws set and nothing reads."""
    sections = (made.equations, *made.algorithms)
    assigned = [(s, name) for section in sections for s in tree.walk(*section) if (name := _target(s))]
    drawn = {name for s, name in assigned if _calls(s, drawing)}
    own = {id(n) for s, name in assigned if name in drawn for n in tree.walk(s)}
    values = [c.value for c in made.components if c.value is not None]
    initial = (made.initial_equations, *made.initial_algorithms)
    everything = tree.walk(*values, *(n for s in (*sections, *initial) for n in s))
    others = [n for n in everything if isinstance(n, tree.Reference) and id(n) not in own]
    loose = drawn - set(tree.references(*others))
    for component in made.components:
        if component.name in loose:
            words = "is drawn from a hidden state, which the text does not hold: it is left out"
            remark(component.at, f"'{component.name}' {words}")
    kept = [c for c in made.components if c.name not in loose]
    return _changed(replace(made, components=kept), lambda node: _target(node) in loose)


def _without_files(made: tree.Class, writing: set[str], remark: Remark) -> tree.Class:
    """Return the model without statements that call a function only for the file that it writes."""

    def is_left_out(node: tree.Node) -> bool:
        found = isinstance(node, tree.Do) and node.call.name in writing
        if found:
            remark(node.at, f"'{node.call.name}' writes or removes a file: it is left out")  # type: ignore[attr-defined]
        return found

    return _changed(made, is_left_out)


def _calls(node: tree.Node, names: set[str]) -> bool:
    return any(isinstance(n, tree.Calling) and n.name in names for n in tree.walk(node))


def _target(node: tree.Node) -> str:
    """Return the scalar variable that a statement or an equation sets."""
    left = node.target if isinstance(node, tree.Assign) else node.left if isinstance(node, tree.Equal) else None
    return left.path if isinstance(left, tree.Reference) else ""


def _changed(made: tree.Class, is_left_out: Callable[[tree.Node], bool]) -> tree.Class:
    algorithms = [kept for section in made.algorithms if (kept := _without(section, is_left_out))]
    return replace(made, equations=_without(made.equations, is_left_out), algorithms=algorithms)


def _without(nodes: list[tree.Node], is_left_out: Callable[[tree.Node], bool]) -> list[tree.Node]:
    """Return a section without some statements, and without what of ``when`` and ``if`` is then empty."""
    found: list[tree.Node] = []
    for node in nodes:
        if isinstance(node, tree.If | tree.When):
            branches: list[Any] = [(condition, _without(body, is_left_out)) for condition, body in node.branches]
            if any(body for _, body in branches) or not any(body for _, body in node.branches):
                found.append(type(node)(node.at, branches))
        elif not is_left_out(node):
            found.append(node)
    return found
