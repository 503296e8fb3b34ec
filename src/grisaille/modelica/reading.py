"""``read_modelica``: a model from Base Modelica text, or from full Modelica that is flattened first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from grisaille.calling import checked
from grisaille.errors import ModelError
from grisaille.model.classes import Model, restore_model
from grisaille.model.content import ModelicaOrigin
from grisaille.model.names import suggestion
from grisaille.modelica import tree
from grisaille.modelica.discrete_time.clocks import without_clocks
from grisaille.modelica.fitted.reading import FittedText, find_original, fitted_model, with_values
from grisaille.modelica.full.flattening import AUTO, flatten
from grisaille.modelica.full.gathering import gather_classes
from grisaille.modelica.full.outline import MODELS
from grisaille.modelica.full.packages import (
    every_class,
    experiment_of,
    full_name,
    is_full,
    libraries_of_environment,
    meant_name,
    name_in_file,
    name_of_file,
    package_of,
    places_of,
    whole,
)
from grisaille.modelica.limits import Unfit, counted
from grisaille.modelica.lowering import lower
from grisaille.modelica.parsing import parse
from grisaille.modelica.refusals import ModelicaSource, Refusals, Refused
from grisaille.modelica.tables import files_of

if TYPE_CHECKING:
    pass

MAX_TEXT_BYTES = 64 * 2**20
"""Bytes of the largest text that is read."""
MAX_SHOWN_PATH = 300
"""Letters of a path that a refusal shows."""
FITTED_MODEL_NAME = "FittedModel"
MAX_KEPT = 1_000_000
"""Letters of a text given as such that are kept with the model."""


@checked
def read_modelica(
    source: str | Path, name: str | None = None, path: str | Path | Sequence[str | Path] = (), flattener: str = AUTO
) -> Model:
    """Return a model from Modelica: flat Base Modelica, as OpenModelica exports it, or full Modelica.

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
        inheritance, connections or components that are models, and one that uses these libraries, is flattened by the
        compiler of the extra ``modelica``
    flattener : what flattens full Modelica: ``"rumoca"``, the compiler of that extra; ``"omc"``, OpenModelica's, which
        has to be on the PATH; ``"auto"``, rumoca first, and omc where rumoca refuses a model and omc is there
    """
    return read_with_settings(source, name, path, flattener)[0]


def flat_text_of(
    source: str | Path, name: str | None, path: str | Path | Sequence[str | Path] = (), flattener: str = AUTO
) -> str:
    """Return the Base Modelica text of a model, flattened where it is not."""
    text, label, file = _text(source)
    text = without_clocks(text)
    if _is_full(text, file, path) and (is_full(text, file) or _alone(text, label, file, name)[0] is None):
        return _flat(text, label, file, name, path, flattener)[0]
    return text


def read_with_settings(
    source: str | Path, name: str | None, path: str | Path | Sequence[str | Path] = (), flattener: str = AUTO
) -> tuple[Model, dict[str, float]]:
    """Return the model, and what its annotation says of a run: ``StopTime``, ``Tolerance``, …"""
    return _read_text(*_text(source), Request(name, path, flattener))


@dataclass(frozen=True)
class Request:
    """Which model of a text is read, and how; the arguments of ``read_modelica``."""

    name: str | None
    path: Any
    flattener: str


def _read_text(text: str, label: str, file: Path | None, request: Request) -> tuple[Model, dict[str, float]]:
    fitted = fitted_model(text)
    if fitted is not None:
        return _read_fitted(fitted, label, file, request)
    return _read_plain(text, label, file, request)


def _read_plain(text: str, label: str, file: Path | None, request: Request) -> tuple[Model, dict[str, float]]:
    name, path, given = request.name, request.path, text
    text = without_clocks(text)
    try:
        libraries = _libraries(path)
        with counted(), files_of(places_of(file, libraries)):
            if _is_full(text, file, path):
                own = _gathered(text, file, name)
                if own is not None:
                    known = full_name(text, name or own[0]._content.name)
                    return _known_as(own[0], known, False, given, file), own[1]
                alone, unread = _alone(text, label, file, name)
                if alone is not None:
                    known = alone[0]._content.name if name is None else name
                    return _known_as(alone[0], known, True, given, file), alone[1]
                wanted = whole(text, label, file, name, libraries)
                try:
                    flat = flatten(*wanted, file, request.flattener)
                except ModelError as refused:
                    raise ModelError(f"{refused}\n{unread}" if unread else str(refused)) from None
                model, _ = _read(*flat, None)
                return _known_as(model, meant_name(wanted), False, given, file), dict(experiment_of(text, name))
            model, settings = _read(text, ModelicaSource(text, label), name_in_file(text, name))
            return _known_as(model, model._content.name if name is None else name, True, given, file), settings
    except RecursionError:
        raise ModelError(f"{label} is nested too deeply to be read.") from None
    except MemoryError:
        raise ModelError(f"{label} asks for more memory than there is.") from None
    except Unfit as unfit:
        raise ModelError(f"{label} cannot be read: {unfit}.") from None


def _known_as(model: Model, name: str, is_flat: bool, text: str, file: Path | None) -> Model:
    """Return the model with what it was read from."""
    kept = text if file is None and len(text) <= MAX_KEPT else ""
    return restore_model(
        replace(model._content, origin=ModelicaOrigin(name, is_flat, name_of_file(file) if file else "", kept))
    )


def _read_fitted(fitted: FittedText, label: str, file: Path | None, request: Request) -> tuple[Model, dict[str, float]]:
    """Return a model that ``Fit.to_modelica`` wrote: the original with other values."""
    if request.name is not None and request.name != fitted.name:
        raise ModelError(f"{label} has no model '{request.name}'. {suggestion(request.name, [fitted.name])}")
    given = _folders(request.path)
    beside = [file.resolve().parent] if file is not None else []
    if fitted.below:
        model, settings = _read_text(fitted.below, label, None, replace(request, name=_named(fitted, fitted.below)))
    elif (found := find_original(fitted, [*beside, *given], label)) is not None:
        text, called, original = _text(found)
        wanted = replace(request, name=_named(fitted, text), path=_without(given, found))
        model, settings = _read_text(text, called, original, wanted)
    else:
        text = f"model {FITTED_MODEL_NAME}\n  extends {fitted.base};\nend {FITTED_MODEL_NAME};\n"
        model, settings = _read_plain(text, label, None, replace(request, name=FITTED_MODEL_NAME))
    content = with_values(model._content, fitted, label)
    was_flat = content.origin is not None and content.origin.is_flat
    kept = fitted.whole if file is None and len(fitted.whole) <= MAX_KEPT else ""
    origin = ModelicaOrigin(fitted.name, was_flat, file.name if file is not None else "", kept)
    return restore_model(replace(content, origin=origin)), settings


def _named(fitted: FittedText, text: str) -> str | None:
    """Return the name by which the original is read: its own, unless it is a fitted model, too, which is alone in its
    file.
    """
    return None if fitted_model(text) is not None else fitted.base


def _without(folders: list[Path], file: Path) -> list[Path]:
    """Return folders of libraries: not the file itself, nor its folder where it stands alone."""
    own = () if package_of(file) is not None else (file.resolve().parent,)
    return [root for root in folders if root.is_dir() and root.resolve() not in own]


def _read(text: str, place: ModelicaSource, name: str | None) -> tuple[Model, dict[str, float]]:
    try:
        classes = parse(text)
    except Refused as refused:
        refusals = Refusals(place)
        refusals.add(refused)
        refusals.stop()
    made = _model(classes, name, place.label)
    settings = {k.removeprefix("experiment."): v for k, v in made.annotation.items() if k.startswith("experiment.")}
    return restore_model(lower(classes, made, place)), settings


def _gathered(text: str, file: Path | None, name: str | None) -> tuple[Model, dict[str, float]] | None:
    """Return a flat file with the functions, records and types of its package, where these need no flattener."""
    source = gather_classes(text, file)
    if source is None:
        return None
    try:
        return _read(source.text, source, name_in_file(text, name))
    except ModelError:
        return None  # the flattener may understand more


def _alone(
    text: str, label: str, file: Path | None, name: str | None
) -> tuple[tuple[Model, dict[str, float]] | None, str]:
    """Return a flat text for which libraries are given and that needs none of them; else why it is not read as it
    stands.
    """
    if is_full(text, file):
        return None, ""
    try:
        return _read(text, ModelicaSource(text, label), name_in_file(text, name)), ""
    except ModelError as error:
        return None, f"As flat text, without libraries: {error}"


def _flat(
    text: str, label: str, file: Path | None, name: str | None, path: str | Path | Sequence[str | Path], flattener: str
) -> tuple[str, ModelicaSource]:
    """Return the Base Modelica text of a model of full Modelica."""
    return flatten(*whole(text, label, file, name, _libraries(path)), file, flattener)


def _is_full(text: str, file: Path | None, path: str | Path | Sequence[str | Path]) -> bool:
    """Return whether a text is to be flattened: by what it holds, and always where libraries are given."""
    return bool(_folders(path)) or is_full(text, file)


def _libraries(path: str | Path | Sequence[str | Path]) -> list[Path]:
    """Return folders of libraries: those given, else those of ``MODELICAPATH``."""
    return _folders(path) or libraries_of_environment()


def _folders(path: Any) -> list[Path]:
    if isinstance(path, str | Path):
        return [_folder(path)]
    if not isinstance(path, Sequence) or isinstance(path, bytes):
        raise ModelError(f"path takes a folder of libraries or a list of them, got {path!r} ({type(path).__name__}).")
    return [_folder(root) for root in path]


def _folder(root: str | Path) -> Path:
    if not isinstance(root, str | Path):
        raise ModelError(f"path takes folders of libraries, got {root!r} ({type(root).__name__}).")
    if not Path(root).exists():
        raise ModelError(f"path: there is no {str(root)!r}.")
    return Path(root)


def _text(source: str | Path) -> tuple[str, str, Path | None]:
    if isinstance(source, str) and ("\n" in source or ";" in source):
        return source, "The text", None
    if not isinstance(source, str | Path):
        raise ModelError(f"read_modelica takes a path or a text, got {source!r} ({type(source).__name__}).")
    path = Path(source)
    shown = str(path) if len(str(path)) <= MAX_SHOWN_PATH else f"{str(path)[:MAX_SHOWN_PATH]}…"
    try:
        if path.exists() and not path.is_file():
            raise ModelError(f"{path} is no file.")
        if path.stat().st_size > MAX_TEXT_BYTES:
            raise ModelError(f"{path} has more than {MAX_TEXT_BYTES // 2**20} MiB and is not read.")
        return path.read_text("utf-8"), path.name, path
    except UnicodeDecodeError:
        raise ModelError(f"{path} is not a text in UTF-8.") from None
    except (OSError, ValueError) as error:
        words = getattr(error, "strerror", None) or error
        raise ModelError(f"{shown!r} cannot be read: {words}. (A text has semicolons or lines.)") from None


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
