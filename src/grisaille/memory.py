"""Memory that is asked for before it is used: how much is available here, and a refusal in words where it does not do.

A process that takes more memory than there is ends without a word: the system kills it. Whoever allocates arrays whose
size a user has chosen says before how large they will be (``require_memory``). Available is the least of what the
machine, the control groups that the process is in (containers, batch systems) and its own limits leave::

    machine         MemAvailable + SwapFree, where the system says so; all of its physical memory otherwise
    control group   memory.max − memory.current + file pages that can be dropped, of the group and of those above it
    process         RLIMIT_AS less the address space in use, RLIMIT_DATA less the data segment in use
    worker          the share that a study leaves to each of its processes, less what this one holds already

Sizes below ``SMALL_BYTES`` are not looked at, so that small calls cost nothing.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from grisaille.errors import InsufficientMemoryError

SMALL_BYTES = 100 << 20
"""Bytes up to which nothing is asked."""
UNLIMITED_BYTES = 1 << 60
"""Limits from here on are none."""
BYTES_PER_DOUBLE = 8
"""Bytes of a number."""

_PROC, _CGROUPS = Path("/proc"), Path("/sys/fs/cgroup")


@dataclass(frozen=True)
class Available:
    """Bytes that can be had, and what bounds them, in words."""

    bytes: int
    bound: str


@dataclass(frozen=True)
class _Share:
    bytes: int
    workers: int


_share: _Share | None = None


def require_memory(size: float, work: str, remedy: str | Callable[[int], str]) -> None:
    """Raise ``InsufficientMemoryError`` where ``size`` bytes cannot be had.

    work : what needs them, the beginning of a sentence
    remedy : what to do instead; a function is given the bytes that are available
    """
    if size <= SMALL_BYTES:
        return
    found = available_memory()
    if found is None or size <= found.bytes:
        return
    advice = remedy if isinstance(remedy, str) else remedy(found.bytes)
    raise InsufficientMemoryError(
        f"{work} would take {in_words(size)} of memory, and {in_words(found.bytes)} are available {found.bound}. "
        f"{advice}"
    )


def available_memory() -> Available | None:
    """Return the least of what the machine and the limits of this process leave; None where nothing is known."""
    return min(_bounds(), key=lambda found: found.bytes, default=None)


def share_memory(budget: int | None, workers: int) -> None:
    """Let this process, one of several workers, have ``budget`` bytes; None lifts it."""
    global _share
    _share = None if budget is None else _Share(budget, workers)


def in_words(size: float) -> str:
    """Return bytes as people say them."""
    for unit, name in ((1 << 40, "TiB"), (1 << 30, "GiB")):
        if size >= unit:
            return f"{size / unit:,.3g} {name}" if size < 1000 * unit else f"{size / unit:,.0f} {name}"
    return f"{size / (1 << 20):.3g} MiB"


def largest_fitting(size: Callable[[int], float], most: int, available: float) -> int:
    """Return the largest number, up to ``most``, whose ``size`` in bytes does not exceed what is available."""
    low, high = 0, most
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if size(middle) <= available else (low, middle - 1)
    return low


def _bounds() -> Iterator[Available]:
    machine = _machine()
    if machine is not None:
        yield Available(machine, "on this machine")
    for left in _control_groups():
        yield Available(max(0, left), "to the control group (container or batch job) that this process is in")
    for left, name in _process_limits():
        yield Available(max(0, left), f"to this process under its {name}")
    if _share is not None:
        left = max(0, _share.bytes - _resident())
        yield Available(left, f"to each of the study's {_share.workers} processes")


def _machine() -> int | None:
    """Return bytes that the machine can still give."""
    if sys.platform == "win32":
        return _windows_commit()
    known = _table(_PROC / "meminfo")
    if "MemAvailable" in known:
        return 1024 * (known["MemAvailable"] + known.get("SwapFree", 0))
    try:  # macOS drops, compresses and swaps pages: what is free at the moment says little
        return int(os.sysconf("SC_PHYS_PAGES")) * int(os.sysconf("SC_PAGE_SIZE"))
    except (AttributeError, ValueError, OSError):
        return None


def _control_groups() -> Iterator[int]:
    """Yield what is left of the limit of each group that the process is in."""
    for line in _read(_PROC / "self" / "cgroup").splitlines():
        _, controllers, path = line.split(":", 2)
        if not controllers:
            yield from _groups_above(_CGROUPS, path, ("memory.max", "memory.current"))
        elif "memory" in controllers.split(","):
            yield from _groups_above(_CGROUPS / "memory", path, ("memory.limit_in_bytes", "memory.usage_in_bytes"))


def _groups_above(root: Path, path: str, files: tuple[str, str]) -> Iterator[int]:
    """Of a group and of all that contain it; inside a container the outermost one is the container's own."""
    here = root / path.lstrip("/")
    while True:
        limit, used = (_number(here / name) for name in files)
        if limit is not None and used is not None and limit < UNLIMITED_BYTES:
            pages = _table(here / "memory.stat")
            droppable = ("total_inactive_file", "total_active_file") if "total_inactive_file" in pages else (
                "inactive_file", "active_file", "slab_reclaimable")  # fmt: skip
            yield limit - used + sum(pages.get(name, 0) for name in droppable)
        if here == root or root not in here.parents:
            return
        here = here.parent


def _process_limits() -> Iterator[tuple[int, str]]:
    try:
        import resource
    except ImportError:
        return
    sizes = _read(_PROC / "self" / "statm").split()
    page = resource.getpagesize()
    used = {"RLIMIT_AS": 0, "RLIMIT_DATA": 5}
    names = {"RLIMIT_AS": "limit of address space (ulimit -v)", "RLIMIT_DATA": "limit of data (ulimit -d)"}
    for name, place in used.items():
        limit = resource.getrlimit(getattr(resource, name))[0]
        if limit != resource.RLIM_INFINITY and limit < UNLIMITED_BYTES:
            yield limit - (page * int(sizes[place]) if len(sizes) > place else 0), names[name]


def _resident() -> int:
    sizes = _read(_PROC / "self" / "statm").split()
    return int(sizes[1]) * int(os.sysconf("SC_PAGE_SIZE")) if len(sizes) > 1 else 0


def _windows_commit() -> int | None:
    """Return what can still be committed, paging file included."""
    import ctypes

    class MemoryStatus(ctypes.Structure):
        _fields_ = (
            ("length", ctypes.c_ulong),
            ("load", ctypes.c_ulong),
            *((name, ctypes.c_ulonglong) for name in (
                "total", "available", "total_page", "available_page", "total_virtual", "available_virtual",
                "extended",
            )),
        )  # fmt: skip

    status = MemoryStatus(length=ctypes.sizeof(MemoryStatus))
    try:
        done = ctypes.windll.kernel32.GlobalMemoryStatusEx(ctypes.byref(status))  # type: ignore[attr-defined,unused-ignore]
    except (AttributeError, OSError):
        return None
    return int(status.available_page) if done else None


def _read(path: Path) -> str:
    try:
        return path.read_text("ascii", "replace")
    except OSError:
        return ""


def _number(path: Path) -> int | None:
    """None where there is no file, or it says that there is no limit (``max``)."""
    text = _read(path).strip()
    return int(text) if text.isdigit() else None


def _table(path: Path) -> dict[str, int]:
    """Return lines of a name and a number."""
    rows = (line.replace(":", " ").split() for line in _read(path).splitlines())
    return {row[0]: int(row[1]) for row in rows if len(row) > 1 and row[1].isdigit()}
