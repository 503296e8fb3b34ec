"""Built libraries, and objects that several of them are linked from, kept on disk.

A library is filed under ``<what>-<with>-<content>``: the key of everything that determines it except the compiler, the
key of the compiler, and the SHA-256 of the file itself. One file, one atomic rename, so processes may build the same
thing at the same time; a file whose content does not hash to its name is damaged and is removed; and a library whose
compiler has since gone is still found. The last use is the file's modification time; the least recently used go when
the folder outgrows its limit.

The folder is ``GRISAILLE_CACHE`` or the platform's cache folder. Loading a library runs it, so the folder is private
(mode 0700) and one that belongs to somebody else, or that others may write to, is refused.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from grisaille.compilation.compiler import OBJECT, SUFFIX
from grisaille.errors import CompilationError

LIMIT = 512 * 1024 * 1024
"""Bytes kept on disk."""

_STALE = 3600.0
"""Seconds after which an unfinished file is an abandoned one."""


@dataclass(frozen=True)
class Contents:
    """What the cache holds; ``print`` it."""

    folder: Path
    files: int
    bytes: int
    limit: int

    def __str__(self) -> str:
        used = f"{self.bytes / 1e6:.1f} of {self.limit / 1e6:.0f} MB"
        return f"{self.folder}: {self.files} compiled {'model' if self.files == 1 else 'models'}, {used}"


def inspect() -> Contents:
    """Where the cache is and how much it holds."""
    entries = list(_entries(_location()))
    libraries = sum(entry.suffix == SUFFIX for entry in entries)
    return Contents(_location(), libraries, sum(entry.stat().st_size for entry in entries), LIMIT)


def clear() -> Contents:
    """Removes every compiled library and object; returns what was there."""
    before = inspect()
    for entry in [*_entries(before.folder), *_unfinished(before.folder)]:
        _remove(entry)
    return before


def digest(parts: Iterable[str]) -> str:
    """A key over texts, each with its length, so that no two lists of texts run into one another."""
    sha = hashlib.sha256()
    for part in parts:
        data = part.encode()
        sha.update(f"{len(data)}:".encode())
        sha.update(data)
    return sha.hexdigest()


def find(what: str, made_with: str | None, suffix: str = SUFFIX) -> Path | None:
    """An intact library for the key ``what``, built by the compiler ``made_with`` (``None``: by any); or an object.

    Damaged ones are removed on the way.
    """
    pattern = f"{what[:40]}-{made_with[:16] if made_with else '*'}-*{suffix}"
    places = [folder(), *([Path(_passing_folder().name)] if _passing_folder.cache_info().currsize else [])]
    found = sorted((entry for place in places for entry in place.glob(pattern)), key=_last_use, reverse=True)
    for entry in found:
        if _is_intact(entry):
            with contextlib.suppress(OSError):
                os.utime(entry)
            return entry
        _remove(entry)
    return None


def install(what: str, made_with: str, library: bytes, limit: int | None = None, suffix: str = SUFFIX) -> Path:
    """Files a library, or an object, under its key, then makes room if need be."""
    content = hashlib.sha256(library).hexdigest()[:32]
    name = f"{what[:40]}-{made_with[:16]}-{content}{suffix}"
    place = folder()
    try:
        target = _file(place, name, library)
    except OSError as error:
        # a full disk: one that lasts as long as the process stands in, where there is room for it
        place = Path(_passing_folder().name)
        try:
            target = _file(place, name, library)
        except OSError:
            raise CompilationError(
                f"The compiled model ({len(library) / 1e3:.0f} kB) cannot be kept in {folder()}: "
                f"{error.strerror or error}; nor in {place}. Make room, or set GRISAILLE_CACHE to a folder on another "
                f"disk; GRISAILLE_COMPILER=none interprets models instead."
            ) from error
    _make_room(place, LIMIT if limit is None else limit, keep=target)
    return target


def _file(place: Path, name: str, library: bytes) -> Path:
    """Write a library under its name; nothing unfinished stays where there is no room for it."""
    target = place / name
    handle, temporary = tempfile.mkstemp(prefix=".unfinished-", dir=place)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(library)
        os.replace(temporary, target)
    except OSError:
        # Windows refuses to replace a library in use; then the same content is there already
        _remove(Path(temporary))
        if not target.exists():
            raise
    return target


def folder() -> Path:
    """The cache folder, made if missing, refused if it is not ours alone.

    Where the platform's folder cannot be written (a read-only home), one that lasts as long as the process stands in.
    """
    place = _location()
    try:
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        if not os.environ.get("GRISAILLE_CACHE", "").strip():
            return Path(_passing_folder().name)
        raise CompilationError(
            f"The cache folder {place}, where compiled models are kept, cannot be made: {error.strerror or error}. Set "
            f"GRISAILLE_CACHE to a folder of yours, or unset it."
        ) from error
    _check_ownership(place)
    return place if os.access(place, os.W_OK | os.X_OK) else Path(_passing_folder().name)


@lru_cache(maxsize=1)
def _passing_folder() -> tempfile.TemporaryDirectory[str]:
    try:
        return tempfile.TemporaryDirectory(prefix="grisaille-cache-", ignore_cleanup_errors=True)
    except OSError as error:
        raise CompilationError(
            f"Compiled models have no place: the cache folder {_location()} cannot be written to, and no folder for "
            f"temporary files can be ({error.strerror or error}). Set GRISAILLE_CACHE or TMPDIR to a folder of yours."
        ) from error


def _location() -> Path:
    chosen = os.environ.get("GRISAILLE_CACHE", "").strip()
    try:
        if chosen:
            return Path(chosen).expanduser().absolute()
        home = Path.home()
    except RuntimeError as error:
        raise CompilationError(
            f"The cache folder is not known: {error} Set GRISAILLE_CACHE to a folder of yours."
        ) from error
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or home / "AppData" / "Local") / "grisaille" / "cache"
    if sys.platform == "darwin":
        return home / "Library" / "Caches" / "grisaille"
    return Path(os.environ.get("XDG_CACHE_HOME") or home / ".cache") / "grisaille"


def _check_ownership(place: Path) -> None:
    if os.name != "posix":
        return
    status = place.stat()
    if status.st_uid != os.getuid():
        why = f"belongs to user {status.st_uid}, not to you (user {os.getuid()})"
    elif status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        why = f"may be written to by others (mode {stat.S_IMODE(status.st_mode):04o}; chmod 700 mends that)"
    else:
        return
    raise CompilationError(
        f"The cache folder {place} {why}; code from it would run as you. Set GRISAILLE_CACHE to a folder of yours."
    )


def _is_intact(entry: Path) -> bool:
    try:
        return hashlib.sha256(entry.read_bytes()).hexdigest()[:32] == entry.stem.rsplit("-", 1)[-1]
    except OSError:
        return False


def _entries(place: Path) -> Iterator[Path]:
    for suffix in (SUFFIX, OBJECT):
        yield from place.glob(f"*-*-*{suffix}")


def _unfinished(place: Path) -> Iterator[Path]:
    yield from place.glob(".unfinished-*")


def _make_room(place: Path, limit: int, keep: Path) -> None:
    for entry in _unfinished(place):
        if time.time() - _last_use(entry) > _STALE:
            _remove(entry)
    entries = sorted(_entries(place), key=_last_use)
    total = sum(_size(entry) for entry in entries)
    for entry in entries:
        if total <= limit:
            return
        if entry != keep:
            total -= _size(entry)
            _remove(entry)


def _last_use(entry: Path) -> float:
    try:
        return entry.stat().st_mtime
    except OSError:
        return 0.0


def _size(entry: Path) -> int:
    try:
        return entry.stat().st_size
    except OSError:
        return 0


def _remove(entry: Path) -> None:
    with contextlib.suppress(OSError):
        entry.unlink()
