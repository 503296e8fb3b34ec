"""Finished runs on disk: one SQLite file, one row per run, a header that says which study it is.

Every batch of finished runs is one transaction in write-ahead mode, so a process that is killed loses the runs in
flight and nothing else; the file can be read while the study runs. Rows are JSON, exact to the last bit, never pickle:
reading a store runs no code. Runs do not depend on each other, so two processes on one store do double work at worst.
"""

from __future__ import annotations

import json
import math
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from grisaille.errors import EstimationError
from grisaille.study.task import Answer

FORMAT = "grisaille study 1"


class Store:
    """A study's file."""

    def __init__(self, path: str | Path, header: Mapping[str, str], floats: Sequence[str]) -> None:
        self.path, self.floats = Path(path), frozenset(floats)
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
        if there.get("format") != FORMAT:
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
        return {run: Answer(run, int(seed), seconds, self._decode(row)) for run, seed, seconds, row in found}

    def write(self, answers: Iterable[Answer]) -> None:
        """Keeps finished runs; each is there completely or not at all."""
        rows = [(a.run, str(a.seed), a.seconds, self._encode(a.row)) for a in answers]
        with self.connection:
            self.connection.executemany("INSERT OR IGNORE INTO runs VALUES (?, ?, ?, ?)", rows)

    def close(self) -> None:
        self.connection.close()

    def _encode(self, row: Mapping[str, Any]) -> str:
        """JSON has neither NaN nor infinities: null and texts stand for them."""
        plain = {k: (None if math.isnan(v) else str(v)) if _is_odd(v) else v for k, v in row.items()}
        return json.dumps(plain, ensure_ascii=False, allow_nan=False)

    def _decode(self, text: str) -> dict[str, Any]:
        row: dict[str, Any] = json.loads(text)
        return {k: (math.nan if v is None else float(v)) if k in self.floats else v for k, v in row.items()}


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
