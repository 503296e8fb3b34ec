"""Records where an equation was written, and whether it was listed.

An equation or connection written but not listed is a silent hole in a model, so each one reports itself at birth: in a
class body to the namespace that is being filled, in an ``equations`` method to the recorder of that call.
"""

from __future__ import annotations

import inspect
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from types import FrameType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from grisaille.model.connectors import Connection
    from grisaille.model.expression import Equation
    from grisaille.model.whens import When

_HERE = os.path.dirname(os.path.abspath(__file__))
_NAMELESS = {"<listcomp>", "<genexpr>", "<setcomp>", "<dictcomp>", "<lambda>"}
_active = threading.local()


class RecordingNamespace(dict[str, Any]):
    """The namespace of a class body; keeps the equations written while it is filled."""

    def __init__(self) -> None:
        super().__init__()
        self.written: list[Any] = []


class Recorder:
    """Records what one call of an ``equations`` method wrote, and which classes' methods it went through."""

    def __init__(self) -> None:
        self.written: list[Any] = []
        self.visited: set[type] = set()


@contextmanager
def recording() -> Iterator[Recorder]:
    stack: list[Recorder] = _active.__dict__.setdefault("stack", [])
    recorder = Recorder()
    stack.append(recorder)
    try:
        yield recorder
    finally:
        stack.remove(recorder)


def active_recorder() -> Recorder | None:
    stack = _active.__dict__.get("stack")
    return stack[-1] if stack else None


def register(item: Connection | Equation | When) -> str:
    """Report ``item`` to whoever is listening and return where it was written (``"circuit.py:12"``)."""
    frame = _user_frame()
    if frame is None:
        return ""
    source = f"{_short(frame.f_code.co_filename)}:{frame.f_lineno}"
    listener = _class_body(frame) or active_recorder()
    if listener is not None:
        listener.written.append(item)
    return source


def _user_frame() -> FrameType | None:
    frame: FrameType | None = sys._getframe(2)
    while frame is not None and _is_internal(frame.f_code.co_filename):
        frame = frame.f_back
    return frame


def _class_body(frame: FrameType | None) -> RecordingNamespace | None:
    while frame is not None and frame.f_code.co_name in _NAMELESS:
        frame = frame.f_back
    # Reading f_locals of a function copies them all; class bodies are the frames without fast locals.
    if frame is None or frame.f_code.co_flags & inspect.CO_OPTIMIZED:
        return None
    namespace = frame.f_locals
    return namespace if isinstance(namespace, RecordingNamespace) else None


@lru_cache(maxsize=1024)
def _is_internal(filename: str) -> bool:
    return os.path.dirname(filename) == _HERE or f"{os.sep}numpy{os.sep}" in filename


@lru_cache(maxsize=1024)
def _short(filename: str) -> str:
    return os.path.basename(filename) or filename
