"""The curves of a model: its tables whose values contain parameters."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from grisaille.model.expression import Call, Expression, Name, postorder, same
from grisaille.model.flat import FlatModel
from grisaille.model.measurement.distributions import law_formulas
from grisaille.model.notation.text import common_vector, render
from grisaille.model.table_functions import table_arguments


@dataclass(frozen=True, eq=False)
class CurveTable:
    """A table as a function of its arguments and of the parameters in its values."""

    node: Call
    knots: tuple[tuple[float, ...], ...]
    """Of each argument."""
    values: tuple[Expression, ...]
    """One for each knot, row by row; of a table that repeats itself, without the last."""
    parameters: frozenset[str]

    @property
    def kind(self) -> str:
        return str(self.node.data[0])

    @property
    def outside(self) -> tuple[str, ...]:
        """Return how each argument is continued."""
        ways = self.node.data[1]
        return (ways,) * len(self.knots) if isinstance(ways, str) else tuple(ways)

    @property
    def shape(self) -> tuple[int, ...]:
        """Return values along each argument."""
        pairs = zip(self.knots, self.outside, strict=True)
        return tuple(len(knots) - (way == "repeat") for knots, way in pairs)

    @property
    def text(self) -> str:
        return render(self.node)

    @property
    def vector(self) -> str:
        """Return the vector that its values are; "" where they are formulas of their own."""
        return common_vector([render(v) for v in self.values])

    def is_same(self, other: CurveTable) -> bool:
        """Return whether both are one function of their arguments, whatever these are."""
        return self.node.data == other.node.data and all(map(same, self.values, other.values))


def find_curves(flat: FlatModel) -> list[CurveTable]:
    """Return every one, each once."""
    found: list[CurveTable] = []
    for node in postorder(_formulas(flat)):
        if isinstance(node, Call) and node.operation in ("table", "table2"):
            curve = _curve(flat, node)
            if curve is not None and not any(curve.is_same(c) for c in found):
                found.append(curve)
    return found


def _formulas(flat: FlatModel) -> Iterator[Expression]:
    for equation in flat.equations:
        yield from (equation.left, equation.right)
    for output in flat.outputs.values():
        yield from (e for e in (output.definition, output.noise, *law_formulas(output).values()) if e is not None)
    yield from flat.quantities.values()
    yield from (v.start for v in flat.variables.values() if v.start is not None)
    yield from (d.scale for d in flat.disturbances.values() if d.scale is not None)


def _curve(flat: FlatModel, node: Call) -> CurveTable | None:
    _, values = table_arguments(node)
    leaves = [n.path for n in postorder(values) if isinstance(n, Name)]
    if not leaves or not all(path in flat.parameters for path in leaves):
        return None
    knots = tuple(tuple(grid) for grid in node.data[2:-1])
    return CurveTable(node, knots, values, frozenset(leaves))
