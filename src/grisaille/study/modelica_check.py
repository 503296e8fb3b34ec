"""A folder of Modelica files, each as far as it gets, in processes of their own: read, built, simulated, compared.

Rows are kept in a file of JSON lines as they come, so that a check that was stopped goes on where it was: a file is
done again only when it, its reference or the libraries it is read with have changed.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from functools import cache
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from grisaille.errors import DataError
from grisaille.study.modelica_file import STAGES, SUFFIXES
from grisaille.study.processes import ONE_THREAD

Row = dict[str, Any]


@dataclass(frozen=True)
class ModelicaFile:
    """One file, the reference that belongs to it, and what identifies both."""

    name: str
    file: Path
    reference: Path | None

    def digest(self, path: Sequence[Path]) -> str:
        """Of the contents; a row with the same one need not be made again."""
        made = hashlib.sha256(_versions().encode())
        for part in (self.file, self.reference):
            made.update(part.read_bytes() if part is not None else b"-")
            made.update(b"\0")
        trees = [*path, *([self.file.parent] if (self.file.parent / "package.mo").is_file() else [])]
        made.update(json.dumps([library_files(p.resolve()) for p in trees]).encode())
        return made.hexdigest()[:16]

    @property
    def section(self) -> str:
        """Return the library's part that a full name tells: ``Mechanics.Rotational``; else the folder."""
        parts = self.name.split(".")
        if "Examples" in parts:
            parts = parts[: parts.index("Examples")]
            return ".".join(parts[1:3]) or parts[0]
        return self.file.resolve().parent.name


def find_files(folder: Path, references: Path | None = None, only: str = "") -> list[ModelicaFile]:
    """Return files below a folder, ``.bmo`` and ``.mo``, packed (``.gz``) or not, with their references.

    The reference of ``NAME.bmo`` is ``NAME.csv`` (or ``NAME.csv.gz``) in ``references``, in ``folder/references`` or
    beside it.
    """
    if not folder.exists():
        raise DataError(f"There is no {str(folder)!r}.")
    try:
        pattern = re.compile(only)
    except re.error as error:
        raise DataError(f"--only {only!r} is no regular expression: {error}.") from None
    every = [folder] if folder.is_file() else sorted(p for p in folder.rglob("*") if p.is_file())
    base = folder.parent if folder.is_file() else folder
    found = []
    for file in every:
        plain = file.with_suffix("") if file.suffix == ".gz" else file
        if plain.suffix in SUFFIXES and plain.name != "package.mo" and pattern.search(plain.stem):
            places = [references] if references is not None else [base / "references", file.parent]
            beside = (place / f"{plain.stem}.csv{packed}" for place in places for packed in ("", ".gz"))
            found.append(ModelicaFile(plain.stem, file, next((p for p in beside if p.is_file()), None)))
    if not found:
        raise DataError(f"{str(folder)!r} holds no .bmo or .mo files{f' that match {only!r}' if only else ''}.")
    return found


@dataclass
class ModelicaCheck:
    """Files to check and how; ``rows`` gives what became of each, kept ones first."""

    files: Sequence[ModelicaFile]
    limit: float = 60.0
    """Seconds for one file, start of the process and compilation included."""
    jobs: int = 1
    store: Path | None = None
    path: Sequence[Path] = ()
    _children: set[subprocess.Popen[bytes]] = field(default_factory=set)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def rows(self) -> Iterator[Row]:
        """Yield one after the other, as they finish; those of a file that was checked before come at once."""
        kept = self._kept()
        waiting = []
        for file in self.files:
            row = kept.get((file.name, file.digest(self.path)))
            if row is not None and not (row.get("late") and self.limit > row["limit"]):
                yield row
            else:
                waiting.append(file)
        pool = ThreadPoolExecutor(self.jobs)
        open_rows: set[Future[Row]] = set()
        try:
            for file in waiting:
                open_rows.add(pool.submit(self._row, file))
            while open_rows:
                done, open_rows = wait(open_rows, return_when=FIRST_COMPLETED)
                for future in done:
                    row = future.result()
                    self._keep(row)
                    yield row
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
            self._end()
            pool.shutdown(wait=True)

    def _kept(self) -> dict[tuple[str, str], Row]:
        if self.store is None or not self.store.exists():
            return {}
        found = {}
        for line in self.store.read_text("utf-8").splitlines():
            try:
                row = json.loads(line)
                found[row["name"], row["digest"]] = row
            except (ValueError, KeyError, TypeError):
                continue  # cut off when the check was stopped
        return found

    def _keep(self, row: Row) -> None:
        if self.store is not None:
            with self.store.open("a", encoding="utf-8") as file:
                file.write(json.dumps(row) + "\n")

    def _row(self, file: ModelicaFile) -> Row:
        begin = time.perf_counter()
        row: Row = {
            "name": file.name, "section": file.section, "digest": file.digest(self.path), "limit": self.limit,
            "read": False, "built": False, "simulated": False, "verified": None if file.reference is None else False,
        }  # fmt: skip
        told, late, status, words = self._run(file)
        for line in told.splitlines():
            try:
                row |= json.loads(line)
            except ValueError:
                continue  # cut off by the end of its time
        whole = row["simulated"] and (file.reference is None or "signals" in row)
        if "stopped" not in row and (late or status or not whole):
            row["stopped"] = next((s for s in STAGES[:3] if not row[s]), STAGES[-1])
            row["late"] = late
            row["error"] = f"not done in {self.limit:g} s" if late else f"the process fell, status {status}: {words}"
        return row | {"seconds": round(time.perf_counter() - begin, 1)}

    def _run(self, file: ModelicaFile) -> tuple[str, bool, int, str]:
        name = file.name if file.file.name.endswith((".mo", ".mo.gz")) and "." in file.name else None
        asked = {
            "file": str(file.file), "reference": str(file.reference) if file.reference else None, "name": name,
            "path": [str(p) for p in self.path],
        }  # fmt: skip
        own = {
            **dict.fromkeys(ONE_THREAD, "1"),
            "PYTHONPATH": os.pathsep.join(os.path.abspath(p) for p in sys.path if p),
        }
        environment = {"GRISAILLE_OPTIMIZATION": "-O0", **os.environ, **own}  # each is run once
        command = [sys.executable, "-P", "-m", "grisaille.study.modelica_file", json.dumps(asked)]
        with self._lock:
            child = subprocess.Popen(
                command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment, start_new_session=True
            )
            self._children.add(child)
        late = False
        try:
            out, err = child.communicate(timeout=self.limit)
        except subprocess.TimeoutExpired:
            late = True
            _kill(child)
            out, err = child.communicate()
        finally:
            _kill(child)
            with self._lock:
                self._children.discard(child)
        return out.decode(errors="replace"), late, child.returncode, err.decode(errors="replace").strip()[-300:]

    def _end(self) -> None:
        """Ends what still runs."""
        with self._lock:
            for child in self._children:
                _kill(child)


@cache
def library_files(place: Path) -> list[tuple[str, int, int]]:
    """Return what tells whether a library has changed: its Modelica files with their sizes and times."""
    files = [place] if place.is_file() else sorted(p for p in place.rglob("*.mo") if p.is_file())
    return [(str(p), (found := p.stat()).st_size, found.st_mtime_ns) for p in files]


def _versions() -> str:
    found = [f"{name} {metadata.version(name)}" for name in ("grisaille", "rumoca") if find_spec(name) is not None]
    return ", ".join(found)


def _kill(child: subprocess.Popen[bytes]) -> None:
    """A child and the compilers it may have left."""
    if hasattr(os, "killpg"):
        try:
            os.killpg(child.pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            return
    elif child.poll() is None:
        child.kill()


def outcome_text(row: Row) -> str:
    """Return what became of one file, in words."""
    if row["verified"]:
        return "verified"
    if row.get("stopped"):
        return f"not {row['stopped']}: {' '.join(str(row['error']).split())[:150]}"
    if row["verified"] is None:
        return "simulated, no reference"
    without = f", without {', '.join(row['missing'][:3])}" if row["missing"] else ""
    worst = "" if without else f", worst {row['worst_signal']}: {row['worst_error']:.3g} of the tolerance"
    return f"simulated, {row['signals_passed']} of {row['signals']} signals agree{without}{worst}"


def summary(rows: Sequence[Row]) -> str:
    """Return a table by section of how many files got how far."""
    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(row["section"], []).append(row)
    width = max([7, *map(len, groups)])
    lines = [f"{'section':{width}}  files   read  built  simulated  verified"]
    for name, own in [*sorted(groups.items()), ("all", list(rows))]:
        known = [r for r in own if r["verified"] is not None]
        read, built, simulated = (sum(bool(r[s]) for r in own) for s in STAGES[:3])
        of = f"{sum(bool(r['verified']) for r in known)} of {len(known)}"
        lines.append(f"{name:{width}}  {len(own):5}  {read:5}  {built:5}  {simulated:9}  {of:>8}")
    seconds = sorted(r["seconds"] for r in rows)
    middle = seconds[len(seconds) // 2] if seconds else 0.0
    return "\n".join([*lines, f"{middle:.1f} s for the median file, {sum(seconds):.0f} s together"])
