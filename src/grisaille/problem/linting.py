"""Everything that is wrong in a problem folder, at once; and the problem that is left when nothing is.

The form of ``problem.toml`` is checked first; what deviates is set aside, and the rest goes on: the model is loaded,
files and columns are looked up, names are compared with the model, options with the estimator.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from grisaille.errors import DataError, GrisailleError
from grisaille.estimation.curves.vectors import elements_of
from grisaille.loading import UnclearModel, is_modelica, load_model
from grisaille.model.flat import FlatModel
from grisaille.model.names import suggestion
from grisaille.problem.document import Document, UnreadableDocument, read_document
from grisaille.problem.estimators import is_path_option
from grisaille.problem.experiments import make_experiments
from grisaille.problem.folder_findings import Findings
from grisaille.problem.folder_methods import make_method
from grisaille.problem.folder_paths import is_path, leads_outside
from grisaille.problem.folder_signals import with_signals
from grisaille.problem.folder_unknowns import UnknownsOfFolder, check_names, check_unknowns, complete_names, read_wanted
from grisaille.problem.outputs import with_laws
from grisaille.problem.schema import problem_schema
from grisaille.problem.schema_deviations import deviations, similar
from grisaille.problem.unused_files import prune_places
from grisaille.structure.structure_cache import structure_of

if TYPE_CHECKING:
    from grisaille.model.classes import Model

PROBLEM_FILE = "problem.toml"
READING_OPTIONS = ("decimal", "separator", "encoding", "dayfirst")
_LINE = re.compile(r", line (\d+)")


@dataclass(frozen=True)
class FolderContents:
    """The objects that could be made of a folder; None for those that could not."""

    data: dict[str, Any]
    model: Any = None
    experiments: tuple[Any, ...] = ()
    wanted: UnknownsOfFolder = field(default_factory=UnknownsOfFolder)
    method: Any = "auto"


def lint(folder: str | Path, reading: Mapping[str, Any] | None = None) -> Findings:
    """Return every mistake in a folder, and remarks. Executes the model file inside it, where it is one of Python."""
    return inspect(folder, reading)[0]


def inspect(folder: str | Path, reading: Mapping[str, Any] | None = None) -> tuple[Findings, FolderContents]:
    """Return the findings, and what was made on the way; ``reading`` replaces what the file says about its data."""
    root = find_folder(folder)
    findings = Findings()
    try:
        document = read_document(root / PROBLEM_FILE)
    except UnreadableDocument as error:
        findings.elsewhere("error", PROBLEM_FILE, error.line, str(error))
        return findings, FolderContents({})
    findings.document = document
    data = _well_formed(document, findings)
    model, flat = _load(root, data, findings)
    wanted = read_wanted(data, findings)
    if flat is not None:
        wanted = complete_names(wanted, flat, findings)
        model = _with_values(model, flat, wanted, findings)
    tables = [{**table, **_applicable(reading or {}, table)} for table in data.get("experiments", [])]
    experiments = make_experiments(root, tables, model, flat, findings)
    if flat is not None:
        check_names(data, wanted, flat, [e.name for e in experiments], findings)
    method = _method(root, data, findings)
    if model is not None and experiments and not findings.errors:
        check_unknowns(model, experiments, wanted, method, findings)
    _check_study(root, data, flat, wanted, findings)
    _unused_files(root, data, findings)
    return findings, FolderContents(data, model, tuple(experiments), wanted, method)


def _applicable(reading: Mapping[str, Any], table: Mapping[str, Any]) -> dict[str, Any]:
    """Without the order of dates where rows have no times."""
    unknown = next((name for name in reading if name not in READING_OPTIONS), None)
    if unknown is not None:
        raise DataError(f"reading= names '{unknown}'. {suggestion(unknown, READING_OPTIONS)}")
    return {name: value for name, value in reading.items() if name != "dayfirst" or "time" in table}


def folder_model(folder: str | Path) -> Model | None:
    """Return the model of a folder with its known values, whatever its data are like. Executes ``model.py``."""
    root = find_folder(folder)
    findings = Findings()
    try:
        findings.document = read_document(root / PROBLEM_FILE)
    except UnreadableDocument as error:
        findings.elsewhere("error", PROBLEM_FILE, error.line, str(error))
        findings.refuse(str(root))
        raise
    unheard = Findings(findings.document)
    data = _well_formed(findings.document, unheard)
    model, flat = _load(root, data, findings)
    if flat is not None:
        model = _with_values(model, flat, read_wanted(data, unheard), findings)
    findings.refuse(str(root))
    return model


def file_to_run(folder: str | Path) -> Path | None:
    """Return the model file that loading a folder executes; None where it executes none, or will be refused."""
    root = find_folder(folder)
    try:
        data = read_document(root / PROBLEM_FILE).data
    except UnreadableDocument:
        return None
    file = _model_file(data)[0] if isinstance(data.get("model", ""), str) else "model.py"
    if is_modelica(file):
        return None
    return root / file if not leads_outside(root, file) and (root / file).is_file() else None


def find_folder(folder: str | Path) -> Path:
    """Return the folder itself; ``problem.toml`` may be named in its place."""
    path = Path(folder)
    if path.name == PROBLEM_FILE and path.is_file():
        path = path.parent
    if not path.is_dir():
        raise DataError(
            f"There is no folder {str(path)!r} (looked in {path.absolute().parent}). A problem folder holds model.py, "
            f"data/*.csv and {PROBLEM_FILE}; 'grisaille new two-tank {path.name or 'tanks'}' makes one."
        )
    if not (path / PROBLEM_FILE).is_file():
        there = ", ".join(sorted(p.name for p in path.iterdir() if not p.name.startswith("."))[:8]) or "nothing"
        raise DataError(
            f"{str(path)!r} is not a problem folder: it has no {PROBLEM_FILE} (it holds {there}). "
            f"'grisaille new --list' shows templates to begin with."
        )
    return path


def _well_formed(document: Document, findings: Findings) -> dict[str, Any]:
    """Return the document without what deviates from the schema."""
    schema = problem_schema()
    wrong = []
    for place, message in deviations(document.data, schema, schema):
        findings.error(place, _quoted_name(document.data, place) or message)
        wrong.append(place)
    return prune_places(document.data, [p for p in wrong if p])


def _quoted_name(data: dict[str, Any], place: Any) -> str:
    """Report a dotted name without quotes, which TOML reads as a table of tables."""
    if len(place) != 3 or place[0] != "parameters" or place[2] in ("value", "guess", "bounds", "prior"):
        return ""
    misspelt = similar(place[2], ("value", "guess", "bounds", "prior"))
    if not misspelt and isinstance(data["parameters"][place[1]][place[2]], dict | int | float):
        return f'a name with a point needs quotes: "{place[1]}.{place[2]}" = ….'
    return ""


def _load(root: Path, data: dict[str, Any], findings: Findings) -> tuple[Model | None, FlatModel | None]:
    file, name = _model_file(data)
    if why := leads_outside(root, file):
        findings.error(("model",), f"{why} A folder runs only a model file inside it: put a copy there.")
        return None, None
    path = root / file
    if not path.is_file():
        there = sorted(p.name for p in root.iterdir() if p.suffix == ".py" or is_modelica(p.name))
        hint = suggestion(file, there) if there else "Write the model's class into it."
        findings.error(("model",), f"there is no {file!r} in the folder {str(root)!r}. {hint}")
        return None, None
    try:
        model = load_model(f"{path}:{name}" if name else str(path))
        model = with_signals(model, data.get("signals", {}), findings)
        model = with_laws(model, data.get("outputs", {}), findings)
        return model, structure_of(model).model
    except UnclearModel as error:
        findings.error(("model",), str(error).replace(f"{path}: ", "").replace(f"{path}:", ""))
        return None, None
    except GrisailleError as error:
        said = str(error).replace(f"{path}: ", "").replace(f"{path}:", "").replace(f"{path}, ", "")
        line = _LINE.search(str(error)) if str(path) in str(error) else None
        findings.elsewhere("error", file, int(line[1]) if line else None, re.sub(r"^line \d+: ", "", said))
        return None, None


def _model_file(data: dict[str, Any]) -> tuple[str, str]:
    """Return the file and the class that ``model`` names; no class where the file's only one is meant."""
    named = data.get("model", "")
    if is_modelica(named):
        return named, ""
    of_file = ".py" in named or is_modelica(named.rpartition(":")[0])
    file, colon, name = named.rpartition(":") if of_file else ("model.py", "", named)
    return (name, "") if not colon and name.endswith(".py") else (file, name)


def _with_values(model: Any, flat: FlatModel, wanted: UnknownsOfFolder, findings: Findings) -> Any:
    """Return the model with the known values of the file."""
    for name, value in wanted.values.items():
        if name in flat.parameters or "*" in name or elements_of(name, flat.parameters):
            with findings.catching(("parameters", name)):
                model = model.replace({name: value})
    return model


def _method(root: Path, data: dict[str, Any], findings: Findings) -> Any:
    options = dict(data.get("method", {}))
    name = options.pop("name", "auto")
    if name == "auto":
        return "auto"
    made: Any = "auto"
    for key, value in options.items():
        for text in _texts(value):
            may_lead = is_path(text) or is_path_option(name, key)
            if may_lead and (why := leads_outside(root, text)):
                findings.error(("method", key), f"{why} Name a file in the folder.")
                return made
        if isinstance(value, str) and is_path_option(name, key):
            options[key] = str(root / value)
    with findings.catching(("method",)):
        made = make_method(name, options, data.get("seed"))
    return made


def _texts(value: object) -> Iterator[str]:
    """Yield every text in an option, however deep."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield from (key, *_texts(inner))
    elif isinstance(value, list):
        for inner in value:
            yield from _texts(inner)


def _check_study(
    root: Path, data: dict[str, Any], flat: FlatModel | None, wanted: UnknownsOfFolder, findings: Findings
) -> None:
    study = data.get("study", {})
    only = {
        "monte-carlo": ("truth", "noise"),
        "multistart": ("sampling", "ranges"),
        "bootstrap": ("resampling", "block"),
    }
    kind = study.get("kind")
    for owner, keys in only.items():
        for key in keys:
            if kind is not None and key in study and owner != kind:
                findings.error(("study", key), f"belongs to studies of the kind {owner}; this one is {kind}.")
    if why := leads_outside(root, study.get("store", "")):
        findings.error(("study", "store"), f"{why} Name a file in the folder, or give another one with --store.")
    if flat is None:
        return
    for name in study.get("noise", {}):
        if name not in flat.outputs:
            findings.error(
                ("study", "noise"), f"'{name}' is not an output of {flat.name}. {suggestion(name, flat.outputs)}"
            )
    for name in study.get("ranges", {}):
        is_level = name.startswith("noise(") and name[6:-1] in flat.outputs  # those of open noise are added by methods
        if name not in (wanted.estimate or ()) and not is_level:
            findings.error(("study", "ranges"), f"'{name}' is not estimated. {suggestion(name, wanted.estimate or ())}")


def _unused_files(root: Path, data: dict[str, Any], findings: Findings) -> None:
    """Data that no experiment reads may be there by mistake, or may have been forgotten."""
    named = [table["file"] for table in data.get("experiments", []) if "file" in table]
    used = {p for name in named if name and not leads_outside(root, name) for p in root.glob(name)}
    for path in sorted(root.glob("data/*.csv")):
        if path not in used:
            findings.elsewhere("note", str(path.relative_to(root)), None, "no experiment reads this file.")
