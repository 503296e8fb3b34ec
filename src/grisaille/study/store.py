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
from grisaille.study.header import is_earlier, without_compiled
from grisaille.study.study_task import RunAnswer

FORMAT, WITHOUT_SECONDS, WITHOUT_DIGESTS = "grisaille study 3", "grisaille study 2", "grisaille study 1"
"""Of stores made now, and of older ones, which are still read and continued."""
FORMATS = (FORMAT, WITHOUT_SECONDS, WITHOUT_DIGESTS)
DIGEST_ENTRY = "digest"
"""The entry of a header that covers the others."""


class Store:
    """A study's file."""

    def __init__(self, path: str | Path, header: Mapping[str, str], floats: Sequence[str]) -> None:
        self.path, self.floats, self.format = Path(path), frozenset(floats), FORMAT
        is_new = not self.path.exists()
        try:
            self._open(header)
        except (sqlite3.Error, UnicodeError) as error:
            if is_new and self.path.is_file():
                self.connection.close()
                self.path.unlink()
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
        entries = [("format", FORMAT), *header.items(), (DIGEST_ENTRY, header_digest({"format": FORMAT, **header}))]
        self.connection.executemany("INSERT INTO header VALUES (?, ?)", entries)

    def _compare(self, tables: set[str], header: Mapping[str, str]) -> None:
        there = dict(self.connection.execute("SELECT key, value FROM header")) if "header" in tables else {}
        self.format = there.get("format", "")
        if self.format not in FORMATS:
            self.close()
            raise EstimationError(f"store='{self.path}' is a database, but not of a study; give another file.")
        check_header(self.path, there)
        if "method" in there:
            there["method"] = without_compiled(there["method"])
        if is_earlier(there.get("grisaille", ""), header.get("grisaille", "")):
            there["grisaille"] = header["grisaille"]
        differences = [
            describe_difference(key, there.get(key, "nothing"), header.get(key, "nothing"))
            for key in dict.fromkeys([*header, *there])
            if key not in ("format", DIGEST_ENTRY) and there.get(key) != header.get(key)
        ]
        if differences:
            self.close()
            raise EstimationError(
                f"store='{self.path}' holds another study, and mixing the two would spoil both. What differs: "
                f"{'; '.join(differences)}. Give another store=, or delete the file."
            )

    def read(self, runs: int) -> dict[int, RunAnswer]:
        """Return the finished ones among the first ``runs`` runs."""
        try:
            found = list(self.connection.execute("SELECT run, seed, seconds, row FROM runs WHERE run < ?", (runs,)))
        except (sqlite3.Error, UnicodeError) as error:
            raise EstimationError(f"store='{self.path}' cannot be read: {error}. Delete the file.") from error
        rows = {run: self._decode(run, seed, seconds, row) for run, seed, seconds, row in found}
        return {run: RunAnswer(run, int(seed), seconds, rows[run]) for run, seed, seconds, _ in found}

    def write(self, answers: Iterable[RunAnswer]) -> None:
        """Keep finished runs; each is there completely or not at all."""
        rows = [(a.run, str(a.seed), a.seconds, self._encode(a)) for a in answers]
        try:
            with self.connection:
                self.connection.executemany("INSERT OR IGNORE INTO runs VALUES (?, ?, ?, ?)", rows)
        except (sqlite3.Error, UnicodeError) as error:
            raise EstimationError(
                f"Finished runs cannot be kept in store='{self.path}': {error}. Those before are in it; make room, and "
                f"the same call continues from there."
            ) from error

    def close(self) -> None:
        self.connection.close()

    def _encode(self, answer: RunAnswer) -> str:
        """Return JSON, which has neither NaN nor infinities: null and texts stand for them; then a line with the
        digest.
        """
        plain = {k: (None if math.isnan(v) else str(v)) if _is_odd(v) else v for k, v in answer.row.items()}
        text = json.dumps(plain, ensure_ascii=False, allow_nan=False)
        if self.format == WITHOUT_DIGESTS:
            return text
        return f"{text}\n{_digest(self.format, answer.run, str(answer.seed), answer.seconds, text)}"

    def _decode(self, run: int, seed: str, seconds: float, stored: str) -> dict[str, Any]:
        row = intact_row(self.path, self.format, (run, seed, seconds, stored))
        return {k: (math.nan if v is None else float(v)) if k in self.floats else v for k, v in row.items()}


def intact_row(path: Path, form: str, found: tuple[int, str, float, str]) -> dict[str, Any]:
    """Return a stored row; raise where it is not as it was written.

    found : run, seed, seconds and the text of the row
    """
    run, seed, seconds, stored = found
    try:
        text, _, digest = (stored, "", "") if form == WITHOUT_DIGESTS else stored.rpartition("\n")
        is_whole = form == WITHOUT_DIGESTS or digest == _digest(form, run, seed, seconds, text)
        row = json.loads(text) if is_whole and isinstance(seconds, float) and isinstance(run, int) else None
    except (ValueError, TypeError, AttributeError, RecursionError):
        row = None
    if not isinstance(row, dict):
        raise EstimationError(
            f"Run {run} in store='{path}' is not as it was written: the file is damaged, or was changed. Give another "
            f"store=, or delete the file."
        )
    return row


def check_header(path: Path, header: Mapping[str, str]) -> None:
    """Raise where a header is not as it was written; older ones carry no digest."""
    content = {key: value for key, value in header.items() if key != DIGEST_ENTRY}
    if header.get("format") == FORMAT and header.get(DIGEST_ENTRY) != header_digest(content):
        raise EstimationError(
            f"The header of store='{path}' is not as it was written: the file is damaged, or was changed. Give another "
            f"store=, or delete the file."
        )


def header_digest(content: Mapping[str, str]) -> str:
    """Return SHA-256 of what a header says."""
    return hashlib.sha256(json.dumps(sorted((str(k), str(v)) for k, v in content.items())).encode()).hexdigest()


def _digest(form: str, run: int, seed: str, seconds: float, text: str) -> str:
    said = f"{run}:{seed}:{seconds!r}:{text}" if form == FORMAT else f"{run}:{seed}:{text}"
    return hashlib.sha256(said.encode("utf-8", "surrogatepass")).hexdigest()


def _is_odd(value: object) -> bool:
    return isinstance(value, float) and not math.isfinite(value)


def describe_difference(key: str, there: str, here: str) -> str:
    """Describe what differs, entry by entry where both are tables."""
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
