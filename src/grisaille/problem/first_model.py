"""A problem folder from somebody's own file: what its columns are, and a first model that can be fitted at once.

Each output y follows its inputs u as a first-order lag with an offset, from an unknown start,

    T x' = c + Σ K u − x,   y = x,

or, where there is no time, as a plane, y = c + Σ K u. Guesses are those of the plane by least squares; T begins at a
twentieth of the record. Outputs with cells such as ``<0.1`` are censored at them, with a scatter sigma.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from keyword import iskeyword
from pathlib import Path
from typing import Any

import numpy as np

from grisaille.errors import DataError
from grisaille.experiment.censored_cells import MISSING_TEXTS, is_marked
from grisaille.experiment.decimals import table_with_decimal
from grisaille.experiment.experiment import Experiment
from grisaille.experiment.record_table import DATE, RecordTable, is_number
from grisaille.experiment.times.clock import UNITS
from grisaille.experiment.times.date_texts import as_calendar, refuse_disguised_dates
from grisaille.model.names import RESERVED, suggestion
from grisaille.writing import whole_folder

TIME_COLUMN_NAMES = (
    "t",
    "time",
    "times",
    "zeit",
    "date",
    "datetime",
    "timestamp",
    "date_time",
    "hour",
    "hours",
    "seconds",
    "minute",
)
"""Columns that are called so are times."""
SCATTER_RATIO = 12.0
"""Of three times the range of measurements: where the scatter of outputs with limits begins."""
UNIT_PATTERN = re.compile(r"^(.*?)\s*(?:\[([^\]]*)\]|\(([^)]*)\)|/\s*(\S+))\s*$")
OUTPUT_PATTERN = re.compile(r"^(y\d*|out.*|y_.*|measured.*|response.*)$", re.IGNORECASE)


@dataclass(frozen=True)
class Column:
    """A column of the file: its header, the name it has in the model, and its unit."""

    header: str
    name: str
    unit: str


@dataclass(frozen=True)
class ReadData:
    """The content of a file, and what had to be guessed or left out, one sentence each."""

    path: Path
    time: Column | None
    inputs: tuple[Column, ...]
    outputs: tuple[Column, ...]
    options: Mapping[str, Any]
    data: Experiment
    remarks: tuple[str, ...] = field(default_factory=tuple)


def create_from_csv(
    path: Path,
    folder: Path,
    *,
    time: str | None = None,
    inputs: Sequence[str] | None = None,
    outputs: Sequence[str] | None = None,
    zone: str | None = None,
    **reading: Any,
) -> ReadData:
    """Make a folder with a copy of the file, a model and a ``problem.toml``; nothing is overwritten.

    reading : decimal, separator, encoding, dayfirst, as ``Experiment.from_csv`` takes them
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise DataError(
            f"{str(folder)!r} exists and is not empty; nothing was written. Give another folder: "
            f"'grisaille new --csv {path} {folder.name}-2'."
        )
    if not folder.resolve().parent.is_dir():
        raise DataError(f"{str(folder)!r} cannot be made: there is no folder {str(folder.parent)!r}.")
    read = read_file(path, time, inputs, outputs, zone, **reading)
    model, problem = model_text(read), problem_text(read)
    with whole_folder(folder, "The problem") as made:
        (made / "data").mkdir()
        shutil.copyfile(path, made / "data" / path.name)
        (made / "model.py").write_text(model, encoding="utf-8")
        (made / "problem.toml").write_text(problem, encoding="utf-8")
    return read


def read_file(
    path: Path, time: str | None, inputs: Sequence[str] | None, outputs: Sequence[str] | None, zone: str | None,
    *, dayfirst: bool | None = None, **reading: Any,
) -> ReadData:  # fmt: skip
    """Return the columns of a file as what they are, or seem to be."""
    table = table_with_decimal(path, **reading)
    columns = _columns(table)
    remarks: list[str] = []
    clock = _time_column(table, columns, time, remarks)
    limited = [c for c in columns if c is not clock and _has_limits(table, c.header)]
    numeric = [c for c in columns if c in limited or (c is not clock and _is_numeric(table, c.header))]
    texts = [c.header for c in columns if c is not clock and c not in numeric]
    if texts:
        remarks.append(f"Left out, not numbers: {', '.join(texts)}.")
    chosen_in, chosen_out = _roles(numeric, inputs, outputs, limited, remarks)
    told = {"decimal": table.decimal, "zone": zone, "dayfirst": dayfirst, **reading}
    options: dict[str, Any] = {k: v for k, v in told.items() if v is not None and (k, v) != ("decimal", ".")}
    if clock is not None:
        options["unit"] = _time_unit(table, clock, dayfirst, remarks)
    empty = [c.header for c in chosen_in if any(cell.lower() in MISSING_TEXTS for cell in table.columns[c.header])]
    if empty:
        options["fill"] = "hold"
        remarks.append(f'Empty cells of {", ".join(empty)} take the value before (fill = "hold").')
    data = Experiment.from_csv(
        path, time=None if clock is None else clock.header, inputs={c.name: c.header for c in chosen_in},
        outputs={c.name: c.header for c in chosen_out}, **options,
    )  # fmt: skip
    return ReadData(path, clock, tuple(chosen_in), tuple(chosen_out), options, data, tuple(remarks))


def _columns(table: RecordTable) -> list[Column]:
    """Return headers with the names they get in Python, and units from below the header or from within it."""
    if table.repeated:
        raise DataError(f"{table.source} has two columns called {sorted(table.repeated)[0]!r}; rename one.")
    found: list[Column] = []
    for header in table.columns:
        match = UNIT_PATTERN.match(header)
        stem, unit = (match[1], next((g for g in match.groups()[1:] if g is not None), "")) if match else (header, "")
        name = re.sub(r"\W+", "_", stem.strip()).strip("_") or "column"
        name = f"c_{name}" if name[0].isdigit() or iskeyword(name) or name in RESERVED | {"gr", "der"} else name
        while name in {c.name for c in found}:
            name += "_"
        found.append(Column(header, name, (table.units or {}).get(header, unit)))
    return found


def _is_numeric(table: RecordTable, header: str) -> bool:
    """Return whether cells are numbers or empty, with at least one number."""
    telling = [cell for cell in table.columns[header] if cell.lower() not in MISSING_TEXTS]
    return bool(telling) and all(is_number(cell, table.decimal or ".") for cell in telling)


def _has_limits(table: RecordTable, header: str) -> bool:
    """Return whether cells are numbers, empty, or limits such as ``<0.1``, with at least one limit."""
    cells = table.columns[header]
    return any(is_marked(cell) for cell in cells) and all(
        is_marked(cell) or is_number(cell, table.decimal or ".") for cell in cells
    )


def _is_dates(table: RecordTable, header: str) -> bool:
    telling = [cell for cell in table.columns[header] if cell.lower() not in MISSING_TEXTS]
    return bool(telling) and all(DATE.match(cell) for cell in telling)


def _increases(table: RecordTable, header: str) -> bool:
    values = table.numbers(header, "time")
    return len(values) > 1 and bool(np.all(np.diff(values) > 0))


def _may_count(table: RecordTable, column: Column) -> bool:
    """Return whether a column of numbers may be time; one called T is more often a temperature, and then goes down,
    too.
    """
    return _is_numeric(table, column.header) and (column.name != "T" or _increases(table, column.header))


def _time_column(table: RecordTable, columns: list[Column], given: str | None, remarks: list[str]) -> Column | None:
    if given is not None:
        return _named([given], columns, "--time")[0]
    dates = [c for c in columns if _is_dates(table, c.header)]
    called = [c for c in columns if c.name.lower() in TIME_COLUMN_NAMES and (c in dates or _may_count(table, c))]
    if not (dates or called) and _is_numeric(table, columns[0].header) and _increases(table, columns[0].header):
        remarks.append(f"Guessed: {columns[0].header} is time, because it increases. --time says otherwise.")
        return columns[0]
    if not (dates or called):
        remarks.append("There is no column of times: rows are independent samples. --time names one.")
        return None
    chosen = ([c for c in called if c in dates] or dates or called)[0]
    remarks.append(f"Guessed: {chosen.header} is time. --time says otherwise.")
    return chosen


def _roles(
    numeric: list[Column],
    inputs: Sequence[str] | None,
    outputs: Sequence[str] | None,
    limited: list[Column],
    remarks: list[str],
) -> tuple[list[Column], list[Column]]:
    """Inputs and outputs as given; the rest is guessed, and said. Columns with limits are no inputs."""
    if not numeric:
        raise DataError("The file has no column of numbers beside time: there is nothing to fit.")
    wanted_in = None if inputs is None else _named(inputs, numeric, "--inputs")
    wanted_out = None if outputs is None else _named(outputs, numeric, "--outputs")
    if wanted_out is None:
        left = [c for c in numeric if wanted_in is None or c not in wanted_in]
        if not left:
            raise DataError("--inputs takes every column: nothing is left as an output. Name fewer.")
        wanted_out = (
            left
            if wanted_in is not None
            else [c for c in left if OUTPUT_PATTERN.match(c.name) or c in limited] or left[-1:]
        )
        remarks.append(f"Guessed: {_listed(wanted_out)} measured (outputs). --outputs says otherwise.")
    if wanted_in is None:
        wanted_in = [c for c in numeric if c not in wanted_out and c not in limited]
        if wanted_in:
            remarks.append(f"Guessed: {_listed(wanted_in)} applied (inputs). --inputs says otherwise.")
    both = [c.header for c in wanted_in if c in wanted_out]
    if both:
        raise DataError(f"{both[0]!r} is among --inputs and --outputs: a column is one of them.")
    return wanted_in, wanted_out


def _listed(columns: Sequence[Column]) -> str:
    return f"{', '.join(c.header for c in columns)} {'was' if len(columns) == 1 else 'were'}"


def _named(wanted: Sequence[str], columns: Sequence[Column], option: str) -> list[Column]:
    """Return columns by header or by the name that they get."""
    by = {**{c.name: c for c in columns}, **{c.header: c for c in columns}}
    for name in wanted:
        if name not in by:
            raise DataError(f"{option} {name}: there is no such column of numbers. {suggestion(name, list(by))}")
    if len({by[n].header for n in wanted}) < len(wanted):
        raise DataError(f"{option} {','.join(wanted)}: a column is named twice.")
    return [by[name] for name in wanted]


def _time_unit(table: RecordTable, clock: Column, dayfirst: bool | None, remarks: list[str]) -> str:
    """Of numbers the unit in the header, or seconds; of dates one in which the record is neither long nor short."""
    if not _is_dates(table, clock.header):
        refuse_disguised_dates(table.numbers(clock.header, "--time"), clock.header, bool(clock.unit))
        unit = {"sec": "s", "seconds": "s", "minutes": "min", "hours": "h", "days": "d", "day": "d"}.get(
            clock.unit.lower(), clock.unit
        )
        if not unit:
            remarks.append("Times are taken to be seconds; write the unit into the header, as in 't [min]'.")
        return unit or "s"
    dates = as_calendar(table.columns[clock.header], f"Times (column '{clock.header}')", table.rows, dayfirst)
    known = dates[~dates.isna()]
    span = (known[-1] - known[0]).total_seconds()
    return next((u for u in ("d", "h", "min") if abs(span) > 20 * UNITS[u]), "s")


@dataclass(frozen=True)
class FirstGuess:
    """The plane y = c + Σ K u of one output by least squares, and the ranges in which its numbers may lie."""

    offset: float
    offset_range: float
    gains: dict[str, float]
    gain_ranges: dict[str, float]
    start: float
    start_range: tuple[float, float]
    """The range of the measurements and as much again on each side."""


def guesses_of(read: ReadData) -> dict[str, FirstGuess]:
    """Return first guesses by output; inputs that do not vary have no gain of their own."""
    found = {}
    for output in read.outputs:
        times, y, _ = read.data.measurements(output.name)
        u = {c.name: _along(read, c.name, times) for c in read.inputs}
        varying = {n: v for n, v in u.items() if np.ptp(v) > 1e-9 * max(float(np.abs(v).max()), 1e-300)}
        X = np.column_stack([np.ones(len(y)), *varying.values()])
        solution = np.linalg.lstsq(X, y, rcond=None)[0]
        spread = float(np.ptp(y)) or float(np.abs(y).max()) or 1.0
        gains = dict(zip(varying, solution[1:].tolist(), strict=True))
        ranges = {n: 100 * spread / float(np.ptp(v)) + 2 * abs(gains[n]) for n, v in varying.items()}
        reach = float(np.abs(y).max()) + sum(abs(gains[n]) * float(np.abs(v).max()) for n, v in varying.items())
        found[output.name] = FirstGuess(float(solution[0]), 100 * (spread + reach), gains, ranges, float(y[0]), (
            float(y.min()) - spread, float(y.max()) + spread,
        ))  # fmt: skip
    return found


def _along(read: ReadData, name: str, times: np.ndarray) -> np.ndarray:
    from grisaille.experiment.sampled_signals import SampledSignal, evaluate

    signal = read.data.inputs[name]
    if not isinstance(signal, SampledSignal):
        return np.full(len(times), float(signal))
    if read.data.is_static:
        return np.asarray(signal.values)[np.searchsorted(signal.times, times)]
    return np.asarray(evaluate(signal, read.data.hold[name], times))


def unknowns_of(read: ReadData) -> tuple[list[str], list[str]]:
    """Return names that are estimated, and inputs whose gains cannot be distinguished from the offset."""
    guesses = guesses_of(read)
    lonely = [c.header for c in read.inputs if all(c.name not in g.gains for g in guesses.values())]
    names = []
    for output, guess in guesses.items():
        names += [] if read.time is None else [f"T_{output}"]
        names += [f"c_{output}", *(f"K_{output}_{n}" for n in guess.gains)]
        names += [f"sigma_{output}"] if output in read.data.marks else []
        names += [] if read.time is None else [f"start(x_{output})"]
    return names, lonely


def model_text(read: ReadData) -> str:
    """Return ``model.py``."""
    guesses, span = guesses_of(read), _span(read)
    law = "T x' = c + K u - x for each output" if read.time is not None else "y = c + K u for each output"
    lines = [
        '"""A first model of measured data, to begin with. Put your physics here."""',
        "",
    ]
    lines += ["import grisaille as gr", *(["from grisaille import der"] if read.time else []), "", ""]
    lines += ["class Plant(gr.Model):", f'    """{read.path.name}: {law}."""', ""]
    equations = []
    for column in read.outputs:
        o, guess = column.name, guesses[column.name]
        gains = [(c.name, guess.gains.get(c.name, 0.0), guess.gain_ranges.get(c.name, 1.0)) for c in read.inputs]
        if read.time is not None:
            lines.append(_parameter(f"T_{o}", span / 20, _unit(read), "time constant", (span / 1e4, 100 * span)))
        r = guess.offset_range
        lines.append(_parameter(f"c_{o}", guess.offset, column.unit, "offset", (-r, r)))
        lines += [_parameter(f"K_{o}_{n}", value, "", f"effect of {n}", (-r, r)) for n, value, r in gains]
        if o in read.data.marks:
            size = (guess.start_range[1] - guess.start_range[0]) / SCATTER_RATIO
            lines.append(_parameter(f"sigma_{o}", size, column.unit, f"scatter of {o}", (1e-3 * size, 1e3 * size)))
        formula = " + ".join([f"c_{o}", *(f"K_{o}_{n} * {n}" for n, _, _ in gains)])
        if read.time is not None:
            lines.append(f"    x_{o} = gr.Variable(start={guess.start:.6g}, unit={_toml(column.unit)})")
            equations.append(f"T_{o} * der(x_{o}) == {formula} - x_{o}")
    lines += [""] + [f"    {c.name} = gr.Input({_toml(c.unit)})" for c in read.inputs]
    for column in read.outputs:
        o = column.name
        what = f"x_{o}" if read.time else " + ".join([f"c_{o}", *(f"K_{o}_{c.name} * {c.name}" for c in read.inputs)])
        law = f", distribution=gr.laws.Censored(of=gr.Normal(std=sigma_{o}))" if o in read.data.marks else ""
        lines.append(f"    {o} = gr.Output({what}{law}, unit={_toml(column.unit)})")
    if equations:
        lines += ["", "    equations = [", *(f"        {e}," for e in equations), "    ]"]
    return "\n".join(lines) + "\n"


def _parameter(name: str, value: float, unit: str, said: str, bounds: tuple[float, float]) -> str:
    low, high = bounds
    return f'    {name} = gr.Parameter({value:.6g}, {_toml(unit)}, "{said}", bounds=({low:.4g}, {high:.4g}))'


def problem_text(read: ReadData) -> str:
    """Return ``problem.toml``."""
    names, _ = unknowns_of(read)
    lines = [f"title = {_toml(f'A first model of {read.path.name}')}", 'model = "Plant"', ""]
    lines += [
        "# Guesses and bounds are those of model.py; what is not listed here stays as it is there.",
        "estimate = [",
    ]
    lines += [*(f"  {_toml(n)}," for n in names), "]", "", "[[experiments]]"]
    lines.append(f"file = {_toml(f'data/{read.path.name}')}")
    if read.time is not None:
        lines.append(f"time = {_toml(read.time.header)}")
    lines += [f"{key} = {_toml(value)}" for key, value in read.options.items()]
    for role, columns in (("inputs", read.inputs), ("outputs", read.outputs)):
        if columns:
            lines.append(f"{role} = {{ {', '.join(f'{_key(c.name)} = {_toml(c.header)}' for c in columns)} }}")
    lines += ["", "[method]", 'name = "OutputError"']
    ranges = {} if read.time is None else {f"start(x_{n})": guess.start_range for n, guess in guesses_of(read).items()}
    if ranges:
        listed = ", ".join(f"{_toml(n)} = [{low:.6g}, {high:.6g}]" for n, (low, high) in ranges.items())
        lines += ["", "[study]", "# Where 'grisaille study run --kind multistart' draws starts of the states.",
                  f"ranges = {{ {listed} }}"]  # fmt: skip
    return "\n".join(lines) + "\n"


def _span(read: ReadData) -> float:
    times = read.data.output_times
    return float(times[-1] - times[0]) or 1.0


def _unit(read: ReadData) -> str:
    return str(read.options.get("unit", "s"))


def _key(name: str) -> str:
    """Return a key of TOML, in quotes unless it has letters of ASCII only."""
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else _toml(name)


def _toml(text: str | bool) -> str:
    if isinstance(text, bool):
        return str(text).lower()
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\t", "\\t") + '"'
