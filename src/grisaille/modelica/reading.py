"""``read_modelica``: a model from Base Modelica text, or from full Modelica that is flattened first."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from grisaille.calling import checked
from grisaille.errors import ModelError
from grisaille.model.classes import Model, restored
from grisaille.model.names import suggestion
from grisaille.modelica import tree
from grisaille.modelica.full.flattening import flatten
from grisaille.modelica.full.gathering import gathered
from grisaille.modelica.full.outline import MODELS
from grisaille.modelica.full.packages import (
    every_class,
    experiment_of,
    is_full,
    libraries_of_environment,
    places_of,
    whole,
)
from grisaille.modelica.limits import Unfit, counted
from grisaille.modelica.lowering import lower
from grisaille.modelica.parsing import parse
from grisaille.modelica.refusals import Refusals, Refused, Source
from grisaille.modelica.tables import files_of

LARGEST = 64 * 2**20
"""Bytes of the largest text that is read."""


@checked
def read_modelica(source: Any, name: str | None = None, path: Any = ()) -> Model:
    """A model from Modelica: flat Base Modelica, as OpenModelica exports it, or full Modelica through ``rumoca``.

    Names are Modelica's own (``"inertia1.w"``, ``"r[1]"``, counted from one), with units, start values, bounds and
    descriptions. Real parameters stay parameters; Integer, Boolean and enumeration parameters are fixed at the values
    they have in the text. What is not supported is refused with its line, all of it at once. Nothing in the text is
    executed, and no other files are opened than those given; a file inside a package that is a tree of folders brings
    the package.

    source : the path of a file, or the text itself
    name : which model of the text, where it holds several: ``"Plant.Drive"``; without it the only one that no other
        class of the text uses, or the one with the name of the file
    path : folders of libraries that full Modelica uses, such as the one that holds ``Modelica``; without it, those of
        ``MODELICAPATH`` that hold a library which the text names. A text with
        inheritance, connections or components that are models, and one for which a path is given, is flattened by the
        compiler of the extra ``modelica``
    """
    return read_with_settings(source, name, path)[0]


def flat_text_of(source: Any, name: str | None, path: Any = ()) -> str:
    """The Base Modelica text of a model, flattened where it is not."""
    text, label, file = _text(source)
    if _is_full(text, file, path):
        return _flat(text, label, file, name, path)[0]
    return text


def read_with_settings(source: Any, name: str | None, path: Any = ()) -> tuple[Model, dict[str, Any]]:
    """The model, and what its annotation says of a run: ``StopTime``, ``Tolerance``, …"""
    text, label, file = _text(source)
    try:
        libraries = _libraries(path)
        with counted(), files_of(places_of(file, libraries)):
            if _is_full(text, file, path):
                own = _gathered(text, file, name)
                if own is not None:
                    return own
                model, _ = _read(*_flat(text, label, file, name, path), None)
                return model, dict(experiment_of(text, name))
            return _read(text, Source(text, label), name)
    except RecursionError:
        raise ModelError(f"{label} is nested too deeply to be read.") from None
    except MemoryError:
        raise ModelError(f"{label} asks for more memory than there is.") from None
    except Unfit as unfit:
        raise ModelError(f"{label} cannot be read: {unfit}.") from None


def _read(text: str, place: Source, name: str | None) -> tuple[Model, dict[str, Any]]:
    try:
        classes = parse(text)
    except Refused as refused:
        refusals = Refusals(place)
        refusals.add(refused)
        refusals.stop()
    made = _model(classes, name, place.label)
    settings = {k.removeprefix("experiment."): v for k, v in made.annotation.items() if k.startswith("experiment.")}
    return restored(lower(classes, made, place)), settings


def _gathered(text: str, file: Path | None, name: str | None) -> tuple[Model, dict[str, Any]] | None:
    """A flat file with the functions, records and types of its package, where these need no flattener."""
    source = gathered(text, file)
    if source is None:
        return None
    try:
        return _read(source.text, source, name.rpartition(".")[2] if name is not None else None)
    except ModelError:
        return None  # the flattener may understand more


def _flat(text: str, label: str, file: Path | None, name: str | None, path: Any) -> tuple[str, Source]:
    """The Base Modelica text of a model of full Modelica."""
    return flatten(*whole(text, label, file, name, _libraries(path)), file)


def _is_full(text: str, file: Path | None, path: Any) -> bool:
    """Whether a text is to be flattened: by what it holds, and always where libraries are given."""
    return bool(_folders(path)) or is_full(text, file)


def _libraries(path: Any) -> list[Path]:
    """Folders of libraries: those given, else those of ``MODELICAPATH``."""
    return _folders(path) or libraries_of_environment()


def _folders(path: Any) -> list[Path]:
    if isinstance(path, str | Path):
        return [_folder(path)]
    if not isinstance(path, Sequence) or isinstance(path, bytes):
        raise ModelError(f"path takes a folder of libraries or a list of them, got {path!r} ({type(path).__name__}).")
    return [_folder(root) for root in path]


def _folder(root: Any) -> Path:
    if not isinstance(root, str | Path):
        raise ModelError(f"path takes folders of libraries, got {root!r} ({type(root).__name__}).")
    if not Path(root).exists():
        raise ModelError(f"path: there is no {str(root)!r}.")
    return Path(root)


def _text(source: Any) -> tuple[str, str, Path | None]:
    if isinstance(source, str) and ("\n" in source or ";" in source):
        return source, "The text", None
    if not isinstance(source, str | Path):
        raise ModelError(f"read_modelica takes a path or a text, got {source!r} ({type(source).__name__}).")
    path = Path(source)
    try:
        if path.exists() and not path.is_file():
            raise ModelError(f"{path} is no file.")
        if path.stat().st_size > LARGEST:
            raise ModelError(f"{path} has more than {LARGEST // 2**20} MiB and is not read.")
        return path.read_text("utf-8"), path.name, path
    except OSError as error:
        raise ModelError(f"{path} cannot be read: {error.strerror or error}.") from None
    except UnicodeDecodeError:
        raise ModelError(f"{path} is not a text in UTF-8.") from None


def _model(classes: list[tree.Class], name: str | None, label: str) -> tree.Class:
    models: dict[str, tree.Class] = {}
    for known, inner in every_class(classes):
        if inner.kind in MODELS and "ExternalObject" not in inner.extends:
            models.setdefault(known, inner)
    if name is not None:
        if name not in models:
            raise ModelError(f"{label} has no model '{name}'. {suggestion(name, models)}")
        if models[name].base:
            raise ModelError(f"'{name}' of {label} is short for another model, which Base Modelica does not have.")
        return models[name]
    models = {inner.name: inner for inner in models.values()}
    own = [inner for made in classes for inner in made.classes.values() if inner.name == made.name]
    if len(own) == 1 and own[0].name in models:
        return own[0]
    if not models:
        raise ModelError(f"{label} holds no model.")
    if len(models) > 1:
        raise ModelError(f"{label} holds the models {', '.join(models)}: say which, read_modelica(…, name=…).")
    return next(iter(models.values()))
