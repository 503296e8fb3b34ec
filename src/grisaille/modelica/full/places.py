"""Places of a flattened text, told as those of the texts that it was made of."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from grisaille.modelica.full.flat_text import FlatText, TextOrigin
from grisaille.modelica.refusals import ModelicaSource


@dataclass(frozen=True)
class Lines:
    """Where the lines of one file end, in bytes."""

    label: str
    """How the file is called in messages; empty for the one that the user gave."""
    ends: tuple[int, ...]

    def line(self, at: int) -> int:
        """Return the line of an offset, counted from one."""
        return sum(end < at for end in self.ends) + 1


def lines_of(text: str, label: str) -> Lines:
    """Return ends of the lines of a text."""
    return Lines(label, tuple(m.start() for m in re.finditer(b"\n", text.encode())))


class FlatSource(ModelicaSource):
    """A flattened text whose places are told as those of the text that the user wrote, or of a library's file."""

    def __init__(self, text: str, label: str, origins: Sequence[TextOrigin], files: Mapping[int, Lines]) -> None:
        super().__init__(text, label)
        self.origins, self.files = origins, files

    def line_text(self, lines: list[int]) -> str:
        found: dict[str, None] = {}
        for line in sorted(set(lines)):
            found[self._told(line)] = None
        shown = list(found)
        return ", ".join(shown[:4]) + (f" and {len(shown) - 4} more" if len(shown) > 4 else "")

    def place(self, at: int) -> str:
        return f"{self.label}, {self._told(self.line(at))}"

    def _told(self, line: int) -> str:
        origin = self.origins[line - 1] if 0 < line <= len(self.origins) else TextOrigin()
        file = self.files.get(origin.file) if origin.file is not None else None
        if file is None:
            return f"'{origin.component}'" if origin.component else f"line {line} of the flat model"
        if not file.label:
            return f"line {file.line(origin.start)}"
        where = f"{file.label}, line {file.line(origin.start)}"
        return f"'{origin.component}' ({where})" if origin.component else where

    def as_dict(self) -> dict[str, Any]:
        """Return the text and its places, for a file."""
        used = {origin.file for origin in self.origins}
        return {
            "text": self.text,
            "origins": [[o.file, o.start, o.component] for o in self.origins],
            "files": [[n, f.label, list(f.ends)] for n, f in self.files.items() if n in used],
        }

    @classmethod
    def from_dict(cls, kept: Mapping[str, Any], label: str) -> FlatSource:
        """Return the same from what a file holds."""
        origins = [TextOrigin(file, int(start), str(component)) for file, start, component in kept["origins"]]
        files = {int(number): Lines(str(name), tuple(ends)) for number, name, ends in kept["files"]}
        return cls(str(kept["text"]), label, origins, files)


def source_of(made: FlatText, label: str, files: Iterable[tuple[int, Lines]]) -> FlatSource:
    """Return the places of a text that was just made."""
    return FlatSource(made.text, label, made.origins, dict(files))
