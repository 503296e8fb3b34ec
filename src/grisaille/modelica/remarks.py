"""What is read otherwise than it is written, told once with its lines."""

from __future__ import annotations

import warnings

from grisaille.modelica.refusals import MAX_SHOWN_REFUSALS, ModelicaSource


class Remarks:
    """Everything that there is to tell of one text."""

    def __init__(self) -> None:
        self._found: dict[str, list[int]] = {}

    def add(self, at: int, words: str) -> None:
        """Note one; the same words in several lines are told once."""
        self._found.setdefault(words, []).append(at)

    def note_accepted(self, source: ModelicaSource) -> None:
        """One warning with all of them."""
        entries = [([source.line(at) for at in places], words) for words, places in self._found.items()]
        shown = [f"  {source.line_text(lines)}: {words}" for lines, words in entries[:MAX_SHOWN_REFUSALS]]
        more = [f"  … and {len(entries) - MAX_SHOWN_REFUSALS} more"] if len(entries) > MAX_SHOWN_REFUSALS else []
        if entries:
            warnings.warn("\n".join([f"{source.label} was read, but:", *shown, *more]), UserWarning, stacklevel=11)
