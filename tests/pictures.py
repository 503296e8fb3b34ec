"""Pictures of the documentation are drawn by the page that shows them.

A page that saves ``lynx.png`` and shows ``…/lynx.png`` must show what it saves. Compared is the share of ink that has
no counterpart in the other picture within a few pixels: another version of matplotlib may move things so far (a shift
by three pixels gives up to 5 %), and a curve that ends one tenth lower gives 12 %. With ``GRISAILLE_PICTURES=write``
what was drawn takes the place of what is shown, with few colours, which makes files small.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import numpy as np
from PIL import Image

SHOWN = re.compile(r"!\[[^\]]*\]\(([^)]+\.png)\)")
SQUARE = 4
"""Side of the squares whose grey levels are compared [pixels]."""
ALLOWED = 0.08
"""Share of the ink that may differ."""
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
        share = difference(shown, drawn)
        assert share < ALLOWED, (
            f"{page.name} draws another {shown.name} than the one it shows ({100 * share:.0f} % of the ink): look at "
            f"both; python3 scripts/gallery keeps the new one."
        )


def write_small(drawn: Path, shown: Path) -> None:
    shown.parent.mkdir(parents=True, exist_ok=True)
    few = Image.open(drawn).convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE)
    few.save(shown, optimize=True)


def difference(one: Path, other: Path) -> float:
    """The share of ink of both pictures without a counterpart near it; infinite where the sizes differ."""
    first, second = ink(one), ink(other)
    if first.shape != second.shape:
        return np.inf
    lonely = beyond_neighbours(first, second) + beyond_neighbours(second, first)
    return float(lonely.sum() / max(first.sum() + second.sum(), 1.0))


def beyond_neighbours(here: np.ndarray, there: np.ndarray) -> np.ndarray:
    """How far each square is outside the range of the same square and its eight neighbours in the other picture."""
    around = np.lib.stride_tricks.sliding_window_view(np.pad(there, 1, mode="edge"), (3, 3))
    lowest, highest = around.min(axis=(2, 3)), around.max(axis=(2, 3))
    return np.maximum(np.maximum(lowest - here, here - highest), 0.0)


def ink(path: Path) -> np.ndarray:
    """Darkness of the squares, 0 for white and 255 for black."""
    return 255.0 - np.asarray(Image.open(path).convert("L").reduce(SQUARE), dtype=float)
