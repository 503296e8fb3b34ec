#!/usr/bin/env python3
"""Counts what the size and the coupling of the project are judged by: lines, import targets of tests, wide signatures.

scripts/counts.py            the table
scripts/counts.py targets    every module inside the package that tests import, and how many files do
"""

from __future__ import annotations

import ast
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCE, TESTS = ROOT / "src", ROOT / "tests"
PUBLIC = {"grisaille", "grisaille.laws", "grisaille.spectra", "grisaille.components", "grisaille.errors"}
"""Modules that users import, too: no look inside."""
MANY_PARAMETERS = 9


def main(arguments: list[str]) -> None:
    targets = import_targets()
    if arguments == ["targets"]:
        for name, count in targets.most_common():
            print(f"{count:5} {name}")
        return
    functions = [f for path in SOURCE.rglob("*.py") for f in functions_of(path)]
    classes = Counter(n.name for path in SOURCE.rglob("*.py") for n in nodes_of(path) if isinstance(n, ast.ClassDef))
    files = list(TESTS.rglob("test_*.py"))
    reaching = sum(bool(targets_of(path)) for path in TESTS.rglob("*.py"))
    rows = {
        "lines of src": lines(SOURCE),
        "lines of tests": lines(TESTS),
        "files of tests": len(files),
        "modules inside the package that tests import": len(targets),
        "files of tests that import such modules": reaching,
        "classes that share their name with another": sum(count for count in classes.values() if count > 1),
        "functions with Any in their signature": sum(map(has_any, functions)),
        f"functions with more than {MANY_PARAMETERS} parameters": sum(map(is_wide, functions)),
    }
    for what, count in rows.items():
        print(f"{count:8} {what}")


def import_targets() -> Counter[str]:
    """How many files of tests import each module of the package that is neither public nor a package itself."""
    return Counter(name for path in TESTS.rglob("*.py") for name in targets_of(path))


def targets_of(path: Path) -> set[str]:
    found: set[str] = set()
    for node in nodes_of(path):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            whole = {f"{node.module}.{alias.name}" for alias in node.names}
            modules = {name for name in whole if is_module(name)}
            found |= modules | ({node.module} if len(modules) < len(whole) else set())
    return {name for name in found if name.startswith("grisaille.") and is_inside(name)}


def is_inside(name: str) -> bool:
    """Whether a module is one of ours and neither a package nor public."""
    path = SOURCE / name.replace(".", "/")
    return name not in PUBLIC and not name.startswith("grisaille.components.") and not (path / "__init__.py").is_file()


def is_module(name: str) -> bool:
    path = SOURCE / name.replace(".", "/")
    return path.with_suffix(".py").is_file() or (path / "__init__.py").is_file()


def nodes_of(path: Path) -> Iterator[ast.AST]:
    return ast.walk(ast.parse(path.read_text("utf-8")))


def functions_of(path: Path) -> Iterator[ast.FunctionDef]:
    return (node for node in nodes_of(path) if isinstance(node, ast.FunctionDef))


def parameters(function: ast.FunctionDef) -> list[ast.arg]:
    a = function.args
    return [*a.posonlyargs, *a.args, *a.kwonlyargs, *(x for x in (a.vararg, a.kwarg) if x)]


def has_any(function: ast.FunctionDef) -> bool:
    annotations = [p.annotation for p in parameters(function)] + [function.returns]
    return any(isinstance(n, ast.Name) and n.id == "Any" for a in annotations if a is not None for n in ast.walk(a))


def is_wide(function: ast.FunctionDef) -> bool:
    own = [p.arg for p in parameters(function) if p.arg not in ("self", "cls")]
    return len(own) > MANY_PARAMETERS


def lines(folder: Path) -> int:
    return sum(path.read_text("utf-8").count("\n") for path in folder.rglob("*.py"))


if __name__ == "__main__":
    main(sys.argv[1:])
