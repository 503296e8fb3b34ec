"""A document without its wrong parts, so that the rest can be checked further."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import Any

from grisaille.problem.document import Place


def prune_places(data: dict[str, Any], places: Iterable[Place]) -> dict[str, Any]:
    """Return a copy without what holds the given places: the parameter, the key of the experiment, or the whole
    table.
    """
    remaining = copy.deepcopy(data)
    for place in places:
        _remove(remaining, place)
    return remaining


def _remove(data: dict[str, Any], place: Place) -> None:
    top = place[0]
    if top == "experiments" and len(place) > 1 and isinstance(place[1], int):
        if len(place) > 2:
            data[top][place[1]].pop(place[2], None)
        elif not isinstance(data[top][place[1]], dict):
            data[top][place[1]] = {}
    elif top in ("parameters", "outputs", "study") and len(place) > 1 and isinstance(data.get(top), dict):
        data[top].pop(place[1], None)
    else:
        data.pop(str(top), None)
