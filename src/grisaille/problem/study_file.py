"""Studies on disk: what was asked for, beside the store of finished runs, and what a store holds, read without running.

``monte-carlo.db`` keeps finished runs; ``monte-carlo.json`` says which folder, kind, number of runs and settings they
belong to, and is written before the first run, so that a study that was killed can be resumed by name.
"""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from grisaille.errors import DataError
from grisaille.problem.studies import STUDY_KINDS
from grisaille.study.result_rows import BOOKKEEPING_COLUMNS
from grisaille.study.store import FORMAT, FORMATS, check_header, intact_row
from grisaille.writing import write_whole

if TYPE_CHECKING:
    import pandas as pd

FILE_KIND = "grisaille study plan"


@dataclass(frozen=True)
class StudyPlan:
    """The kind, size and options of a study, as it was asked for."""

    folder: str
    """The problem folder, relative to the store."""
    kind: str
    runs: int
    seed: int
    settings: dict[str, Any] = field(default_factory=dict)
    reading: dict[str, Any] = field(default_factory=dict)
    """How data are read instead of what ``problem.toml`` says, as ``load_problem`` takes it."""

    def write(self, store: Path) -> None:
        """Beside the store, in one step."""
        text = json.dumps({"file": FILE_KIND, **asdict(self), "digest": self.digest}, indent=2) + "\n"
        write_whole(store.with_suffix(".json"), text.encode(), "The plan of the study")

    @property
    def digest(self) -> str:
        """SHA-256 of what is asked for."""
        return hashlib.sha256(json.dumps(asdict(self), sort_keys=True).encode()).hexdigest()

    def withdraw(self, store: Path) -> None:
        """Take the plan back when the study never began."""
        if not store.exists():
            store.with_suffix(".json").unlink(missing_ok=True)

    def folder_from(self, store: Path) -> Path:
        return Path(os.path.normpath(store.parent / self.folder))


def read_plan(store: Path) -> StudyPlan:
    """Return the plan beside a store."""
    path = store.with_suffix(".json")
    if not path.is_file():
        raise DataError(
            f"{store} has no plan beside it ({path.name}), so it is not known which folder it belongs to. Repeat the "
            f"command that began it: 'grisaille study run FOLDER --store {store}' continues where it stopped."
        )
    try:
        content = json.loads(path.read_text("utf-8"))
        if content.pop("file") != FILE_KIND:
            raise KeyError("file")
        digest = content.pop("digest", None)  # plans of older versions have none
        plan = StudyPlan(**content)
        if digest is not None and digest != plan.digest:
            raise ValueError("it is not as it was written")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, OSError) as error:
        raise DataError(
            f"{path} is not a study's plan ({type(error).__name__}: {error}); delete it and run again."
        ) from None
    _check_plan(path, plan)
    return plan


def _check_plan(path: Path, plan: StudyPlan) -> None:
    """Refuse a plan whose entries are not what they must be."""
    wrong = [
        name
        for name, is_right in (
            ("folder", isinstance(plan.folder, str) and "\0" not in plan.folder),
            ("kind", plan.kind in STUDY_KINDS),
            ("runs", type(plan.runs) is int and plan.runs > 0),
            ("seed", type(plan.seed) is int and plan.seed >= 0),
            ("settings", isinstance(plan.settings, dict)),
            ("reading", isinstance(plan.reading, dict)),
        )
        if not is_right
    ]
    if wrong:
        raise DataError(f"{path} is not a study's plan: '{wrong[0]}' is {getattr(plan, wrong[0])!r}.")


def find_store(target: Path) -> Path:
    """Return the store itself, or the only one in a folder."""
    if target.is_file():
        return target
    if not target.is_dir():
        raise DataError(f"There is no study {str(target)!r}. 'grisaille study run FOLDER' begins one.")
    found = sorted(target.glob("*.db"))
    if len(found) != 1:
        several = (
            f"several studies: {', '.join(p.name for p in found)}. Name one: {target / found[0].name}." if found else ""
        )
        said = several or f"no study (*.db). 'grisaille study run {target}' begins one."
        raise DataError(f"The folder {str(target)!r} holds {said}")
    return found[0]


@dataclass(frozen=True)
class StoredStudy:
    """The finished runs in a store."""

    path: Path
    header: dict[str, str]
    rows: tuple[dict[str, Any], ...]
    seconds: float

    @cached_property
    def names(self) -> list[str]:
        """Return the names of what was estimated."""
        return [c for c in self.table.columns if f"std_error({_bare(c)})" in self.table.columns]

    @cached_property
    def table(self) -> pd.DataFrame:
        import pandas as pd

        table = pd.DataFrame(list(self.rows))
        numbers = [c for c in table.columns if c not in BOOKKEEPING_COLUMNS or c in ("objective", "criterion")]
        return table.astype(dict.fromkeys(numbers, float))

    @property
    def counts(self) -> dict[str, int]:
        if not self.rows:
            return {"runs": 0, "converged": 0, "failed": 0}
        failed = int((self.table["failure"] != "").sum())
        return {"runs": len(self.table), "converged": int(self.table["converged"].sum()), "failed": failed}

    def summary(self) -> pd.DataFrame:
        """Return mean, median, spread and central 95 % of each estimate over the converged runs."""
        used = self.table[self.table["converged"].astype(bool)][self.names]
        spread = used.agg(["mean", "median", "std"]).T
        spread["2.5 %"], spread["97.5 %"] = used.quantile(0.025), used.quantile(0.975)
        return spread

    def __str__(self) -> str:
        counts = self.counts
        head = (
            f"{self.header.get('kind', 'A').replace('_', '-')} study in {self.path.name}: {counts['runs']} runs, "
            f"{counts['converged']} converged, {counts['failed']} failed, {self.seconds:.1f} s of computing"
        )
        if not counts["converged"]:
            return head
        return f"{head}\n{self.summary().to_string(float_format=lambda v: f'{v:.5g}')}"


def read_store(path: Path) -> StoredStudy:
    """Read the content of a store; nothing is executed, and the study may still be running."""
    try:
        connection = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)
        try:
            damage = connection.execute("PRAGMA quick_check(1)").fetchone()
            if damage is None or damage[0] != "ok":
                raise sqlite3.DatabaseError(f"it is damaged: {'' if damage is None else damage[0]}")
            header = dict(connection.execute("SELECT key, value FROM header"))
            found = list(connection.execute("SELECT run, seed, seconds, row FROM runs ORDER BY run"))
        finally:
            connection.close()
    except (sqlite3.Error, UnicodeError) as error:
        raise DataError(f"{str(path)!r} is not a study's file ({error}); 'grisaille study run' writes those.") from None
    if header.get("format") not in FORMATS:
        raise DataError(f"{str(path)!r} has the format {header.get('format')!r}; this version reads {FORMAT!r}.")
    check_header(path, header)
    rows = tuple(intact_row(path, header["format"], entry) for entry in found)
    return StoredStudy(path, header, rows, sum(seconds for _, _, seconds, _ in found))


def _bare(column: str) -> str:
    return column[9:-1] if column.startswith("estimate(") else column
