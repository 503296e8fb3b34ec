"""Compiled C functions of collocation, which depend on no model and are built once per machine."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from functools import lru_cache
from importlib import resources
from typing import TYPE_CHECKING

from grisaille.compilation.shared_library import SharedLibrary, build_library

if TYPE_CHECKING:
    import numpy as np

Native = Callable[..., int]


def compiled_function(file: str, name: str, count: int) -> Native:
    """Return the function of a C file that takes so many arrays."""
    return _entry(file, name, count, os.environ.get("GRISAILLE_COMPILER", ""))


@lru_cache(maxsize=32)
def _entry(file: str, name: str, count: int, compiler: str) -> Native:
    """Return the compiled function of a file; ``compiler`` is part of the key under which it is cached."""
    return taking_arrays(_library(file, compiler), name, count)


@lru_cache(maxsize=8)
def _library(file: str, compiler: str) -> SharedLibrary:
    text = (resources.files("grisaille.collocation") / file).read_text(encoding="utf-8")
    return build_library(text, 0)


def taking_arrays(library: SharedLibrary, name: str, count: int) -> Native:
    """Return a function of a library, called with so many arrays."""
    entry = library.function(name, *[ctypes.c_void_p] * count)

    def run(*arrays: np.ndarray) -> int:
        return int(entry(*(a.__array_interface__["data"][0] for a in arrays)))

    return run
