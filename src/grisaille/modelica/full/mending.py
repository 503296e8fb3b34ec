"""Texts rewritten before ``rumoca`` 0.10 reads them, where it refuses what Modelica allows; lines stay where they are.

Only copies are changed. What is rewritten has no part in the equations: choices of states, hints for tools, names in
messages; and ways of writing that mean the same.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator

from grisaille.modelica.full.table_texts import Edit as Edit
from grisaille.modelica.full.table_texts import find_last, names_of_tables, resource_calls, surfaces

_APART = re.compile(r"//[^\n]*|/\*.*?\*/|\"(?:[^\"\\]|\\.)*\"", re.DOTALL)
_SETTLED = re.compile(r"\b(?:parameter|constant)\b")
_EVALUATE = re.compile(r"\bEvaluate(?=\s*=)")
_SELECT = re.compile(r"\bstateSelect\s*=\s*(?=if\b)")
_DOTTED = re.compile(r"(?<=[(,])(\s*)((?:(?:each|final)\s+)*)([A-Za-z_]\w*(?:\s*\.\s*[A-Za-z_]\w*)+)\s*(?==(?!=))")
_INSTANCE = re.compile(r"\bgetInstanceName\s*\(\s*\)")


def mended(text: str) -> str:
    """The text as rumoca takes it."""
    waiting = [mend for key, mend in _MENDS.items() if key in text]
    for mend in waiting:
        text = edited(text, mend(text, without_words(text)))
    return text


def without_words(text: str) -> str:
    """A text of the same length without comments and the insides of texts."""
    return _APART.sub(lambda match: _blank(match[0]), text)


def edited(text: str, edits: Iterable[Edit]) -> str:
    """The text with some places replaced; lines that were replaced are made up for."""
    for start, end, put in sorted(edits, reverse=True):
        lines = text.count("\n", start, end) - put.count("\n")
        text = f"{text[:start]}{put}{chr(10) * lines}{text[end:]}"
    return text


def _blank(words: str) -> str:
    inside = re.sub(r"[^\n]", " ", words[1:-1])
    return f'"{inside}"' if words.startswith('"') else re.sub(r"[^\n]", " ", words)


# --- what is mended ---


def _evaluations(text: str, bare: str) -> Iterator[Edit]:
    """``annotation(Evaluate = true)`` of what is no parameter: a hint, under a name that nobody reads."""
    for found in _EVALUATE.finditer(bare):
        if not _SETTLED.search(bare[_statement(bare, found.start()) : found.start()]):
            yield found.start(), found.end(), "__Unread"


def _selections(text: str, bare: str) -> Iterator[Edit]:
    """``stateSelect = if …``, which decides nothing but the choice of states."""
    for found in _SELECT.finditer(bare):
        yield found.end(), end_of_argument(bare, found.end()), "StateSelect.default"


def _dotted_modifiers(text: str, bare: str) -> Iterator[Edit]:
    """``extends B(a.p = 2)`` as ``extends B(a(p = 2))``, which means the same."""
    for found in _DOTTED.finditer(bare):
        space, prefixes, name = found.groups()
        *outer, last = re.sub(r"\s", "", name).split(".")
        end = end_of_argument(bare, found.end())
        yield found.start(), found.end(), f"{space}{'('.join(outer)}({prefixes}{last} "
        yield end, end, ")" * len(outer)


def _instance_names(text: str, bare: str) -> Iterator[Edit]:
    """``getInstanceName()``, which is shown in messages."""
    for found in _INSTANCE.finditer(bare):
        yield found.start(), found.end(), '"instance"'


def _resources(text: str, bare: str) -> Iterator[Edit]:
    """``loadResource`` of the Standard Library, which rumoca cannot choose an implementation of: gives its argument."""
    for found in re.finditer(r"\bfunction\s+loadResource\b", bare):
        end = re.compile(r"\bend\s+loadResource\b").search(bare, found.end())
        if end is not None and "ModelicaServices" in bare[found.end() : end.start()]:
            body = " input String uri; output String fileReference; algorithm fileReference := uri; "
            yield found.end(), end.start(), body


_MENDS: dict[str, Callable[[str, str], Iterator[Edit]]] = {
    "=": _dotted_modifiers,
    "Evaluate": _evaluations,
    "stateSelect": _selections,
    "getInstanceName": _instance_names,
    "function loadResource": _resources,
    "loadResource": resource_calls,
    "tableOnFile": names_of_tables,
    "function findLast": find_last,
    "ExternalCombiTable2D": surfaces,
}


def _statement(bare: str, at: int) -> int:
    """Where the statement begins that a place is part of."""
    depth = 0
    while at > 0:
        at -= 1
        letter = bare[at]
        depth += (letter == ")") - (letter == "(")
        if letter == ";" and depth <= 0:
            return at + 1
    return 0


def end_of_argument(bare: str, at: int, letters: str = ",);") -> int:
    """Where an argument ends that begins here: at its comma or parenthesis."""
    depth = 0
    while at < len(bare):
        letter = bare[at]
        if depth == 0 and letter in letters:
            break
        depth += (letter in "([{") - (letter in ")]}")
        at += 1
    return at


def end_of_parentheses(bare: str, at: int) -> int:
    """Where the parentheses close in which a place stands."""
    return end_of_argument(bare, at, ");")
