"""The incidence matrix before and after index reduction, as a picture."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from grisaille.drawing import panels
from grisaille.writing import write_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from grisaille.structure.reduction import Structure


def incidence_before(structure: Structure) -> tuple[np.ndarray, list[str], list[str]]:
    """Return highest derivative order + 1 with which each unknown occurs in each equation; 0 where it does not."""
    equations = structure.equations
    position = {name: j for j, name in enumerate(equations.unknowns)}
    matrix = np.zeros((len(equations.rows), len(position)), dtype=int)
    for i, row in enumerate(equations.rows):
        for name, order in equations.jets.unknowns(row.residual).items():
            matrix[i, position[name]] = order + 1
    return matrix, [row.text for row in equations.rows], list(equations.unknowns)


def incidence_after(structure: Structure) -> tuple[np.ndarray, list[str], list[str]]:
    """Return which leading unknowns each block needs, in the order of solution: block lower triangular."""
    rows = [i for block in structure.blocks for i in block.equations]
    columns = [j for block in structure.blocks for j in block.unknowns]
    matrix = np.zeros((len(rows), len(columns)), dtype=int)
    for i, row in enumerate(rows):
        for j, column in enumerate(columns):
            matrix[i, j] = int(column in structure.leading_incidence[row])
    return matrix, [structure.leading_texts[i] for i in rows], [structure.leading_unknowns[j] for j in columns]


def plot_incidence(structure: Structure, path: str | Path | None = None, ax: Axes | None = None) -> Figure:
    """Return two panels: equations as written, and the leading system in block order."""
    pictures = [
        ("as written", *incidence_before(structure)),
        ("after index reduction, in order of solution", *incidence_after(structure)),
    ]
    size = max(3.0, 0.28 * max(len(p[2]) for p in pictures))
    title = f"{structure.model.name}: differential index {structure.index}"
    figure, two = panels(ax, 1, 2, size=(2 * size + 5, min(size + 2, 30)), title=title)
    for axes, (title, matrix, rows, columns) in zip(two[0], pictures, strict=True):
        axes.set_title(title, fontsize=10)
        if not matrix.size:
            axes.text(0.5, 0.5, "nothing to solve: outputs are formulas", ha="center", va="center")
            axes.set_axis_off()
            continue
        axes.imshow(np.where(matrix > 0, matrix, np.nan), cmap="Blues", vmin=0, vmax=3, aspect="equal")
        axes.set_xticks(range(len(columns)), columns, rotation=90, fontsize=7)
        axes.set_yticks(range(len(rows)), [_short(r) for r in rows], fontsize=7)
        for i, j in zip(*np.nonzero(matrix > 1), strict=True):
            axes.text(j, i, "'" * (matrix[i, j] - 1), ha="center", va="center", fontsize=9)
        axes.set_xticks(np.arange(-0.5, len(columns)), minor=True)
        axes.set_yticks(np.arange(-0.5, len(rows)), minor=True)
        axes.grid(which="minor", color="0.85", linewidth=0.5)
        axes.tick_params(which="both", length=0)
    if path is not None:
        write_figure(path, figure, "The picture", dpi=150)
    return figure


def _short(text: str, limit: int = 48) -> str:
    return text if len(text) <= limit else text[: limit - 1] + "…"
