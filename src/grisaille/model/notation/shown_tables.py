"""The tables of a model, each once, with the knots that equations have no room for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from grisaille.model.content import Content
from grisaille.model.expression import Call, postorder
from grisaille.model.notation.text import common_vector, number, render
from grisaille.model.table_functions import table_arguments

MOST = 12
"""Knots or values that are listed one by one."""


@dataclass(frozen=True)
class ShownTable:
    """A table in words."""

    node: Call
    name: str
    """The vector of its values; "" where they are numbers or formulas of their own."""
    arguments: tuple[str, ...]
    knots: tuple[str, ...]
    """The knots of each argument."""
    values: str
    manner: str
    """How it interpolates, and what is outside."""


def shown_tables(content: Content) -> list[ShownTable]:
    """Return every table in the equations and formulas of a model."""
    found: dict[str, ShownTable] = {}
    for root in content.formulas():
        for node in postorder((root,)):
            if isinstance(node, Call) and node.operation in ("table", "table2"):
                shown = _shown(node)
                found.setdefault(f"{shown.arguments} {shown.knots} {shown.values} {shown.manner}", shown)
    return list(found.values())


def _shown(node: Call) -> ShownTable:
    looked_up, values = table_arguments(node)
    kind, outside, *grids = node.data
    numbers, knots = grids[-1], grids[:-1]
    name = common_vector([render(v) for v in values]) if values else ""
    flat = numbers if node.operation == "table" else [v for row in numbers or () for v in row]
    texts = [render(v) for v in values] or [number(v) for v in flat]
    ways = outside if isinstance(outside, str) else " and ".join(outside)
    return ShownTable(
        node, name, tuple(map(render, looked_up)), tuple(_listed([number(k) for k in grid]) for grid in knots),
        name or _listed(texts), f"{kind}, {ways} outside",
    )  # fmt: skip


def _listed(texts: list[str]) -> str:
    if len(texts) <= MOST:
        return ", ".join(texts)
    return f"{', '.join(texts[:3])}, … {texts[-1]} ({len(texts)})"


def rows(content: Content) -> Iterator[tuple[str, ...]]:
    """Return one row per table, for ``print(model)``."""
    for shown in shown_tables(content):
        at = " × ".join(f"{a} = {k}" for a, k in zip(shown.arguments, shown.knots, strict=True))
        yield shown.values, f"at {at}", f"({shown.manner})"
