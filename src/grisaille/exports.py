"""Names that a package exports and imports when they are first used.

    if TYPE_CHECKING:
        from grisaille.experiment.experiment import Experiment
    __all__ = ["Experiment"]
    __getattr__ = exported(__name__, {"Experiment": "grisaille.experiment.experiment"})

Type checkers and completion read the import that never runs; ``from grisaille.experiment import Experiment`` works
as if it did. A name must not be that of a module of the same package, which the import system would put in its place.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping


def exported(package: str, modules: Mapping[str, str]) -> Callable[[str], object]:
    """Return the ``__getattr__`` of a package whose names are imported when they are first used.

    package : its full name
    modules : for each name the module that has it
    """

    def find(name: str) -> object:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(importlib.import_module(modules[name]), name)
        setattr(sys.modules[package], name, value)
        return value

    return find
