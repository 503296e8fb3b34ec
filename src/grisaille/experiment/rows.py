"""Names of rows in the reader's words: ``row 3``, ``row 3 (index 'b')`` or ``line 7 of run.csv``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

MAX_LISTED = 5


@dataclass(frozen=True)
class RowNames:
    """Names of rows: positions from 0 unless ``numbers`` says otherwise."""

    word: str = "row"
    numbers: np.ndarray | None = None
    source: str = ""
    labels: Sequence[Any] | None = None
    """Index entries of a frame, added in brackets."""

    def at(self, k: int) -> str:
        """Return ``line 7 of run.csv``."""
        label = "" if self.labels is None else f" (index {str(self.labels[k])!r})"
        return f"{self.word} {self.number(k)}{label}{f' of {self.source}' if self.source else ''}"

    def number(self, k: int) -> int:
        return int(k) if self.numbers is None else int(self.numbers[k])

    def listed(self, positions: Sequence[int]) -> str:
        """Return ``rows 3, 5 and 9`` or ``rows 3, 5, 9, 12, 13, … (40 in all)``."""
        if len(positions) == 1:
            return self.at(positions[0])
        numbers = [str(self.number(k)) for k in positions]
        if len(numbers) > MAX_LISTED:
            text = f"{', '.join(numbers[:MAX_LISTED])}, … ({len(numbers)} in all)"
        else:
            text = f"{', '.join(numbers[:-1])} and {numbers[-1]}"
        return f"{self.word}s {text}{f' of {self.source}' if self.source else ''}"

    def take(self, positions: np.ndarray) -> RowNames:
        """Return the names of some of the rows."""
        numbers = np.arange(positions.max() + 1) if self.numbers is None else self.numbers
        labels = None if self.labels is None else [self.labels[k] for k in positions]
        return replace(self, numbers=numbers[positions], labels=labels)


PLAIN_ROWS = RowNames()
