"""Flattened texts kept on disk, so that the same model is flattened once.

An entry is found by what was asked for and by the versions that made it, and it holds only as long as every file that
was read is what it was and every folder that was looked into has the same names in it.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from grisaille import cache_folder
from grisaille.errors import CompilationError
from grisaille.modelica.full.libraries import LibraryPlace, Names


class CachedFlattening:
    """One flattened model: where it is kept, if it is."""

    def __init__(self, asked: Sequence[str]) -> None:
        self._key = f"flat-{cache_folder.digest([_own_version(), *asked])[:40]}"

    def found(self) -> dict[str, Any] | None:
        """Return what is kept and still holds; damaged entries, and those that no longer hold, are removed."""
        with contextlib.suppress(OSError, CompilationError):
            for place in cache_folder.cache_locations():
                for path in place.glob(f"{self._key}-*{cache_folder.FLAT_SUFFIX}"):
                    kept = _read(path)
                    if kept is not None:
                        os.utime(path)
                        return kept
                    cache_folder.remove(path)
        return None

    def keep(self, made: dict[str, Any], roots: Iterable[Path], libraries: Names) -> None:
        """Keep what was made from the files that were read; without room for it, nothing is kept."""
        kept = {**made, "read": dict(_read_from(roots, libraries))}
        content = json.dumps(kept).encode()
        with contextlib.suppress(OSError, CompilationError):
            name = cache_folder.cache_name(self._key, content, cache_folder.FLAT_SUFFIX)
            cache_folder.write(cache_folder.folder(), name, content)


def _read(path: Path) -> dict[str, Any] | None:
    """Return an entry that is intact and true of the files as they are."""
    if not cache_folder.is_intact(path):
        return None
    try:
        kept: dict[str, Any] = json.loads(path.read_bytes())
        return kept if all(_state(Path(file)) == was for file, was in kept["read"].items()) else None
    except (ValueError, KeyError, AttributeError):
        return None


def _read_from(roots: Iterable[Path], libraries: Names) -> Iterator[tuple[str, str]]:
    """Yield every file that was read and every folder that was looked into, as they are."""
    for root in roots:
        yield str(root.resolve()), _state(root.resolve())
    waiting = list(libraries.values())
    while waiting:
        place: LibraryPlace = waiting.pop()
        if "_written" in vars(place):
            yield str(place.file.resolve()), _state(place.file)
        if "inner" in vars(place) and place.is_folder:
            yield str(place.path.resolve()), _state(place.path)
            waiting.extend(place.inner.values())


def _state(path: Path) -> str:
    """Return the hash of a file, or of the names in a folder; empty where there is neither."""
    try:
        content = "\n".join(sorted(os.listdir(path))).encode() if path.is_dir() else path.read_bytes()
    except OSError:
        return ""
    return hashlib.sha256(content).hexdigest()


@cache
def _own_version() -> str:
    """Return what determines how a text is written: the files of this folder."""
    return cache_folder.digest(p.read_text("utf-8") for p in sorted(Path(__file__).parent.glob("*.py")))
