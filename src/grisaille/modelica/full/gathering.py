"""Flat files of a package that is a tree of folders: read with the functions, records and types they use, as they are.

Only what has neither inheritance nor connections nor components that are models is gathered; everything else is for the
flattener.
"""

from __future__ import annotations

import re
from pathlib import Path

from grisaille.modelica import tree
from grisaille.modelica.full.libraries import LibraryPlace, needed
from grisaille.modelica.full.packages import is_flat, package_of
from grisaille.modelica.parsing import parse
from grisaille.modelica.refusals import ModelicaSource, Refused

_WITHIN = re.compile(r"^\s*within\b[^;]*;")
_PLAIN = ("function", "record", "type")


class GatheredSource(ModelicaSource):
    """Texts one after the other, with places told as those of their files."""

    def __init__(self, texts: list[tuple[str, str]]) -> None:
        super().__init__("\n".join(text for _, text in texts), texts[0][0])
        self._first: list[tuple[int, str]] = []
        line = 1
        for label, text in texts:
            self._first.append((line, label))
            line += text.count("\n") + 1

    def place(self, at: int) -> str:
        return self._told(self.line(at), self.label)

    def line_text(self, lines: list[int]) -> str:
        shown = [self._told(line, "") for line in sorted(set(lines))]
        return ", ".join(shown[:4]) + (f" and {len(shown) - 4} more" if len(shown) > 4 else "")

    def _told(self, line: int, own: str) -> str:
        first, label = [known for known in self._first if known[0] <= line][-1]
        label = own if label == self.label else label
        return f"{label}, line {line - first + 1}" if label else f"line {line - first + 1}"


def gather_classes(text: str, file: Path | None) -> GatheredSource | None:
    """Return the text with what it uses from other files of its package; None where that is not all flat, or not
    unique.
    """
    package = package_of(file)
    if package is None or file is None or not is_flat(text):
        return None
    made = _plain_classes(text)
    if len(made) != 1:
        return None
    inside_of = file.resolve().parent.relative_to(package.parent)
    root = LibraryPlace(package, package.name)
    places = needed(
        f"model Gathering extends {'.'.join(inside_of.parts)}.{made[0].name}; end Gathering;", {root.name: root}
    )
    texts, names = [(file.name, text)], {made[0].name}
    for place in places:
        if place.is_folder or place.path.resolve() == file.resolve():
            continue
        inside = _plain_classes(place.text)
        if any(c.kind not in _PLAIN and "ExternalObject" not in c.extends for c in inside) or not inside:
            continue  # a file too many, or one that is missed when the text is read
        if not names.isdisjoint(c.name for c in inside):
            return None
        names |= {c.name for c in inside}
        texts.append((place.relative.as_posix(), _WITHIN.sub(lambda m: "\n" * m[0].count("\n"), place.text, count=1)))
    return GatheredSource(texts)


def _plain_classes(text: str) -> list[tree.Class]:
    try:
        return parse(text)
    except Refused:
        return []
