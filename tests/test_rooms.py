"""Data flows one way through the rooms: each imports only from those before it, also inside functions."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import grisaille

PACKAGE = Path(grisaille.__file__).parent
ORDER = """
    numerics laws model components modelica structure compilation disturbance experiment bound_experiment simulation
    filtering
    collocation optimization
    estimation estimators assessment study posteriors reporting results problem cli
""".split()
ROOT = Path(__file__).parent.parent
MOST_MODULES = 75
"""Modules inside packages that tests import, most of them to replace a constant or a function there."""
SIBLINGS = {"simulation", "filtering", "collocation"}
"""Three ways of following a trial, none of which needs another."""


def imported(path: Path) -> Iterator[tuple[int, str]]:
    """(line, room) of every import from a room of the package."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        named = [a.name for a in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom):
            named = [f"{node.module}.{a.name}" for a in node.names]
        for name in named:
            parts = name.split(".")
            if parts[0] == "grisaille" and len(parts) > 1 and parts[1] in ORDER:
                yield node.lineno, parts[1]


def test_no_room_imports_from_a_later_one() -> None:
    against = [
        f"{path.relative_to(PACKAGE)}, line {line}: {room} imports {other}"
        for room in ORDER
        for path in (PACKAGE / room).rglob("*.py")
        for line, other in imported(path)
        if ORDER.index(other) > ORDER.index(room) or ({room, other} <= SIBLINGS and room != other)
    ]
    assert against == []


def test_the_order_names_every_room() -> None:
    rooms = {p.parent.name for p in PACKAGE.glob("*/__init__.py")}
    assert rooms - set(ORDER) == {"examples"} and set(ORDER) <= rooms


def test_tests_import_from_packages() -> None:
    """Names that tests need stand in the stubs of packages; modules alone are imported where their own are replaced."""
    targets = subprocess.run(
        [sys.executable, ROOT / "scripts" / "counts.py", "targets"], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    assert len(targets) <= MOST_MODULES, "Import from the package, and list the name in its __init__.pyi."
