"""Pictures of the documentation are drawn by the page that shows them.

A page that saves ``lynx.png`` and shows ``…/lynx.png`` must show what it saves: both pictures are compared as means of
squares, each with its neighbours, so that things may move by a few pixels, as from one version of matplotlib to the
next, and no further. With ``GRISAILLE_PICTURES=write`` what was drawn takes the place of what is shown, with few
colours, which makes files small.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import numpy as np
from PIL import Image

SHOWN = re.compile(r"!\[[^\]]*\]\(([^)]+\.png)\)")
SQUARE = 12
"""Side of the squares [pixels]."""
MEAN, LARGEST = 1.0, 40.0
"""Differences allowed between squares, of 255 grey levels."""
COLOURS = 64


def drawn_pictures(page: Path, folder: Path) -> dict[Path, Path]:
    """What the page shows and has drawn: the file shown, and the one drawn into ``folder``."""
    shown = (page.parent / target for target in SHOWN.findall(page.read_text("utf-8")))
    return {path.resolve(): folder / path.name for path in shown if (folder / path.name).exists()}


def refuse_other_pictures(page: Path, folder: Path) -> None:
    """Compares, or writes when asked to."""
    for shown, drawn in drawn_pictures(page, folder).items():
        if os.environ.get("GRISAILLE_PICTURES") == "write":
            write_small(drawn, shown)
        assert shown.exists(), f"{page.name} shows {shown.name}, which python3 scripts/gallery has yet to draw"
        mean, largest = difference(shown, drawn)
        assert mean < MEAN and largest < LARGEST, (
            f"{page.name} draws another {shown.name} than the one it shows (squares differ by {mean:.1f} on average "
            f"and {largest:.0f} at most, of 255): look at both; python3 scripts/gallery keeps the new one."
        )


def write_small(drawn: Path, shown: Path) -> None:
    shown.parent.mkdir(parents=True, exist_ok=True)
    few = Image.open(drawn).convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE)
    few.save(shown, optimize=True)


def difference(one: Path, other: Path) -> tuple[float, float]:
    """Mean and largest difference of the squares' grey levels; infinite where the sizes differ."""
    first, second = squares(one), squares(other)
    if first.shape != second.shape:
        return np.inf, np.inf
    apart = np.maximum(beyond_neighbours(first, second), beyond_neighbours(second, first))
    return float(apart.mean()), float(apart.max())


def beyond_neighbours(grey: np.ndarray, other: np.ndarray) -> np.ndarray:
    """How far each square is outside the range of the same square and its eight neighbours in the other picture."""
    around = np.lib.stride_tricks.sliding_window_view(np.pad(other, 1, mode="edge"), (3, 3))
    lowest, highest = around.min(axis=(2, 3)), around.max(axis=(2, 3))
    return np.maximum(np.maximum(lowest - grey, grey - highest), 0.0)


def squares(path: Path) -> np.ndarray:
    return np.asarray(Image.open(path).convert("L").reduce(SQUARE), dtype=float)
