"""Results that OpenModelica and Dymola write: MATLAB files of trajectories, and CSV.

A MATLAB result holds six matrices. ``Aclass`` names the format (``Atrajectory``, 1.1, ``binTrans`` or ``binNormal``);
``name`` and ``description`` hold a text for each variable; ``dataInfo`` says in which of ``data_1`` (parameters, at the
first and last instant) and ``data_2`` (variables over time) a variable stands and in which row, negative where it is
the negative of what stands there: many variables share one row. In ``binNormal`` the last five are transposed. Units
stand at the end of descriptions, ``Angle [rad|deg]``, the one of the numbers first.

Of rows at one instant, the two sides of an event, the last one counts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from grisaille.errors import DataError
from grisaille.experiment.frames import WantedColumns, make_experiments
from grisaille.experiment.record_table import RecordTable
from grisaille.experiment.rows import RowNames
from grisaille.experiment.text_files import read_table
from grisaille.matfiles import UnreadableMatFile, read_matrices

if TYPE_CHECKING:
    from grisaille.experiment.experiment import Experiment

MAX_LETTERS = 2**26
"""Of all names of a file, and of all descriptions."""
_NEEDED = ("Aclass", "name", "dataInfo", "data_1", "data_2")
_UNIT = re.compile(r"\[([^\[\]]*)\]\s*$")
_TIMES = ("time", "Time")


def read_from_results(
    cls: type[Experiment],
    path: str | Path,
    inputs: Any,
    outputs: Any,
    constants: Any,
    name: str | None,
    unit: str | None,
    options: Mapping[str, Any],
) -> Experiment:
    """Return an experiment from a file of results."""
    table, time = read_results(path)
    name = table.label if name is None else name
    given = dict(options)
    if "start" in given:
        given["start"] = start_values(table, given["start"])
    try:
        wanted = WantedColumns(time, inputs, outputs, constants)
        made = make_experiments(cls, table, wanted, given, name=name, unit=unit)
    except UnreadableMatFile as error:
        raise DataError(f"{table.source} {error}.") from None
    return made  # type: ignore[no-any-return]


def read_results(path: str | Path) -> tuple[RecordTable, str]:
    """Return the table of a file of results, and the name of its column of times."""
    if not isinstance(path, str | PathLike):
        raise DataError(f"path is {path!r}; give the name of a file of results.")
    file = Path(path)
    try:
        if file.is_dir():
            raise DataError(f"{str(file)!r} is a folder; give the name of a file.")
        if not file.exists():
            raise DataError(f"There is no file {str(file)!r} (looked in {file.absolute().parent}).")
    except (OSError, ValueError) as error:
        raise DataError(f"{str(file)!r} cannot be a file: {error}.") from None
    if file.suffix.lower() == ".csv":
        return _from_csv(file)
    try:
        return _from_mat(file)
    except UnreadableMatFile as error:
        raise DataError(f"{file.name} {error}. A file of results is one of OpenModelica or Dymola, or CSV.") from None


def start_values(table: RecordTable, start: Any) -> Any:
    """Return ``start=`` with names of variables as their values at the first instant."""
    if not isinstance(start, Mapping):
        return start
    return {n: float(table.numbers(v, f"start of '{n}'")[0]) if isinstance(v, str) else v for n, v in start.items()}


# --- MATLAB ---


def _from_mat(file: Path) -> tuple[RecordTable, str]:
    held = read_matrices(file, [*_NEEDED, "description"])
    missing = [name for name in _NEEDED if name not in held]
    if missing:
        raise UnreadableMatFile(f"holds no {missing[0]}, which results of a simulation have")
    words = [_text(row).strip() for row in held["Aclass"][:8]]
    if "Atrajectory" not in words[:1] or not words[3:4] or words[3] not in ("binTrans", "binNormal"):
        raise UnreadableMatFile(f"is of the kind {' '.join(words)[:60]!r}, not a trajectory (binTrans or binNormal)")
    is_transposed = words[3] == "binTrans"
    names = _texts(held["name"], is_transposed)
    info, parameters, variables = (
        held[key] if is_transposed else held[key].T for key in ("dataInfo", "data_1", "data_2")
    )
    columns = _Columns(names, np.asarray(info), parameters, variables)
    descriptions = _texts(held["description"], is_transposed) if "description" in held else []
    units = {n: unit for n, d in zip(names, descriptions, strict=False) if (unit := _unit_of(d))}
    label = file.stem.replace("@", "_") or None
    return RecordTable(
        columns, RowNames("instant"), file.name, label, units, repeated=_contradicting(names, info)
    ), names[0]


def _contradicting(names: list[str], info: np.ndarray) -> frozenset[str]:
    """Return names that stand for two different trajectories."""
    places: dict[str, set[tuple[int, int]]] = {}
    for name, matrix, index in zip(names, info[0], info[1], strict=False):
        places.setdefault(name, set()).add((int(matrix), int(index)))
    return frozenset(name for name, found in places.items() if len(found) > 1)


class _Columns(Mapping[str, Any]):
    """Trajectories by the names of variables, each read when it is asked for."""

    def __init__(self, names: list[str], info: np.ndarray, parameters: np.ndarray, variables: np.ndarray) -> None:
        if info.ndim != 2 or info.shape[0] < 2 or info.shape[1] != len(names) or not names:
            raise UnreadableMatFile(f"is damaged: {len(names)} names, and dataInfo of shape {info.shape}")
        if variables.ndim != 2 or not variables.size or (parameters.size and parameters.ndim != 2):
            raise UnreadableMatFile("holds no instants: the run ended before its first one, or the file is damaged")
        self._places = dict(zip(names, range(len(names)), strict=True))
        self._info, self._parameters, self._variables = info, parameters, variables
        times = self._whole(0)
        if not np.all(np.isfinite(times)) or np.any(np.diff(times) < 0):
            raise UnreadableMatFile(f"is damaged: '{names[0]}' does not increase")
        self._kept = np.flatnonzero(np.append(np.diff(times) > 0, True))

    def __getitem__(self, name: str) -> np.ndarray:
        return self._whole(self._places[name])[self._kept]

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)

    def _whole(self, k: int) -> np.ndarray:
        matrix, index = (int(entry) for entry in self._info[:2, k])
        row = abs(index) - 1
        source = self._parameters if matrix == 1 else self._variables
        if matrix not in (0, 1, 2) or not 0 <= row < len(source):
            raise UnreadableMatFile(f"is damaged: variable {k + 1} stands in row {index} of matrix {matrix}")
        found = np.array(source[row], dtype=float)
        if matrix == 1:
            found = np.full(self._variables.shape[1], found[0])
        return -found if index < 0 else found


def _texts(letters: np.ndarray, is_transposed: bool) -> list[str]:
    if letters.size > MAX_LETTERS:
        raise UnreadableMatFile(f"holds texts of {letters.size} letters, more than the {MAX_LETTERS} that are read")
    return [_text(row) for row in (letters.T if is_transposed else letters)]


def _text(codes: np.ndarray) -> str:
    raw = bytes(np.asarray(codes, dtype=float).clip(0, 255).astype(np.uint8))
    raw = raw.split(b"\0")[0].rstrip()
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        return raw.decode("latin-1")


def _unit_of(description: str) -> str:
    """Return ``rad`` of ``Angle [rad|deg]``; empty where there is none, or flags alone (``[:#(type=Integer)]``)."""
    found = _UNIT.search(description)
    return found[1].partition(":#")[0].partition("|")[0].strip() if found else ""


# --- CSV ---


def _from_csv(file: Path) -> tuple[RecordTable, str]:
    table = read_table(file, None, ".", "#", "utf-8", None)
    names = {name: _UNIT.sub("", name).strip() for name in table.columns}
    columns = {short: table.columns[name] for name, short in names.items() if short}
    units = {**{short: _unit_of(name) for name, short in names.items()}, **table.units}
    time = next((name for name in columns if name in _TIMES), next(iter(columns), ""))
    whole = RecordTable(
        columns, table.rows, table.source, table.label, {n: u for n, u in units.items() if u}, ".", table.repeated
    )
    times = whole.numbers(time, "time")
    if np.any(np.diff(times) < 0):
        raise DataError(
            f"{table.source}: '{time}' decreases at {table.rows.at(int(np.argmax(np.diff(times) < 0)) + 1)}."
        )
    return whole.taken(np.flatnonzero(np.append(np.diff(times) > 0, True))), time
