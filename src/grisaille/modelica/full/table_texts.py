"""What the tables of the Standard Library need so that ``rumoca`` 0.10 takes them: functions in another form.

Of external objects it knows those of tables of one variable that stand in the text, only. Others become functions of
what their objects would have been made of: ``getTable2DValue(tableID, u1, u2)`` gets arguments of the constructor in
place of ``tableID``. ``findLast``, which looks for ``.csv`` at the end of a file's name, becomes external.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

Edit = tuple[int, int, str]
"""From, to, and what is put there."""


@dataclass(frozen=True)
class _Kind:
    """One kind of tables."""

    functions: str
    """How the names of its functions begin."""
    inputs: tuple[tuple[int, str], ...]
    """Arguments of the constructor that are needed, by their number, and how they are declared."""
    more: tuple[str, ...]
    """What a value is asked for by."""
    external: str


_SMOOTH, _BEYOND = "Modelica.Blocks.Types.Smoothness smoothness", "Modelica.Blocks.Types.Extrapolation extrapolation"
_SOURCE = ((0, "String tableName"), (1, "String fileName"), (2, "Real table[:, :]"))
_KINDS = {
    "Table2D": _Kind(
        r"getTable2D\w+",
        (*_SOURCE, (3, _SMOOTH), (4, _BEYOND), (6, "String delimiter"), (7, "Integer nHeaderLines")),
        ("Real u1", "Real u2"),
        "grisaille_surface",
    ),
    "Table1D": _Kind(
        r"getTable1D\w+",
        (*_SOURCE, (3, "Integer columns[:]"), (4, _SMOOTH), (5, _BEYOND), (7, "String delimiter"),
         (8, "Integer nHeaderLines")),
        ("Integer icol", "Real u"),
        "grisaille_curve",
    ),
    "TimeTable": _Kind(
        r"getTimeTable\w+|getNextTimeEvent",
        (*_SOURCE, (3, "Real startTime"), (4, "Integer columns[:]"), (5, _SMOOTH), (6, _BEYOND), (7, "Real shiftTime"),
         (10, "String delimiter"), (11, "Integer nHeaderLines")),
        ("Integer icol", "Real timeIn", "Real nextTimeEvent", "Real pre_nextTimeEvent"),
        "grisaille_time_table",
    ),
}  # fmt: skip
_DEFAULTS = {
    "String delimiter": '","', "Integer nHeaderLines": "0", "Real shiftTime": "0.0",
    _BEYOND: "Modelica.Blocks.Types.Extrapolation.LastTwoPoints",
}  # fmt: skip
"""Of the constructors; versions before 4.1 know no delimiter and no lines of titles."""
_NAMED = re.compile(r"(\w+)\s*=(?!=)\s*(.*)", re.DOTALL)
_BLOCK = re.compile(r"\bblock\s+(\w+)")
_FUNCTION = re.compile(r"\bfunction\s+(get(?:Table|Time|NextTime)\w+)")
_CALL = re.compile(r"\b(get(?:Table|Time|NextTime)\w+)\s*\(\s*(tableID)\b")
_NAME_OF_CSV = re.compile(r"\bif\s+isCsvExt\s+then\s+\"Values\"\s+else\s+(tableName)\b")
_NOT_EMPTY = re.compile(
    r"\b(if\s+tableOnFile)\s+and\s+fileName\s*<>\s*\"NoName\"\s+and\s+not\s+[\w.]+\.isEmpty\(fileName\)"
)
_FIND_LAST = (
    " input String string; input String searchString; input Integer startIndex(min = 0) = 0; "
    "input Boolean caseSensitive = true; output Integer index; "
    'external "C" index = grisaille_find_last(string, searchString, startIndex, caseSensitive); '
)


def resource_calls(text: str, bare: str) -> Iterator[Edit]:
    """Yield calls of ``loadResource`` as their argument: the constructors of tables want a text there."""
    for found in re.finditer(r"(?<![\w.])(?:\w+\s*\.\s*)*loadResource\s*\((?:\s*uri\s*=)?", bare):
        yield found.start(), found.end(), "("


def names_of_tables(text: str, bare: str) -> Iterator[Edit]:
    """Yield arguments of constructors that ask functions about the file's name, which rumoca does not take for
    constants.
    """
    for pattern in (_NAME_OF_CSV, _NOT_EMPTY):
        for found in pattern.finditer(text):
            yield found.start(), found.end(), found[1]


def find_last(text: str, bare: str) -> Iterator[Edit]:
    """Yield ``Modelica.Utilities.Strings.findLast``."""
    for found in re.finditer(r"\bfunction\s+findLast\b", bare):
        end = re.compile(r"\bend\s+findLast\b").search(bare, found.end())
        if end is not None and "searchString" in bare[found.end() : end.start()]:
            yield found.end(), end.start(), _FIND_LAST


def surfaces(text: str, bare: str) -> Iterator[Edit]:
    """Yield tables of two variables without an object."""
    return without_object("Table2D", text, bare)


def without_object(kind: str, text: str, bare: str) -> Iterator[Edit]:
    """Yield the objects of one kind of tables, the functions of them, and their calls."""
    tables = _KINDS[kind]
    given: list[tuple[tuple[int, int], str]] = []
    made = rf"\b(?:final\s+)?parameter\s+[\w.]*\bExternalCombi{kind}\s+tableID\s*=\s*[\w.]*\bExternalCombi{kind}\s*\("
    for found in re.finditer(made, bare):
        end = _closing(bare, found.end())
        given.append((_block_around(bare, found.start()), _given(tables, text, bare, found.end(), end - 1)))
        yield found.start(), bare.index(";", end) + 1, ""
    bodies = []
    for found in _FUNCTION.finditer(bare):
        last = re.compile(rf"\bend\s+{found[1]}\b").search(bare, found.end())
        if last is not None:
            bodies.append((found.end(), last.start()))
            if re.fullmatch(tables.functions, found[1]):
                yield found.end(), last.start(), _body(tables, found[1])
    for call in _CALL.finditer(bare):
        inside = any(begin <= call.start() < stop for begin, stop in bodies)
        if re.fullmatch(tables.functions, call[1]) and given and not inside:
            own = [words for (begin, stop), words in given if begin <= call.start() < stop]
            yield call.start(2), call.end(2), (own or [given[0][1]])[-1]


def _given(tables: _Kind, text: str, bare: str, start: int, end: int) -> str:
    """Return the arguments of a constructor that are needed."""
    bounds, depth = [start], 0
    for at in range(start, end):
        depth += (bare[at] in "([{") - (bare[at] in ")]}")
        if bare[at] == "," and depth == 0:
            bounds += [at, at + 1]
    bounds.append(end)
    parts = [" ".join(text[a:b].split()) for a, b in zip(bounds[::2], bounds[1::2], strict=True)]
    named = {found[1]: found[2] for part in parts if (found := _NAMED.fullmatch(part))}
    plain = [part for part in parts if not _NAMED.fullmatch(part)]
    words = []
    for k, declared in tables.inputs:
        default = named.get(_name_of(declared), _DEFAULTS.get(declared, ""))
        words.append(plain[k] if k < len(plain) else default)
    return ", ".join(words)


def _name_of(declared: str) -> str:
    return declared.partition("[")[0].split()[-1]


def _body(tables: _Kind, name: str) -> str:
    declared = [declared for _, declared in tables.inputs]
    output, external = "Real y", tables.external
    if name.endswith(("min", "max")):
        output = "Real y[2]" if "2D" in name else "Real y"
        external += "_first" if name.endswith("min") else "_last"
    elif name == "getNextTimeEvent":
        declared, external = [*declared, "Real timeIn"], f"{external}_next"
    else:
        declared += tables.more
    inputs = " ".join(f"input {one};" for one in declared)
    names = ", ".join(map(_name_of, declared))
    call = f"{external}({names}, y)" if output.endswith("]") else f"y = {external}({names})"
    return f' {inputs} output {output}; external "C" {call}; '


def _block_around(bare: str, at: int) -> tuple[int, int]:
    """From where to where the block goes that a place is in."""
    for found in reversed([found for found in _BLOCK.finditer(bare, 0, at)]):
        end = re.compile(rf"\bend\s+{found[1]}\s*;").search(bare, found.end())
        if end is not None and end.start() > at:
            return found.start(), end.end()
    return 0, len(bare)


def _closing(bare: str, at: int) -> int:
    """Return behind the parenthesis that closes what begins here."""
    depth = 1
    while at < len(bare) and depth:
        depth += (bare[at] in "([{") - (bare[at] in ")]}")
        at += 1
    return at
