"""What a reproduction gives: our numbers beside the published ones, remarks, and files with figures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from grisaille.writing import write_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from rich.table import Table

Size = Literal["small", "full"]
Shown = float | int | str | None


@dataclass(frozen=True)
class Row:
    """One quantity; ``published`` is None where the source gives no number."""

    quantity: str
    ours: Shown
    published: Shown = None
    theory: Shown = None


@dataclass(frozen=True)
class Reproduction:
    """A reproduced table or figure."""

    title: str
    rows: tuple[Row, ...]
    notes: tuple[str, ...] = ()
    figures: tuple[Path, ...] = field(default=())

    def __getitem__(self, quantity: str) -> Row:
        return next(row for row in self.rows if row.quantity == quantity)

    def ours(self, quantity: str) -> float:
        """Our number of a quantity."""
        return float(self[quantity].ours or 0.0)

    def table(self) -> Table:
        from rich.markup import escape
        from rich.table import Table

        with_theory = any(row.theory is not None for row in self.rows)
        table = Table(title=self.title, title_justify="left")
        table.add_column("quantity")
        for name in ("ours", "theory", "published") if with_theory else ("ours", "published"):
            table.add_column(name, justify="right")
        for row in self.rows:
            shown = (row.ours, row.theory, row.published) if with_theory else (row.ours, row.published)
            table.add_row(escape(row.quantity), *map(text, shown))
        return table

    def show(self) -> None:
        """Print the table, the remarks and where the figures are."""
        from rich.console import Console

        console = Console(highlight=False)
        console.print(self.table())
        for note in self.notes:
            console.print(f"• {note}", markup=False, soft_wrap=True)
        for path in self.figures:
            console.print(f"Figure written to {path}", markup=False, soft_wrap=True)


def text(value: Shown) -> str:
    """A cell of the table."""
    if value is None:
        return "–"
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def save_figures(figures: dict[str, Figure], folder: Path | None) -> tuple[Path, ...]:
    """Write figures as ``NAME.png`` into the folder; nothing without one."""
    if folder is None:
        return ()
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for name, figure in figures.items():
        path = folder / f"{name}.png"
        write_figure(path, figure, "The figure", dpi=120)
        paths.append(path)
    return tuple(paths)


def new_figure(
    rows: int = 1, columns: int = 1, *, width: float = 5.0, height: float = 3.4
) -> tuple[Figure, Sequence[Axes]]:
    """A figure without a window, and its axes as a flat list."""
    import numpy as np
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width * columns, height * rows), layout="constrained")
    return figure, list(np.atleast_1d(figure.subplots(rows, columns)).ravel())
