"""Files changed at random: single bytes, blocks, numbers and words, and values inside their formats."""

from __future__ import annotations

import contextlib
import random
import re
import sqlite3
from pathlib import Path
from typing import Any

NUMBER = re.compile(rb"(?<![\w.])-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?")
WORD = re.compile(rb"[A-Za-z_]\w*|\d+(?:\.\d+)?|\S")
NUMBERS = (
    b"0", b"-1", b"1e999", b"-1e999", b"nan", b"inf", b"1e-320", b"99999999999999999999", b"1000000000", b"2.5", b"1_0",
    b"0x10", b"1e9", b"-0.0", b"9" * 400,
)  # fmt: skip
TEXTS = (
    b'"../outside.txt"', b'"/etc/hostname"', b'"~/x"', b'"\\u0000"', b'""', b"[]", b"{}", b"true", b"[[[[[]]]]]",
    b"2024-01-01", b'"*"', b'"a" + "a"', b"{i for i in 1:100000}", b"fill(0.0, 100000)", b'"\xff"',
    b"1979-05-27T07:32:00", b"'''", b'"""',
)  # fmt: skip
HOSTILE: tuple[Any, ...] = (
    None, "", "x" * 10_000, -1, 0, 1e308, float("nan"), 2**70, b"\x00\xff", "null", "[]", "{}", "[" * 2000,
    '{"a": NaN}',
    "../outside", 1.5, "🙂", "\x00",
)  # fmt: skip


def changed(data: bytes, rng: random.Random, *, is_text: bool) -> bytes:
    """Return the bytes with one to three changes."""
    ways = [_flipped, _overwritten, _cut, _doubled, _inserted, _swapped]
    ways += [_renumbered, _renumbered, _replaced, _word_gone, _word_twice, _moved] if is_text else [_renumbered]
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        data = rng.choice(ways)(data, rng) or b"\n"
    return data


def _flipped(data: bytes, rng: random.Random) -> bytes:
    at = rng.randrange(len(data))
    return data[:at] + bytes([data[at] ^ (1 << rng.randrange(8))]) + data[at + 1 :]


def _overwritten(data: bytes, rng: random.Random) -> bytes:
    at, length = rng.randrange(len(data)), rng.choice((1, 4, 8, 64))
    filling = rng.choice((b"\x00", b"\xff", b"A", b"9"))
    return data[:at] + filling * min(length, len(data) - at) + data[at + length :]


def _cut(data: bytes, rng: random.Random) -> bytes:
    at = rng.randrange(len(data))
    return data[:at] if rng.random() < 0.5 else data[:at] + data[at + rng.choice((1, 2, 16, 512)) :]


def _doubled(data: bytes, rng: random.Random) -> bytes:
    at, length = rng.randrange(len(data)), rng.choice((1, 8, 64, 1024))
    return data[:at] + data[at : at + length] * 2 + data[at + length :]


def _inserted(data: bytes, rng: random.Random) -> bytes:
    at = rng.randrange(len(data))
    return data[:at] + bytes(rng.randrange(256) for _ in range(rng.choice((1, 3, 17)))) + data[at:]


def _swapped(data: bytes, rng: random.Random) -> bytes:
    a, b = sorted((rng.randrange(len(data)), rng.randrange(len(data))))
    length = min(rng.choice((1, 8, 64)), b - a)
    return data[:a] + data[b : b + length] + data[a + length : b] + data[a : a + length] + data[b + length :]


def _at_match(data: bytes, rng: random.Random, pattern: re.Pattern[bytes], make: Any) -> bytes:
    found = list(pattern.finditer(data))
    if not found:
        return data
    chosen = rng.choice(found)
    return data[: chosen.start()] + make(chosen.group()) + data[chosen.end() :]


def _renumbered(data: bytes, rng: random.Random) -> bytes:
    return _at_match(data, rng, NUMBER, lambda _: rng.choice(NUMBERS))


def _replaced(data: bytes, rng: random.Random) -> bytes:
    return _at_match(data, rng, WORD, lambda _: rng.choice(TEXTS))


def _word_gone(data: bytes, rng: random.Random) -> bytes:
    return _at_match(data, rng, WORD, lambda _: b"")


def _word_twice(data: bytes, rng: random.Random) -> bytes:
    return _at_match(data, rng, WORD, lambda word: word + b" " + word)


def _moved(data: bytes, rng: random.Random) -> bytes:
    lines = data.split(b"\n")
    line = lines.pop(rng.randrange(len(lines)))
    lines.insert(rng.randrange(len(lines) + 1), line)
    return b"\n".join(lines)


def change_database(path: Path, rng: random.Random) -> None:
    """Put another value into one cell of an SQLite file, drop a row, or a table."""
    connection = sqlite3.connect(path)
    with connection:
        table = rng.choice(("header", "runs"))
        columns = {"header": ("key", "value"), "runs": ("run", "seed", "seconds", "row")}[table]
        way = rng.random()
        if way < 0.1:
            connection.execute(f"DROP TABLE {table}")
        elif way < 0.2:
            connection.execute(f"DELETE FROM {table} WHERE rowid = (SELECT min(rowid) FROM {table})")
        else:
            column = rng.choice(columns)
            old = connection.execute(f"SELECT {column} FROM {table} LIMIT 1 OFFSET ?", (rng.randrange(3),)).fetchone()
            new = rng.choice(HOSTILE)
            if isinstance(new, int) and not -(2**63) <= new < 2**63:
                new = str(new)
            if old is not None and isinstance(old[0], str) and rng.random() < 0.5:
                new = changed(old[0].encode(), rng, is_text=True).decode("utf-8", "replace")
            if old is not None:
                with contextlib.suppress(sqlite3.Error):  # a value that the table itself refuses
                    connection.execute(f"UPDATE {table} SET {column} = ? WHERE {column} = ?", (new, old[0]))
    connection.close()


def change_netcdf(path: Path, rng: random.Random) -> None:
    """Put another value into one array or attribute of a netCDF file, or drop it."""
    import h5py
    import numpy as np

    with h5py.File(path, "r+") as file:
        places: list[Any] = [file]
        file.visititems(lambda _, node: places.append(node))
        node = rng.choice(places)
        names = list(node.attrs)
        if names and rng.random() < 0.4:
            name = rng.choice(names)
            _change_attribute(node, name, rng)
            return
        arrays = [p for p in places if isinstance(p, h5py.Dataset)]
        node = rng.choice(arrays)
        if rng.random() < 0.1:
            del file[node.name]
            return
        values = node[()]
        if isinstance(values, bytes | str):
            raw = values if isinstance(values, bytes) else values.encode()
            node[()] = changed(raw, rng, is_text=True).decode("utf-8", "replace").replace("\x00", "")
        elif isinstance(values, np.ndarray) and values.size and values.dtype.kind in "fiu":
            flat = values.reshape(-1).copy()
            flat[rng.randrange(flat.size)] = rng.choice((0, -1, 7)) if values.dtype.kind != "f" else rng.choice(
                (0.0, -1.0, np.nan, np.inf, 1e300, float(flat[0]) + 1e-9, 3.25)
            )  # fmt: skip
            node[...] = flat.reshape(values.shape)


def _change_attribute(node: Any, name: str, rng: random.Random) -> None:
    if rng.random() < 0.2:
        del node.attrs[name]
        return
    value = node.attrs[name]
    if isinstance(value, str):
        node.attrs[name] = changed(value.encode() or b"x", rng, is_text=True).decode("utf-8", "replace").replace(
            "\x00", ""
        )  # fmt: skip
    elif name not in ("DIMENSION_LIST", "REFERENCE_LIST", "CLASS", "NAME"):
        try:
            node.attrs[name] = rng.choice((0, -1, 3.5, "x"))
        except (TypeError, ValueError):
            del node.attrs[name]
