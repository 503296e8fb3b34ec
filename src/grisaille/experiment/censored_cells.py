"""Samples of which only a limit is known: cells such as ``<0.1``, at or below 0.1, and ``>25``, at or above 25.

An experiment keeps the limit as the sample's value, and a mark beside it: −1 at or below, +1 at or above, 0 for what
was measured. Marks mean something to laws that take limits from the data alone (``gr.laws.Censored``).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from grisaille.errors import DataError
from grisaille.experiment import signal_checks
from grisaille.experiment.experiment_content import ExperimentContent, compared_rows
from grisaille.experiment.sampled_signals import SampledSignal
from grisaille.model.names import suggestion

if TYPE_CHECKING:
    from collections.abc import Sequence

Marks = NDArray[np.int8]

LIMIT_CELL = re.compile(r"\s*(<=?|>=?|≤|≥)\s*([+-]?(\d+[.,]?\d*|[.,]\d+)([eE][+-]?\d+)?)\s*")
LIMIT_SIDES = {"<": -1, "≤": -1, ">": 1, "≥": 1}
MISSING_TEXTS = frozenset({"", "-", "na", "n/a", "nan", "null", "none", "missing"})
"""Texts that mean: not measured. Compared in lower case."""


def is_marked(cell: object) -> bool:
    """Return whether a cell is a text such as ``<0.1``."""
    return isinstance(cell, str) and LIMIT_CELL.fullmatch(cell) is not None


def limit_of(cell: str) -> tuple[str, int]:
    """Return the number in a marked cell as text, and its mark."""
    found = LIMIT_CELL.fullmatch(cell)
    assert found is not None
    return found[2], LIMIT_SIDES[found[1][0]]


def without_marks(cells: Any) -> tuple[Any, Marks | None]:
    """Return values with limits as numbers, and the marks; the values as they are and None where there are no marks.

    Where some cells are marked, numbers may be texts as well, as readers of tables leave them.
    """
    array = signal_checks.as_array(cells)
    if array.ndim != 1 or array.dtype.kind in "biufcmM":
        return cells, None
    plain = array.tolist()
    marked = [is_marked(cell) for cell in plain]
    if not any(marked):
        return cells, None
    marks = np.array([limit_of(c)[1] if m else 0 for c, m in zip(plain, marked, strict=True)], dtype=np.int8)
    found = np.empty(len(plain), dtype=object)
    for k, cell in enumerate(plain):
        found[k] = _number(limit_of(cell)[0] if marked[k] else cell)
    return found, marks


def with_marks(values: np.ndarray, marks: np.ndarray) -> np.ndarray:
    """Return cells of which those that are marked are texts, as ``without_marks`` reads them."""
    cells = values.astype(object)
    for k in np.flatnonzero(marks):
        cells[k] = f"{'<' if marks[k] < 0 else '>'}{float(values[k])!r}"
    return cells


def _number(cell: Any) -> Any:
    """Return a text as the number that it is; anything else as it is."""
    if not isinstance(cell, str):
        return cell
    if cell.strip().lower() in MISSING_TEXTS:
        return np.nan
    try:
        return cell if "_" in cell else float(cell)
    except ValueError:
        return cell


def read_marks(given: Any, texts: Mapping[str, Marks], outputs: Mapping[str, SampledSignal]) -> dict[str, Marks]:
    """Return the marks of outputs that have any: those of their cells, and those that are given by name."""
    found = dict(texts)
    for name, marks in signal_checks.check_mapping(given, "marks", "{'y': [0, -1, 0]}").items():
        if name not in outputs:
            raise DataError(f"marks= names '{name}', which is not among outputs=. {suggestion(name, outputs)}")
        if name in texts:
            raise DataError(
                f"marks= names '{name}', whose cells are marked themselves, such as '<0.1': give one of both."
            )
        found[name] = _checked(name, marks, outputs[name].values)
    kept = {n: np.where(np.isfinite(outputs[n].values), m, 0).astype(np.int8) for n, m in found.items()}
    for marks in kept.values():
        marks.flags.writeable = False
    return {n: m for n, m in kept.items() if m.any()}


def _checked(name: str, marks: np.ndarray | Sequence[int], values: np.ndarray) -> np.ndarray:
    numbers = signal_checks.read_numbers(marks, f"marks of output '{name}'")
    signal_checks.check_length(numbers, values, f"marks of output '{name}'", "samples")
    bad = np.flatnonzero(~np.isin(numbers, (-1, 0, 1)))
    if bad.size:
        raise DataError(
            f"marks of output '{name}' hold {numbers[bad[0]]:g} in row {bad[0]}: give -1 for a sample at or below its "
            f"value, 1 for one at or above it, 0 for one that was measured."
        )
    return numbers


def compared_marks(record: ExperimentContent, output: str) -> np.ndarray:
    """Return the marks of the samples of an output that are compared with a model."""
    rows = compared_rows(record, output)
    return record.marks[output][rows] if output in record.marks else np.zeros(len(rows), dtype=np.int8)


def marks_kept(record: ExperimentContent, outputs: Mapping[str, SampledSignal]) -> dict[str, np.ndarray]:
    """Return the marks that outputs keep which replace those of a record: where values are the same, or have their own.

    New values of an output with marks are refused: nobody knows which of them are limits.
    """
    kept = {}
    for name, marks in record.marks.items():
        given = outputs.get(name)
        if given is None:
            continue
        old, values = record.outputs[name], given[1] if isinstance(given, tuple) and len(given) == 2 else given
        if given is old or values is old.values:
            kept[name] = marks
        elif without_marks(values)[1] is None:
            count = int((marks != 0).sum())
            raise DataError(
                f"replace(outputs=…) gives other values to '{name}', of which {count} sample{'s' * (count > 1)} are "
                f"known by a limit alone: say marks=experiment.marks where the new values are limits too, or "
                f"marks={{}} where all of them were measured."
            )
    return kept
