"""Later rooms use what problems, methods and filters declare, and do not ask what they are."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import grisaille

SOURCE = Path(grisaille.__file__).parent
THINGS = {"problem", "method", "estimator", "filter", "runner", "density", "evaluation"}


def asked(tree: ast.AST) -> Iterator[ast.expr]:
    """Yield every question of kind about one of the things: ``isinstance``, ``hasattr``, ``type(…) is``."""
    for node in ast.walk(tree):
        about: ast.expr | None = None
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and len(node.args) == 2:
            asks = node.func.id in ("isinstance", "hasattr") and ast.unparse(node.args[1]) != "type"
            about = node.args[0] if asks else None
        if isinstance(node, ast.Compare) and isinstance(node.left, ast.Call):
            about = node.left.args[0] if ast.unparse(node.left.func) == "type" else None
        if about is not None and ast.unparse(about).split(".")[-1] in THINGS:
            yield about


@pytest.mark.parametrize("room", ["assessment", "study", "reporting", "results"])
def test_nobody_asks_what_it_is(room: str) -> None:
    found = [
        f"{path.relative_to(SOURCE)}:{node.lineno} {ast.unparse(node)}"
        for path in sorted((SOURCE / room).rglob("*.py"))
        for node in asked(ast.parse(path.read_text("utf-8")))
    ]
    assert not found


def test_questions_are_found() -> None:
    text = "isinstance(fit.method, A) or hasattr(problem, 'b') or type(evaluation) is C or isinstance(x, D)"
    assert sorted(ast.unparse(node) for node in asked(ast.parse(text))) == ["evaluation", "fit.method", "problem"]
