"""``when Clock(0.1) then …`` as events of ``sample``: what is written inside the ``when`` of a clock means the same.

A periodic clock ticks first at the start of a run, one with a condition whenever that becomes true. ``previous(x)`` is
``pre(x)``, ``hold(x)`` is x, which stays between ticks, and ``sample(x)`` is x just before the tick. Clocks that are
found by inference, equations outside of a ``when`` among them, are left as they are, and refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from grisaille.modelica.full.mending import Edit, apply_edits, end_of_argument, without_words

_DECLARED = re.compile(r"(?<![\w.])Clock\s+(\w+)\s*=\s*([^;]*?\))?\s*(?:\"\s*\")?\s*;")
_WHEN = re.compile(r"\b(?:else)?when\b([^;]*?)\bthen\b")
_CALL = re.compile(r"\s*(\w+)\s*\(")
_RELATION = re.compile(r"[<>]|==|\b(?:not|and|or|edge|change|initial)\b")
_OF_CLOCKS = re.compile(
    r"(?<![\w.])(?:Clock\b|(?:previous|hold|subSample|superSample|shiftSample|backSample|noClock|firstTick|interval)\s*\()"
)
_NAME = re.compile(r"\s*[A-Za-z_][\w.]*(?:\[[^\]]*\])?\s*")


@dataclass(frozen=True)
class _Clock:
    """When a clock ticks: from a start on, or with a condition."""

    start: str = "0"
    period: str = ""
    condition: str = ""

    @property
    def text(self) -> str:
        return f"({self.condition})" if self.condition else f"sample({self.start}, {self.period})"


def without_clocks(text: str) -> str:
    """Return the text with events in place of clocks; as it is where that is not the same."""
    if not re.search(r"(?<![\w.])Clock\b", without_words(text)):
        return text
    changed = _with_conditions_before(text)
    for name, written in (("previous", _previous), ("hold", _held), ("sample", _sampled)):
        changed = _with_calls(changed, name, written)
    bare = without_words(changed)
    clocks: dict[str, _Clock] = {}
    edits: list[Edit] = []
    for made in _DECLARED.finditer(bare):
        clock = _clock(made[2] or "", clocks)
        if clock is None:
            return text
        clocks[made[1]] = clock
        edits.append((made.start(), made.end(), ""))
    for when in _WHEN.finditer(bare):
        clock = _clock(when[1], clocks)
        if clock is not None:
            edits.append((when.start(1), when.end(1), f" {clock.text} "))
    changed = apply_edits(changed, edits)
    return text if _OF_CLOCKS.search(without_words(changed)) else changed


def _with_conditions_before(text: str) -> str:
    """Return what is held in the condition of a clock is what it was before the tick."""
    bare = without_words(text)
    edits: list[Edit] = []
    for made in re.finditer(r"(?<![\w.])Clock\s*\(", bare):
        inside = bare[made.end() : end_of_argument(bare, made.end(), ")")]
        held = re.finditer(r"(?<![\w.])hold(?=\s*\()", inside)
        edits += [(made.end() + m.start(), made.end() + m.end(), "pre") for m in held]
    return apply_edits(text, edits)


def _with_calls(text: str, name: str, written: Callable[[list[str]], str | None]) -> str:
    """Return every call of a function of one argument written anew, the innermost first."""
    while True:
        bare = without_words(text)
        calls = [m for m in re.finditer(rf"(?<![\w.]){name}\s*\(", bare)]
        for call in reversed(calls):
            end = end_of_argument(bare, call.end(), ")")
            new = written(list(_arguments(bare[call.end() : end])))
            if new is not None:
                text = apply_edits(text, [(call.start(), end + 1, new)])
                break
        else:
            return text


def _arguments(inside: str) -> Iterator[str]:
    at = 0
    while at <= len(inside):
        end = end_of_argument(inside, at, ",")
        yield inside[at:end].strip()
        at = end + 1


def _previous(arguments: list[str]) -> str | None:
    return f"pre({arguments[0]})" if len(arguments) == 1 else None


def _held(arguments: list[str]) -> str | None:
    return f"({arguments[0]})" if len(arguments) == 1 else None


def _sampled(arguments: list[str]) -> str | None:
    """Return ``sample(x)`` is the value just before; ``sample(start, period)`` stays."""
    if len(arguments) != 1:
        return None
    if arguments[0] == "time":
        return "(time)"
    return f"pre({arguments[0]})" if _NAME.fullmatch(arguments[0]) else None


def _clock(written: str, known: dict[str, _Clock]) -> _Clock | None:
    """Return the clock that an expression is; None where it is none, or not known."""
    written = written.strip()
    if written in known:
        return known[written]
    called = _CALL.match(written)
    if called is None or end_of_argument(written, called.end(), ")") != len(written) - 1:
        return None
    first, *rest = [a for a in _arguments(written[called.end() : -1]) if not re.match(r"\w+\s*=(?!=)", a)] or [""]
    if called[1] == "Clock":
        inner = _clock(first, known)
        if not first or inner is not None:
            return None if rest else inner
        if _RELATION.search(first):
            return _Clock(condition=first)
        return _Clock(period=f"({first}) / ({rest[0]})" if rest else f"({first})")
    clock = _clock(first, known)
    if clock is None or clock.condition or not rest:
        return None
    factor = f"({rest[0]})" + (f" / ({rest[1]})" if len(rest) > 1 else "")
    return {
        "subSample": _Clock(clock.start, f"{clock.period} * {factor}"),
        "superSample": _Clock(clock.start, f"{clock.period} / {factor}"),
        "shiftSample": _Clock(f"{clock.start} + {clock.period} * {factor}", clock.period),
        "backSample": _Clock(f"{clock.start} - {clock.period} * {factor}", clock.period),
    }.get(called[1])
