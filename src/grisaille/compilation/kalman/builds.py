"""The library of a filter: one that is there soon, and where filters have run long enough to pay for it, a quicker one.

Both are built from the same text and give the same digits. Operations are counted over passes, with their directions,
and never timed, so that every machine does the same. One that is in the cache already is taken at once.
"""

from __future__ import annotations

import ctypes
import threading

from grisaille.compilation.debugging import is_debugging
from grisaille.compilation.integrators import LINKED, WHOLE, first_build
from grisaille.compilation.shared_library import CSource, SharedLibrary, build_linked, can_build, is_built

MANY, PER_INSTRUCTION = 1.7e9, 5.6e5
"""Operations of passes that are worth the quicker build: of a filter without instructions, and for each instruction
that its text has. A pass of a pendulum then takes 0.6 of the time; the draft is built in 0.3 of it."""

_DRAFT = "#define GR_DRAFT 1\n"


class FilterLibrary(SharedLibrary):
    """The library that runs a filter's passes at present."""

    def __init__(self, library: SharedLibrary, final: CSource | None, operations: int) -> None:
        self.path = library.path
        self.operations = operations
        self._library = library
        self._final = final
        self._left = 0.0 if final is None else MANY + PER_INSTRUCTION * final.instructions
        self._lock = threading.Lock()

    def function(self, name: str, *arguments: type[ctypes._SimpleCData[object]] | object) -> ctypes._NamedFuncPointer:
        return self._library.function(name, *arguments)

    def count(self, steps: int, directions: int) -> None:
        """Add what a pass has taken; where steps have become many, the next one runs with the quicker build."""
        if self._final is None:
            return
        with self._lock:
            self._left -= steps * (1 + directions) * self.operations
            if self._left > 0 or self._final is None:
                return
            final, self._final = self._final, None
            if can_build([final]):
                self._library = build_linked([final])
                self.path = self._library.path


def build_filter(final: CSource, operations: int) -> FilterLibrary:
    """Return the library of a filter's C file.

    final : the file as it is compiled in the end; where that is without optimization, there is no draft
    operations : of a step and an update, about
    """
    is_final = bool(final.shared) or is_debugging() or first_build() == WHOLE or is_built([final])
    source = final if is_final else CSource(_DRAFT + final.text, final.instructions, is_draft=True)
    later = None if is_final or first_build() == LINKED else final
    return FilterLibrary(build_linked([source]), later, operations)
