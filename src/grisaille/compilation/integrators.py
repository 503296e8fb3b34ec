"""The compiled integrators of a model, each built when it is first called, and built again where steps are many.

Most of a compiler's time goes into integrators, and few runs need more than one: that of implicit steps is built where
it is asked for or a problem turns out stiff, that of frozen explicit steps where something is fitted. What is known to
be needed together is built at the same time (``build``).

An integrator comes in two builds with the same digits (``kernel_source``): linked, which costs the model's functions
alone, and in one file, whose steps are quicker. Steps are counted over runs, fits and ensembles, and where those taken
with the linked one would have paid for the other, it is built and goes on from where the run stands, between two slices
of it: the scratch memory of both is the same. The count knows nothing of time, so every machine does the same.
"""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from grisaille.compilation.kernel_source import Sources
from grisaille.compilation.schemes import Scheme
from grisaille.compilation.shared_library import CSource, SharedLibrary, build_linked, can_build
from grisaille.compilation.task import TaskStructure
from grisaille.errors import CompilationError

AUTO, LINKED, WHOLE = "auto", "linked", "whole"
MANY_STEPS, PER_INSTRUCTION = 200_000, 400
"""Steps, each with its directions of sensitivities, that are worth building an integrator in one file: of a model
without instructions, and for each of its functions' instructions. A linked step of two states takes 0.5 to 1 µs longer,
one of 40 no longer; a file takes 0.25 s and more, the longer its functions are."""


def first_build() -> str:
    """Return what ``GRISAILLE_BUILD`` asks for: linked integrators until steps are many (auto), linked or whole ones
    only.
    """
    asked = os.environ.get("GRISAILLE_BUILD", "").strip().lower() or AUTO
    if asked not in (AUTO, LINKED, WHOLE):
        raise CompilationError(f"GRISAILLE_BUILD={asked!r} is none of auto, linked and whole. Correct or unset it.")
    return asked


@dataclass(frozen=True)
class CompiledIntegrator:
    """What runs a task, how many doubles of scratch memory that takes, and where both are from."""

    library: SharedLibrary
    run: ctypes._NamedFuncPointer
    work: ctypes._NamedFuncPointer


class Integrators:
    """By their schemes; ``sources`` gives the C files of each, ``whole`` those where steps are many."""

    def __init__(self, sources: Sources, whole: Sources | None = None, instructions: int = 0) -> None:
        self.sources = sources
        self.many = MANY_STEPS + PER_INSTRUCTION * instructions
        self.whole = None if first_build() == LINKED else whole
        self._lock = threading.Lock()
        self._locks: dict[object, threading.Lock] = {}
        self._built: dict[object, CompiledIntegrator] = {}
        self._steps: dict[object, int] = {}

    def build(self, *schemes: Scheme) -> None:
        """Build those that are missing, at the same time."""
        missing = [scheme for scheme in _programs(schemes) if scheme.program not in self._built]
        if missing:
            with ThreadPoolExecutor(len(missing)) as threads:
                list(threads.map(self.of, missing))

    def of(self, scheme: Scheme) -> CompiledIntegrator:
        found = self._built.get(scheme.program)
        if found is not None:
            return found
        with self._lock_of(scheme):
            if scheme.program not in self._built:
                self._built[scheme.program] = _loaded(scheme.header, self.sources(scheme))
        return self._built[scheme.program]

    def count(self, scheme: Scheme, steps: int, directions: int) -> None:
        """Add what a run has taken; where steps have become many, the next slice runs with the quicker build."""
        if self.whole is None or self._steps.get(scheme.program, 0) >= self.many:
            return
        with self._lock_of(scheme):
            before = self._steps.get(scheme.program, 0)
            self._steps[scheme.program] = before + steps * (1 + directions)
            if before < self.many <= self._steps[scheme.program]:
                sources = self.whole(scheme)
                if can_build(sources):
                    self._built[scheme.program] = _loaded(scheme.header, sources)

    def _lock_of(self, scheme: Scheme) -> threading.Lock:
        with self._lock:
            return self._locks.setdefault(scheme.program, threading.Lock())


def _programs(schemes: Iterable[Scheme]) -> list[Scheme]:
    """Return one scheme of each program."""
    return list({scheme.program: scheme for scheme in schemes}.values())


def _loaded(name: str, sources: Sequence[CSource]) -> CompiledIntegrator:
    library = build_linked(sources)
    library.check_size("gr_task_size")
    run = library.function(name, ctypes.POINTER(TaskStructure))
    return CompiledIntegrator(library, run, library.function(f"{name}_work", ctypes.c_long))
