"""``grisaille new``."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import click

from grisaille.cli.output import CommandOutput, with_output_options
from grisaille.cli.reading import OPTIONS, given_of, reading_options
from grisaille.errors import DataError

FILE = click.Path(path_type=Path)
_COMMA = re.compile(r",(?![^\[]*\])")
"""One that stands in no brackets."""
OPTIONS_OF_DATA = ("csv", "time", "zone", *OPTIONS)
"""Options that only a file of data has."""


def _complete(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    from grisaille.problem.creating import templates

    return [name for name in templates() if name.startswith(incomplete)]


@click.command("new")
@click.argument("template", required=False, shell_complete=_complete)
@click.argument("folder", required=False, type=FILE)
@click.option("--list", "listing", is_flag=True, help="Show the templates.")
@click.option("--csv", "file", type=FILE, metavar="FILE.csv", help="From a file of your own instead of a template.")
@click.option("--modelica", type=FILE, metavar="FILE.mo", help="From a model in Modelica, .mo or .bmo.")
@click.option("--name", metavar="PLANT.DRIVE", help="With --modelica: which model of the file.")
@click.option("--path", multiple=True, type=FILE, metavar="FOLDER", help="With --modelica: of libraries; repeatable.")
@click.option("--time", metavar="COLUMN", help="With --csv: the column of times; guessed unless given.")
@click.option("--inputs", metavar="A,B", help="Columns, or variables of --modelica, that were applied.")
@click.option("--outputs", metavar="C,D", help="Columns, or variables of --modelica, that were measured.")
@click.option("--zone", metavar="NAME", help="With --csv: the time zone of dates without one, as in Europe/Berlin.")
@reading_options("With --csv: ", "found out, or refused, unless given")
@with_output_options
def command(
    output: CommandOutput, template: str | None, folder: Path | None, listing: bool, file: Path | None,
    modelica: Path | None, name: str | None, path: tuple[Path, ...], **columns: Any,
) -> int:  # fmt: skip
    """Make a problem folder from a TEMPLATE, from your own data, or from a Modelica model, ready to fit and to change.

    FOLDER is the template's name, or that of the file, unless given; nothing is overwritten. From a file,
    'grisaille new --csv run.csv --inputs pump --outputs level', the model is a first-order lag: a beginning. From
    Modelica, 'grisaille new --modelica Drive.mo --outputs load.phi', data are simulated until you put yours there.
    """
    from grisaille.problem.creating import create, templates

    known = templates()
    if listing:
        width = max(map(len, known))
        output.say("\n".join(f"{name:<{width}}  {title}" for name, title in known.items()))
        output.answer({"templates": known})
        return 0
    if modelica is not None:
        strange = next(
            (n for n, value in (("csv", file), *columns.items()) if value is not None and n in OPTIONS_OF_DATA), None
        )
        if strange is not None or folder is not None:
            said = f"--{strange} does not go with it" if strange else "give one FOLDER and no template"
            raise DataError(f"--modelica {modelica}: {said}.")
        chosen = Path(template) if template else Path(modelica.name.partition(".")[0])
        return _from_modelica(output, modelica, chosen, name, path, columns)
    if name is not None or path:
        raise DataError("--name and --path go with --modelica FILE.mo.")
    if file is not None:
        if folder is not None:
            raise DataError(f"--csv takes a FOLDER and no template: 'grisaille new --csv {file} {folder}'.")
        return _from_file(output, file, Path(template) if template else Path(file.stem), columns)
    strange = next((name for name, value in columns.items() if value is not None), None)
    if strange is not None:
        raise DataError(f"--{strange} goes with --csv FILE.csv, which makes a folder from a file of your own.")
    if template is None:
        raise DataError(
            f"Which template? There are {', '.join(known)}: 'grisaille new two-tank tanks'. From your own data: "
            f"'grisaille new --csv FILE.csv'."
        )
    made = create(template, folder or Path(template))
    output.say(f"{made} holds {known[template]}. Next:\n  grisaille lint {made}\n  grisaille fit {made}")
    output.answer({"template": template, "folder": str(made)})
    return 0


def _from_file(output: CommandOutput, file: Path, folder: Path, columns: dict[str, Any]) -> int:
    from grisaille.problem.first_model import create_from_csv, unknowns_of

    made = create_from_csv(
        file, folder, time=columns["time"], inputs=_listed(columns["inputs"]), outputs=_listed(columns["outputs"]),
        zone=columns["zone"], **given_of(columns),
    )  # fmt: skip
    names, lonely = unknowns_of(made)
    remarks = list(made.remarks)
    if lonely:
        remarks.append(
            f"{', '.join(lonely)} does not vary, so its effect cannot be distinguished from the offset: it stays 0."
        )
    for remark in remarks:
        output.say(remark)
    lag = " with a lag" if made.time is not None else ""
    output.say(
        f"{folder} holds a first model of {file.name}: every output follows the inputs{lag}. Next:\n"
        f"  grisaille fit {folder}\nthen put your own equations into {folder / 'model.py'}."
    )
    output.answer({
        "file": str(file), "folder": str(folder), "time": made.time.header if made.time else None,
        "inputs": {c.name: c.header for c in made.inputs}, "outputs": {c.name: c.header for c in made.outputs},
        "estimate": names, "remarks": remarks,
    })  # fmt: skip
    return 0


def _from_modelica(
    output: CommandOutput,
    file: Path,
    folder: Path,
    name: str | None,
    path: tuple[Path, ...],
    columns: dict[str, str | None],
) -> int:
    from grisaille.problem.modelica_folder import create_from_modelica

    made = create_from_modelica(
        file, folder, name=name, path=path, inputs=_listed(columns["inputs"]), outputs=_listed(columns["outputs"])
    )
    output.say(
        f"{folder} holds {made.model}, and data that were simulated with it: {', '.join(made.outputs)} with noise. "
        f"Next:\n  grisaille fit {folder}\nthen put your own data into {folder / 'data'}, and what you want to know "
        f"into {folder / 'problem.toml'}."
    )
    output.answer({
        "file": str(file), "folder": str(folder), "model": made.model, "inputs": list(made.inputs),
        "outputs": list(made.outputs), "estimate": list(made.estimate),
    })  # fmt: skip
    return 0


def _listed(text: str | None) -> list[str] | None:
    return None if text is None else [part.strip() for part in _COMMA.split(text) if part.strip()]
