"""The one sentence where a method has not got an ability: which methods of the package have it, and what else to do."""

from __future__ import annotations

from typing import Protocol

from grisaille.errors import EstimationError
from grisaille.estimation.abilities.ahead import Ahead
from grisaille.estimation.abilities.other_errors import OtherErrors
from grisaille.estimation.abilities.redraw import Redraw
from grisaille.estimation.abilities.states import States
from grisaille.estimation.estimator import Estimator


class Ability(Protocol):
    """words : what it is, as the beginning of a sentence; ``instead``: what can be had without it, as a verb."""

    words: str
    instead: str


ABILITIES: dict[str, Ability] = {"states": States, "ahead": Ahead, "redraw": Redraw, "other_errors": OtherErrors}
"""Every optional object, by the name that estimators give it under."""


def why_missing(method: Estimator, name: str) -> str:
    """Return the sentence about an ability that a method has not got; empty where it has."""
    if getattr(method, name) is not None:
        return ""
    ability, own = ABILITIES[name], type(method).__name__
    able = [n for n, kind in _public().items() if getattr(kind(), name) is not None]
    options = " with these options" if own in able else ""
    *others, last = (f"gr.{n}()" for n in able)
    listed, one = f"{', '.join(others)} or {last}" if others else last, "one of them" if others else "it"
    return (
        f"{ability.words} come with {listed}, not with {own}{options}: fit by {one} (guess=fit continues "
        f"from here), or "
        f"{ability.instead}."
    )


def missing_ability_error(method: Estimator, name: str) -> EstimationError:
    """Return the error to raise about an ability that a method has not got."""
    return EstimationError(why_missing(method, name))


def _public() -> dict[str, type[Estimator]]:
    """Return the estimators among the public names, also those whose modules are not imported yet."""
    import grisaille

    found = {n: getattr(grisaille, n) for n in dir(grisaille) if n[0].isupper()}
    return {n: kind for n, kind in found.items() if isinstance(kind, type) and issubclass(kind, Estimator)}
