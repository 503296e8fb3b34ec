"""Delays of what changes at events only: a row of values that wait until their time has come.

A trajectory with jumps has no past that could be interpolated. Where the argument of ``delay(e, T)`` is made of
discrete variables, its value is put into a row whenever it changes, and becomes that of the delay T later, at an event
of its own. Changes at one instant are one. Of more than ``PLACES`` changes within T the model's assertion tells.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import count
from typing import TYPE_CHECKING, Any

from grisaille.modelica import tree
from grisaille.modelica.parsing import parse

if TYPE_CHECKING:
    from grisaille.modelica.values import Value

PLACES = 8
"""Values that may wait."""
_TEXT = """
model 'delay'
  Real '{name}.input';
  parameter Real '{name}.time' = 0.0;
  discrete Real '{name}.output';
  discrete Real '{name}.last';
  discrete Real '{name}.instant'[{places}];
  discrete Real '{name}.value'[{places}];
  discrete Boolean '{name}.placed'(start = true);
  discrete Boolean '{name}.full'(start = false);
equation
  '{name}.input' = '{name}.output';
  assert(not '{name}.full', "more than {places} changes of a discrete variable would wait in a delay");
algorithm
  when initial() then
    '{name}.output' := '{name}.input';
    '{name}.last' := '{name}.input';
    '{name}.instant' := fill(1e300, {places});
    '{name}.value' := fill(0.0, {places});
    '{name}.placed' := true;
    '{name}.full' := false;
  elsewhen {{'{name}.input' <> pre('{name}.last'), time >= '{name}.instant'[1]}} then
    for k in 1:{places} loop
      if time >= '{name}.instant'[1] then
        '{name}.output' := '{name}.value'[1];
        for i in 1:{places} - 1 loop
          '{name}.instant'[i] := '{name}.instant'[i + 1];
          '{name}.value'[i] := '{name}.value'[i + 1];
        end for;
        '{name}.instant'[{places}] := 1e300;
      end if;
    end for;
    '{name}.placed' := not '{name}.input' <> '{name}.last';
    for k in 1:{places} loop
      if not '{name}.placed' and '{name}.instant'[k] >= time + '{name}.time' then
        '{name}.instant'[k] := time + '{name}.time';
        '{name}.value'[k] := '{name}.input';
        '{name}.placed' := true;
      end if;
    end for;
    '{name}.full' := '{name}.full' or not '{name}.placed';
    '{name}.last' := '{name}.input';
  end when;
end 'delay';
"""
_CONTINUOUS = ("der", "delay", "spatialDistribution")


def with_rows(made: tree.Class, enumerations: Mapping[str, Value]) -> tree.Class:
    """Return a model in which delays of discrete variables are rows; the model itself where there is none."""
    given = (c.value for c in made.components if c.value is not None)
    if not any(isinstance(n, tree.Calling) and n.name == "delay" for n in tree.walk(*made.equations, *given)):
        return made
    return _DelayedRows(made, enumerations).model()


class _DelayedRows:
    def __init__(self, made: tree.Class, enumerations: Mapping[str, Value]) -> None:
        self.made = made
        self.added: list[tree.Class] = []
        self.given: set[str] = set()
        self.fixed = {c.name for c in made.components if {"parameter", "constant"} & {*c.prefixes}}
        self.discrete = self.fixed | {
            c.name
            for c in made.components
            if c.type in ("Integer", "Boolean") or c.type in enumerations or "discrete" in c.prefixes
        }
        self.enumerations = enumerations
        self._follow()

    def _follow(self) -> None:
        """Variables of type Real that an equation makes of discrete ones are discrete, too."""
        waiting = {
            e.left.path: e.right
            for e in self.made.equations
            if isinstance(e, tree.Equal) and isinstance(e.left, tree.Reference)
        }
        waiting |= {c.name: c.value for c in self.made.components if c.value is not None and not c.sizes}
        found = True
        while found:
            found = False
            for name in [n for n, value in waiting.items() if self.is_discrete(value)]:
                self.discrete.add(name)
                del waiting[name]
                found = True

    def is_discrete(self, node: tree.Node) -> bool:
        """Return whether a value changes at events only."""
        nodes = list(tree.walk(node))
        if any(isinstance(n, tree.Calling) and n.name in _CONTINUOUS for n in nodes):
            return False
        return all(self._is_known(n) for n in nodes if isinstance(n, tree.Reference))

    def _is_known(self, node: tree.Reference) -> bool:
        return any(path in self.discrete or path in self.enumerations for path in tree.references(node))

    def model(self) -> tree.Class:
        """Return the model with rows."""
        equations = [self._changed(e) for e in self.made.equations]
        components = [c if c.value is None else replace(c, value=self._changed(c.value)) for c in self.made.components]
        if not self.added:
            return self.made
        return replace(
            self.made,
            components=[*components, *(c for a in self.added for c in a.components)],
            equations=[*equations, *(e for a in self.added for e in a.equations)],
            algorithms=[*self.made.algorithms, *(s for a in self.added for s in a.algorithms)],
        )

    def _changed(self, node: tree.Node) -> Any:
        if isinstance(node, tree.Calling) and node.name == "delay" and len(node.arguments) > 1:
            value, dead = node.arguments[:2]
            settled = all(not {*tree.references(n)}.isdisjoint(self.fixed) for n in tree.walk(dead) if _is_name(n))
            if self.is_discrete(value) and settled and {*tree.references(value)} - self.fixed:
                return self._row(value, dead, node.at)
        return tree.rebuild(node, self._changed)

    def _row(self, value: tree.Node, dead: tree.Node, at: int) -> tree.Node:
        taken = {c.name for c in self.made.components}
        names = (f"row_of_delay_{k}" for k in count(len(self.added) + 1))
        name = next(n for n in names if n not in taken and n not in self.given)
        self.given.add(name)
        (made,) = parse(_TEXT.format(name=name, places=PLACES))

        def moved(node: tree.Node) -> Any:
            return replace(tree.rebuild(node, moved), at=at)

        first, told = made.equations
        assert isinstance(first, tree.Equal)
        output: tree.Node = moved(first.right)
        components = [
            replace(c, at=at, value=dead) if c.name.endswith(".time") else replace(c, at=at) for c in made.components
        ]
        sections = [[moved(s) for s in section] for section in made.algorithms]
        given = tree.Equal(at, moved(first.left), value)
        self.added.append(replace(made, components=components, equations=[given, moved(told)], algorithms=sections))
        return output


def _is_name(node: tree.Node) -> bool:
    return isinstance(node, tree.Reference)
