"""What ``rumoca`` says of a model that it cannot flatten, in words about the user's text and the libraries' files."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from grisaille.modelica.full.mending import without_words
from grisaille.modelica.full.otherwise import OTHERWISE

SHOWN = 12
"""Messages that are written out."""
FEW = 3
"""Files that are named where a message may be about any of them."""
_SAID = re.compile(r"×\s*(.+)")
_AT = re.compile(r"\[[^\[\]]*:(\d+):\d+\]")
_WHERE = re.compile(r"\s*\[([^\[\]\n]+?):(\d+):\d+\](?:;\s*)?")
_RELATED = re.compile(r"^- .*?\[\w+\]: (.+)$", re.MULTILINE)
_FRONT = re.compile(r"^(?:[\w ]+ failed: )?\S+ (?:failed in \w+|could not be compiled): ")
_QUOTED = re.compile(r"['`]([\w.]+)['`]")


def explain_messages(answer: Mapping[str, Any], text: str, label: str, name: str, files: Mapping[str, str]) -> str:
    """Return the compiler's messages, each once, with the lines that they are about, and what else can be done."""
    error = str(answer["error"])
    errors = [one for one in answer.get("diagnostics") or [] if one.get("level") == "error"]
    if "because resolve/parse failed" in error and not errors:
        return f"{label} has no model '{name}', nor have the folders of path=[…]; or it is no Modelica."
    found = dict.fromkeys(f"  {_place(one, label)}: {said_by(one)}" for one in errors)
    if not found:
        related = _RELATED.findall(error) or [_FRONT.sub("", error.splitlines()[0])]
        words = dict.fromkeys(words.split("; unknowns[")[0] for words in related)
        found = dict.fromkeys(f"  {line}" for one in words for line in _placed(one, label, text, files))
    lines = list(found)
    more = [f"  … and {len(lines) - SHOWN} more"] if len(lines) > SHOWN else []
    return "\n".join(
        [f"'{name}' of {label} cannot be flattened by rumoca:", *lines[:SHOWN], *more, *_advice(error, errors)]
    )


def damaged(answer: Mapping[str, Any]) -> dict[str, str]:
    """Return files of libraries that are no Modelica, each with what is wrong there."""
    found: dict[str, str] = {}
    for one in answer.get("diagnostics") or []:
        if one.get("rule") == "syntax-error" and "/" in str(one.get("file")):
            found.setdefault(str(one["file"]), f"line {_line(one)}: {said_by(one)}")
    return found


def said_by(one: Mapping[str, Any]) -> str:
    """Return the words of one message."""
    said = _SAID.search(str(one["message"]))
    return said[1] if said else str(one["message"]).splitlines()[0]


def _advice(error: str, errors: list[Any]) -> Iterator[str]:
    if "unresolved type" in error or "base class not found" in error:
        yield "Libraries are looked for in path=[…], the folders that hold them."
    elif not errors and "unbalanced model" not in error:
        yield f"What rumoca does not know, OpenModelica may. {OTHERWISE}"


def _line(one: Mapping[str, Any]) -> int:
    """Return the line of a message: that of its picture, which is right where the compiler's own number is not."""
    shown = _AT.search(str(one["message"]))
    return int(shown[1]) if shown else int(one["line"] or 1)


def _place(one: Mapping[str, Any], label: str) -> str:
    file = str(one.get("file") or "")
    return f"{file}, line {_line(one)}" if "/" in file and file != label else f"line {_line(one)}"


def _placed(words: str, label: str, text: str, files: Mapping[str, str]) -> Iterator[str]:
    """Yield messages with their places: those that the compiler gives, else where a name in them stands."""
    *told, rest = _WHERE.split(words)
    for said, path, line in zip(told[::3], told[1::3], told[2::3], strict=True):
        yield f"line {line}: {said}" if path == label else f"{path}, line {line}: {said}"
    if rest.strip():
        yield f"{_line_of(rest, text, files)}{rest}"


def _line_of(words: str, text: str, files: Mapping[str, str]) -> str:
    """Return ``"line 3: "`` where a name that a message quotes stands in the user's text, else in the one file that has
    it.

    Of two or three files that have it, their names; of more, nothing: the compiler does not say which it means.
    """
    for quoted in _QUOTED.findall(words):
        for wanted in dict.fromkeys([quoted, quoted.rpartition(".")[2]]):
            line = _line_with(wanted, text)
            if line:
                return f"line {line}: "
            found = {path: line for path, written in files.items() if (line := _line_with(wanted, written))}
            if len(found) == 1:
                return "".join(f"{path}, line {line}: " for path, line in found.items())
            if 0 < len(found) <= FEW:
                return f"{' or '.join(found)}: "
    return ""


def _line_with(name: str, text: str) -> int:
    """Return the first line of a text with a name; zero where it has none."""
    sought = re.compile(rf"(?<![\w.]){re.escape(name)}(?!\w)")
    found = sought.search(without_words(text)) if name in text else None
    return text.count("\n", 0, found.start()) + 1 if found else 0
