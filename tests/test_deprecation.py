"""Deprecations name the line of the user's program, a version that keeps the promise, and go when it is there."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

import grisaille
from grisaille.deprecation import KEPT_MINOR_VERSIONS, GrisailleDeprecationWarning, warn_deprecated

PACKAGE = Path(grisaille.__file__).parent
INSIDE = """
def simulate(tolerance=None, rtol=1e-6):
    return inner(tolerance, rtol)

def inner(tolerance, rtol):
    if tolerance is not None:
        warn_deprecated("simulate(tolerance=)", "give rtol=", since="0.4", until="0.6")
        return tolerance
    return rtol
"""


def calls() -> Iterator[tuple[str, dict[str, str]]]:
    """(place, versions) of every deprecation in the package."""
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "warn_deprecated":
                yield f"{path.name}:{node.lineno}", {k.arg or "": ast.literal_eval(k.value) for k in node.keywords}


def minor(version: str) -> tuple[int, int]:
    major, second, *_ = version.split(".")
    return int(major), int(second)


def test_the_warning_names_the_line_that_used_it() -> None:
    namespace = {"warn_deprecated": warn_deprecated}
    exec(compile(INSIDE, str(PACKAGE / "simulation" / "made_up.py"), "exec"), namespace)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert namespace["simulate"](tolerance=1e-3) == 1e-3  # type: ignore[operator]
    (warning,) = caught
    assert warning.category is GrisailleDeprecationWarning and warning.filename == __file__
    assert str(warning.message) == (
        "simulate(tolerance=) is deprecated since version 0.4 and will be gone in 0.6: give rtol=."
    )


def test_what_is_not_used_does_not_warn() -> None:
    namespace = {"warn_deprecated": warn_deprecated}
    exec(compile(INSIDE, str(PACKAGE / "made_up.py"), "exec"), namespace)
    assert namespace["simulate"](rtol=1e-3) == 1e-3  # type: ignore[operator]


def test_python_shows_it_in_programs_and_pytest_counts_it() -> None:
    with pytest.warns(DeprecationWarning, match=r"gone in 0\.6"):
        warn_deprecated("x", "use y", since="0.4", until="0.6")


def test_what_was_due_is_gone_and_every_deprecation_lasts_long_enough() -> None:
    now = minor(grisaille.__version__)
    for place, versions in calls():
        since, until = minor(versions["since"]), minor(versions["until"])
        assert now < until, f"{place} is due: delete what it warns of"
        assert until[0] > since[0] or until[1] - since[1] >= KEPT_MINOR_VERSIONS, place
