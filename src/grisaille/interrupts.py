"""Ctrl-C is never lost, wherever it arrives.

Python runs handlers of signals between any two instructions of the main thread. Where these belong to a callback of the
garbage collector or of a weak reference, or to a wrapper that catches everything, what a handler raises is dropped and
the work goes on. While a call is ``interruptible``, what the handler of Ctrl-C raises is remembered as well, be it
Python's or the user's own, and so is every ``KeyboardInterrupt`` that Python drops: ``check`` raises it again at the
next evaluation of a criterion, block of realizations or slice of steps, and the end of the call does if none came.
Other threads and signals that are ignored are left alone; handlers are put back.
"""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any


class _Heard:
    """What is going on in the main thread."""

    is_listening = False
    handler: Callable[[int, FrameType | None], Any] = staticmethod(signal.default_int_handler)
    """Whose turn it was before ours."""
    unanswered: BaseException | None = None
    """What a handler has raised and nobody has answered."""


def _hear(number: int, frame: FrameType | None) -> None:
    try:
        _Heard.handler(number, frame)
    except BaseException as error:
        _Heard.unanswered = error
        raise


@contextmanager
def interruptible() -> Iterator[None]:
    """Remember interruptions inside; one that was lost is raised at the end. Inside another one it does nothing."""
    if _Heard.is_listening or threading.current_thread() is not threading.main_thread():
        yield
        return
    before, dropped = signal.getsignal(signal.SIGINT), sys.unraisablehook

    def drop(what: sys.UnraisableHookArgs) -> None:
        in_main = threading.current_thread() is threading.main_thread()
        if in_main and issubclass(what.exc_type, KeyboardInterrupt):
            _Heard.unanswered = what.exc_value or KeyboardInterrupt()
        else:
            dropped(what)

    try:
        _Heard.unanswered, _Heard.is_listening, sys.unraisablehook = None, True, drop
        if callable(before):
            # ours is still there where a second Ctrl-C came while it was put back
            _Heard.handler = before if before is not _hear else _Heard.handler
            signal.signal(signal.SIGINT, _hear)
        yield
        check()
    except BaseException as error:
        lost = _Heard.unanswered
        if lost is not None and lost is not error:
            raise lost from error
        raise
    finally:
        _Heard.unanswered, _Heard.is_listening = None, False
        if signal.getsignal(signal.SIGINT) is _hear:
            signal.signal(signal.SIGINT, _Heard.handler)
        if sys.unraisablehook is drop:
            sys.unraisablehook = dropped


def check() -> None:
    """Raise an interruption that was lost."""
    lost = _Heard.unanswered
    if lost is not None and threading.current_thread() is threading.main_thread():
        acknowledge()
        raise lost


def acknowledge() -> None:
    """Whoever has caught an interruption and answers it says so."""
    _Heard.unanswered = None
