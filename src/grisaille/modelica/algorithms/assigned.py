"""What the statements of a model set, scalar by scalar.

While statements run, every variable that one of them sets has the value that was assigned last. An array or a record is
held as a whole as soon as a statement names it as a whole, so that ``sum(r)`` sees what was just given to ``r[1]``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Protocol

from grisaille.modelica import tree
from grisaille.modelica.assembling import entry_of, mapped, steps_below
from grisaille.modelica.evaluation import Local, array_of, unquoted
from grisaille.modelica.values import Opaque, Unfit, Value, describe

ENTERED_KEY = " entered"


@dataclass(frozen=True)
class _Entered(Opaque):
    """Names that statements set, among the local values."""

    names: frozenset[str]


"""The key of local values under which the names stand that statements set: what they were before is not among these."""


class DeclaredNames(Protocol):
    """What is asked about the names of a model."""

    def is_known(self, name: str) -> bool:
        """Return whether it is declared, or scalars below it are."""

    def scalars(self, name: str) -> list[str]:
        """Return the scalars of an array or a record; a scalar itself."""

    def structure(self, name: str) -> Value:
        """Return the value of a name before any statement."""


class AssignedNames:
    """The variables that statements of a model set: ``scalars``, and held as ``roots`` while they run."""

    def __init__(self, names: DeclaredNames, statements: list[tree.Node]) -> None:
        self.names = names
        self.scalars = targets_of(names, statements)
        named = {self._root(node) for node in tree.walk(*statements) if isinstance(node, tree.Reference)}
        owned = set(self.scalars)
        candidates = owned | {n for n in named if n and not owned.isdisjoint(names.scalars(n))}
        self.roots = sorted(n for n in candidates if not any(above in candidates for above in _above(n)))

    def _root(self, node: tree.Reference) -> str:
        """Return the shortest beginning of a reference that is a name."""
        path = ""
        for part in unquoted(node).parts:
            path = f"{path}.{part.name}" if path else part.name
            if self.names.is_known(path):
                return path
        return ""

    def entered(self, first: Callable[[str], Any]) -> Local:
        """Return what is held before the first statement: ``first(scalar)`` for each that is set, else what it is."""
        own = set(self.scalars)
        entered = {
            root: mapped(root, self.names.structure(root), lambda n, v: first(n) if n in own else v)
            for root in self.roots
        }
        return {**entered, ENTERED_KEY: _Entered(frozenset(self.roots))}

    def left(self, local: Local) -> dict[str, Value]:
        """Return the scalars that are set, with their values after the last statement."""
        return {name: self._held(name, local) for name in self.scalars}

    def _held(self, name: str, local: Local) -> Value:
        root = next(n for n in [name, *_above(name)] if n in local)
        value = entry_of(local[root], steps_below(root, name))
        if value is None:
            raise Unfit(f"'{root}' has the part '{name}', {describe(local[root])} has not")
        return value


def untouched(local: Local) -> Local:
    """Return local values without those that statements of a model have set: what ``pre`` asks for is none of them."""
    own = entered_names(local)
    return {name: value for name, value in local.items() if name not in own} if own else local


def entered_names(local: Local) -> frozenset[str]:
    """Return the names that the statements of a model set, as ``AssignedNames.entered`` keeps them."""
    entered = local.get(ENTERED_KEY)
    return entered.names if isinstance(entered, _Entered) else frozenset()


def _above(name: str) -> list[str]:
    """Return ``a[2].b`` and ``a[2]`` and ``a`` for ``a[2].b.c``, the nearest first."""
    found = []
    while name := array_of(name) or name.rpartition(".")[0]:
        found.append(name)
    return found


def scalars_meant(names: DeclaredNames, node: tree.Reference) -> list[str]:
    """Return the scalars that a reference may mean: one where its subscripts are numbers, else all that they choose
    among.
    """
    path, best = "", ""
    for part in unquoted(node).parts:
        path = f"{path}.{part.name}" if path else part.name
        best = path if names.is_known(path) else best
        if part.subscripts:
            places = [s.value if isinstance(s, tree.Literal) else None for s in part.subscripts]
            if not all(isinstance(p, int) for p in places):
                break
            path += f"[{','.join(map(str, places))}]"
            best = path if names.is_known(path) else best
    return names.scalars(best) if best else [node.path]


def targets_of(names: DeclaredNames, statements: Iterable[tree.Node]) -> list[str]:
    """Return the scalars that statements set, in order."""
    found: dict[str, None] = {}
    for node in tree.walk(*reversed(list(statements))):
        if isinstance(node, tree.Assign):
            sides = node.target.items if isinstance(node.target, tree.Several) else [node.target]
            for side in sides:
                found |= dict.fromkeys(scalars_meant(names, side) if isinstance(side, tree.Reference) else [])
    return list(found)


def kept_in(names: DeclaredNames, section: list[tree.Node]) -> set[str]:
    """Return scalars that statements read, or leave as they are, before they have given them a value on every path.

    A loop that sets entries one after the other counts as setting all of them.
    """
    wanted, kept = set(targets_of(names, section)), set[str]()

    def read(nodes: Iterable[tree.Node], given: set[str]) -> None:
        for node in tree.walk(*nodes):
            if isinstance(node, tree.Reference):
                kept.update(n for n in scalars_meant(names, node) if n in wanted and n not in given)

    def follow(statements: Iterable[tree.Node], given: set[str]) -> set[str]:
        for node in statements:
            if isinstance(node, tree.Assign):
                sides = node.target.items if isinstance(node.target, tree.Several) else [node.target]
                plain = [s for s in sides if isinstance(s, tree.Reference)]
                read([node.value, *(i for s in plain for p in s.parts for i in p.subscripts)], given)
                given = given.union(*(scalars_meant(names, s) for s in plain))
            elif isinstance(node, tree.If):
                ends = []
                for condition, body in node.branches:
                    read([] if condition is None else [condition], given)
                    ends.append(follow(body, given))
                if node.branches[-1][0] is not None:
                    ends.append(given)
                given = set.intersection(*ends)
            elif isinstance(node, tree.For | tree.While):
                read([o for _, o in node.iterators] if isinstance(node, tree.For) else [node.condition], given)
                given = follow(node.body, given)
            elif isinstance(node, tree.Do):
                read([node.call], given)
        return given

    return kept | (wanted - follow(section, set()))
