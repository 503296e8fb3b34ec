"""The names a user sees are the ones we mean, each documented, and importing them works in every way."""

from __future__ import annotations

import subprocess
import sys
from types import ModuleType

import pytest

import grisaille

PROMISED = """
    Connector Disturbance Flow Input Model Output Parameter Potential Variable
    CompilationError DataError EstimationError GrisailleError ModelError SimulationError StructureError
    LogNormal MultivariateNormal Normal Smoothness Uniform spectra
    analyze connect copies der simulate time where
    atan2 maximum minimum smooth_abs smooth_sign sqrt exp log sin cos tan
""".split()


def test_names_are_sorted_and_unique() -> None:
    assert grisaille.__all__ == sorted(set(grisaille.__all__))


def test_promised_names_are_there() -> None:
    assert set(PROMISED) <= set(grisaille.__all__)


@pytest.mark.parametrize("name", grisaille.__all__)
def test_name_is_importable_and_documented(name: str) -> None:
    value = getattr(grisaille, name)
    assert name == "__version__" or value.__doc__


def test_nothing_else_is_public() -> None:
    """Submodules appear as attributes once imported; everything else public is listed."""
    public = {name for name, value in vars(grisaille).items() if name[0] != "_" and not isinstance(value, ModuleType)}
    assert public - set(grisaille.__all__) <= {"Any", "TYPE_CHECKING", "annotations"}


def test_dir_shows_the_public_names_and_nothing_else() -> None:
    """Also after everything has been imported, when submodules are attributes of the package."""
    assert grisaille.multistart and grisaille.load_problem
    assert dir(grisaille) == sorted(grisaille.__all__)


def test_star_import_in_a_fresh_interpreter() -> None:
    code = "from grisaille import *; print(Model, simulate, analyze, der)"
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True, capture_output=True)


def test_unknown_names_raise_attribute_errors() -> None:
    with pytest.raises(AttributeError, match="no attribute 'simulat'"):
        grisaille.simulat  # noqa: B018
