"""Each name that a package exports stands once, in its stub, and is the object of the module named there."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest

import grisaille
from grisaille.exports import export_lazily, read_imports

PACKAGE = Path(grisaille.__file__).parent
STUBS = sorted(PACKAGE.rglob("__init__.pyi"))


def full_name(stub: Path) -> str:
    return ".".join(stub.parent.relative_to(PACKAGE.parent).parts)


@pytest.mark.parametrize("stub", STUBS, ids=full_name)
def test_names_of_a_stub_are_those_of_the_package(stub: Path) -> None:
    name, listed = full_name(stub), read_imports(stub.read_text("utf-8"))
    package = importlib.import_module(name)
    variables = {"__version__"} if name == "grisaille" else set()
    assert package.__all__ == dir(package) == sorted({*listed, *variables})
    for exported, module in listed.items():
        owner = importlib.import_module(module)
        expected = importlib.import_module(f"{module}.{exported}") if owner is package else getattr(owner, exported)
        assert getattr(package, exported) is expected


@pytest.mark.parametrize("stub", STUBS, ids=full_name)
def test_no_line_of_a_stub_is_read_over(stub: Path) -> None:
    """The list is read by a pattern: it has to find what the language finds."""
    assert sorted(read_imports(stub.read_text("utf-8"))) == sorted(re.findall(r"\bas (\w+)", stub.read_text("utf-8")))


@pytest.mark.parametrize("stub", STUBS, ids=full_name)
def test_no_name_is_that_of_a_module_of_the_package(stub: Path) -> None:
    """Which would take its place once it is imported."""
    modules = {path.stem for path in stub.parent.glob("*.py")} | {
        path.parent.name for path in stub.parent.glob("*/*.py")
    }
    listed = read_imports(stub.read_text("utf-8"))
    assert {name for name, module in listed.items() if name in modules and module != full_name(stub)} == set()


def test_there_are_lazy_packages() -> None:
    assert {"grisaille", "grisaille.experiment", "grisaille.structure"} <= set(map(full_name, STUBS))


def test_unknown_names_are_attribute_errors() -> None:
    find, _, names = export_lazily("grisaille.experiment", str(PACKAGE / "experiment" / "__init__.py"))
    assert "Experiment" in names
    with pytest.raises(AttributeError, match=r"module 'grisaille\.experiment' has no attribute 'Experimant'"):
        find("Experimant")
