"""Findings in a problem folder: errors and remarks, each with its place."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Literal

from grisaille.errors import DataError, GrisailleError
from grisaille.problem.document import Document, Place, show_place

VERBS = frozenset("is are has holds lacks begins belongs".split())
"""First words of messages that read on from the place."""


@dataclass(frozen=True)
class FolderFinding:
    """One mistake (``error``) or remark (``note``)."""

    severity: Literal["error", "note"]
    file: str
    line: int | None
    place: str
    """The way into ``problem.toml``, such as ``experiments[1].inputs``; empty elsewhere."""
    message: str

    def __str__(self) -> str:
        where = self.file if self.line is None else f"{self.file}:{self.line}"
        if not self.place:
            return f"{where}: {self.message}"
        link = " " if self.message.split(" ")[0] in VERBS else ": "
        return f"{where}: {self.place}{link}{self.message}"


@dataclass
class Findings:
    """All that was found, in the order of the check; ``print`` it."""

    document: Document | None = None
    file: str = "problem.toml"
    items: list[FolderFinding] = field(default_factory=list)

    def error(self, place: Place, message: str) -> None:
        self._add("error", place, message)

    def note(self, place: Place, message: str) -> None:
        self._add("note", place, message)

    def elsewhere(self, severity: Literal["error", "note"], file: str, line: int | None, message: str) -> None:
        """Something in another file than ``problem.toml``."""
        self.items.append(FolderFinding(severity, file, line, "", message))

    def _add(self, severity: Literal["error", "note"], place: Place, message: str) -> None:
        line = self.document.line(place) if self.document else None
        self.items.append(FolderFinding(severity, self.file, line, show_place(place), message))

    @contextmanager
    def catching(self, place: Place) -> Iterator[None]:
        """Turn errors of the package that are raised inside into findings."""
        try:
            yield
        except GrisailleError as error:
            self.error(place, str(error))

    @property
    def errors(self) -> list[FolderFinding]:
        return [f for f in self.items if f.severity == "error"]

    @property
    def notes(self) -> list[FolderFinding]:
        return [f for f in self.items if f.severity == "note"]

    def has_error_in(self, place: Place) -> bool:
        """Return whether something at a place or inside it is wrong."""
        shown = show_place(place)
        return any(f.place == shown or f.place.startswith((f"{shown}.", f"{shown}[")) for f in self.errors)

    def refuse(self, folder: str) -> None:
        """Raise all mistakes as one message; nothing without any."""
        if self.errors:
            count = "1 mistake" if len(self.errors) == 1 else f"{len(self.errors)} mistakes"
            raise DataError(f"{folder}: {count}.\n{listed(self.errors)}")

    def __str__(self) -> str:
        return listed(self.items) if self.items else "no findings"


def listed(findings: Iterable[FolderFinding]) -> str:
    """Return one line each."""
    return "\n".join(f"  {f}" if f.severity == "error" else f"  {f} (note)" for f in findings)
