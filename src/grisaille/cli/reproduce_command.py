"""``grisaille reproduce``."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from grisaille.cli.output import CommandOutput, with_output_options
from grisaille.cli.parsing import assignments, number_or_list
from grisaille.compilation.cuda.device import DEVICES
from grisaille.errors import DataError
from grisaille.model.names import suggestion

if TYPE_CHECKING:
    from types import ModuleType

    from grisaille_reproductions.registry import Entry


def _registry() -> ModuleType:
    """The reproductions: a package beside this one, which a checkout has and an installed package need not have."""
    try:
        return importlib.import_module("grisaille_reproductions.registry")
    except ModuleNotFoundError as error:
        if not str(error.name).startswith("grisaille_reproductions"):
            raise
        raise DataError(
            "Reproductions of published tables come with a checkout of the project and are not part of the installed "
            "package: run this command with the Python of a checkout's .venv."
        ) from None


def _complete(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    names = [e.name for e in _registry().ENTRIES]
    return [n for n in dict.fromkeys([*(n.partition("/")[0] for n in names), *names]) if n.startswith(incomplete)]


@click.command("reproduce")
@click.argument("name", required=False, metavar="[PAPER[/TABLE]]", shell_complete=_complete)
@click.option("--list", "listing", is_flag=True, help="Show what can be reproduced.")
@click.option("--size", type=click.Choice(["small", "full"]), default="small", show_default=True,
              help="small takes seconds; full has the numbers of runs of the source and takes minutes.")  # fmt: skip
@click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="NAME=VALUE",
    help="A number instead of that of the size: data_sets=50, lengths=1000,5000.",
)
@click.option("--device", type=click.Choice(list(DEVICES)),
              help="Where ensembles run, for reproductions that are made of them: fig1 of abdalmoaty.")  # fmt: skip
@click.option("--output", "folder", type=click.Path(path_type=Path), metavar="FOLDER", help="Where figures go.")
@with_output_options
def command(
    output: CommandOutput, name: str | None, listing: bool, size: Any, settings: tuple[str, ...], folder: Path | None,
    device: str | None,
) -> int:  # fmt: skip
    """Compute a published table or figure again, ours beside the published numbers."""
    registry = _registry()
    if listing or name is None:
        output.say(registry.listing())
        output.answer({"reproductions": {e.name: e.title for e in registry.ENTRIES}})
        return 0
    answers, entries = {}, registry.find(name)
    given = _shared(name, entries, {n: number_or_list("--set", n, text) for n, text in assignments("--set", settings)})
    if device is not None:
        if not any("device" in entry.options for entry in entries):
            raise DataError(f"--device {device}: {name} runs on the processor only.")
        given["device"] = device
    for entry in entries:
        target = None if folder is None else folder / entry.name
        result = entry.run(size, target, **{n: v for n, v in given.items() if n in entry.options})
        if not (output.as_json or output.quiet):
            result.show()
        answers[entry.name] = {
            "title": result.title, "rows": [asdict(row) for row in result.rows], "notes": list(result.notes),
            "figures": [str(f) for f in result.figures],
        }  # fmt: skip
    output.answer({"size": size, "reproductions": answers})
    return 0


def _shared(name: str, entries: Sequence[Entry], given: dict[str, Any]) -> dict[str, Any]:
    """The numbers as given; one that no entry takes is a mistake."""
    known = list(dict.fromkeys(option for entry in entries for option in entry.options)) if given else []
    for number in given:
        if number not in known:
            hint = suggestion(number, known) if known else "It takes none."
            raise DataError(f"--set {number}: {name} has no such number. {hint}")
    return given
