"""Libraries on the search path, and which of their files a model needs: found by the names that their texts use.

A library is a folder with ``package.mo`` or a file of one class. Its folder may carry the version, ``Modelica 4.1.0``;
of several the highest counts. Names are looked up as Modelica does, from the innermost package outwards, but nothing is
understood: every dotted name of a text counts, so that a few files too many are found and none too few.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from grisaille.modelica.full.conversions import Conversion, conversion, convert_text, used_versions
from grisaille.modelica.tokens import COMMENT_OR_TEXT

_IMPORT = re.compile(r"\bimport\s+(?:(\w+)\s*=\s*)?([\w.]+?)(\.\*|\.\{[^}]*\})?\s*[;\"]")
_NAME = re.compile(r"(?<![\w.'])\.?[A-Za-z_]\w*(?:\s*\.\s*[A-Za-z_]\w*)*")
_WHOLE = re.compile(r"(?:\bextends|=)\s*(\.?[A-Za-z_][\w.]*)")
_FIRST = re.compile(r"\s*(?:within\s*[\w.]*\s*;)?\s*(?:(?:encapsulated|partial|final)\s+)*[a-z]+\s+([A-Za-z_]\w*)")
_VERSION = re.compile(r"\d+")

Names = Mapping[str, "LibraryPlace"]


@dataclass(eq=False)
class LibraryPlace:
    """A file, or a folder with ``package.mo``, that holds a class of a library."""

    path: Path
    name: str
    parent: LibraryPlace | None = None
    around: dict[str, LibraryPlace] = field(default_factory=dict)
    """Of a library: all libraries of the search path."""

    @cached_property
    def is_folder(self) -> bool:
        """Return whether the class is a folder."""
        return self.path.is_dir()

    @property
    def file(self) -> Path:
        """Return the file with the text of the class."""
        return self.path / "package.mo" if self.is_folder else self.path

    @cached_property
    def inner(self) -> dict[str, LibraryPlace]:
        """Return the classes that stand in files of their own below this one."""
        return places_in(self.path, self) if self.is_folder else {}

    @property
    def relative(self) -> Path:
        """Return where the file stands in its library, the library's name first."""
        folder = Path(*[p.name for p in reversed(list(self.chain()))])
        return folder / "package.mo" if self.is_folder else folder.with_name(f"{self.name}.mo")

    @cached_property
    def text(self) -> str:
        """Return the text, with the names that the other libraries have today; letters that are no UTF-8 are
        replaced.
        """
        return convert_text(self._written, self.library.renamed) if self.library.renamed else self._written

    @cached_property
    def _written(self) -> str:
        return self.file.read_text("utf-8", errors="replace")

    @property
    def library(self) -> LibraryPlace:
        """Return the library that this place is in."""
        return list(self.chain())[-1]

    @cached_property
    def renamed(self) -> Conversion:
        """Of a library: what of others had other names when it was written."""
        return older_names(self._written, {name: place for name, place in self.around.items() if place is not self})

    def names_since(self, version: str | None) -> Conversion:
        """Of a library: what had other names in a version before, or in any where none is given."""
        return conversion(self._written, self.path, version) if self.is_folder else Conversion()

    def chain(self) -> Iterator[LibraryPlace]:
        """This place and all around it."""
        here: LibraryPlace | None = self
        while here is not None:
            yield here
            here = here.parent

    def all_inside(self) -> Iterator[LibraryPlace]:
        """This place and everything below it."""
        yield self
        for place in self.inner.values():
            yield from place.all_inside()


def places_in(folder: Path, parent: LibraryPlace | None = None) -> dict[str, LibraryPlace]:
    """Return the classes that stand in a folder, by name."""
    found: dict[str, LibraryPlace] = {}
    for path in sorted(folder.iterdir(), key=_by_version):
        if path.suffix == ".mo" and path.name != "package.mo" and path.is_file():
            found[path.stem] = LibraryPlace(path, path.stem, parent)
        elif (path / "package.mo").is_file():
            name = path.name.partition(" ")[0] if parent is None else path.name
            found[name] = LibraryPlace(path, name, parent)
    return found


def libraries_in(roots: Iterable[Path]) -> dict[str, LibraryPlace]:
    """Return the libraries of a search path, by name; the first folder that has one counts."""
    found: dict[str, LibraryPlace] = {}
    for root in roots:
        if root.is_file():
            said = _FIRST.match(COMMENT_OR_TEXT.sub(" ", root.read_text("utf-8", errors="replace")))
            own = {said[1]: LibraryPlace(root, said[1])} if said else {}
        elif (root / "package.mo").is_file():
            name = root.resolve().name.partition(" ")[0]
            own = {name: LibraryPlace(root.resolve(), name)}
        else:
            own = places_in(root)
        found = {**own, **found}
    for place in found.values():
        place.around = found
    return found


def older_names(text: str, libraries: Names, guess: bool = False) -> Conversion:
    """Return what of libraries has another name today than in the versions that a text says it uses.

    guess : where it says nothing, a library that it names may be of any version
    """
    used, found = used_versions(text), Conversion()
    for name, place in libraries.items():
        if name in used:
            found |= place.names_since(used[name])
        elif guess and re.search(rf"(?<![\w.]){name}\s*\.", text):
            found |= place.names_since(None)
    return found


def needed(text: str, libraries: Names, without: Iterable[Path] = ()) -> list[LibraryPlace]:
    """Return the files of libraries that a text needs, and those that these need."""
    search = _LibrarySearch(libraries, set(without))
    search.read(text, None)
    while search.waiting:
        place = search.waiting.pop()
        search.read(place.text, place)
    return list(search.found)


class _LibrarySearch:
    def __init__(self, libraries: Names, without: set[Path]) -> None:
        self.libraries, self.without = libraries, without
        self.found: dict[LibraryPlace, None] = {}
        self.waiting: list[LibraryPlace] = []

    def read(self, text: str, place: LibraryPlace | None) -> None:
        """Finds what the names of one text stand for."""
        bare = COMMENT_OR_TEXT.sub(lambda match: '"' if match[0].startswith('"') else " ", text)
        scopes: list[Names] = [*(around.inner for around in place.chain()), self.libraries] if place else [
            self.libraries
        ]  # fmt: skip
        aliases: dict[str, list[str]] = {}
        for alias, full, rest in _IMPORT.findall(bare):
            parts = full.strip(".").split(".")
            aliases[alias or parts[-1]] = parts
            target = self._reached(parts, [self.libraries])
            if rest and target is not None:
                scopes.insert(0, target.inner)
        plain = _IMPORT.sub(";", bare)
        for name in {re.sub(r"\s", "", found) for found in _NAME.findall(plain)}:
            self._reached_by(name, scopes, aliases)
        for name in set(_WHOLE.findall(plain)):
            target = self._reached_by(name, scopes, aliases)
            if target is not None:
                for inside in target.all_inside():
                    self._want(inside)

    def _reached_by(self, name: str, scopes: Sequence[Names], aliases: Mapping[str, list[str]]) -> LibraryPlace | None:
        parts = name.strip(".").split(".")
        if parts[0] in aliases and (found := self._reached([*aliases[parts[0]], *parts[1:]], [self.libraries])):
            return found
        return self._reached(parts, scopes)

    def _reached(self, parts: Sequence[str], scopes: Sequence[Names]) -> LibraryPlace | None:
        """Return the place of a dotted name; None where it goes on inside a file, or is no class of a library."""
        for scope in scopes:
            place = scope.get(parts[0])
            if place is None:
                continue
            self._want(place)
            for part in parts[1:]:
                inner = place.inner.get(part)
                if inner is None:
                    return None
                self._want(inner)
                place = inner
            return place
        return None

    def _want(self, place: LibraryPlace) -> None:
        for around in place.chain():
            if around in self.found:
                return
            if around.file not in self.without:
                self.found[around] = None
                self.waiting.append(around)


def _by_version(path: Path) -> tuple[str, list[int]]:
    name, _, version = path.name.partition(" ")
    return name, [int(number) for number in _VERSION.findall(version)]
