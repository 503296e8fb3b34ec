"""The report's part on data: a table of signals per experiment, with remarks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from grisaille.markup import Html, joined, table, tag
from grisaille.reporting.labels import short_number
from grisaille.reporting.page import bullets, card, scrolling

if TYPE_CHECKING:
    from grisaille.experiment.experiment import Experiment


def data_part(experiments: tuple[Experiment, ...], most: int) -> Html:
    """Return a card per experiment."""
    cards = [_one(experiment) for experiment in experiments[:most]]
    if len(experiments) > most:
        cards.append(tag("p", f"… and {len(experiments) - most} more experiments.", class_="muted"))
    return joined(cards)


def _one(experiment: Experiment) -> Html:
    summary = experiment.summary()
    frame = summary.table
    rows = [(name, *(_cell(v) for v in row)) for name, row in zip(frame.index, frame.to_numpy(), strict=True)]
    right = [k for k, column in enumerate(frame.columns, 1) if column not in ("role", "unit")]
    fingerprint = tag("p", "fingerprint ", tag("code", experiment.fingerprint[:16]), class_="muted")
    return card(
        scrolling(table(("signal", *frame.columns), rows, numbers=right)), bullets(summary.notes), fingerprint,
        title=summary.heading,
    )  # fmt: skip


def _cell(value: Any) -> str:
    return value if isinstance(value, str) else "" if value is None or value != value else short_number(value, 4)
