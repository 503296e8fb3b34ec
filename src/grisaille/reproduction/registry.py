"""Which reproductions there are, by name; modules are imported when one of their entries runs."""

from __future__ import annotations

import difflib
import importlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from grisaille.errors import DataError
from grisaille.reproduction.comparison import Comparison, Size


@dataclass(frozen=True)
class Entry:
    """A table or figure that can be computed again."""

    name: str
    title: str
    module: str
    function: str

    def run(self, size: Size = "small", folder: Path | None = None, executor: Any = None) -> Comparison:
        """Compute it.

        size : ``"small"`` takes seconds, ``"full"`` has the numbers of runs of the source
        folder : where figures go; None: no figures
        executor : of the studies in it, as in ``gr.monte_carlo``
        """
        module = importlib.import_module(f"grisaille.reproduction.{self.module}")
        result: Comparison = getattr(module, self.function)(size, folder, executor)
        return result


def _fladischer(name: str, title: str, module: str, function: str) -> Entry:
    return Entry(f"fladischer/{name}", title, f"fladischer_{module}", function)


def _abdalmoaty(name: str, title: str, module: str, function: str) -> Entry:
    return Entry(f"abdalmoaty/{name}", title, f"abdalmoaty_{module}", function)


ENTRIES = (
    _fladischer("figures-3.1-3.6", "Cost functions of four curve fits", "curves", "cost_functions"),
    _fladischer("table-4.1", "Free fall: one data set, two optimizers", "free_fall", "one_data_set"),
    _fladischer("table-4.2", "Free fall: two data sets, jointly and averaged", "free_fall", "two_data_sets"),
    _fladischer("table-4.3", "Free fall: spread of the drag coefficient", "free_fall_spread", "spread_of_drag"),
    _fladischer("figure-4.10", "Free fall: spread against the number of repeats", "free_fall_spread", "repeats"),
    _fladischer("figures-4.11-4.12", "Free fall: cost over drag and initial conditions", "free_fall", "cost_surfaces"),
    _fladischer("table-4.4", "Free fall: initial conditions unknown", "free_fall_spread", "spread_with_starts"),
    _fladischer("figures-4.15-4.16", "Hardening spring: fits of A, B and both", "duffing", "identification"),
    _fladischer("table-4.5", "Hardening spring: spread of the stiffness", "duffing_spread", "spread_of_stiffness"),
    _fladischer("figure-4.22", "Hardening spring: 784 starts", "duffing", "many_starts"),
    _fladischer("figures-4.25-4.30", "LuGre friction: hysteresis", "lugre", "hysteresis"),
    _fladischer("figures-4.31-4.33", "LuGre friction: sensitivities", "lugre", "sensitivities"),
    _fladischer("figures-4.34-4.38", "LuGre friction: identification", "lugre_fit", "identification"),
    _abdalmoaty("fig1", "Pendulum: estimates over data sets, on a grid", "estimates", "estimates"),
    _abdalmoaty("fig1-gauss-newton", "Pendulum: the same by Gauss–Newton", "estimates", "by_gauss_newton"),
    _abdalmoaty("fig2", "Pendulum: criterion with kept and fresh innovations", "smoothness", "smoothness"),
)


def find(name: str) -> tuple[Entry, ...]:
    """The entries that a name means: one of them, or all of a paper."""
    wanted = name.strip().strip("/").lower()
    found = tuple(e for e in ENTRIES if e.name == wanted or e.name.partition("/")[0] == wanted)
    if found:
        return found
    near = difflib.get_close_matches(wanted, [e.name for e in ENTRIES], n=3, cutoff=0.3)
    hint = f" Near: {', '.join(near)}." if near else ""
    raise DataError(f"There is no reproduction called {name!r}.{hint} 'grisaille reproduce --list' shows all.")


def listing() -> str:
    """Names and titles, one per line."""
    width = max(len(e.name) for e in ENTRIES)
    return "\n".join(f"{e.name:<{width}}  {e.title}" for e in ENTRIES)
