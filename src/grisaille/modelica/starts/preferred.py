"""Starts of states that have none, by those of the variables that ``stateSelect`` prefers (Modelica 3.6, 4.9.7).

A volume balances mass and energy, der(m) and der(U), and prefers its level and temperature as states: their starts are
what it begins with. Where explicit equations m = ρ V, V = A level make a differentiated variable of them, and it has
no start of its own, it begins at what they give: a wish, as theirs are. Equations are not solved for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from grisaille.model.content import WrittenEquation
from grisaille.model.expression import Call, Expression, Name, postorder
from grisaille.model.rewriting import Rewriter
from grisaille.modelica.model import ModelNames

MAX_EQUATION_DEPTH = 50
"""Equations that are followed, one from the other."""


def begin_at_preferred(names: ModelNames, laws: Iterable[WrittenEquation]) -> None:
    """Give differentiated variables without starts those that preferred variables lead to."""
    laws = list(laws)
    differentiated = {
        node.arguments[0].path for law in laws for node in postorder((law.left, law.right))
        if isinstance(node, Call) and node.operation == "der" and isinstance(node.arguments[0], Name)
    }  # fmt: skip
    search = _StartSearch(names, laws)
    for name in sorted(differentiated & names.variables.keys()):
        start = search.explicit(name, ()) if names.variables[name].start is None else None
        if start is not None and search.is_determined(start):
            names.variables[name] = replace(names.variables[name], start=search.with_starts(start))


class _StartSearch:
    def __init__(self, names: ModelNames, laws: Iterable[WrittenEquation]) -> None:
        self.names = names
        self.given: dict[str, list[Expression]] = {}
        for law in laws:
            for name, expression in _explicit(law):
                self.given.setdefault(name, []).append(expression)
        self._found: dict[str, Expression | None] = {}

    def explicit(self, name: str, above: tuple[str, ...]) -> Expression | None:
        """Return the formula of a variable in parameters and in variables that begin where they say."""
        if name in self._found:
            return self._found[name]
        if name in above or len(above) > MAX_EQUATION_DEPTH:
            return None
        found = None
        for expression in self.given.get(name, ()):
            leaves = {node.path for node in postorder((expression,)) if isinstance(node, Name)}
            known = {leaf: self._known(leaf, (*above, name)) for leaf in leaves}
            if all(value is not None for value in known.values()):
                found = _put(expression, known)
                break
        if found is not None or not above:
            self._found[name] = found
        return found

    def _known(self, name: str, above: tuple[str, ...]) -> Expression | None:
        if name in self.names.parameters or self._begins(name):
            return Name(name)
        return self.explicit(name, above) if name in self.names.variables else None

    def _begins(self, name: str) -> bool:
        """Return whether a variable begins where its start says, since it is demanded or preferred."""
        variable = self.names.variables.get(name)
        if variable is None or variable.start is None:
            return False
        return variable.fixed or name in self.names.preferred

    def is_determined(self, expression: Expression) -> bool:
        """Return whether there is a variable that leads, beside parameters."""
        return any(isinstance(node, Name) and self._begins(node.path) for node in postorder((expression,)))

    def with_starts(self, expression: Expression) -> Expression:
        """Return the formula with starts in place of variables."""
        return _put(expression, {name: variable.start for name, variable in self.names.variables.items()})


def _put(expression: Expression, values: Mapping[str, Expression | None]) -> Expression:
    """Return the formula with others in place of names."""

    def put(node: Expression) -> Expression | None:
        return values.get(node.path) if isinstance(node, Name) else None

    return Rewriter(put)(expression)


def _explicit(law: WrittenEquation) -> Iterator[tuple[str, Expression]]:
    """Yield variables that stand alone on one side, with the other side where it is a formula of values."""
    for one, other in ((law.left, law.right), (law.right, law.left)):
        if isinstance(one, Name) and not any(
            isinstance(node, Call) and node.operation in ("der", "pre", "delay") for node in postorder((other,))
        ):
            yield one.path, other
