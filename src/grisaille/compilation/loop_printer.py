"""Long CasADi functions as C that loops over what repeats: the cells of a rod are one line and a table, not a thousand
lines.

Values that are used more than once, and every ``MAX_TREE_OPERATIONS``-th of a long formula, are *roots*: they are kept
in memory,
and each is a small tree over inputs, numbers and other roots. Trees that are the same but for the places they read
from, their numbers and where their value goes are one loop,

    for (k = 0; k < 1000; k++) out[k] = p[0] * (x[before[k]] - 2 * x[k] + x[after[k]]);

with places that are equal or equally spaced written out, others in tables. A tree comes after those it reads from; what
repeats fewer than ``MIN_TREES_PER_LOOP`` times is written line by line. Operations and their order are those of the
function, so the
bits are too. Outputs must not overlap inputs.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import casadi as ca

from grisaille.compilation.dialect import PLAIN_DIALECT, literal
from grisaille.compilation.printer import between_parts, dense_positions
from grisaille.errors import CompilationError

MAX_TREE_OPERATIONS = 40
"""Operations in a tree."""
MIN_TREES_PER_LOOP = 6
"""Trees alike from which on they are a loop."""
LINES_PER_FUNCTION = 1000
"""Lines per C function for what does not repeat; compilers take more than twice as long for twice the length."""

LEAF, INNER = -1, -2
"""In place of a number of operands: the item is a leaf, or a node still to be looked into."""

Place = tuple[str, int]
"""An array and an index in it."""


@dataclass
class _Root:
    """One tree: operations in postfix order over numbered leaves, with the arrays these are in; and where it goes."""

    shape: tuple[object, ...]
    leaves: list[Place | float]
    target: Place


def print_with_loops(function: ca.Function, name: str, inputs: Sequence[str], sparse: bool = False) -> str:
    """Return the C text of a function with one output, as ``print_function`` gives it."""
    nodes, written = _read(function, inputs)
    values = [0.0 if entry is None else written.get(entry, 0.0) for entry in _entries(function, sparse)]
    levels, copies, count = _trees(nodes, values)
    given = ", ".join(f"double {n}" if n == "t" else f"const double *{n}" for n in inputs)
    text = _Text(name, f"{given}, double *out", ", ".join(inputs))
    for level in [*levels, copies]:
        groups: dict[tuple[object, ...], list[_Root]] = {}
        for root in level:
            groups.setdefault(root.shape, []).append(root)
        for group in groups.values():
            if len(group) >= MIN_TREES_PER_LOOP:
                text.body += _loop(group, text.part, text.tables)
            else:
                for root in group:
                    text.body += _lines(root)
                    text.cut()
        text.cut()
    return text.whole(count)


class _Text:
    """C functions of ``LINES_PER_FUNCTION`` lines and their tables, one after the other."""

    def __init__(self, name: str, declaration: str, given: str) -> None:
        self._name, self._declaration, self._given = name, declaration, given
        self._done: list[str] = []
        self._parts = 0
        self.tables: list[str] = []
        self.body: list[str] = []

    @property
    def part(self) -> str:
        return f"{self._name}_{self._parts}"

    def cut(self, least: int = LINES_PER_FUNCTION) -> None:
        """End a function that has become long."""
        if len(self.body) < least:
            return
        head = f"GR_FN GR_ALONE void {self.part}({self._declaration}, double *w) {{"
        self._done += [*self.tables, head, *self.body, "}", ""]
        self.tables, self.body = [], []
        self._parts += 1

    def whole(self, count: int) -> str:
        self.cut(1)
        calls = [f"  {self._name}_{k}({self._given}, out, w);" for k in range(self._parts)]
        memory = between_parts("double", max(count, 1))
        return "\n".join([*self._done, f"GR_FN void {self._name}({self._declaration}) {{", memory, *calls, "}", ""])


@dataclass
class _TreeNode:
    operation: int
    operands: tuple[object, ...]
    """Numbers of nodes, places of inputs, or constants as floats."""
    uses: int = 0


def _read(function: ca.Function, inputs: Sequence[str]) -> tuple[list[_TreeNode], dict[int, object]]:
    """Return the instructions as a graph, and the value of each entry of the output."""
    nodes: list[_TreeNode] = []
    written: dict[int, object] = {}
    current: dict[int, object] = {}
    positions = [dense_positions(function.sparsity_in(i)) for i in range(function.n_in())]
    for k in range(function.n_instructions()):
        operation = function.instruction_id(k)
        if operation == ca.OP_OUTPUT:
            written[function.instruction_output(k)[1]] = current[function.instruction_input(k)[0]]
            continue
        target = function.instruction_output(k)[0]
        if operation == ca.OP_CONST:
            current[target] = float(function.instruction_constant(k))
        elif operation == ca.OP_INPUT:
            source, entry = function.instruction_input(k)
            current[target] = (inputs[source], positions[source][entry])
        else:
            if operation not in PLAIN_DIALECT.operations:
                raise CompilationError(
                    f"CasADi operation number {operation} is not elementary and cannot be printed as C."
                )
            operands = tuple(current[i] for i in function.instruction_input(k))
            for operand in operands:
                if isinstance(operand, int):
                    nodes[operand].uses += 1
            current[target] = len(nodes)
            nodes.append(_TreeNode(operation, operands))
    return nodes, written


def _entries(function: ca.Function, sparse: bool) -> list[int | None]:
    """Return, for each number that is written, the entry of the function's output, None for zeros."""
    if sparse or function.sparsity_out(0).is_dense():
        return list(range(function.nnz_out(0)))
    entries: list[int | None] = [None] * function.numel_out(0)
    for entry, position in enumerate(dense_positions(function.sparsity_out(0))):
        entries[position] = entry
    return entries


def _trees(nodes: list[_TreeNode], values: list[object]) -> tuple[list[list[_Root]], list[_Root], int]:
    """Return trees by levels, outputs that repeat another, and how much memory between trees is needed."""
    places: dict[int, Place] = {}
    copies: list[_Root] = []
    levels: list[list[_Root]] = [[]]
    for k, value in enumerate(values):
        if not isinstance(value, int):
            levels[0].append(_plain(value, ("out", k)))  # type: ignore[arg-type]
        elif value in places:
            copies.append(_plain(places[value], ("out", k)))
        else:
            places[value] = ("out", k)
    sizes: list[int] = []
    count = 0
    for k, node in enumerate(nodes):
        below = [o for o in node.operands if isinstance(o, int) and o not in places]
        size = 1 + sum(sizes[o] for o in below)
        if k not in places and (node.uses > 1 or size > MAX_TREE_OPERATIONS):
            places[k] = ("w", count)
            count += 1
        sizes.append(size)
    level_of: dict[int, int] = {}
    for k in range(len(nodes)):
        if k in places:
            root, level = _tree(nodes, k, places, level_of)
            level_of[k] = level
            while len(levels) <= level:
                levels.append([])
            levels[level].append(root)
    return levels, copies, count


def _plain(source: Place | float, target: Place) -> _Root:
    """Return a value that is written down as it is."""
    array = source[0] if isinstance(source, tuple) else ""
    return _Root(((0, LEAF), (array,), target[0]), [source], target)


def _tree(nodes: list[_TreeNode], top: int, places: dict[int, Place], level_of: dict[int, int]) -> tuple[_Root, int]:
    shape: list[tuple[int, int]] = []
    leaves: list[Place | float] = []
    known: dict[object, int] = {}
    level = 0
    # an operation waits, as (number, operands), until its operands are there
    waiting: list[tuple[object, int]] = [(top, INNER)]
    while waiting:
        item, state = waiting.pop()
        if state == INNER:
            node = nodes[item]  # type: ignore[call-overload]
            waiting.append((node.operation, len(node.operands)))
            for operand in reversed(node.operands):
                inner = isinstance(operand, int) and operand not in places
                waiting.append((operand, INNER if inner else LEAF))
        elif state == LEAF:
            leaf = item
            if isinstance(leaf, int):
                level = max(level, level_of[leaf] + 1)
                leaf = places[leaf]
            # numbers are told apart by their bits, so that 0.0 and -0.0 are
            key = leaf.hex() if isinstance(leaf, float) else leaf
            if key not in known:
                known[key] = len(leaves)
                leaves.append(leaf)  # type: ignore[arg-type]
            shape.append((known[key], LEAF))
        else:
            shape.append((item, state))  # type: ignore[arg-type]
    arrays = tuple(leaf[0] if isinstance(leaf, tuple) else "" for leaf in leaves)
    return _Root((*shape, arrays, places[top][0]), leaves, places[top]), level


def _lines(root: _Root) -> list[str]:
    """Return one tree by itself."""
    names = [_at(*leaf) if isinstance(leaf, tuple) else literal(leaf) for leaf in root.leaves]
    lines, value = _formula(root.shape, names)
    if len(lines) <= 1:
        return [f"  {_at(*root.target)} = {lines[0] if lines else value};"]
    kept = [f"const double v{i} = {line};" for i, line in enumerate(lines)]
    return [f"  {{ {' '.join(kept)} {_at(*root.target)} = {value}; }}"]


def _loop(group: list[_Root], name: str, tables: list[str]) -> list[str]:
    """Return trees alike."""
    begin: list[str] = []
    names = []
    for i, leaf in enumerate(group[0].leaves):
        if isinstance(leaf, tuple):
            source = _at(leaf[0], _places([root.leaves[i][1] for root in group], name, tables))  # type: ignore[index]
        else:
            source = _numbers([root.leaves[i] for root in group], name, tables)  # type: ignore[misc]
        begin.append(f"const double l{i} = {source};")
        names.append(f"l{i}")
    lines, value = _formula(group[0].shape, names)
    kept = [f"const double v{i} = {line};" for i, line in enumerate(lines)]
    target = _at(group[0].target[0], _places([root.target[1] for root in group], name, tables))
    inside = " ".join([*begin, *kept, f"{target} = {value};"])
    return [f"  for (long k = 0; k < {len(group)}; k++) {{ {inside} }}"]


def _formula(shape: Sequence[Any], names: Sequence[str]) -> tuple[list[str], str]:
    """Return what v0, v1, … are, and the name of the last value."""
    stack: list[str] = []
    lines: list[str] = []
    for number, count in shape[:-2]:
        if count == LEAF:
            stack.append(names[number])
            continue
        operands = stack[len(stack) - count :]
        del stack[len(stack) - count :]
        stack.append(f"v{len(lines)}")
        lines.append(PLAIN_DIALECT.operations[number](*operands))
    return lines, stack[0]


def _at(array: str, index: object) -> str:
    return array if array == "t" else f"{array}[{index}]"


def _places(indices: list[int], name: str, tables: list[str]) -> str:
    """Return the index of the k-th: a number, a formula of k, or from a table."""
    step = indices[1] - indices[0]
    if all(b - a == step for a, b in itertools.pairwise(indices)):
        return str(indices[0]) if step == 0 else f"{indices[0]} + {step} * k"
    table = f"{name}_i{len(tables)}"
    tables.append(f"static const int {table}[{len(indices)}] = {{{','.join(map(str, indices))}}};")
    return f"{table}[k]"


def _numbers(values: list[float], name: str, tables: list[str]) -> str:
    if len({value.hex() for value in values}) == 1:
        return literal(values[0])
    table = f"{name}_c{len(tables)}"
    tables.append(f"static const double {table}[{len(values)}] = {{{','.join(map(literal, values))}}};")
    return f"{table}[k]"
