"""A problem folder from a model in Modelica: the flat text, what is measured, and data simulated with the model.

What is to be known about a plant stands in no Modelica text. The folder is a beginning that can be fitted at once: the
parameter that moves the measured variables most is estimated from a run of the model with measurement noise.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from grisaille.errors import DataError, GrisailleError
from grisaille.model.classes import Model
from grisaille.modelica.reading import flat_text_of, read_with_settings
from grisaille.simulation.simulate import simulate
from grisaille.structure.structure_cache import structure_of
from grisaille.writing import whole_folder

if TYPE_CHECKING:
    import xarray as xr

ROWS, NOISE, SEED, TRIED = 201, 0.01, 1, 40
MEASURED_STATES = 2
"""Variables that are taken to be measured where nobody says and the model declares no outputs."""


@dataclass(frozen=True)
class NewFolder:
    """What was written into a new folder."""

    model: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    estimate: tuple[str, ...]


def create_from_modelica(
    file: Path,
    folder: Path,
    *,
    name: str | None = None,
    path: Sequence[Path] = (),
    inputs: Sequence[str] | None = None,
    outputs: Sequence[str] | None = None,
) -> NewFolder:
    """Write ``model.bmo``, ``data/simulated.csv`` and ``problem.toml`` into a new or empty folder."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise DataError(f"{str(folder)!r} exists and is not empty; nothing was written. Give another folder.")
    if not folder.parent.is_dir():
        raise DataError(f"{str(folder)!r} cannot be made: there is no folder {str(folder.parent)!r}.")
    text = flat_text_of(file, name, path)
    is_own = text == file.read_text("utf-8")
    model, settings = read_with_settings(text if not is_own else file, name if is_own else None)
    measured = tuple(outputs or _measured(model))
    applied = tuple(inputs or ())
    model = model.with_outputs({label: label for label in measured})  # refuses names that are none
    driven = model.with_inputs(dict.fromkeys(applied))
    first, last = float(settings.get("StartTime", 0.0)), float(settings.get("StopTime", 1.0))
    times = np.linspace(first, last, ROWS)
    own = {n: 0.0 for n, given in structure_of(model).model.inputs.items() if given.default is None}
    run = simulate(model, times, inputs=own) if applied else None
    recorded = [*applied, *own]
    signals = {n: np.asarray(run[n].values) if run is not None and n in applied else np.zeros(ROWS) for n in recorded}
    run = _run(driven, times, signals)  # with the signals as they are recorded, joined by lines
    chosen = _influential(driven, times, signals, measured, run)
    named = name if is_own and name is not None else None
    problem = _problem(driven, file.name, named, applied, tuple(recorded), measured, chosen)
    with whole_folder(folder, "The problem") as made:
        (made / "data").mkdir()
        (made / "model.bmo").write_text(text, "utf-8")
        (made / "data" / "simulated.csv").write_text(_table(times, run, signals, measured), "utf-8")
        (made / "problem.toml").write_text(problem, "utf-8")
    return NewFolder(_title(model), tuple(recorded), measured, chosen)


def _title(model: Model) -> str:
    flat = structure_of(model).model
    return str(flat.name)


def _measured(model: Model) -> list[str]:
    """Return the model's own outputs, or its first states."""
    structure = structure_of(model)
    found = (
        list(structure.model.outputs)
        or [state.name for state in structure.states if state.order == 0][:MEASURED_STATES]
    )
    if not found:
        raise DataError("The model has no outputs and no states: say what is measured, --outputs NAME.")
    return found


def _run(model: Model, times: np.ndarray, signals: dict[str, np.ndarray]) -> xr.Dataset:
    return simulate(model, times, inputs=signals, hold="foh" if signals else None)


def _influential(
    model: Model, times: np.ndarray, signals: dict[str, np.ndarray], measured: Sequence[str], run: xr.Dataset
) -> tuple[str, ...]:
    """Of the first parameters that which moves what is measured most, in parts of its range for a part of its value."""
    flat = structure_of(model).model
    numbers = {n: float(p.value) for n, p in model.parameters.items() if p.value is not None and float(p.value) != 0.0}
    names = [n for n in numbers if n in flat.parameters][:TRIED]
    spans = {m: float(np.ptp(run[m].values)) or 1.0 for m in measured}
    found: dict[str, float] = {}
    for name in names:
        try:
            moved = _run(model.replace({name: numbers[name] * 1.01}), times, signals)
        except GrisailleError:
            continue  # a value that nothing else may have
        found[name] = max(float(np.abs(moved[m].values - run[m].values).max()) / spans[m] for m in measured)
    best = max(found, key=lambda n: found[n], default=None)
    if best is None or found[best] < 1e-6:
        tried = f"None of the first {TRIED} parameters" if len(numbers) > TRIED else "No parameter of the model"
        raise DataError(f"{tried} moves {', '.join(measured)}: say what is measured, --outputs NAME.")
    return (best,)


def _table(times: np.ndarray, run: xr.Dataset, signals: dict[str, np.ndarray], measured: Sequence[str]) -> str:
    random = np.random.default_rng(SEED)
    columns: dict[str, Any] = {"time": times, **signals}
    for name in measured:
        values = np.asarray(run[name].values, dtype=float)
        columns[name] = values + NOISE * (np.ptp(values) or 1.0) * random.normal(size=len(times))
    lines = [",".join(_cell(n) for n in columns)]
    lines += [",".join(repr(float(v)) for v in row) for row in np.column_stack(list(columns.values()))]
    return "\n".join(lines) + "\n"


def _problem(
    model: Model, source: str, name: str | None, applied: Sequence[str], recorded: Sequence[str],
    measured: Sequence[str], chosen: Sequence[str],
) -> str:  # fmt: skip
    value = float(model.parameters[chosen[0]].value or 0.0)
    lines = [
        f"title = {_toml(f'{_title(model)} of {source}')}",
        f"model = {_toml('model.bmo' + (f':{name}' if name else ''))}",
        "",
        "# Replace by what you want to know; other parameters of the model:",
        *(f"#   {n}" for n in list(model.parameters)[:20] if n not in chosen),
        f"estimate = [{', '.join(map(_toml, chosen))}]",
        "",
        "[parameters]",
        f"{_toml(chosen[0])} = {{ guess = {1.1 * value:.6g} }}",
        "",
        "[signals]",
    ]
    if applied:
        lines.append(f"inputs = [{', '.join(map(_toml, applied))}]")
    lines.append(f"outputs = [{', '.join(map(_toml, measured))}]")
    lines += [
        "# A disturbance that nobody measured is added to a variable so:",
        "# [[signals.disturbances]]",
        f"# on = {_toml(measured[0])}",
        '# spectrum = { kind = "lowpass", bandwidth = 2.0 }',
        "# scale = 0.1",
        "",
        "[[experiments]]",
        'file = "data/simulated.csv"',
        'time = "time"',
    ]
    if recorded:
        lines += [f"inputs = [{', '.join(map(_toml, recorded))}]", 'hold = "foh"']
    lines.append(f"outputs = [{', '.join(map(_toml, measured))}]")
    low, high = sorted((0.2 * value, 5.0 * value))
    lines += ["", "[study]", "# Where a multistart draws what has no bounds.",
              f"ranges = {{ {_toml(chosen[0])} = [{low:.6g}, {high:.6g}] }}"]  # fmt: skip
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    return '"' + text.replace('"', '""') + '"' if any(c in text for c in ',";') else text


def _toml(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)  # TOML's basic strings have the escapes of JSON's
