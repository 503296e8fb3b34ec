"""What cannot be read, collected with lines, and said all at once."""

from __future__ import annotations

from bisect import bisect_right
from typing import NoReturn

from grisaille.errors import ModelError

MAX_SHOWN_REFUSALS = 12
"""Refusals that are written out; of the others the number is told."""


class Refused(Exception):
    """One construct that is not understood: where it stands (offset in the text) and what is wrong with it."""

    def __init__(self, at: int, words: str) -> None:
        super().__init__(words)
        self.at, self.words = at, words


class ModelicaSource:
    """A text and the name it goes by in messages."""

    def __init__(self, text: str, label: str) -> None:
        self.text, self.label = text, label
        self._ends = [i for i, letter in enumerate(text) if letter == "\n"]

    def line(self, at: int) -> int:
        """Return the line of an offset, counted from one."""
        return bisect_right(self._ends, at - 1) + 1 if at > 0 else 1

    def place(self, at: int) -> str:
        """Return ``"Drive.bmo, line 12"``."""
        return f"{self.label}, line {self.line(at)}"

    def line_text(self, lines: list[int]) -> str:
        """Return ``"line 3, 5"``; of many, the first and how many more."""
        distinct = sorted(set(lines))
        shown = ", ".join(map(str, distinct[:4]))
        return f"line {shown}" if len(distinct) <= 4 else f"line {shown} and {len(distinct) - 4} more"


class Refusals:
    """Everything that was refused in one text."""

    def __init__(self, source: ModelicaSource) -> None:
        self.source = source
        self._found: dict[str, list[int]] = {}

    def add(self, refused: Refused) -> None:
        """Note one; the same words in several lines are told once."""
        self._found.setdefault(refused.words, []).append(self.source.line(refused.at))

    def __bool__(self) -> bool:
        return bool(self._found)

    def check(self) -> None:
        """Raise when anything was refused."""
        if self._found:
            self.stop()

    def stop(self) -> NoReturn:
        """Raise with all that was refused so far, by line."""
        follows = "is not declared"  # because its own declaration was refused, mostly
        entries = sorted((lines[0], words.endswith(follows), words, lines) for words, lines in self._found.items())
        shown = [f"  {self.source.line_text(lines)}: {words}" for *_, words, lines in entries[:MAX_SHOWN_REFUSALS]]
        more = len(entries) - MAX_SHOWN_REFUSALS
        tail = [f"  … and {more} more"] if more > 0 else []
        raise ModelError("\n".join([f"{self.source.label} cannot be read:", *shown, *tail]))
