"""A model from a file: ``FILE.py:Class`` of Python, ``FILE.bmo`` or ``FILE.mo:Plant.Drive`` of Modelica.

The name may be left out where a file defines only one model. A Modelica file is read and never executed.
A Python file is executed as a module of its own, with its folder importable, as ``python FILE.py`` would. What goes
wrong in it is reported with the user's own line; nothing of the file stays registered under an importable name.
"""

from __future__ import annotations

import importlib.util
import sys
import traceback
from pathlib import Path
from types import ModuleType

from grisaille.errors import GrisailleError, ModelError
from grisaille.model.classes import Model


class UnclearModel(ModelError):
    """A file that does not define the model that was asked for, or several."""


def is_modelica(file: str) -> bool:
    """Return whether a file's name says that it holds Modelica."""
    return file.endswith((".bmo", ".mo"))


def load_model(target: str) -> Model:
    """Return an instance, with declared values, of the class that ``target`` names."""
    is_file = target.endswith(".py") or is_modelica(target)
    file, _, name = (target, "", "") if is_file else target.rpartition(":")
    path = Path(file)
    if is_modelica(file):
        from grisaille.modelica.reading import read_modelica  # only here: most models are Python's

        return read_modelica(path, name or None)
    if not path.is_file() or path.suffix != ".py":
        raise ModelError(f"{target}: there is no Python file {str(path)!r}. Write FILE.py:Class, as in plant.py:Tank.")
    chosen = _choose(_execute(path), path, name)
    try:
        return chosen()
    except GrisailleError:
        raise
    except Exception as error:
        raise ModelError(f"{path}{_line(error, path)}: {type(error).__name__}: {error}") from error


def _execute(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(path.resolve().parent))
    try:
        spec.loader.exec_module(module)
    except GrisailleError:
        raise
    except Exception as error:
        raise ModelError(f"{path}{_line(error, path)}: {type(error).__name__}: {error}") from error
    finally:
        sys.path.pop(0)
    return module


def _line(error: Exception, path: Path) -> str:
    """Return the innermost line of the user's file that the error passed through."""
    if isinstance(error, SyntaxError):
        return f", line {error.lineno}"
    frames = traceback.extract_tb(error.__traceback__)
    lines = [frame.lineno for frame in frames if Path(frame.filename).resolve() == path.resolve()]
    return f", line {lines[-1]}" if lines else ""


def _choose(module: ModuleType, path: Path, name: str) -> type[Model]:
    own = {k: v for k, v in vars(module).items() if isinstance(v, type) and issubclass(v, Model) and v is not Model}
    if not name:
        own = {k: v for k, v in own.items() if v.__module__ == module.__name__}
        name = next(iter(own)) if len(own) == 1 else ""
    if name not in own:
        choice = ", ".join(f"{path}:{candidate}" for candidate in own) or "it defines none"
        asked = f"no model class {name!r}." if name else "which model?"
        raise UnclearModel(f"{path}: {asked} Choose from: {choice}.")
    return own[name]
