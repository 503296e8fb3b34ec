"""Building the integrators that small models are linked to, and programs that serve all models, before a model asks for
them."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib import resources
from itertools import product

from grisaille.compilation.kernel_source import dense_kind, shared_source
from grisaille.compilation.schemes import AUTO, FROZEN
from grisaille.compilation.shared_library import CSource, build_linked, build_shared_object, is_built

LINKED_KINDS = ("HAS_Z", "HAS_C", "HAS_SIDES", "HAS_BENDS", "HAS_E", "HAS_W")
"""What a model may have: implicit unknowns, hidden constraints, switches, bends, relations that are held, clauses of
events (gr_linked.h)."""

PROGRAMS = (
    "filtering/kalman.c",
    "filtering/transition.c",
    "collocation/assembly.c",
    "collocation/direct_elimination.c",
)
"""C files of later rooms that belong to no model."""


@dataclass(frozen=True)
class WarmUp:
    """What was built; ``print`` it."""

    integrators: int
    built: int
    seconds: float

    def __str__(self) -> str:
        if not self.built:
            return f"All {self.integrators} integrators are in the cache already: models compile their equations alone."
        missing = "all" if self.built == self.integrators else f"{self.built} of"
        return (
            f"Built {missing} {self.integrators} integrators in {self.seconds:.0f} s: from now on models compile their "
            f"equations alone."
        )


def warm_up(on_progress: Callable[[int, int], None] | None = None) -> WarmUp:
    """Builds what is not in the cache yet of the integrators of the usual kinds of small models, and of programs for
    filters and splines, on all processors.

    on_progress : called with how many are done and how many there are
    """
    sources, begin = [*_programs(), *_sources()], time.perf_counter()
    built = 0
    with ThreadPoolExecutor(os.cpu_count() or 1) as threads:
        for done, is_new in enumerate(threads.map(_prepare, sources), start=1):
            built += is_new
            if on_progress is not None:
                on_progress(done, len(sources))
    return WarmUp(len(sources), built, time.perf_counter() - begin)


def _prepare(source: CSource) -> bool:
    if not source.once:
        return build_shared_object(source)
    is_new = not is_built([source])
    build_linked([source])
    return is_new


def _programs() -> list[CSource]:
    package = resources.files("grisaille")
    return [CSource(package.joinpath(file).read_text(encoding="utf-8"), 0) for file in PROGRAMS]


def _sources() -> list[CSource]:
    schemes = {scheme.program: scheme for scheme in (*AUTO, *FROZEN)}.values()
    kinds = [
        dict(zip(LINKED_KINDS, has, strict=True)) | {"BENT": 0} for has in product((0, 1), repeat=len(LINKED_KINDS))
    ]
    return [shared_source(dense_kind(kind), scheme, False) for kind in kinds if _is_usual(kind) for scheme in schemes]


def _is_usual(kind: Mapping[str, int]) -> bool:
    """Relations that are held have shares among the implicit unknowns, and clauses of events have such relations. With
    hidden constraints beside them, or bends of their gaps, models are few: theirs are built when they are asked for."""
    return kind["HAS_Z"] > kind["HAS_C"] if kind["HAS_E"] else not kind["HAS_W"]
