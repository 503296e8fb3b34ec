"""Generated C made into callable functions: headers gathered, cache asked, compiler run, library loaded.

The key of a build covers the generated text, the integrator headers it includes, the flags, the versions of CasADi and
grisaille, the platform, and the compiler's own words about itself.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib.metadata
import os
import platform
import re
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property, lru_cache
from importlib import resources
from pathlib import Path

import casadi as ca

from grisaille.compilation import build_cache
from grisaille.compilation.compiler import (
    FOR_DEBUGGERS,
    OBJECT_SUFFIX,
    Compiler,
    find_compiler,
    flags,
)
from grisaille.compilation.debugging.debug_flag import is_debugging
from grisaille.compilation.requirement import no_compiler
from grisaille.compilation.task import TaskStructure
from grisaille.errors import CompilationError

MIN_INSTRUCTIONS_FOR_O1 = 20_000
"""Instructions from which on -O1 replaces -O2 (24 000 instructions, gcc 12: 4 s instead of 6 s to build)."""

LINKED_OPTIMIZATION = "-O3"
"""For integrators that do not know their sizes: gcc 12 leaves loops of unknown length as they are at -O2, and explicit
steps of 30 to 60 states then take 1.3 times as long; 4 s instead of 2.7 s to build, once."""

QUICK_OPTIMIZATION = "-O1"
"""For what is linked so that it is there soon: integrators of small models, two thirds of the time of -O2, and their
functions. What runs long is built again as one file (``integrators``)."""

DRAFT = "-Og"
"""For filters that are linked to nothing and are to be there soon: two fifths of the time of -O2."""

MAIN_FILE = "model.c"

_INCLUDE = re.compile(r'^\s*#\s*include\s+"(gr_\w+\.h)"', re.MULTILINE)


class SharedLibrary:
    """A loaded shared library; its calls release the GIL."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self._handle = ctypes.CDLL(str(path))
        except OSError as error:
            message = f"The compiled model {path} cannot be loaded: {error}. Remove it and try again."
            raise CompilationError(message) from error

    def function(self, name: str, *arguments: type[ctypes._SimpleCData[object]] | object) -> ctypes._NamedFuncPointer:
        """Return an exported function that returns a ``long``."""
        found = getattr(self._handle, name)
        found.argtypes, found.restype = list(arguments), ctypes.c_long
        return found  # type: ignore[no-any-return]

    def check_size(self, name: str, structure: type[ctypes.Structure] = TaskStructure) -> None:
        """Compare the size a C structure has with the size Python gives it."""
        there, here = int(self.function(name)()), ctypes.sizeof(structure)
        if there != here:
            raise CompilationError(
                f"{self.path.name}: {name}() says {there} bytes, {structure.__name__} has {here}. The installed "
                "headers and Python files belong to different versions; reinstall grisaille."
            )


def build_library(text: str, instructions: int, *, often: bool = False) -> SharedLibrary:
    """Return the library of one generated C file, from the cache if it was built before.

    Raises ``CompilationError`` where it was not built before and there is no compiler.
    """
    return build_linked([CSource(text, instructions, often=often)])


def build_linked(parts: Sequence[CSource]) -> SharedLibrary:
    """Return one library of C files, as ``build_library``; where they are several, those that were compiled for another
    one are not compiled again.
    """
    if is_debugging():
        source_folders_for_debuggers(parts)
    return _found(parts) or SharedLibrary(_install(find_compiler(), parts, lambda c: _linked(c, parts)))


def source_folders_for_debuggers(parts: Sequence[CSource]) -> list[Path]:
    """Return the folders in which sources are kept for debuggers, made where they are missing; print where."""
    folders = [build_cache.keep_sources(_what([part]), part.files) for part in parts]
    shown = ", ".join(map(str, folders))
    warnings.warn(f"GRISAILLE_DEBUG: generated C is kept in {shown}", UserWarning, stacklevel=2)
    return folders


def can_build(parts: Sequence[CSource]) -> bool:
    """Return whether there is a compiler for ``build_linked``, or none is needed."""
    return find_compiler() is not None or build_cache.find(_what(parts), None) is not None


def is_built(parts: Sequence[CSource]) -> bool:
    """Return whether a library of these is in the cache."""
    return build_cache.find(_what(parts), _made_with(find_compiler())) is not None


def build_shared_object(part: CSource) -> bool:
    """Build the object of a part that many models are linked to, unless it is in the cache; return whether it was
    built.
    """
    compiler = find_compiler()
    if compiler is None:
        raise no_compiler()
    if build_cache.find(_what([part]), _made_with(compiler), OBJECT_SUFFIX) is not None:
        return False
    _object(compiler, part)
    return True


@dataclass(frozen=True)
class CSource:
    """A C file and about how many instructions it has, none where it belongs to no model."""

    text: str
    instructions: int
    shared: str = ""
    """How what serves many models is optimized."""
    often: bool = False
    """Run so many times that it is optimized even where what is built quickly is asked for."""
    is_quick: bool = False
    """Whether it is to be there soon rather than to run quickly."""
    is_draft: bool = False
    """The same of a filter."""

    @cached_property
    def files(self) -> Mapping[str, str]:
        """With the headers it includes."""
        return {MAIN_FILE: self.text, **headers_of(self.text)}

    @property
    def flags(self) -> tuple[str, ...]:
        ours = self.shared or (
            DRAFT
            if self.is_draft
            else QUICK_OPTIMIZATION
            if self.is_quick or self.instructions > MIN_INSTRUCTIONS_FOR_O1
            else "-O2"
        )
        found = flags(ours if self.once else _optimization(ours, self.often or self.shared == QUICK_OPTIMIZATION))
        return (*found, FOR_DEBUGGERS) if is_debugging() else found

    @property
    def once(self) -> bool:
        """Return whether it is built once for all models."""
        return self.instructions == 0 and not self.shared

    @property
    def content(self) -> list[str]:
        """Everything that a build depends on but the compiler."""
        return [*self.flags, *_versions(), *(part for name in sorted(self.files) for part in (name, self.files[name]))]


def _what(parts: Sequence[CSource]) -> str:
    return build_cache.digest(part for source in parts for part in source.content)


def _made_with(compiler: Compiler | None) -> str | None:
    return None if compiler is None else build_cache.digest([compiler.identity])


def _found(parts: Sequence[CSource]) -> SharedLibrary | None:
    path = build_cache.find(_what(parts), _made_with(find_compiler()))
    return None if path is None else SharedLibrary(path)


def _install(compiler: Compiler | None, parts: Sequence[CSource], build: Callable[[Compiler], bytes]) -> Path:
    made_with = _made_with(compiler)
    if compiler is None or made_with is None:
        raise no_compiler()
    what = _what(parts)
    if len(parts) > 1:  # objects are waited for, one by one
        return build_cache.store_library(what, made_with, build(compiler))
    with build_cache.building(what):
        return build_cache.find(what, made_with) or build_cache.store_library(what, made_with, build(compiler))


def _linked(compiler: Compiler, parts: Sequence[CSource]) -> bytes:
    if len(parts) == 1:
        return compiler.build(parts[0].files, MAIN_FILE, parts[0].flags, _kept(parts[0]))
    with ThreadPoolExecutor(len(parts)) as threads:
        return compiler.link(list(threads.map(lambda part: _object(compiler, part), parts)), parts[0].flags)


def _kept(source: CSource) -> Path | None:
    """Return where a debugger finds the source."""
    return build_cache.sources_folder(_what([source])) if is_debugging() else None


def _object(compiler: Compiler, source: CSource) -> bytes:
    what, made_with = _what([source]), build_cache.digest([compiler.identity])
    found = _kept_object(what, made_with)
    if found is not None:
        return found
    with build_cache.building(what):
        found = _kept_object(what, made_with)
        if found is None:
            found = compiler.compile(source.files, MAIN_FILE, source.flags, _kept(source))
            build_cache.store_library(what, made_with, found, suffix=OBJECT_SUFFIX)
    return found


def _kept_object(what: str, made_with: str) -> bytes | None:
    # another process that makes room may remove it at any time
    with contextlib.suppress(FileNotFoundError):
        if (path := build_cache.find(what, made_with, OBJECT_SUFFIX)) is not None:
            return path.read_bytes()
    return None


def _optimization(ours: str, often: bool) -> str:
    """Return the optimisation flag: the package's own, or what the environment asks for. ``GRISAILLE_OPTIMIZATION=-O0``
    builds quickly what runs a few times; ``quick`` does so for integrators alone, of which thousands of lines of the
    package are a part.
    """
    asked = os.environ.get("GRISAILLE_OPTIMIZATION", "").strip()
    if asked == "quick":
        return "-O1" if often else "-O0"
    return asked or ours


def headers_of(text: str) -> Mapping[str, str]:
    """Return every header of ours that a C text includes, directly or through another."""
    found: dict[str, str] = {}
    waiting = _INCLUDE.findall(text)
    while waiting:
        name = waiting.pop()
        if name not in found:
            found[name] = _header(name)
            waiting += _INCLUDE.findall(found[name])
    return found


def _header(name: str) -> str:
    try:
        return (resources.files("grisaille.compilation") / "kernels" / name).read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise CompilationError(f"The header {name} is missing from the installation; reinstall grisaille.") from error


@lru_cache(maxsize=1)
def _versions() -> tuple[str, ...]:
    try:
        own = importlib.metadata.version("grisaille")
    except importlib.metadata.PackageNotFoundError:
        own = "source tree"
    return (own, str(ca.CasadiMeta.version()), sys.platform, platform.machine(), str(ctypes.sizeof(ctypes.c_void_p)))
