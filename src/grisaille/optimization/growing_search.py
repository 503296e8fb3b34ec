"""A search over the unknowns that affect the residuals; the others are held.

Methods that step without a model of their own (SciPy's) would walk a dead unknown through its whole range. What is dead
is looked at where such a method begins, where it has got to, and where it ends: an unknown that dies on the way is held
from there on, and one that comes alive is let go.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic

import numpy as np

from grisaille.optimization.criterion import E
from grisaille.optimization.search import LIMIT_STATUS, STALLED_STATUS, Search

MAX_ROUNDS = 12
"""Changes of what is held, at most."""
NOTHING_MOVES_STATUS = "no unknown moves anything"


class UnknownsChanged(Exception):
    """Raised where the set of unknowns that affect the residuals has changed."""

    def __init__(self, xi: np.ndarray) -> None:
        super().__init__()
        self.xi = xi


class GrowingSearchEnd(Exception):
    """Raised where a search has to end, whatever its method decides."""


@dataclass(frozen=True, eq=False)
class GrowingSearch(Generic[E]):
    """A search restricted to the unknowns that affect the residuals."""

    search: Search[E]
    held_at: np.ndarray
    live: np.ndarray
    is_last: bool = False

    def whole(self, part: np.ndarray) -> np.ndarray:
        xi = self.held_at.copy()
        xi[self.live] = part
        return xi

    def go_on(self) -> None:
        """Raise ``GrowingSearchEnd`` where no evaluation is left, or many have gained next to nothing."""
        if not self.search.left or self.search.has_stalled:
            raise GrowingSearchEnd(STALLED_STATUS if self.search.left else LIMIT_STATUS)

    def examine(self, xi: np.ndarray) -> None:
        """Raise ``UnknownsChanged`` where an unknown has died or come alive at ξ."""
        if not self.is_last and not np.array_equal(moving_unknowns(self.search, xi), self.live):
            raise UnknownsChanged(xi)


def moving_unknowns(search: Search[E], xi: np.ndarray) -> np.ndarray:
    """Return unknowns that some residual depends on at ξ; all of them where there are no derivatives."""
    found = search.at(xi)
    if not found.completed or not found.jacobian.size:
        return np.ones(len(xi), dtype=bool)
    return search.moving(found)


def minimize_with_dead_unknowns(
    search: Search[E],
    xi: np.ndarray,
    method: Callable[[GrowingSearch[E]], tuple[np.ndarray, bool, str]],
    awake: np.ndarray | None = None,
) -> tuple[bool, str]:
    """Minimise over the unknowns that affect the residuals, again as long as that set changes; return whether it ended
    well, and why.

    method : gives the end ξ of the part, whether that is well, and the reason
    awake : where to go on from when an unknown is found alive at the end; there, if not given
    """
    known = search.last is not None and search.last.jacobian.size
    live = moving_unknowns(search, xi) if known else np.ones(len(xi), dtype=bool)
    for k in range(MAX_ROUNDS):
        if not live.any() or not search.left:
            return False, NOTHING_MOVES_STATUS if search.left else LIMIT_STATUS
        part = GrowingSearch(search, xi, live, k == MAX_ROUNDS - 1)
        try:
            end, well, reason = method(part)
        except UnknownsChanged as changed:
            xi = changed.xi
            live = moving_unknowns(search, xi)
            continue
        except GrowingSearchEnd as ended:
            return False, str(ended)
        xi = part.whole(end)
        search.settle(xi)
        now = moving_unknowns(search, xi)
        if not (now & ~live).any() or not search.left:
            break
        live, xi = live | now, xi if awake is None else awake
    return well, reason
