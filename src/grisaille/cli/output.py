"""Output of commands: text for people, or one JSON object for programs; progress only on a terminal."""

from __future__ import annotations

import functools
import json
import math
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class CommandOutput:
    """How a command answers."""

    as_json: bool
    quiet: bool

    def say(self, text: object) -> None:
        """Print a text for people; nothing is printed under ``--json`` and ``--quiet``."""
        if not (self.as_json or self.quiet):
            click.echo(str(text))

    def runs(self, target: Path | str) -> None:
        """Says, beside the answer, which file of a problem folder is about to be executed."""
        from grisaille.problem.linting import PROBLEM_FILE, file_to_run

        is_folder = Path(target).is_dir() or Path(target).name == PROBLEM_FILE
        file = file_to_run(target) if is_folder else None
        if file is not None and not (self.as_json or self.quiet):
            click.echo(f"Runs {file}.", err=True)

    def written(self, path: Path) -> None:
        self.say(f"Written: {path}")

    def answer(self, content: Mapping[str, object]) -> None:
        """Print the answer for programs; nothing is printed without ``--json``."""
        if self.as_json:
            click.echo(json.dumps(plain_data(content), ensure_ascii=False, allow_nan=False, indent=2))

    @property
    def progress(self) -> bool:
        """Whether bars may be shown."""
        return not (self.as_json or self.quiet) and sys.stdout.isatty() and sys.stderr.isatty()


def with_output_options(function: Callable[..., object]) -> Callable[..., object]:
    """Gives a command ``--json``, ``--quiet`` and ``--debug``, and an :class:`CommandOutput` as its first argument."""

    @click.option("--json", "as_json", is_flag=True, help="Answer with one JSON object.")
    @click.option("--quiet", "-q", is_flag=True, help="Print nothing but errors.")
    @click.option("--debug", is_flag=True, hidden=True)
    @functools.wraps(function)
    def wrapped(*args: Any, as_json: bool, quiet: bool, debug: bool, **options: Any) -> Any:
        return function(CommandOutput(as_json, quiet), *args, **options)

    return wrapped


def plain_data(value: object) -> object:
    """Numbers, texts, lists and dicts; NaN and infinities, which JSON does not have, become null."""
    if isinstance(value, Mapping):
        return {str(k): plain_data(v) for k, v in value.items()}
    if hasattr(value, "tolist"):
        return plain_data(value.tolist())
    if isinstance(value, list | tuple):
        return [plain_data(v) for v in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, bool | int | str) else str(value)


def frame_rows(table: pd.DataFrame) -> dict[str, Any]:
    """A DataFrame by row and column."""
    return {str(label): plain_data(row.to_dict()) for label, row in table.iterrows()}
