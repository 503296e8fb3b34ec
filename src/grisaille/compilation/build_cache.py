"""The cache of built libraries, and of objects that several of them are linked from, on disk.

A library is filed under ``<what>-<with>-<content>``: the key of everything that determines it except the compiler, the
key of the compiler, and the SHA-256 of the file itself. One file, one atomic rename, so processes may build the same
thing at the same time; where folders can be locked the second one waits and finds it. A file whose content does not
hash to its name is damaged and is removed; a library whose compiler has since gone is still found. The last use is the
file's modification time; the least recently used go when the folder outgrows its limit.

Loading a library runs it, so the folder is private (``cache_folder``).
"""

from __future__ import annotations

import contextlib
import os
import shutil
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from grisaille.cache_folder import (
    FLAT_SUFFIX,
    LOCK,
    UNFINISHED_PREFIX,
    building as building,
    cache_locations,
    cache_name,
    digest as digest,
    folder,
    is_intact,
    location,
    passing_folder,
    remove,
    write,
)
from grisaille.compilation.compiler import LIBRARY_SUFFIX, OBJECT_SUFFIX
from grisaille.errors import CompilationError

MAX_CACHE_BYTES = 512 * 1024 * 1024
"""Bytes kept on disk."""

SOURCES_SUFFIX = ".sources"
"""How the names of folders end in which sources are kept."""

_STALE = 3600.0
"""Seconds after which an unfinished file is an abandoned one."""


@dataclass(frozen=True)
class BuildCacheContents:
    """What the cache holds; ``print`` it."""

    folder: Path
    files: int
    bytes: int
    limit: int

    def __str__(self) -> str:
        used = f"{self.bytes / 1e6:.1f} of {self.limit / 1e6:.0f} MB"
        return f"{self.folder}: {self.files} compiled {'model' if self.files == 1 else 'models'}, {used}"


def cache_contents() -> BuildCacheContents:
    """Return where the cache is and how much it holds."""
    entries = list(_entries(location()))
    libraries = sum(entry.suffix == LIBRARY_SUFFIX for entry in entries)
    return BuildCacheContents(location(), libraries, sum(map(_size, entries)), MAX_CACHE_BYTES)


def clear() -> BuildCacheContents:
    """Remove every compiled library and object, every flattened text and all sources; returns what was there."""
    before = cache_contents()
    for entry in [*_entries(before.folder), *_unfinished(before.folder), *before.folder.glob(f"{LOCK}*")]:
        _discard(entry)
    return before


def find(what: str, made_with: str | None, suffix: str = LIBRARY_SUFFIX) -> Path | None:
    """Return an intact library for the key ``what``, built by the compiler ``made_with`` (``None``: by any); or an
    object.

    Damaged ones are removed on the way.
    """
    pattern = f"{what[:40]}-{made_with[:16] if made_with else '*'}-*{suffix}"
    found = sorted((entry for place in cache_locations() for entry in place.glob(pattern)), key=_last_use, reverse=True)
    for entry in found:
        if is_intact(entry):
            with contextlib.suppress(OSError):
                os.utime(entry)
            return entry
        remove(entry)
    return None


def store_library(
    what: str, made_with: str, library: bytes, limit: int | None = None, suffix: str = LIBRARY_SUFFIX
) -> Path:
    """Store a library, or an object, under its key, then remove old ones if the cache is full."""
    name = cache_name(f"{what[:40]}-{made_with[:16]}", library, suffix)
    place = folder()
    try:
        target = write(place, name, library)
    except OSError as error:
        # a full disk: one that lasts as long as the process stands in, where there is room for it
        place = passing_folder()
        try:
            target = write(place, name, library)
        except OSError:
            raise CompilationError(
                f"The compiled model ({len(library) / 1e3:.0f} kB) cannot be kept in {folder()}: "
                f"{error.strerror or error}; nor in {place}. Make room, or set GRISAILLE_CACHE to a folder on another "
                f"disk."
            ) from error
    _make_room(place, MAX_CACHE_BYTES if limit is None else limit, keep=target)
    return target


def sources_folder(what: str) -> Path:
    """Return the folder in which the sources of a build are kept for reading."""
    return folder() / f"{what[:40]}{SOURCES_SUFFIX}"


def keep_sources(what: str, files: Mapping[str, str]) -> Path:
    """Write the sources of a build into a folder of their own; they are read by debuggers and never by us."""
    place = sources_folder(what)
    if place.is_symlink():
        raise CompilationError(f"GRISAILLE_DEBUG: {place} is a link, and sources stay in the cache folder. Remove it.")
    try:
        place.mkdir(mode=0o700, exist_ok=True)
        for name, text in files.items():
            write(place, name, text.encode())
    except OSError as error:
        raise CompilationError(
            f"GRISAILLE_DEBUG: sources cannot be kept in {place}: {error.strerror or error}. Make room, set "
            f"GRISAILLE_CACHE to a folder on another disk, or unset GRISAILLE_DEBUG."
        ) from error
    os.utime(place)
    _make_room(folder(), MAX_CACHE_BYTES, keep=place)
    return place


def _entries(place: Path) -> Iterator[Path]:
    for suffix in (LIBRARY_SUFFIX, OBJECT_SUFFIX, FLAT_SUFFIX):
        yield from place.glob(f"*-*-*{suffix}")
    yield from place.glob(f"*{SOURCES_SUFFIX}")


def _discard(entry: Path) -> None:
    """Remove a file, or a folder of sources."""
    if entry.is_symlink() or not entry.is_dir():
        remove(entry)
    else:
        shutil.rmtree(entry, ignore_errors=True)


def _unfinished(place: Path) -> Iterator[Path]:
    yield from place.glob(f"{UNFINISHED_PREFIX}*")


def _make_room(place: Path, limit: int, keep: Path) -> None:
    for entry in _unfinished(place):
        if time.time() - _last_use(entry) > _STALE:
            remove(entry)
    entries = sorted(_entries(place), key=_last_use)
    total = sum(_size(entry) for entry in entries)
    for entry in entries:
        if total <= limit:
            return
        if entry != keep:
            total -= _size(entry)
            _discard(entry)


def _last_use(entry: Path) -> float:
    try:
        return entry.stat().st_mtime
    except OSError:
        return 0.0


def _size(entry: Path) -> int:
    try:
        is_folder = entry.suffix == SOURCES_SUFFIX and entry.is_dir()
        return sum(file.stat().st_size for file in entry.iterdir()) if is_folder else entry.stat().st_size
    except OSError:
        return 0
