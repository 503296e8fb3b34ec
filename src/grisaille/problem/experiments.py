"""``[[experiments]]``: files and columns to experiments; every column and every name is checked."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any

from grisaille.errors import DataError, GrisailleError
from grisaille.experiment.experiment import Experiment
from grisaille.experiment.record_table import RecordTable
from grisaille.experiment.text_files import read_table
from grisaille.model.flat import FlatModel
from grisaille.model.names import nearest, suggestion
from grisaille.problem.document import Place
from grisaille.problem.folder_findings import Findings
from grisaille.problem.folder_paths import leads_outside
from grisaille.problem.folder_priors import make_prior

if TYPE_CHECKING:
    from grisaille.model.classes import Model

UNKNOWN_MARK = "unknown"


def make_experiments(
    folder: Path, tables: list[dict[str, Any]], model: Model | None, flat: FlatModel | None, findings: Findings
) -> list[Any]:
    """Return the experiments that can be made; what cannot is in the findings."""
    made: list[Any] = []
    for k, table in enumerate(tables):
        place: Place = ("experiments", k)
        incomplete = findings.has_error_in(place)  # what follows from a known mistake is not told again
        for path in _files(folder, table, place, findings):
            columns = _read(path, table, place, findings)
            if columns is not None and _is_right(columns, table, flat, place, findings) and not incomplete:
                made += _make(path, table, place, model, flat, findings)
    _refuse_repeated(made, findings)
    return made


def _files(folder: Path, table: Mapping[str, Any], place: Place, findings: Findings) -> list[Path]:
    name = table.get("file")
    if name is None:
        return []
    found = [name]
    if "*" in name and not leads_outside(folder, name):
        found = sorted(p.relative_to(folder).as_posix() for p in folder.glob(name))
    for one in found:
        if why := leads_outside(folder, one):
            findings.error((*place, "file"), f"{why} Put the data into the folder: data/{PurePath(one).name}.")
            return []
    files = [folder / one for one in found if (folder / one).is_file()]
    if not files:
        if (folder / name).is_symlink():
            findings.error((*place, "file"), f"{name!r} is a link to a file that is not there.")
            return []
        there = sorted(str(p.relative_to(folder)) for p in folder.glob("**/*.csv") if p.is_file())
        hint = suggestion(name, there) if there else "There is no .csv file in the folder."
        findings.error((*place, "file"), f"there is no file {name!r} in the folder {str(folder)!r}. {hint}")
    return files


def _read(path: Path, table: Mapping[str, Any], place: Place, findings: Findings) -> RecordTable | None:
    try:
        return read_table(
            path, table.get("separator"), table.get("decimal", "."), table.get("comment", "#"),
            table.get("encoding", "utf-8"), table.get("units_row"),
        )  # fmt: skip
    except DataError as error:
        findings.error((*place, "file"), str(error))
        return None


def _is_right(
    columns: RecordTable, table: Mapping[str, Any], flat: FlatModel | None, place: Place, findings: Findings
) -> bool:
    """Return whether all names and columns are there."""
    before = len(findings.errors)
    strangers = [] if flat is None else _check_names(columns, table, flat, place, findings)
    if flat is not None and not strangers and not findings.has_error_in((*place, "inputs")):
        _check_complete(columns, table, flat, place, findings)
    _check_columns(columns, table, strangers, place, findings)
    return len(findings.errors) == before


def _make(
    path: Path, table: dict[str, Any], place: Place, model: Model | None, flat: FlatModel | None, findings: Findings
) -> list[Experiment]:
    before = len(findings.errors)
    options = _options(table, place, findings)
    if len(findings.errors) > before:
        return []
    try:
        made = Experiment.from_csv(path, **options)
    except GrisailleError as error:
        findings.error(place, str(error))
        return []
    experiments = list(made) if isinstance(made, list) else [made]
    if model is not None and flat is not None:
        _match(experiments, model, flat, place, findings)
    return experiments


def _options(table: Mapping[str, Any], place: Place, findings: Findings) -> dict[str, Any]:
    """Return the arguments of ``Experiment.from_csv``."""
    options = {key: value for key, value in table.items() if key != "file"}
    if "start" in options:
        options["start"] = starts = {}
        for name, value in table["start"].items():
            where = (*place, "start", name)
            if isinstance(value, dict):
                with findings.catching(where):
                    starts[name] = make_prior(value)
            else:
                starts[name] = None if value == UNKNOWN_MARK else value
    return options


def _check_columns(
    columns: RecordTable, table: Mapping[str, Any], strangers: list[str], place: Place, findings: Findings
) -> None:
    """Every column that is named must be there; names that were refused already are passed over."""
    wanted: list[tuple[Place, str]] = [((*place, key), table[key]) for key in ("time", "by") if key in table]
    for key in ("inputs", "outputs", "constants"):
        given = table.get(key, [])
        named = given.items() if isinstance(given, dict) else ((c, c) for c in given)
        wanted += [
            ((*place, key), column) for name, column in named if isinstance(column, str) and name not in strangers
        ]
    wanted += [
        ((*place, "start"), c) for c in table.get("start", {}).values() if isinstance(c, str) and c != UNKNOWN_MARK
    ]
    weights = table.get("weights")
    listed = weights.values() if isinstance(weights, dict) else [weights]
    wanted += [((*place, "weights"), c) for c in listed if isinstance(c, str)]
    if len(columns.columns) == 1:  # a wrong separator: once is enough
        wanted = [(where, column) for where, column in wanted if column not in columns.columns][:1]
    for where, column in dict.fromkeys(wanted):
        with findings.catching(where):
            columns.column(column, str(where[-1]))


def _check_names(
    columns: RecordTable, table: Mapping[str, Any], flat: FlatModel, place: Place, findings: Findings
) -> list[str]:
    """Every name must be one of the model's, of the right kind; gives those that are not."""
    strangers = []
    kinds: dict[str, tuple[str, Mapping[str, Any]]] = {
        "inputs": ("an input", flat.inputs), "outputs": ("an output", flat.outputs),
        "constants": ("a parameter", flat.parameters), "start": ("a variable", flat.variables),
    }  # fmt: skip
    for key, (kind, known) in kinds.items():
        for name in table.get(key, ()):
            if name not in known:
                strangers.append(name)
                hint = _elsewhere(name, flat) or _renaming(name, key, known, name in columns.columns)
                findings.error((*place, key), f"'{name}' is not {kind} of {flat.name}. {hint}")
    return strangers


def _check_complete(
    columns: RecordTable, table: Mapping[str, Any], flat: FlatModel, place: Place, findings: Findings
) -> None:
    """Every input without a default must be given."""
    given = table.get("inputs", ())
    for name, signal in flat.inputs.items():
        if signal.default is None and name not in given:
            there = ", ".join(c for c in columns.columns if c)
            findings.error((*place, "inputs"), (
                f"{flat.name} needs the input '{name}': name its column (there are {there}), or give a number: "
                f"inputs = {{ {name} = 0.0 }}."))  # fmt: skip


def _elsewhere(name: str, flat: FlatModel) -> str:
    """Return what to do with a name that the model has, but as something else."""
    advice: dict[str, Mapping[str, Any]] = {
        f"It is a parameter: set it in constants = {{ {name} = … }}, or in [parameters].": flat.parameters,
        "It is an input: name it in inputs.": flat.inputs,
        "It is an output: name it in outputs.": flat.outputs,
        f"It is a variable: declare what is measured in model.py, y = gr.Output({name}), and name y.": flat.variables,
        "It is a disturbance, which is not known; declare a gr.Input for what is.": flat.disturbances,
        "It is a formula: declare it as gr.Output in model.py to measure it.": flat.quantities,
    }
    return next((text for text, table in advice.items() if name in table), "")


def _renaming(name: str, key: str, known: Mapping[str, object], is_column: bool) -> str:
    if not known:
        return f"The model has none: leave {key} out, or declare it in model.py."
    hint = suggestion(name, known)
    if not is_column:
        return hint
    first = (nearest(name, known) or list(known))[0]
    return f'{hint} A column may have another name than in the model: {key} = {{ {first} = "{name}" }}.'


def _match(experiments: list[Experiment], model: Model, flat: FlatModel, place: Place, findings: Findings) -> None:
    if findings.has_error_in(("outputs",)):  # what data may be hangs on the laws of outputs
        return
    remarks: list[str] = []
    for experiment in experiments:
        try:
            remarks += experiment.check(model)
        except GrisailleError as error:
            findings.error(place, str(error))
            return
    for remark in dict.fromkeys(remarks):
        findings.note(place, remark)
    first = experiments[0]
    declared = {n: s.unit for known in (flat.inputs, flat.outputs) for n, s in known.items() if s.unit}
    bare = [n for n in (*first.inputs, *first.outputs) if n in declared and n not in first.units]
    if bare:
        units = ", ".join(f'{n} = "{declared[n]}"' for n in bare)
        findings.note(place, f"the data do not say their units; if they are the model's, add units = {{ {units} }}.")


def _refuse_repeated(made: list[Experiment], findings: Findings) -> None:
    names = [e.name for e in made]
    for name in dict.fromkeys(n for n in names if names.count(n) > 1):
        findings.error(("experiments",), f"several experiments are called '{name}': give each its own name.")
