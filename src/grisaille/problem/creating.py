"""``grisaille new``: a problem folder from a template, ready to run."""

from __future__ import annotations

import shutil
import tomllib
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path

from grisaille.errors import DataError
from grisaille.model.names import suggestion
from grisaille.writing import whole_folder


def templates() -> dict[str, str]:
    """Return names to titles."""
    root = _root()
    names = sorted(entry.name for entry in root.iterdir() if entry.joinpath("problem.toml").is_file())
    return {n: tomllib.loads(root.joinpath(n, "problem.toml").read_text("utf-8")).get("title", "") for n in names}


def create(template: str, folder: Path) -> Path:
    """Copy a template into a new or empty folder; nothing is overwritten."""
    known = templates()
    if template not in known:
        raise DataError(f"There is no template {template!r}. {suggestion(template, known)}")
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise DataError(
            f"{str(folder)!r} exists and is not empty; nothing was written. Give another folder: "
            f"'grisaille new {template} {folder.name}-2'."
        )
    if not folder.parent.is_dir():
        raise DataError(f"{str(folder)!r} cannot be made: there is no folder {str(folder.parent)!r}.")
    with whole_folder(folder, "The problem") as made:
        _copy(_root().joinpath(template), made)
    return folder


def _root() -> Traversable:
    return resources.files("grisaille.problem").joinpath("templates")


def _copy(source: Traversable, target: Path) -> None:
    target.mkdir(exist_ok=True)
    for entry in source.iterdir():
        if entry.is_dir():
            if entry.name != "__pycache__":
                _copy(entry, target / entry.name)
        else:
            with entry.open("rb") as reading, (target / entry.name).open("wb") as writing:
                shutil.copyfileobj(reading, writing)
