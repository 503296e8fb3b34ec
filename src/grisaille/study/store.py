"""Finished runs on disk: one SQLite file, one row per run, a header that says which study it is.

Every batch of finished runs is one transaction in write-ahead mode, so a process that is killed loses the runs in
flight and nothing else; the file can be read while the study runs. Rows are JSON, exact to the last bit, never pickle:
reading a store runs no code. Runs do not depend on each other, so two processes on one store do double work at worst.
Every row carries a digest of itself, its run and its seed: one that was changed in the file is refused, not read.
"""

from __future__ import annotations

import hashlib
import json
import math
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from grisaille.errors import EstimationError
from grisaille.study.task import Answer

FORMAT, WITHOUT_DIGESTS = "grisaille study 2", "grisaille study 1"
"""Of stores made now, and of older ones, which are still read and continued."""


class Store:
    """A study's file."""

    def __init__(self, path: str | Path, header: Mapping[str, str], floats: Sequence[str]) -> None:
        self.path, self.floats, self.has_digests = Path(path), frozenset(floats), True
        try:
            self._open(header)
        except sqlite3.DatabaseError as error:
            raise EstimationError(f"store='{self.path}' cannot be used as a study's file: {error}.") from error

    def _open(self, header: Mapping[str, str]) -> None:
        self.connection = sqlite3.connect(self.path, timeout=60.0)
        self.connection.execute("PRAGMA journal_mode=WAL")
        self.connection.execute("PRAGMA synchronous=NORMAL")
        with self.connection:
            self.connection.execute("BEGIN IMMEDIATE")
            tables = {name for (name,) in self.connection.execute("SELECT name FROM sqlite_master WHERE type='table'")}
            if not tables:
                self._create(header)
        if tables:
            self._compare(tables, header)

    def _create(self, header: Mapping[str, str]) -> None:
        self.connection.execute("CREATE TABLE header (key TEXT PRIMARY KEY, value TEXT NOT NULL)")
        self.connection.execute(
            "CREATE TABLE runs (run INTEGER PRIMARY KEY, seed TEXT NOT NULL, seconds REAL NOT NULL, row TEXT NOT NULL)"
        )
        entries = [("format", FORMAT), *header.items()]
        self.connection.executemany("INSERT INTO header VALUES (?, ?)", entries)

    def _compare(self, tables: set[str], header: Mapping[str, str]) -> None:
        there = dict(self.connection.execute("SELECT key, value FROM header")) if "header" in tables else {}
        self.has_digests = there.get("format") == FORMAT
        if there.get("format") not in (FORMAT, WITHOUT_DIGESTS):
            self.close()
            raise EstimationError(f"store='{self.path}' is a database, but not of a study; give another file.")
        differences = [
            describe_difference(key, there.get(key, "nothing"), header.get(key, "nothing"))
            for key in dict.fromkeys([*header, *there])
            if key != "format" and there.get(key) != header.get(key)
        ]
        if differences:
            self.close()
            raise EstimationError(
                f"store='{self.path}' holds another study, and mixing the two would spoil both. What differs: "
                f"{'; '.join(differences)}. Give another store=, or delete the file."
            )

    def read(self, runs: int) -> dict[int, Answer]:
        """The finished ones among the first ``runs`` runs."""
        found = self.connection.execute("SELECT run, seed, seconds, row FROM runs WHERE run < ?", (runs,))
        return {run: Answer(run, int(seed), seconds, self._decode(run, seed, row)) for run, seed, seconds, row in found}

    def write(self, answers: Iterable[Answer]) -> None:
        """Keeps finished runs; each is there completely or not at all."""
        rows = [(a.run, str(a.seed), a.seconds, self._encode(a)) for a in answers]
        try:
            with self.connection:
                self.connection.executemany("INSERT OR IGNORE INTO runs VALUES (?, ?, ?, ?)", rows)
        except sqlite3.DatabaseError as error:
            raise EstimationError(
                f"Finished runs cannot be kept in store='{self.path}': {error}. Those before are in it; make room, and "
                f"the same call goes on from there."
            ) from error

    def close(self) -> None:
        self.connection.close()

    def _encode(self, answer: Answer) -> str:
        """JSON, which has neither NaN nor infinities: null and texts stand for them; then a line with the digest."""
        plain = {k: (None if math.isnan(v) else str(v)) if _is_odd(v) else v for k, v in answer.row.items()}
        text = json.dumps(plain, ensure_ascii=False, allow_nan=False)
        return f"{text}\n{_digest(answer.run, str(answer.seed), text)}" if self.has_digests else text

    def _decode(self, run: int, seed: str, stored: str) -> dict[str, Any]:
        row: dict[str, Any] = json.loads(intact_row(self.path, run, seed, stored, self.has_digests))
        return {k: (math.nan if v is None else float(v)) if k in self.floats else v for k, v in row.items()}


def intact_row(path: Path, run: int, seed: str, stored: str, has_digests: bool) -> str:
    """Return the JSON of a stored row; raise where it is not as it was written."""
    if not has_digests:
        return stored
    text, _, digest = stored.rpartition("\n")
    if digest != _digest(run, seed, text):
        raise EstimationError(
            f"Run {run} in store='{path}' is not as it was written: the file is damaged, or was changed. Give another "
            f"store=, or delete the file."
        )
    return text


def _digest(run: int, seed: str, text: str) -> str:
    return hashlib.sha256(f"{run}:{seed}:{text}".encode()).hexdigest()


def _is_odd(value: Any) -> bool:
    return isinstance(value, float) and not math.isfinite(value)


def describe_difference(key: str, there: str, here: str) -> str:
    """What differs, entry by entry where both are tables."""
    try:
        a, b = json.loads(there), json.loads(here)
    except ValueError:
        a = b = None
    if isinstance(a, dict) and isinstance(b, dict):
        parts = [f"{n} ({a.get(n, 'nothing')} there, {b.get(n, 'nothing')} here)" for n in dict.fromkeys([*a, *b])
                 if a.get(n) != b.get(n)]  # fmt: skip
        return f"{key}: {', '.join(parts[:6])}"
    return f"{key} ({_short(there)} there, {_short(here)} here)"


def _short(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:57]}…"
