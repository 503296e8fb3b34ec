"""The compiled integrators of a model, each built when it is first called.

Most of a compiler's time goes into integrators, and few runs need more than one: that of implicit steps is built where
it is asked for or a problem turns out stiff, that of frozen explicit steps where something is fitted. What is known to
be needed together is built at the same time (``build``).
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from grisaille.compilation.kernel_source import Sources
from grisaille.compilation.library import Library, Source, build_linked, can_build, no_compiler
from grisaille.compilation.schemes import Scheme, all_schemes
from grisaille.compilation.task import TaskStructure


@dataclass(frozen=True)
class Integrator:
    """What runs a task, how many doubles of scratch memory that takes, and where both are from."""

    library: Library
    run: ctypes._NamedFuncPointer
    work: ctypes._NamedFuncPointer


class Integrators:
    """By their schemes; ``sources`` gives the C files of each."""

    def __init__(self, sources: Sources) -> None:
        self.sources = sources
        self._lock = threading.Lock()
        self._locks: dict[object, threading.Lock] = {}
        self._built: dict[object, Integrator] = {}

    def demand(self) -> None:
        """Raises where none can ever be called: there is no compiler, and none was built before."""
        if not any(can_build(self.sources(scheme)) for scheme in _programs(all_schemes())):
            raise no_compiler()

    def build(self, *schemes: Scheme) -> None:
        """Those that are missing, at the same time."""
        missing = [scheme for scheme in _programs(schemes) if scheme.program not in self._built]
        if missing:
            with ThreadPoolExecutor(len(missing)) as threads:
                list(threads.map(self.of, missing))

    def of(self, scheme: Scheme) -> Integrator:
        found = self._built.get(scheme.program)
        if found is not None:
            return found
        with self._lock:
            lock = self._locks.setdefault(scheme.program, threading.Lock())
        with lock:
            if scheme.program not in self._built:
                self._built[scheme.program] = _loaded(scheme.header, self.sources(scheme))
        return self._built[scheme.program]


def _programs(schemes: Iterable[Scheme]) -> list[Scheme]:
    """One scheme of each program."""
    return list({scheme.program: scheme for scheme in schemes}.values())


def _loaded(name: str, sources: Sequence[Source]) -> Integrator:
    library = build_linked(sources)
    if library is None:
        raise no_compiler()
    library.check_size("gr_task_size")
    run = library.function(name, ctypes.POINTER(TaskStructure))
    return Integrator(library, run, library.function(f"{name}_work", ctypes.c_long))
