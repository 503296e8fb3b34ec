"""Names that packages export lazily are those that type checkers read, and the objects of the modules named there."""

from __future__ import annotations

import ast
import importlib
from collections.abc import Iterator
from pathlib import Path

import pytest

import grisaille
from grisaille.exports import exported

PACKAGE = Path(grisaille.__file__).parent


def read_by_type_checkers(init: Path) -> Iterator[tuple[str, str]]:
    """(module, name) of each import that never runs."""
    for block in ast.parse(init.read_text("utf-8")).body:
        if isinstance(block, ast.If) and isinstance(block.test, ast.Name) and block.test.id == "TYPE_CHECKING":
            for node in block.body:
                if isinstance(node, ast.ImportFrom):
                    yield from ((node.module or "", alias.name) for alias in node.names)


INITS = [PACKAGE / "__init__.py", *sorted(PACKAGE.glob("*/__init__.py"))]
LAZY = [init for init in INITS if "exported(__name__" in init.read_text("utf-8")]


@pytest.mark.parametrize("init", LAZY, ids=lambda init: init.parent.name)
def test_what_type_checkers_read_is_what_is_imported(init: Path) -> None:
    name = ".".join(init.parent.relative_to(PACKAGE.parent).parts)
    package = importlib.import_module(name)
    for module, exported_name in read_by_type_checkers(init):
        assert exported_name in package.__all__
        assert getattr(package, exported_name) is getattr(importlib.import_module(module), exported_name)


def test_there_are_lazy_packages() -> None:
    assert {"grisaille", "experiment", "structure"} <= {init.parent.name for init in LAZY}


def test_unknown_names_are_attribute_errors() -> None:
    with pytest.raises(AttributeError, match=r"module 'grisaille\.experiment' has no attribute 'Experimant'"):
        exported("grisaille.experiment", {"Experiment": "grisaille.experiment.experiment"})("Experimant")
