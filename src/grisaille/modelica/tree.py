"""The syntax tree: what was written, not yet understood. ``at`` is the offset in the text."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any


@dataclass(slots=True)
class Node:
    """A piece of the text; abstract."""

    at: int


@dataclass(slots=True)
class Literal(Node):
    """A number, a truth value, a text, or no value."""

    value: Any


@dataclass(slots=True)
class Part:
    """One link of a reference: a name and its subscripts."""

    name: str
    subscripts: tuple[Node, ...] = ()


@dataclass(slots=True)
class Reference(Node):
    """``a.b[2].c``."""

    parts: tuple[Part, ...]

    @property
    def path(self) -> str:
        """Return the names, without subscripts."""
        return ".".join(part.name for part in self.parts)


@dataclass(slots=True)
class Chain(Node):
    """``a + b - c`` or ``a * b / c`` or ``a or b or c``: evaluated from the left, however long."""

    first: Node
    rest: list[tuple[str, Node]]


@dataclass(slots=True)
class Unary(Node):
    """``-a``, ``+a``, ``not a``."""

    operator: str
    operand: Node


@dataclass(slots=True)
class Choice(Node):
    """``if c then a elseif d then b else e``."""

    branches: list[tuple[Node, Node]]
    otherwise: Node


@dataclass(slots=True)
class Calling(Node):
    """``f(a, b, n = c)``."""

    name: str
    arguments: list[Node]
    named: dict[str, Node]


@dataclass(slots=True)
class Braces(Node):
    """``{a, b}``."""

    items: list[Node]


@dataclass(slots=True)
class Brackets(Node):
    """``[a, b; c, d]``."""

    rows: list[list[Node]]


@dataclass(slots=True)
class Comprehension(Node):
    """``{f(i) for i in 1:3}``, or the argument of ``sum``, ``product``, ``min``, ``max``."""

    body: Node
    iterators: list[tuple[str, Node]]


@dataclass(slots=True)
class Range(Node):
    """``a:b`` or ``a:step:b``; without ends the whole dimension."""

    first: Node | None
    step: Node | None
    last: Node | None


@dataclass(slots=True)
class Last(Node):
    """``end`` inside a subscript."""


@dataclass(slots=True)
class Subscripted(Node):
    """``({a, b})[2]`` or ``f(x).field``."""

    base: Node
    parts: tuple[Part, ...]


@dataclass(slots=True)
class Several(Node):
    """``(a, b, )`` on the left of a call with several results."""

    items: list[Node | None]


@dataclass(slots=True)
class Outcome(Node):
    """What a variable is worth after the statements of an algorithm section."""

    section: list[Node]
    target: str


@dataclass(slots=True)
class Result(Node):
    """One of several results of a call; ``index`` counts from zero."""

    call: Node
    index: int


# --- equations and statements ---


@dataclass(slots=True)
class Equal(Node):
    """``left = right`` among equations."""

    left: Node
    right: Node


@dataclass(slots=True)
class Assign(Node):
    """``target := value``."""

    target: Node
    value: Node


@dataclass(slots=True)
class Do(Node):
    """A call that stands alone: ``assert``, ``reinit``, ``terminate``, a function without results."""

    call: Calling


@dataclass(slots=True)
class If(Node):
    """``if … then … elseif … else … end if``; the condition of the last branch is None for ``else``."""

    branches: list[tuple[Node | None, list[Node]]]


@dataclass(slots=True)
class For(Node):
    """``for i in range loop … end for``."""

    iterators: list[tuple[str, Node]]
    body: list[Node]


@dataclass(slots=True)
class While(Node):
    condition: Node
    body: list[Node]


@dataclass(slots=True)
class When(Node):
    """``when … then … elsewhen … end when``."""

    branches: list[tuple[Node, list[Node]]]


@dataclass(slots=True)
class Leave(Node):
    """``return`` or ``break``."""

    word: str


# --- declarations ---


@dataclass(slots=True)
class Declared(Node):
    """One component: ``parameter Real x[3](unit = "m") = 1 "words"``."""

    name: str
    type: str
    prefixes: frozenset[str]
    sizes: tuple[Node, ...]
    attributes: dict[str, Node]
    value: Node | None
    words: str
    annotation: dict[str, Any]


@dataclass(slots=True)
class External(Node):
    """``external "C" y = f(a, b)``."""

    language: str
    function: str
    result: Node | None
    arguments: list[Node]


@dataclass(slots=True)
class Class(Node):
    """A class with what stands in it."""

    kind: str
    name: str
    words: str = ""
    components: list[Declared] = field(default_factory=list)
    classes: dict[str, Class] = field(default_factory=dict)
    equations: list[Node] = field(default_factory=list)
    initial_equations: list[Node] = field(default_factory=list)
    algorithms: list[list[Node]] = field(default_factory=list)
    initial_algorithms: list[list[Node]] = field(default_factory=list)
    external: External | None = None
    extends: list[str] = field(default_factory=list)
    literals: tuple[str, ...] = ()
    """Of an enumeration."""
    base: str = ""
    """Of ``type A = B``."""
    sizes: tuple[Node, ...] = ()
    attributes: dict[str, Node] = field(default_factory=dict)
    annotation: dict[str, Any] = field(default_factory=dict)
    partial: bool = False


def children(node: Node) -> list[Node]:
    """Return the nodes directly below one."""
    if isinstance(node, Literal | Last | Leave):
        return []
    if isinstance(node, Reference):
        return [s for part in node.parts for s in part.subscripts]
    if isinstance(node, Chain):
        return [node.first, *(operand for _, operand in node.rest)]
    if isinstance(node, Unary):
        return [node.operand]
    if isinstance(node, Choice):
        return [*(n for pair in node.branches for n in pair), node.otherwise]
    if isinstance(node, Calling):
        return [*node.arguments, *node.named.values()]
    if isinstance(node, Braces):
        return list(node.items)
    if isinstance(node, Brackets):
        return [item for row in node.rows for item in row]
    if isinstance(node, Comprehension):
        return [node.body, *(over for _, over in node.iterators)]
    if isinstance(node, Range):
        return [n for n in (node.first, node.step, node.last) if n is not None]
    if isinstance(node, Subscripted):
        return [node.base, *(s for part in node.parts for s in part.subscripts)]
    if isinstance(node, Several):
        return [n for n in node.items if n is not None]
    if isinstance(node, Outcome):
        return list(node.section)
    if isinstance(node, Result):
        return [node.call]
    return _parts_of_statement(node)


def _parts_of_statement(node: Node) -> list[Node]:
    if isinstance(node, Equal):
        return [node.left, node.right]
    if isinstance(node, Assign):
        return [node.target, node.value]
    if isinstance(node, Do):
        return [node.call]
    if isinstance(node, If | When):
        found: list[Node] = []
        for condition, body in node.branches:
            found += ([condition] if condition is not None else []) + body
        return found
    if isinstance(node, For):
        return [*(over for _, over in node.iterators), *node.body]
    if isinstance(node, While):
        return [node.condition, *node.body]
    return []


def walk(*roots: Node) -> Iterator[Node]:
    """Yield every node below ``roots`` and themselves; no recursion."""
    stack = list(roots)
    while stack:
        node = stack.pop()
        yield node
        stack.extend(children(node))


def references(*roots: Node) -> Iterator[str]:
    """Yield every name that references below ``roots`` may mean: beginnings of ``a.b.c`` of any length."""
    for node in walk(*roots):
        if isinstance(node, Reference):
            path = ""
            for part in node.parts:
                path = f"{path}.{part.name}" if path else part.name
                yield path


def rebuild(node: Any, change: Any) -> Any:
    """Return a node whose parts are changed; what holds none is itself."""
    if isinstance(node, Part):
        return Part(node.name, tuple(map(change, node.subscripts)))
    if isinstance(node, Node):
        fields = [getattr(node, name) for name in node.__dataclass_fields__]
        return type(node)(*(_changed(value, change) for value in fields))
    return node


def _changed(value: Any, change: Callable[[Node], Node]) -> Any:
    if isinstance(value, Node):
        return change(value)
    if isinstance(value, Part):
        return rebuild(value, change)
    if isinstance(value, list | tuple):
        return type(value)(_changed(item, change) for item in value)
    if isinstance(value, dict):
        return {key: _changed(item, change) for key, item in value.items()}
    return value
