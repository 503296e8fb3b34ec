"""A generated C file made into callable functions: headers gathered, cache asked, compiler run, library loaded.

The key of a build covers the generated text, the integrator headers it includes, the flags, the versions of CasADi and
grisaille, the platform, and the compiler's own words about itself.
"""

from __future__ import annotations

import ctypes
import importlib.metadata
import os
import platform
import re
import sys
from collections.abc import Mapping
from functools import lru_cache
from importlib import resources
from pathlib import Path

import casadi as ca

from grisaille.compilation import cache
from grisaille.compilation.compiler import REMEDY, find_compiler, flags, is_switched_off
from grisaille.compilation.task import TaskStructure
from grisaille.errors import CompilationError

LONG = 20_000
"""Instructions from which on -O1 replaces -O2 (24 000 instructions, gcc 12: 4 s instead of 6 s to build)."""

_INCLUDE = re.compile(r'^\s*#\s*include\s+"(gr_\w+\.h)"', re.MULTILINE)


class Library:
    """A loaded shared library; its calls release the GIL."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self._handle = ctypes.CDLL(str(path))
        except OSError as error:
            message = f"The compiled model {path} cannot be loaded: {error}. Remove it and try again."
            raise CompilationError(message) from error

    def function(self, name: str, *arguments: type[ctypes._SimpleCData[object]] | object) -> ctypes._NamedFuncPointer:
        """An exported function that returns a ``long``."""
        found = getattr(self._handle, name)
        found.argtypes, found.restype = list(arguments), ctypes.c_long
        return found  # type: ignore[no-any-return]

    def check_size(self, name: str, structure: type[ctypes.Structure] = TaskStructure) -> None:
        """Compares the size a C structure has with the size Python gives it."""
        there, here = int(self.function(name)()), ctypes.sizeof(structure)
        if there != here:
            raise CompilationError(
                f"{self.path.name}: {name}() says {there} bytes, {structure.__name__} has {here}. The installed "
                "headers and Python files belong to different versions; reinstall grisaille."
            )


def build_library(text: str, instructions: int) -> Library | None:
    """The library of one generated C file, from the cache if it was built before; ``None`` where nothing is compiled.

    Raises ``CompilationError`` where it was not built before and there is no compiler.
    """
    if is_switched_off():
        return None
    sources = {"model.c": text, **headers_of(text)}
    options = flags(_optimization(instructions))
    what = cache.digest([*options, *_versions(), *(part for name in sorted(sources) for part in (name, sources[name]))])
    compiler = find_compiler()
    made_with = None if compiler is None else cache.digest([compiler.identity])
    path = cache.find(what, made_with)
    if path is None:
        if compiler is None or made_with is None:
            raise no_compiler()
        path = cache.install(what, made_with, compiler.build(sources, "model.c", options))
    return Library(path)


def _optimization(instructions: int) -> str:
    """Ours, or what the environment asks for: ``GRISAILLE_OPTIMIZATION=-O0`` builds quickly what runs a few times."""
    return os.environ.get("GRISAILLE_OPTIMIZATION", "").strip() or ("-O2" if instructions <= LONG else "-O1")


def headers_of(text: str) -> Mapping[str, str]:
    """Every header of ours that a C text includes, directly or through another."""
    found: dict[str, str] = {}
    waiting = _INCLUDE.findall(text)
    while waiting:
        name = waiting.pop()
        if name not in found:
            found[name] = _header(name)
            waiting += _INCLUDE.findall(found[name])
    return found


def no_compiler() -> CompilationError:
    """The error where there is none, or where compiled code is insisted on though it is switched off."""
    if is_switched_off():
        return CompilationError("Compiled code was asked for, but GRISAILLE_COMPILER=none is set. Unset it.")
    return CompilationError(
        f"Models are compiled, and no C compiler was found. {REMEDY} To do without, set GRISAILLE_COMPILER=none: "
        "models are then interpreted, with the same results and 10 to 100 times slower."
    )


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
