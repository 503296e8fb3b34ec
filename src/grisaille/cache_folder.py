"""The folder in which the package keeps what it has made, for the next time: ``GRISAILLE_CACHE`` or the platform's.

Compiled models are run when they are loaded, so the folder is private (mode 0700), and one that belongs to somebody
else, or that others may write to, is refused. Files in it that are not the user's own are never read: they may be from
a time when others could write there.
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
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows, where two processes may build the same thing at once
    fcntl = None  # type: ignore[assignment]

from grisaille.errors import CompilationError

FLAT_SUFFIX = ".flat"
"""The suffix of flattened Modelica."""
UNFINISHED_PREFIX = ".unfinished-"
"""How the names of files begin that are being written."""
LOCK = ".building-"
"""How the names of files begin that processes lock while they build; there are 256 at most, and they are empty."""
PATIENCE = 300.0
"""Seconds after which what another process builds is built here."""
_POLL = 0.02


def folder() -> Path:
    """Return the cache folder, made if missing, refused if it is not ours alone.

    Where the platform's folder cannot be written (a read-only home), one that lasts as long as the process stands in.
    """
    place = location()
    try:
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        if not os.environ.get("GRISAILLE_CACHE", "").strip():
            return passing_folder()
        raise CompilationError(
            f"The cache folder {place}, where compiled models are kept, cannot be made: {error.strerror or error}. Set "
            f"GRISAILLE_CACHE to a folder of yours, or unset it."
        ) from error
    _check_ownership(place)
    return place if os.access(place, os.W_OK | os.X_OK) else passing_folder()


def passing_folder() -> Path:
    """Return a folder that lasts as long as the process, where the cache folder has no room or cannot be written to."""
    return Path(_temporary().name)


def cache_locations() -> list[Path]:
    """Return the folders in which something may have been kept."""
    return [folder(), *([passing_folder()] if _temporary.cache_info().currsize else [])]


@lru_cache(maxsize=1)
def _temporary() -> tempfile.TemporaryDirectory[str]:
    try:
        return tempfile.TemporaryDirectory(prefix="grisaille-cache-", ignore_cleanup_errors=True)
    except OSError as error:
        raise CompilationError(
            f"Compiled models have no place: the cache folder {location()} cannot be written to, and no folder for "
            f"temporary files can be ({error.strerror or error}). Set GRISAILLE_CACHE or TMPDIR to a folder of yours."
        ) from error


def location() -> Path:
    """Return where the cache folder is, whether or not it is there."""
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


def digest(parts: Iterable[str]) -> str:
    """Return a key over texts, each with its length, so that no two lists of texts run into one another."""
    sha = hashlib.sha256()
    for part in parts:
        data = part.encode()
        sha.update(f"{len(data)}:".encode())
        sha.update(data)
    return sha.hexdigest()


def is_intact(entry: Path) -> bool:
    """Return whether a file is the user's own, and its content hashes to the last part of its name."""
    try:
        return _is_ours(entry) and hashlib.sha256(entry.read_bytes()).hexdigest()[:32] == entry.stem.rsplit("-", 1)[-1]
    except OSError:
        return False


def _is_ours(entry: Path) -> bool:
    if os.name != "posix":
        return True
    status = entry.lstat()
    is_open = status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    return stat.S_ISREG(status.st_mode) and status.st_uid == os.getuid() and not is_open


@contextmanager
def building(key: str) -> Iterator[None]:
    """Yield what other processes do not build meanwhile: they wait and find it. Not to be nested.

    A process that is killed lets go; one that stands still is waited for ``PATIENCE`` seconds.
    """
    handle = None if fcntl is None else _locked(key)
    try:
        yield
    finally:
        if handle is not None:
            os.close(handle)


def _locked(key: str) -> int | None:
    """None where folders know no locks, or patience ended."""
    try:
        handle = os.open(folder() / f"{LOCK}{key[:2]}", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError:
        return None
    end = time.monotonic() + PATIENCE
    try:
        while time.monotonic() < end:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                time.sleep(_POLL)
            else:
                return handle
    except OSError:
        pass
    except BaseException:
        os.close(handle)
        raise
    os.close(handle)
    return None


def cache_name(key: str, content: bytes, suffix: str) -> str:
    """Return the name under which a content is kept."""
    return f"{key}-{hashlib.sha256(content).hexdigest()[:32]}{suffix}"


def write(place: Path, name: str, content: bytes) -> Path:
    """Write a file under its name in one step; nothing unfinished stays where there is no room for it."""
    target = place / name
    handle, temporary = tempfile.mkstemp(prefix=UNFINISHED_PREFIX, dir=place)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        os.replace(temporary, target)
    except OSError:
        # Windows refuses to replace a library in use; then the same content is there already
        remove(Path(temporary))
        if not target.exists():
            raise
    return target


def remove(entry: Path) -> None:
    """Remove a file if that is possible."""
    with contextlib.suppress(OSError):
        entry.unlink()
