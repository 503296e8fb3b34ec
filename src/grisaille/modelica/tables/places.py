"""Which files a text may name, and where they are: those beside it, in its package and in the folders of libraries.

A name is a path, relative to the folder of the text, or ``modelica://Library/Resources/…``. Links are followed before
it is asked whether a file lies inside, so that none leads out.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

from grisaille.modelica.limits import Unfit

_URI = re.compile(r"modelica://([^/]+)/?(.*)", re.DOTALL | re.IGNORECASE)
_FILE = re.compile(r"file://(?:localhost)?(/.*)", re.DOTALL | re.IGNORECASE)


@dataclass(frozen=True)
class ResourceFolders:
    """Folders whose files may be read."""

    folder: Path | None = None
    """Of the text; None where it is given as a text."""
    roots: tuple[Path, ...] = ()
    """Packages and folders of libraries."""

    def find(self, name: str) -> Path:
        """Return the file that is meant; ``Unfit`` where there is none, or where it may not be opened."""
        if "\0" in name or not name.strip():
            raise Unfit(f"{name!r} names no file")
        for candidate in self._candidates(name):
            try:
                real = Path(os.path.realpath(candidate))
                if self._is_inside(real) and real.is_file():
                    return real
            except (OSError, ValueError):
                continue
        raise Unfit(
            f"the file {name!r} is not read: there is none of this name in {self._told()}, and elsewhere "
            "files are never opened; put it there, or give its folder in path=[…]"
        )

    def _candidates(self, name: str) -> Iterator[Path]:
        uri, local = _URI.fullmatch(name), _FILE.fullmatch(name)
        if uri:
            yield from self._resources(uri[1].split("."), unquote(uri[2]))
            return
        path = Path(unquote(local[1]) if local else name)
        yield from [path] if path.is_absolute() else [folder / path for folder in self._folders()]

    def _resources(self, classes: Sequence[str], rest: str) -> Iterator[Path]:
        """Yield ``modelica://Library.Part/Resources/a.txt``: inside the library's folder, below its parts."""
        for root in self._folders():
            for library in (root, *sorted(root.glob("*"))):
                if re.fullmatch(rf"{re.escape(classes[0])}( .*)?", library.name) and library.is_dir():
                    yield library.joinpath(*classes[1:], rest)
                    yield library / rest
            if (root / f"{classes[0]}.mo").is_file():  # a library of one file has its resources beside it
                yield root / rest

    def _folders(self) -> list[Path]:
        return [*([self.folder] if self.folder is not None else []), *self.roots]

    def _is_inside(self, real: Path) -> bool:
        return any(real.is_relative_to(os.path.realpath(folder)) for folder in self._folders())

    def _told(self) -> str:
        found = ", ".join(str(folder) for folder in self._folders()[:4])
        return f"the folders {found}" if found else "any folder, as none was given"


_current: ContextVar[ResourceFolders] = ContextVar("places", default=ResourceFolders())  # noqa: B039 - it is frozen


@contextmanager
def files_of(places: ResourceFolders) -> Iterator[None]:
    """Let tables be read from these folders, and no others."""
    token = _current.set(places)
    try:
        yield
    finally:
        _current.reset(token)


def find_file(name: str) -> Path:
    """Return the file that a text names."""
    return _current.get().find(name)
