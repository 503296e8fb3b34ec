"""The compiled integrators of a model, each built when it is first called.

Most of a compiler's time goes into integrators, and few runs need more than one: that of implicit steps is built where
it is asked for or a problem turns out stiff, that of frozen explicit steps where something is fitted. What is known to
be needed together is built at the same time (``build``).
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from grisaille.compilation.library import Library, Source, build_linked, can_build, no_compiler
from grisaille.compilation.task import TaskStructure


@dataclass(frozen=True)
class Integrator:
    """What runs a task, how many doubles of scratch memory that takes, and where both are from."""

    library: Library
    run: ctypes._NamedFuncPointer
    work: ctypes._NamedFuncPointer


class Integrators:
    """By the names of their entries; ``sources`` holds the C files of each."""

    def __init__(self, sources: Mapping[str, Sequence[Source]]) -> None:
        self._sources = sources
        self._locks = {entry: threading.Lock() for entry in sources}
        self._built: dict[str, Integrator] = {}

    def demand(self) -> None:
        """Raises where none can ever be called: there is no compiler, and none was built before."""
        if not any(map(can_build, self._sources.values())):
            raise no_compiler()

    def build(self, *entries: str) -> None:
        """Those that are missing, at the same time."""
        missing = [entry for entry in entries if entry not in self._built]
        if missing:
            with ThreadPoolExecutor(len(missing)) as threads:
                list(threads.map(self.entry, missing))

    def entry(self, name: str) -> Integrator:
        found = self._built.get(name)
        if found is not None:
            return found
        with self._locks[name]:
            if name not in self._built:
                self._built[name] = _loaded(name, self._sources[name])
        return self._built[name]


def _loaded(name: str, sources: Sequence[Source]) -> Integrator:
    library = build_linked(sources)
    if library is None:
        raise no_compiler()
    library.check_size("gr_task_size")
    run = library.function(name, ctypes.POINTER(TaskStructure))
    return Integrator(library, run, library.function(f"{name}_work", ctypes.c_long))
