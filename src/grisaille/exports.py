"""Names that a package exports and imports when they are first used.

A package lists what it exports once, in its stub ``__init__.pyi``,

    from grisaille.experiment.experiment import Experiment as Experiment

and its ``__init__.py`` takes the list from there:

    __getattr__, __dir__, __all__ = export_lazily(__name__, __file__)

Type checkers and completion read the stub; ``from grisaille.experiment import Experiment`` works as if the import stood
in the package itself. A name must not be that of a module of the same package, which the import system would put in its
place.
"""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

_IMPORT = re.compile(r"^from (\S+) import (?:\(([^)]*)\)|(.*))$", re.MULTILINE)
_EXPORT = re.compile(r"(\w+) as \1\b")
_VARIABLE = re.compile(r"^(\w+):", re.MULTILINE)


def export_lazily(package: str, file: str) -> tuple[Callable[[str], object], Callable[[], list[str]], list[str]]:
    """Return the ``__getattr__``, ``__dir__`` and ``__all__`` of a package whose stub lists its names.

    package : its full name
    file : its ``__init__.py``, beside which the stub stands; variables of the stub are the package's own
    """
    text = Path(file).with_suffix(".pyi").read_text("utf-8")
    modules = read_imports(text)
    names = sorted({*modules, *_VARIABLE.findall(text)})

    def find(name: str) -> object:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module = modules[name]
        if module == package:  # one of its own modules
            return importlib.import_module(f"{package}.{name}")
        value = getattr(__import__(module, fromlist=[name]), name)
        setattr(sys.modules[package], name, value)
        return value

    return find, lambda: list(names), names


def read_imports(stub: str) -> Mapping[str, str]:
    """Return for each name that a stub exports the module that has it."""
    found = _IMPORT.findall(stub)
    return {name: module for module, many, one in found for name in _EXPORT.findall(many or one)}
