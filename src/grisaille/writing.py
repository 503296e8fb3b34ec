"""Files that are there completely or not at all: written beside their place and moved there in one step.

A disk that is full, a folder that may not be written to, a limit on sizes: each is a ``DataError`` that says what could
not be written, where and why. What was there before stays, and nothing unfinished is left behind.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path

from grisaille.errors import DataError


def write_whole(path: str | os.PathLike[str], content: bytes, what: str) -> Path:
    """Write a file, replacing one of that name in one step; return its path.

    what : begins the sentence of a refusal, such as "The fit"
    """
    target = Path(path)
    if not target.parent.is_dir():
        raise DataError(f"{what} cannot be written as {str(target)!r}: there is no folder {str(target.parent)!r}.")
    if target.is_dir():
        raise DataError(f"{what} cannot be written as {str(target)!r}: that is a folder.")
    name = None
    try:
        handle, name = tempfile.mkstemp(prefix=f".{target.name}.", suffix=".part", dir=target.parent)
        with open(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(name, 0o666 & ~_umask())
        os.replace(name, target)
    except BaseException as error:
        if name is not None:
            with contextlib.suppress(OSError):
                os.unlink(name)
        if isinstance(error, OSError):
            raise DataError(
                f"{what} cannot be written as {str(target)!r}, {_size(len(content))}: {error.strerror or error}. "
                f"Nothing was changed there; make room, or give another place."
            ) from error
        raise
    return target


def _size(count: int) -> str:
    return f"{count / 1e6:.1f} MB" if count >= 1e5 else f"{count / 1e3:.1f} kB"


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
