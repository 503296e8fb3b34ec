"""Files and folders that are there completely or not at all: written beside their place and moved there in one step.

A disk that is full, a folder that may not be written to, a limit on sizes: each is a ``DataError`` that says what could
not be written, where and why. What was there before stays, and nothing unfinished is left behind.
"""

from __future__ import annotations

import contextlib
import io
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from grisaille.errors import DataError

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

DEVICE_FOLDER = Path("/dev")


def write_whole(path: str | os.PathLike[str], content: bytes, what: str) -> Path:
    """Write a file, replacing one of that name in one step; return its path.

    what : begins the sentence of a refusal, such as "The fit"
    """
    target = Path(path)
    if not target.parent.is_dir():
        raise DataError(f"{what} cannot be written as {str(target)!r}: there is no folder {str(target.parent)!r}.")
    if target.is_dir():
        raise DataError(f"{what} cannot be written as {str(target)!r}: that is a folder.")
    if target.exists() and (target.is_fifo() or target.absolute().parent == DEVICE_FOLDER):
        target.write_bytes(content)  # --output /dev/stdout
        return target
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


def write_text(path: str | os.PathLike[str], text: str, what: str) -> Path:
    """Write a text file likewise."""
    return write_whole(path, text.encode("utf-8"), what)


def write_table(path: str | os.PathLike[str], table: pd.DataFrame, what: str) -> Path:
    """Write a data frame likewise, with commas between cells."""
    return write_text(path, table.to_csv(), what)


def write_figure(path: str | os.PathLike[str], figure: Figure, what: str, **options: Any) -> Path:
    """Write a picture likewise, in the format that the ending of its name tells."""
    made = io.BytesIO()
    figure.savefig(made, format=Path(path).suffix.lstrip(".") or None, **options)
    return write_whole(path, made.getvalue(), what)


@contextmanager
def whole_folder(path: str | os.PathLike[str], what: str) -> Iterator[Path]:
    """Yield a folder to be filled, whose content is moved to its place at the end: a folder that is new, or empty.

    Where the filling fails nothing is left behind.
    """
    target = Path(path).absolute()
    is_new, made = not target.exists(), None
    try:
        made = Path(
            tempfile.mkdtemp(prefix=f".{target.name}.", suffix=".part", dir=target.parent if is_new else target)
        )
        yield made
        if is_new:
            made.chmod(0o777 & ~_umask())
            made.replace(target)
        else:
            for entry in list(made.iterdir()):
                entry.replace(target / entry.name)
            made.rmdir()
    except BaseException as error:
        if made is not None:
            shutil.rmtree(made, ignore_errors=True)
        if isinstance(error, OSError):
            raise DataError(
                f"{what} cannot be written as {str(path)!r}: {error.strerror or error}. Nothing was changed there; "
                f"make room, or give another place."
            ) from error
        raise


def _size(count: int) -> str:
    return f"{count / 1e6:.1f} MB" if count >= 1e5 else f"{count / 1e3:.1f} kB"


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
