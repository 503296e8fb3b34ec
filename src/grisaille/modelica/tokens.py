"""The words of a Modelica text."""

from __future__ import annotations

import re

from grisaille.modelica.refusals import Refused

KEYWORDS = frozenset(
    """
    algorithm and annotation assert block break class connect connector constant constrainedby der discrete each else
    elseif elsewhen encapsulated end enumeration equation expandable extends external false final flow for function if
    import impure in initial inner input loop model not operator or outer output package parameter partial protected
    public pure record redeclare replaceable return stream then true type when while within
    """.split()
)

_TOKEN = re.compile(
    r"""
    (?P<space>[\s\ufeff]+ | //[^\n]* | /\*.*?\*/)
    | (?P<number>\d+(?:\.\d*)?(?:[eE][+-]?\d+)?)
    | (?P<word>[^\W\d]\w*)
    | (?P<nothing>\#EMPTY\#)
    | (?P<quoted>'[^'\\\n]*(?:\\.[^'\\\n]*)*')
    | (?P<text>"[^"\\]*(?:\\.[^"\\]*)*")
    | (?P<open>/\*)
    | (?P<symbol>:=|<=|>=|<>|==|\.\+|\.-|\.\*|\./|\.\^|[-+*/^=<>()\[\]{},;:.])
    | (?P<stray>.)
    """,
    re.VERBOSE | re.DOTALL,
)

COMMENT_OR_TEXT = re.compile(r"//[^\n]*|/\*.*?(?:\*/|\Z)|\"(?:[^\"\\]|\\(?:.|\Z))*(?:\"|\Z)", re.DOTALL)
"""What holds no words of the language; unfinished ones reach to the end, so that a text is looked through once."""
EMPTY_VALUE = "#EMPTY#"
"""What OpenModelica writes for the value of a parameter that it has not found."""
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}
END_OF_TEXT = "end of the text"


class Tokens:
    """Kinds, values and offsets of all words, side by side.

    A kind is ``"name"``, ``"number"`` or ``"text"``, or the keyword or symbol itself; the last one is
    :data:`END_OF_TEXT`.
    """

    __slots__ = ("at", "kinds", "values")

    def __init__(self, text: str) -> None:
        self.kinds: list[str] = []
        self.values: list[str] = []
        self.at: list[int] = []
        kinds, values, offsets = self.kinds.append, self.values.append, self.at.append
        at = 0
        for match in _TOKEN.finditer(text):
            kind, word = match.lastgroup, match.group()
            if kind in ("open", "stray"):
                break
            if kind != "space":
                kinds(_kind(kind, word))
                values(_value(kind, word))
                offsets(at)
            at = match.end()
        if at < len(text):
            raise Refused(at, _stray(text, at))
        kinds(END_OF_TEXT)
        values("")
        offsets(max(len(text) - 1, 0))


def _kind(kind: str | None, word: str) -> str:
    if kind == "word":
        return word if word in KEYWORDS else "name"
    if kind in ("symbol", "nothing"):
        return word
    return "name" if kind == "quoted" else str(kind)


def _value(kind: str | None, word: str) -> str:
    if kind == "quoted":
        return word[1:-1].replace("\\'", "'") if "\\" in word else word[1:-1]
    if kind == "text":
        return re.sub(r"\\(.)", lambda m: _ESCAPES.get(m[1], m[1]), word[1:-1]) if "\\" in word else word[1:-1]
    return word


def _stray(text: str, at: int) -> str:
    letter = text[at]
    if letter == '"':
        return 'a text begins with " and does not end'
    if letter == "'":
        return "a quoted name begins with ' and does not end on its line"
    if text.startswith("/*", at):
        return "a comment begins with /* and does not end"
    return f"the character {letter!r} has no meaning here"
