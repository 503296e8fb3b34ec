"""Texts of users as comments of C, which no text can end.

A comment is one line. What could end it or run on is taken out before the compiler sees it, by what its phases do in
order: trigraphs (``??/`` is a backslash), lines joined by a backslash, the end of a comment. Characters that are not
printed as themselves, among them those that turn the direction of a text, are written by their numbers.
"""

from __future__ import annotations

MAX_COMMENT_LENGTH = 200
"""Characters of a text that are shown."""


def c_comment(text: str) -> str:
    """Return ``/* text */``."""
    return f"/* {escape_comment(text)} */"


def escape_comment(text: str) -> str:
    """Return a text that is safe inside a comment of one line."""
    shown = "".join(_shown(c) for c in " ".join(text.split()))
    # until nothing is found: three question marks are two pairs
    for ending in ("??", "*/", "/*"):
        while ending in shown:
            shown = shown.replace(ending, f"{ending[0]} {ending[1]}")
    return shown if len(shown) <= MAX_COMMENT_LENGTH else f"{shown[:MAX_COMMENT_LENGTH]} …"


def _shown(character: str) -> str:
    return character if character.isprintable() and character != "\\" else f"<U+{ord(character):04X}>"
