"""Parsing of expressions: precedence climbing, chains of one rank kept flat so that long sums cost no depth."""

from __future__ import annotations

from typing import NoReturn

from grisaille.modelica import tree
from grisaille.modelica.refusals import Refused
from grisaille.modelica.tokens import EMPTY_VALUE, END_OF_TEXT, Tokens
from grisaille.modelica.values import UNSET_VALUE

MAX_NESTING = 100
"""Parentheses, braces and calls inside each other."""

_RANKS = {
    "or": 0, "and": 1, "<": 3, "<=": 3, ">": 3, ">=": 3, "==": 3, "<>": 3, "+": 4, "-": 4, ".+": 4, ".-": 4,
    "*": 5, "/": 5, ".*": 5, "./": 5, "^": 6, ".^": 6,
}  # fmt: skip
_NOT, _ADD, _FACTOR = 2, 4, 6


class ExpressionParser:
    """A position in the words of a text, and the expressions that begin there."""

    def __init__(self, tokens: Tokens) -> None:
        self.kinds, self.values, self.offsets = tokens.kinds, tokens.values, tokens.at
        self.here = 0
        self._depth = 0

    # --- words ---

    @property
    def kind(self) -> str:
        return self.kinds[self.here]

    @property
    def at(self) -> int:
        return self.offsets[self.here]

    def has(self, kind: str) -> bool:
        """Return whether the next word is this one; it is then read."""
        if self.kinds[self.here] == kind:
            self.here += 1
            return True
        return False

    def need(self, kind: str, where: str) -> str:
        """Return the value of the next word, which must be of this kind."""
        if self.kinds[self.here] != kind:
            self.refuse(f"{_shown(kind)} is expected {where}, but {self.seen()} stands there")
        self.here += 1
        return self.values[self.here - 1]

    def seen(self) -> str:
        """Return the next word, for messages."""
        kind, value = self.kinds[self.here], self.values[self.here]
        return (
            f"the {kind}"
            if kind == END_OF_TEXT
            else f"the text {value[:40]!r}"
            if kind == "text"
            else f"'{value[:60]}'"
        )

    def refuse(self, words: str) -> NoReturn:
        raise Refused(self.at, words)

    # --- expressions ---

    def expression(self) -> tree.Node:
        """Return any expression but a range."""
        self._depth += 1
        if self._depth > MAX_NESTING:
            self.refuse(f"expressions stand more than {MAX_NESTING} deep inside each other")
        node = self._choice() if self.kind == "if" else self._operation(0)
        self._depth -= 1
        return node

    def range(self) -> tree.Node:
        """Return an expression, or ``a:b`` or ``a:step:b``."""
        at = self.at
        first = self.expression()
        if not self.has(":"):
            return first
        second = self.expression()
        if not self.has(":"):
            return tree.Range(at, first, None, second)
        return tree.Range(at, first, second, self.expression())

    def _choice(self) -> tree.Node:
        at, branches = self.at, []
        self.here += 1
        while True:
            condition = self.expression()
            self.need("then", "after a condition")
            branches.append((condition, self.expression()))
            if self.has("elseif"):
                continue
            self.need("else", "in an if-expression, which needs a value for every case")
            if not self.has("if"):
                return tree.Choice(at, branches, self.expression())

    def _operation(self, lowest: int) -> tree.Node:
        left, rank_of_left = self._prefixed(), _FACTOR + 1
        while True:
            operator = self.kinds[self.here]
            rank = _RANKS.get(operator, -1)
            if rank < lowest:
                return left
            at = self.at
            self.here += 1
            right = self._operation(rank + 1)
            if rank == rank_of_left and isinstance(left, tree.Chain) and rank not in (3, _FACTOR):
                left.rest.append((operator, right))
            elif rank == rank_of_left and rank in (3, _FACTOR):
                raise Refused(at, f"'{operator}' cannot be chained: write parentheses")
            else:
                left, rank_of_left = tree.Chain(at, left, [(operator, right)]), rank

    def _prefixed(self) -> tree.Node:
        at, kind = self.at, self.kinds[self.here]
        if kind == "not":
            self.here += 1
            return tree.Unary(at, "not", self._operation(_NOT + 1))
        if kind in ("-", "+", ".-", ".+"):
            self.here += 1
            return tree.Unary(at, kind[-1], self._operation(_ADD + 1))
        return self._trailed(self._primary())

    def _trailed(self, base: tree.Node) -> tree.Node:
        """Return subscripts and fields behind something in parentheses or a call."""
        if isinstance(base, tree.Reference) or self.kind not in ("[", "."):
            return base
        parts = []
        at = self.at
        if self.kind == "[":
            parts.append(tree.Part("", self.subscripts()))
        while self.has("."):
            name = self.need("name", "after a dot")
            parts.append(tree.Part(name, self.subscripts() if self.kind == "[" else ()))
        return tree.Subscripted(at, base, tuple(parts))

    def _primary(self) -> tree.Node:
        at, kind = self.at, self.kinds[self.here]
        if kind == "number":
            self.here += 1
            return tree.Literal(at, _number(self.values[self.here - 1]))
        if kind == "name":
            return self._named()
        if kind == "(":
            return self._parentheses()
        if kind == "{":
            return self._braces()
        if kind == "[":
            return self._brackets()
        self.here += 1
        if kind in ("true", "false"):
            return tree.Literal(at, kind == "true")
        if kind == "text":
            return tree.Literal(at, self.values[self.here - 1])
        if kind == EMPTY_VALUE:
            return tree.Literal(at, UNSET_VALUE)
        if kind == "end":
            return tree.Last(at)
        if kind in ("der", "initial", "pure") and self.kind == "(":
            return self.call(at, kind)
        if kind == "function":
            return self.call(at, f"function {self.reference().path}")
        self.here -= 1
        self.refuse(f"an expression is expected, but {self.seen()} stands there")

    def _named(self) -> tree.Node:
        at = self.at
        reference = self.reference()
        if self.kind == "(":
            if any(part.subscripts for part in reference.parts):
                self.refuse("a function cannot be chosen by a subscript")
            return self.call(at, reference.path)
        return reference

    def reference(self) -> tree.Reference:
        """Return ``a.b[2].c``."""
        at, parts = self.at, []
        while True:
            name = self.need("name", "in a reference")
            parts.append(tree.Part(name, self.subscripts() if self.kind == "[" else ()))
            if not self.has("."):
                return tree.Reference(at, tuple(parts))

    def subscripts(self) -> tuple[tree.Node, ...]:
        """Return ``[i, 2:3, :]``."""
        self.need("[", "before subscripts")
        found: list[tree.Node] = []
        while True:
            at = self.at
            if self.kind == ":" and self.kinds[self.here + 1] in (",", "]"):
                self.here += 1
                found.append(tree.Range(at, None, None, None))
            else:
                found.append(self.range())
            if not self.has(","):
                self.need("]", "after subscripts")
                return tuple(found)

    def call(self, at: int, name: str) -> tree.Calling:
        """Return the arguments of a call, whose name has been read."""
        self.need("(", "after the name of a function")
        arguments: list[tree.Node] = []
        named: dict[str, tree.Node] = {}
        while not self.has(")"):
            if self.kind == "name" and self.kinds[self.here + 1] == "=":
                key = self.need("name", "")
                self.here += 1
                named[key] = self.expression()
            else:
                if named:
                    self.refuse(f"an argument of {name} without a name follows one with a name")
                arguments.append(self._comprehended(self.range()))
            if self.kind != ")":
                self.need(",", f"between arguments of {name}")
        return tree.Calling(at, name, arguments, named)

    def _comprehended(self, body: tree.Node) -> tree.Node:
        return tree.Comprehension(body.at, body, self.iterators()) if self.has("for") else body

    def iterators(self) -> list[tuple[str, tree.Node]]:
        """Return ``i in 1:3, j in 1:2``; the word ``for`` has been read."""
        found = []
        while True:
            name = self.need("name", "after 'for'")
            self.need("in", f"after 'for {name}'")
            found.append((name, self.range()))
            if not self.has(","):
                return found

    def _parentheses(self) -> tree.Node:
        at = self.at
        self.here += 1
        items: list[tree.Node | None] = []
        while True:
            if self.kind in (",", ")"):
                items.append(None)
            else:
                items.append(self.range())
            if self.has(")"):
                break
            self.need(",", "or ')' after an expression in parentheses")
        if len(items) == 1 and items[0] is not None:
            return items[0]
        return tree.Several(at, items)

    def _braces(self) -> tree.Node:
        at = self.at
        self.here += 1
        items = []
        while self.kind != "}":
            item = self.range()
            if self.has("for"):
                made = tree.Comprehension(at, item, self.iterators())
                self.need("}", "after an array")
                return made
            items.append(item)
            if self.kind != "}":
                self.need(",", "between entries of an array")
        self.here += 1
        return tree.Braces(at, items)

    def _brackets(self) -> tree.Node:
        at = self.at
        self.here += 1
        rows: list[list[tree.Node]] = [[]]
        while True:
            rows[-1].append(self.range())
            if self.has("]"):
                return tree.Brackets(at, rows)
            if self.has(";"):
                rows.append([])
            else:
                self.need(",", "or ';' between entries of a matrix")


def _number(text: str) -> float | int:
    if text.isdigit():
        return int(text) if len(text) < 300 else float("inf")
    return float(text)


def _shown(kind: str) -> str:
    return f"a {kind}" if kind in ("name", "number", "text") else f"'{kind}'"
