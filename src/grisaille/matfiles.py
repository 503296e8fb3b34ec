"""Matrices of MATLAB files: version 4, versions 6 and 7, and version 7.3, which is HDF5.

Version 4 is read here: a header of five integers, MOPT with the order of bytes, the kind of number and the kind of
matrix in its digits, then rows, columns, whether there is an imaginary part, and the length of the name; then the
numbers, column by column. Sizes are compared with what a file holds before anything of that size is made.

Reference: MAT-File Format, The MathWorks, appendix on level 4 files.
"""

from __future__ import annotations

import struct
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

Matrix = np.ndarray[Any, Any]

MAX_FILE = 2**33
"""Bytes of the largest file that is opened."""
MAX_MATRIX = 2**27
"""Entries of all matrices that are read from a file: a gibibyte."""
MAX_MATRICES = 10_000
_HDF5 = b"\x89HDF\r\n\x1a\n"
_NUMBERS = {0: "f8", 1: "f4", 2: "i4", 3: "i2", 4: "u2", 5: "u1"}
_LONGEST_NAME = 1024


class UnreadableMatFile(Exception):
    """A file that is no MATLAB file, is damaged or too large; the message is the end of "FILE …"."""


@dataclass(frozen=True)
class _Header:
    """One matrix of a version 4 file."""

    name: str
    rows: int
    columns: int
    number: str
    """Of NumPy, with the order of bytes."""
    is_text: bool
    is_full: bool
    is_complex: bool
    at: int
    """Where its numbers begin."""

    @property
    def size(self) -> int:
        return self.rows * self.columns * np.dtype(self.number).itemsize * (1 + self.is_complex)


def read_matrices(path: Path, names: Collection[str] | None = None, largest: int = MAX_FILE) -> dict[str, Matrix]:
    """Return the real matrices of a MATLAB file by name; texts come as matrices of their characters' codes.

    Those of version 4 stay in the file until their entries are asked for.

    names : which ones; without it all
    largest : bytes of the largest file that is opened
    """
    try:
        size = path.stat().st_size
        if size > largest:
            raise UnreadableMatFile(
                f"has {size / 2**20:.0f} MiB, more than the {largest / 2**20:.0f} MiB that are read"
            )
        with path.open("rb") as file:
            begin = file.read(520)
            if _HDF5 in (begin[:8], begin[512:]):
                return _hdf5(path, names)
            if _order_of(begin[:4]) is not None:
                return _version_4(file, size, names)
        if begin[:6] == b"MATLAB" and begin[126:128] in (b"IM", b"MI"):
            return _version_5(path, names)
    except OSError as error:
        raise UnreadableMatFile(f"cannot be read: {error.strerror or error}") from None
    raise UnreadableMatFile("is no MATLAB file")


def _order_of(mopt: bytes) -> str | None:
    """Return the order of bytes for which four bytes are the first number of a version 4 file."""
    for order in "<>":
        if len(mopt) == 4:
            (number,) = struct.unpack(f"{order}i", mopt)
            m, o, p, t = number // 1000, number // 100 % 10, number // 10 % 10, number % 10
            if 0 <= number <= 4052 and m == (order == ">") and o == 0 and p in _NUMBERS and t in (0, 1, 2):
                return order
    return None


# --- version 4 ---


def _version_4(file: BinaryIO, size: int, names: Collection[str] | None) -> dict[str, Matrix]:
    found: dict[str, Matrix] = {}
    for header in _headers(file, size):
        if names is not None and header.name not in names:
            continue
        if not header.is_full or header.is_complex:
            if names is not None:
                raise UnreadableMatFile(f"holds '{header.name}' as a sparse or complex matrix, which is not supported")
            continue
        shape = header.rows, header.columns
        if not header.size:
            found[header.name] = np.zeros(shape)
            continue
        found[header.name] = np.memmap(file, header.number, "r", header.at, shape, order="F")
    return found


def _headers(file: BinaryIO, size: int) -> Iterator[_Header]:
    at = 0
    for _ in range(MAX_MATRICES):
        if at == size:
            return
        header = _header(file, at)
        if header.at + header.size > size:
            raise UnreadableMatFile(
                f"is cut off or damaged: '{header.name}' ({header.rows} x {header.columns}) goes beyond its end"
            )
        yield header
        at = header.at + header.size
    raise UnreadableMatFile(f"holds more than {MAX_MATRICES} matrices")


def _header(file: BinaryIO, at: int) -> _Header:
    file.seek(at)
    raw = file.read(20)
    order = _order_of(raw[:4])
    if len(raw) < 20 or order is None:
        raise UnreadableMatFile(f"is cut off or damaged: no matrix begins at byte {at}")
    mopt, rows, columns, imaginary, length = struct.unpack(f"{order}5i", raw)
    if rows < 0 or columns < 0 or imaginary not in (0, 1) or not 0 < length <= _LONGEST_NAME:
        raise UnreadableMatFile(f"is damaged: the matrix at byte {at} has a header that cannot be")
    name = file.read(length).split(b"\0")[0].decode("utf-8", errors="replace")
    number, kind = order + _NUMBERS[mopt // 10 % 10], mopt % 10
    return _Header(name, rows, columns, number, kind == 1, kind != 2, imaginary == 1, at + 20 + length)


# --- versions 6, 7 and 7.3 ---

_NUMERIC = ("double", "single", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "logical")


def _version_5(path: Path, names: Collection[str] | None) -> dict[str, Matrix]:
    from scipy.io import loadmat, whosmat  # loaded only when such a file is read

    try:
        held = {name: (shape, kind) for name, shape, kind in whosmat(str(path))}
        wanted = [n for n, (shape, kind) in held.items() if (names is None or n in names) and len(shape) == 2]
        wanted = [n for n in wanted if held[n][1] in _NUMERIC]
        _check_entries(sum(int(np.prod([float(k) for k in held[n][0]])) for n in wanted))
        read = loadmat(str(path), variable_names=wanted) if wanted else {}
    except UnreadableMatFile:
        raise
    except Exception as error:  # whatever SciPy meets in a damaged file
        raise UnreadableMatFile(f"is damaged: {_brief(error)}") from None
    return {n: np.asarray(read[n]) for n in wanted if n in read and np.isrealobj(read[n])}


def _hdf5(path: Path, names: Collection[str] | None) -> dict[str, Matrix]:
    import h5py  # loaded only when such a file is read

    found: dict[str, Matrix] = {}
    entries = 0
    try:
        with h5py.File(path, "r") as file:
            for name in file if names is None else [n for n in names if n in file]:
                held = file[name]
                if isinstance(held, h5py.Dataset) and held.ndim == 2 and held.dtype.kind in "fiu":
                    entries += held.size
                    _check_entries(entries)
                    found[name] = np.asarray(held[()]).T
    except UnreadableMatFile:
        raise
    except Exception as error:  # whatever HDF5 meets in a damaged file
        raise UnreadableMatFile(f"is damaged: {_brief(error)}") from None
    return found


def _check_entries(count: int) -> None:
    if count > MAX_MATRIX:
        raise UnreadableMatFile(f"asks for matrices of {count} numbers, more than the {MAX_MATRIX} that are read")


def _brief(error: Exception) -> str:
    return f"{type(error).__name__}: {str(error)[:120]}".rstrip(": ")
