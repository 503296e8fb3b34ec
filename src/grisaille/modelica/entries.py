"""Entries and fields of variables that change at events, by their own names.

Which variable an equation determines is read off its sides, so ``b[i]`` in a loop has to be ``'b[1]'`` there, and an
equation of whole arrays, records or several results of a function one equation for each scalar:

    for i in 1:2 loop b[i] = x > i; end for;   →   'b[1]' = x > 1;  'b[2]' = x > 2;
    r = f(x);                                  →   'r.n' = f(x).n;  'r.v[1]' = f(x).v[1];  …
    (n, y) = f(x);                             →   n = first result;  y = second result;

Equations of Reals alone stay as they are written.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from grisaille.modelica import tree
from grisaille.modelica.assembling import mapped
from grisaille.modelica.evaluation import Local, field
from grisaille.modelica.model import ModelNames
from grisaille.modelica.refusals import Refused
from grisaille.modelica.sections import Sections, Single
from grisaille.modelica.values import RecordValue, Unfit, Value, is_plain

Parts = tuple[tree.Part, ...]


class Entries:
    """Names entries of discrete variables in the equations of one model."""

    def __init__(self, names: ModelNames, sections: Sections) -> None:
        self.names, self.evaluator, self.sections = names, names.evaluator, sections
        self._roots = {root_of(name) for name in names.discrete}

    # --- equations ---

    def apart(self, single: Single) -> list[Single]:
        """Return an equation whose sides hold discrete variables, scalar by scalar; any other as it is."""
        node = single.node
        assert isinstance(node, tree.Equal)
        if not any(isinstance(n, tree.Reference) and self._may_be_discrete(n) for n in tree.walk(node)):
            return [single]
        return [Single(self.named(s.node, s.local), s.local) for s in self._apart(single)]

    def _apart(self, single: Single) -> list[Single]:
        node, local = single.node, single.local
        assert isinstance(node, tree.Equal)
        if isinstance(node.left, tree.Several):
            targets = [None if item is None else self._structure(item, local) for item in node.left.items]
            if not any(self._has_discrete(target) for target in targets):
                return [single]
            alone = [
                Single(tree.Equal(node.at, item, tree.Result(node.at, node.right, k)), local)
                for k, item in enumerate(node.left.items) if item is not None
            ]  # fmt: skip
            return [entry for one in alone for entry in self._apart(one)]
        sides = [(side, self._structure(side, local)) for side in (node.left, node.right)]
        held = [structure for _, structure in sides if isinstance(structure, np.ndarray | RecordValue)]
        if not held or not all(map(self._has_discrete, held)):
            return [single]  # scalars, or an array of Reals that Integers give
        leaves = [
            [_leaf(side, structure, parts) for side, structure in sides] for parts, _ in _leaves(held[0])
        ]  # fmt: skip
        return [Single(tree.Equal(node.at, *pair), local) for pair in leaves]

    def scalars(self, single: Single) -> list[Single]:
        """Return an equation of an array or a record of variables, scalar by scalar; any other as it is."""
        node, local = single.node, single.local
        assert isinstance(node, tree.Equal)
        if isinstance(node.left, tree.Several):
            return [
                one for k, item in enumerate(node.left.items) if item is not None
                for one in self.scalars(Single(tree.Equal(node.at, item, tree.Result(node.at, node.right, k)), local))
            ]  # fmt: skip
        sides = [(side, self._structure(side, local)) for side in (node.left, node.right)]
        held = [structure for _, structure in sides if isinstance(structure, np.ndarray | RecordValue)]
        if not held:
            return [single]
        found = []
        for parts, _ in _leaves(held[0]):
            left, right = (_leaf(side, structure, parts) for side, structure in sides)
            found.append(Single(tree.Equal(node.at, left, right), local))
        return found

    def _has_discrete(self, structure: Any) -> bool:
        return structure is not None and any(name in self.names.discrete for _, name in _leaves(structure))

    # --- when ---

    def when(self, single: Single) -> Single:
        """Return a when-equation without loops and with names in place of subscripts."""
        node = single.node
        assert isinstance(node, tree.When)
        loops = any(isinstance(n, tree.For) for n in tree.walk(node))
        if not loops and not single.local and not any(_has_subscripts(n) for n in tree.walk(node)):
            return single
        branches = []
        for condition, body in node.branches:
            inside = [node for s in self.sections.unroll(body, single.local) for node in self._in_when(s)]
            branches.append((self.named(condition, single.local, everything=True), inside))
        return Single(tree.When(node.at, branches), {})

    def _in_when(self, single: Single) -> list[tree.Node]:
        node, local = single.node, single.local
        found = [node]
        if isinstance(node, tree.Equal) and _has_subscripts(node.left):
            structure = self._structure(node.left, local)
            if isinstance(structure, np.ndarray | RecordValue):
                parts = [(_called(node, name), parts) for parts, name in _leaves(structure)]
                found = [tree.Equal(node.at, left, _leaf(node.right, None, places)) for left, places in parts]
        return [self.named(one, local, everything=True) for one in found]

    def statements(self, section: list[tree.Node], local: Local) -> list[tree.Node]:
        """Return statements of a model in which loops around a ``when`` are written out."""
        found: list[tree.Node] = []
        for node in section:
            if not isinstance(node, tree.For) or not any(isinstance(n, tree.When) for n in tree.walk(node)):
                found.append(self.named(node, local, everything=True) if local else node)
                continue
            (name, over), rest = node.iterators[0], node.iterators[1:]
            body: list[tree.Node] = [tree.For(node.at, rest, node.body)] if rest else node.body
            for item in self.evaluator.range(over, local):
                found += self.statements(body, {**local, name: item})
        return found

    # --- names ---

    def named(self, node: tree.Node, local: Local, *, everything: bool = False) -> tree.Node:
        """Return a node with entries of discrete variables under their own names.

        everything : entries of all variables, and what loops count as numbers
        """
        if isinstance(node, tree.Reference):
            return self._reference(node, local, everything)
        if isinstance(node, tree.Comprehension | tree.For):
            hidden = {name for name, _ in node.iterators}
            local = {name: value for name, value in local.items() if name not in hidden}
        return tree.rebuild(node, lambda inner: self.named(inner, local, everything=everything))

    def _reference(self, node: tree.Reference, local: Local, everything: bool) -> tree.Node:
        first = node.parts[0]
        if first.name in local:
            plain = everything and len(node.parts) == 1 and not first.subscripts and is_plain(local[first.name])
            return tree.Literal(node.at, local[first.name]) if plain else node
        if not _has_subscripts(node) or not (everything or self._may_be_discrete(node)):
            return node
        structure = self._structure(node, local)
        if isinstance(structure, str) and (everything or structure in self.names.discrete):
            return _called(node, structure)
        if isinstance(structure, np.ndarray) and (everything or self._has_discrete(structure)):
            return _braces(node, structure)
        if everything and local:
            parts = [
                tree.Part(p.name, tuple(self.named(s, local, everything=True) for s in p.subscripts))
                for p in node.parts
            ]  # fmt: skip
            return tree.Reference(node.at, tuple(parts))
        return node

    def _may_be_discrete(self, node: tree.Reference) -> bool:
        return root_of(node.parts[0].name) in self._roots

    def _structure(self, node: tree.Node, local: Local) -> Value | None:
        """Return the name of a scalar, or an array or a record of names; None where it is not known before a
        simulation.
        """
        if not isinstance(node, tree.Reference) or node.parts[0].name in local:
            return None
        try:
            return self._meant(node, local)
        except (Unfit, Refused):
            return None

    def _meant(self, node: tree.Reference, local: Local) -> Value | None:
        names, path = self.names, ""
        for k, part in enumerate(node.parts):
            path = f"{path}.{part.name}" if path else part.name
            rest: list[tree.Part] | None = None
            if names.is_known(path):
                rest = [tree.Part("", part.subscripts), *node.parts[k + 1 :]]
            elif part.subscripts:
                path += f"[{','.join(str(self.evaluator.whole(s, local, 'a subscript')) for s in part.subscripts)}]"
                rest = list(node.parts[k + 1 :]) if names.is_known(path) else None
            if rest is not None:
                value = mapped(path, names.structure(path), lambda name, _: name)
                for inner in rest:
                    value = field(value, inner.name) if inner.name else value
                    value = self.evaluator.subscript(value, inner.subscripts, local)
                return value
        return None


def root_of(name: str) -> str:
    """Return ``a`` for ``a[1].b``."""
    return name.partition(".")[0].partition("[")[0]


def _has_subscripts(node: tree.Node) -> bool:
    return isinstance(node, tree.Reference) and any(part.subscripts for part in node.parts)


def _called(node: tree.Node, name: str) -> tree.Reference:
    return tree.Reference(node.at, (tree.Part(name),))


def _braces(node: tree.Node, structure: Any) -> tree.Node:
    if isinstance(structure, np.ndarray):
        return tree.Braces(node.at, [_braces(node, item) for item in structure])
    return _called(node, structure)


def _leaves(structure: Any, parts: Parts = ()) -> list[tuple[Parts, str]]:
    """Return names of scalars, each with the fields and subscripts that lead to it."""
    if isinstance(structure, RecordValue):
        return [leaf for name, inner in structure.items() for leaf in _leaves(inner, (*parts, tree.Part(name)))]
    if not isinstance(structure, np.ndarray):
        return [(parts, structure)]
    found = []
    for index in np.ndindex(*structure.shape):
        places = tuple(tree.Literal(0, i + 1) for i in index)
        found += _leaves(structure[index], (*parts, tree.Part("", places)))
    return found


def _leaf(side: tree.Node, structure: Any, parts: Parts) -> tree.Node:
    """Return the scalar of one side that fields and subscripts lead to."""
    if structure is not None and not isinstance(structure, str):
        value = structure
        for part in parts:
            value = value[part.name] if part.name else value[tuple(_place(s) - 1 for s in part.subscripts)]
        return _called(side, value)
    if isinstance(side, tree.Braces) and parts and not parts[0].name:
        places, rest = parts[0].subscripts, parts[1:]
        item = side.items[_place(places[0]) - 1]
        inner = (tree.Part("", places[1:]), *rest) if places[1:] else rest
        return _leaf(item, None, inner) if inner else item
    return tree.Subscripted(side.at, side, parts)


def _place(node: tree.Node) -> int:
    assert isinstance(node, tree.Literal)
    return int(node.value)
