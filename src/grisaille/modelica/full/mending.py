"""Texts rewritten before ``rumoca`` 0.10 reads them, where it refuses what Modelica allows; lines stay where they are.

Only copies are changed. What is rewritten has no part in the equations: choices of states, hints for tools, names in
messages; and ways of writing that mean the same.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator

from grisaille.modelica.full.table_texts import Edit as Edit, find_last, names_of_tables, resource_calls, surfaces
from grisaille.modelica.tokens import COMMENT_OR_TEXT

_SETTLED = re.compile(r"\b(?:parameter|constant)\b")
_EVALUATE = re.compile(r"\bEvaluate(?=\s*=)")
_SELECT = re.compile(r"\bstateSelect\s*=\s*(?=if\b)")
_DOTTED = re.compile(r"(?<=[(,])(\s*)((?:(?:each|final)\s+)*)([A-Za-z_]\w*(?:\s*\.\s*[A-Za-z_]\w*)+)\s*(?==(?!=))")
_ARGUMENT = re.compile(r"\s*(?:(?:each|final)\s+)*([A-Za-z_]\w*)\s*([.(=])")
_ANNOTATION = re.compile(r"\bannotation\s*(?=\()")
_AFTER = re.compile(r"\s*;(?=\s*(end\b)?)")
_PREFIX = "(?:encapsulated|partial|final|replaceable|redeclare|expandable|pure|impure|operator)"
_HEAD = re.compile(
    r"\s*(?:within\b[^;]*;\s*)?"
    rf"(?:(?:{_PREFIX}\s+)*(?:model|block|class|package|connector|record|function)\s+\w+\s*(?:\"\s*\")?\s*)*"
    r"(?:(?:initial\s+)?(?:equation|algorithm)|public|protected)?\s*"
)
_SHOWN = r"(?:annotation\s*\([^;]*\)\s*)?"
_TYPED = re.compile(
    r"\bconnector\s+(\w+)\s*(?:\"\s*\")?\s*replaceable\s+type\s+(\w+)\s*=\s*(Real|Integer|Boolean)\s*(?:\"\s*\")?\s*"
    rf"{_SHOWN};\s*extends\s+\2\s*{_SHOWN};\s*(?:{_SHOWN};\s*)?end\s+\1\s*;"
)
_LARGEST = re.compile(r"(?<![\w.])OpenModelica\s*\.\s*Internal\s*\.\s*Architecture\s*\.\s*integerMax\s*\(\s*\)")
_INSTANCE = re.compile(r"\bgetInstanceName\s*\(\s*\)")


def mend_text(text: str) -> str:
    """Return the text as rumoca takes it."""
    waiting = [mend for key, mend in _MENDS.items() if key in text]
    for mend in waiting:
        before = None
        while text != before:
            text, before = apply_edits(text, mend(text, without_words(text))), text
            if mend is not _dotted_modifiers:
                break
    return text


def without_words(text: str) -> str:
    """Return a text of the same length without comments and the insides of texts."""
    return COMMENT_OR_TEXT.sub(lambda match: _blank(match[0]), text)


def apply_edits(text: str, edits: Iterable[Edit]) -> str:
    """Return the text with some places replaced; lines that were replaced are made up for."""
    for start, end, put in sorted(edits, reverse=True):
        lines = text.count("\n", start, end) - put.count("\n")
        text = f"{text[:start]}{put}{chr(10) * lines}{text[end:]}"
    return text


def _blank(words: str) -> str:
    inside = re.sub(r"[^\n]", " ", words[1:-1])
    return f'"{inside}"' if words.startswith('"') else re.sub(r"[^\n]", " ", words)


# --- what is mended ---


def _evaluations(text: str, bare: str) -> Iterator[Edit]:
    """Yield ``annotation(Evaluate = true)`` of what is no parameter: a hint, under a name that nobody reads."""
    for found in _EVALUATE.finditer(bare):
        if not _SETTLED.search(bare[_statement(bare, found.start()) : found.start()]):
            yield found.start(), found.end(), "__Unread"


def _selections(text: str, bare: str) -> Iterator[Edit]:
    """Yield ``stateSelect = if …``, which decides nothing but the choice of states."""
    for found in _SELECT.finditer(bare):
        yield found.end(), end_of_argument(bare, found.end()), "StateSelect.default"


def _dotted_modifiers(text: str, bare: str) -> Iterator[Edit]:
    """Yield ``extends B(a.p = 2, a.q = 3)`` as ``extends B(a(p = 2, q = 3))``, which means the same; one dot at a
    time.
    """
    moved_until = 0
    for found in _DOTTED.finditer(bare):
        if found.start() < moved_until:
            continue  # inside of what is moved, which is looked at again
        first, rest, end = *_parted(found), end_of_argument(bare, found.end())
        others = [other for other in _arguments(bare, end) if other[0] == first]
        if _is_said_before(bare, found.start(), first):
            continue
        yield found.start(), found.end(), f"{found[1]}{first}({found[2]}{rest} "
        moved = ""
        for _, mark, begin, head, last in others:
            if mark == "=":
                continue
            inside = text[head:last] if mark == "." else text[head : last - 1]
            moved += f", {_prefixes(bare[begin:last])}{inside.strip()}"
            yield begin - 1, last, ""
            moved_until = last
        yield end, end, f"{moved})"


def _parted(found: re.Match[str]) -> tuple[str, str]:
    first, _, rest = re.sub(r"\s", "", found[3]).partition(".")
    return first, rest


def _prefixes(argument: str) -> str:
    return "".join(f"{word} " for word in re.findall(r"\b(?:each|final)\b", argument.partition("=")[0]))


def _arguments(bare: str, comma: int) -> Iterator[tuple[str, str, int, int, int]]:
    """Yield modifiers behind a comma: name, what follows it (``.``, ``(`` or ``=``), where it begins, goes on and
    ends.
    """
    while bare[comma : comma + 1] == ",":
        begin = comma + 1
        comma = end_of_argument(bare, begin)
        found = _ARGUMENT.match(bare, begin)
        if found is not None:
            last = len(bare[:comma].rstrip())
            if found[2] != "(" or bare[last - 1] == ")":
                yield found[1], found[2], begin, found.end(), last


def _is_said_before(bare: str, at: int, name: str) -> bool:
    """Return whether an argument before this one, with a dot as well, takes this one up."""
    depth = 0
    for k in range(at - 1, -1, -1):
        depth += (bare[k] in ")]}") - (bare[k] in "([{")
        if depth < 0 or (depth == 0 and bare[k] == ";"):
            return False
        if depth == 0 and bare[k] == ",":
            found = _ARGUMENT.match(bare, k + 1)
            if found is not None and k + 1 < at - 1 and found[1] == name and found[2] == ".":
                return True
    return False


def _early_annotations(text: str, bare: str) -> Iterator[Edit]:
    """Yield annotations of classes that stand before other elements, where Modelica 2 allowed them: nothing is shown
    here.
    """
    for found in _ANNOTATION.finditer(bare):
        if not _HEAD.fullmatch(bare, bare.rfind(";", 0, found.start()) + 1, found.start()):
            continue
        end = end_of_parentheses(bare, bare.index("(", found.end()) + 1) + 1
        after = _AFTER.match(bare, end)
        if after is not None and not after[1]:
            yield found.start(), after.end(), ""


def _typed_connectors(text: str, bare: str) -> Iterator[Edit]:
    """Yield a connector that extends a type of its own as a number; a type that is put in its place has a unit at
    most.
    """
    types = set()
    for found in _TYPED.finditer(bare):
        types.add(found[2])
        yield found.start(), found.end(), f"connector {found[1]} = {found[3]};"
    for name in types:
        for found in re.finditer(rf"(?:,\s*)?\bredeclare\s+type\s+{name}\s*=\s*[\w.]+\s*(?=[,)])", bare):
            comma = re.compile(r",").match(bare, found.end()) if not found[0].startswith(",") else None
            yield found.start(), comma.end() if comma else found.end(), ""


def _largest_integers(text: str, bare: str) -> Iterator[Edit]:
    """Yield the largest Integer as OpenModelica writes it into the libraries that it saves."""
    for found in _LARGEST.finditer(bare):
        yield found.start(), found.end(), "2147483647"


def _instance_names(text: str, bare: str) -> Iterator[Edit]:
    """Yield ``getInstanceName()``, which is shown in messages."""
    for found in _INSTANCE.finditer(bare):
        yield found.start(), found.end(), '"instance"'


def _resources(text: str, bare: str) -> Iterator[Edit]:
    """Yield ``loadResource`` of the Standard Library, which rumoca cannot choose an implementation of: gives its
    argument.
    """
    for found in re.finditer(r"\bfunction\s+loadResource\b", bare):
        end = re.compile(r"\bend\s+loadResource\b").search(bare, found.end())
        if end is not None and "ModelicaServices" in bare[found.end() : end.start()]:
            body = " input String uri; output String fileReference; algorithm fileReference := uri; "
            yield found.end(), end.start(), body


_MENDS: dict[str, Callable[[str, str], Iterator[Edit]]] = {
    "=": _dotted_modifiers,
    "annotation": _early_annotations,
    "replaceable type": _typed_connectors,
    "OpenModelica": _largest_integers,
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
    """Return where the statement begins that a place is part of."""
    depth = 0
    while at > 0:
        at -= 1
        letter = bare[at]
        depth += (letter == ")") - (letter == "(")
        if letter == ";" and depth <= 0:
            return at + 1
    return 0


def end_of_argument(bare: str, at: int, letters: str = ",);") -> int:
    """Return where an argument ends that begins here: at its comma or parenthesis."""
    depth = 0
    while at < len(bare):
        letter = bare[at]
        if depth == 0 and letter in letters:
            break
        depth += (letter in "([{") - (letter in ")]}")
        at += 1
    return at


def end_of_parentheses(bare: str, at: int) -> int:
    """Return where the parentheses close in which a place stands."""
    return end_of_argument(bare, at, ");")
