"""Ctrl-C is never lost, wherever it arrives.

Python raises ``KeyboardInterrupt`` between any two instructions of the main thread; where these belong to a callback of
the garbage collector, or to a wrapper that catches everything, it is dropped and the work goes on. While a call is
``interruptible``, a handler of our own raises it as Python does and remembers it as well: ``check`` raises it again at
the next evaluation of a criterion, and the end of the call does if none came. A handler of the user's, other threads
and signals that are ignored are left alone.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn


class _Pending:
    """Whether an interruption has come that nobody has answered."""

    is_set = False


def _raise(_number: int, _frame: FrameType | None) -> NoReturn:
    _Pending.is_set = True
    raise KeyboardInterrupt


@contextmanager
def interruptible() -> Iterator[None]:
    """Remember interruptions inside; one that was lost is raised at the end. Inside another one it does nothing."""
    is_ours = threading.current_thread() is threading.main_thread()
    if not is_ours or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return
    _Pending.is_set = False
    signal.signal(signal.SIGINT, _raise)
    try:
        yield
        check()
    except KeyboardInterrupt:
        acknowledge()
        raise
    finally:
        if signal.getsignal(signal.SIGINT) is _raise:
            signal.signal(signal.SIGINT, signal.default_int_handler)


def check() -> None:
    """Raise an interruption that was lost."""
    if _Pending.is_set and threading.current_thread() is threading.main_thread():
        _Pending.is_set = False
        raise KeyboardInterrupt


def acknowledge() -> None:
    """Whoever has caught an interruption and answers it says so."""
    _Pending.is_set = False
