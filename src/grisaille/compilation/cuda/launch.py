"""A batch on a graphics processor: arrays put there, kernels of gr_cuda.h launched window by window, answers fetched.

A window is a range of the grid, as long as what is observed in it fits into ``MAX_WINDOW_BYTES`` bytes: trajectories
of all
realizations never exist at once unless they are asked for, and then on the host. Needs NumPy, and CuPy where the
kernels run on a device; nothing else of the package, so that this file also runs beside an exported kernel, on a
machine that has neither CasADi nor the model.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, cast

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

MAX_WINDOW_BYTES = 1 << 32
"""Bytes of what is observed that are held on the device at a time."""
MAX_STEPS_PER_LAUNCH = 200_000
"""Steps of one launch, at most: an interrupt takes effect when it is done."""
THREADS_PER_BLOCK = 32
"""Of a block: few, so that small ensembles spread over all multiprocessors."""
REALIZATIONS_PER_BLOCK = 32
"""Realizations whose moments are formed one after the other (``GR_BLOCK``)."""
MAX_SHARE_OF_PLAIN_QUOTIENTS = 0.05
"""Part of the realizations that may need plain quotients before all get them."""
USABLE_MEMORY_SHARE = 0.9
"""Part of the free memory of a device that is used."""

LONG = np.dtype(ctypes.c_long)
ARRAYS_PER_PARAMETER_VALUE = "stream x0 p dp sx0 filter start reading dfilter dstart dreading".split()
"""Arrays with the parameter value as their first dimension."""


class OutOfDeviceMemory(MemoryError):
    """What was to be run does not fit."""


@dataclass(frozen=True, eq=False)
class DeviceJob:
    """The numbers of one run, as ``gr_batch`` has them.

    sizes : nx, np, ny, ns, nw, moved (whether directions move filters), values, count, substeps, first_realization,
        first_point
    arrays : stream, x0, p, dp, sx0 and the filters' with the parameter value as first dimension, x0 and sx0 with the
        realization as second one where they differ between realizations; grid, nominal, held, kept, member, which,
        mix, and w0, dw0 where filters go on
    signals : a table for each signal, with the realization as first dimension where they differ
    """

    sizes: Mapping[str, int]
    arrays: Mapping[str, np.ndarray]
    signals: Sequence[np.ndarray]

    def __getattr__(self, name: str) -> int:
        try:
            return int(self.sizes[name])
        except KeyError:
            raise AttributeError(name) from None


@dataclass
class DeviceResult:
    """What a run gave; the first dimension is the parameter value."""

    x: np.ndarray
    sx: np.ndarray
    w: np.ndarray
    dw: np.ndarray
    failed: np.ndarray
    """(V, M): the first kept grid index at which a state was not finite, or -1."""
    moments: dict[str, np.ndarray] = field(default_factory=dict)
    """mean, spread (V, kept, ny), smean, scross (V, kept, ns, ny)"""
    y: np.ndarray | None = None
    sy: np.ndarray | None = None


class Machine(Protocol):
    """Where kernels run."""

    name: str
    is_plain: bool
    lock: Any
    """Held by the one run that uses the kernels' only place for what they are given."""

    def put(self, array: np.ndarray) -> Any: ...
    def empty(self, shape: tuple[int, ...], dtype: DTypeLike) -> Any: ...
    def fetch(self, array: Any) -> np.ndarray: ...
    def move(self, held: Any, to: Any, at: slice, fetched: bool) -> None:
        """Move rows to their place among all rows, on the host or here."""

    def address(self, array: Any) -> int: ...
    def launch(self, kernel: str, threads: int, given: ctypes.Structure) -> None: ...
    def finish(self) -> None:
        """Wait for what was launched."""

    def plain(self) -> Machine | None:
        """Return the same with plain quotients, where its own are others."""

    def free(self) -> int | None:
        """Return bytes of memory that are left, where they are few."""


class Host:
    """The kernels as loops over their threads, in a library built by a C compiler: slow, for comparison."""

    name, is_plain = "emulated", True
    lock = threading.RLock()

    def __init__(self, library: str) -> None:
        self.library = ctypes.CDLL(library)

    def put(self, array: np.ndarray) -> np.ndarray:
        return np.ascontiguousarray(array).copy()

    def empty(self, shape: tuple[int, ...], dtype: DTypeLike) -> np.ndarray:
        return np.zeros(shape, dtype)

    def fetch(self, array: np.ndarray) -> np.ndarray:
        return array.copy()

    def move(self, held: np.ndarray, to: np.ndarray, at: slice, fetched: bool) -> None:
        to[:, :, at] = held.reshape(to[:, :, at].shape)

    def address(self, array: np.ndarray) -> int:
        return int(array.ctypes.data)

    def launch(self, kernel: str, threads: int, given: ctypes.Structure) -> None:
        self.library.gr_device_size.restype = ctypes.c_long
        assert self.library.gr_device_size() == ctypes.sizeof(given)
        getattr(self.library, f"{kernel}_kernel")(ctypes.byref(given), ctypes.c_long(threads))

    def finish(self) -> None:
        return None

    def plain(self) -> None:
        return None

    def free(self) -> None:
        return None


_LOCKS: dict[tuple[str, ...], Any] = {}
"""Of every text that was compiled: CuPy keeps one module for each."""


class Graphics:
    """A device, through CuPy; ``source`` is one text with all headers in it (see ``fixed_branches`` for what may
    precede it).
    """

    has_given = True
    """Whether kernels have a place of their own for what they are given."""

    def __init__(self, source: str, *, single: bool = False, contracted: bool = False, queue: Any = None) -> None:
        import cupy

        self.cupy, self.source, self.options = cupy, source, {"single": single, "contracted": contracted}
        self.is_plain = single or "#define GR_STEP_PLAIN" in source
        self.queue = cupy.cuda.Stream(non_blocking=True) if queue is None else queue
        options = ["-w", "--std=c++14", f"--fmad={'true' if contracted else 'false'}"]
        options += ["-DGR_SINGLE"] if single else []
        self.module = cupy.RawModule(code=source, options=tuple(options))
        self.given = self.module.get_global("gr_given") if self.has_given else None
        self.lock = _LOCKS.setdefault((source, *options), threading.RLock())
        self.kernels: dict[str, Any] = {}
        self._plain: Graphics | None = None
        properties = cupy.cuda.runtime.getDeviceProperties(cupy.cuda.Device().id)
        self.name = properties["name"].decode()

    def put(self, array: np.ndarray) -> Any:
        with self.queue:
            held = self._held(lambda: self.cupy.asarray(np.ascontiguousarray(array)))
        self.queue.synchronize()
        return held

    def empty(self, shape: tuple[int, ...], dtype: DTypeLike) -> Any:
        with self.queue:
            return self._held(lambda: self.cupy.zeros(shape, dtype))

    def fetch(self, array: Any) -> np.ndarray:
        return np.asarray(self.cupy.asnumpy(array, stream=self.queue))

    def move(self, held: Any, to: Any, at: slice, fetched: bool) -> None:
        if fetched:
            to[:, :, at] = self.fetch(held).reshape(to[:, :, at].shape)
            return
        with self.queue:
            to[:, :, at] = held.reshape(to[:, :, at].shape)

    def address(self, array: Any) -> int:
        return int(array.data.ptr)

    def launch(self, kernel: str, threads: int, given: ctypes.Structure) -> None:
        # kernels before this one read what is overwritten now
        self.queue.synchronize()
        assert self.given is not None
        self.given.copy_from_host_async(ctypes.addressof(given), ctypes.sizeof(given), self.queue)
        self.queue.synchronize()
        with self.queue:
            self.kernel(kernel)((-(-threads // THREADS_PER_BLOCK),), (THREADS_PER_BLOCK,), (LONG.type(threads),))

    def finish(self) -> None:
        self.queue.synchronize()

    def kernel(self, name: str) -> Any:
        if name not in self.kernels:
            self.kernels[name] = self.module.get_function(f"{name}_kernel")
        return self.kernels[name]

    def plain(self) -> Graphics | None:
        if self.is_plain:
            return None
        if self._plain is None:
            self._plain = Graphics("#define GR_STEP_PLAIN\n" + self.source, queue=self.queue, **self.options)
        return self._plain

    def told(self) -> str:
        """Registers and local memory of a thread."""
        kernel = self.kernel("gr_cuda_run")
        return f"{kernel.num_regs} registers, {kernel.local_size_bytes} bytes of local memory for each thread"

    def free(self) -> int:
        self.cupy.get_default_memory_pool().free_all_blocks()
        return int(self.cupy.cuda.runtime.memGetInfo()[0])

    def _held(self, make: Callable[[], object]) -> Any:
        try:
            return make()
        except self.cupy.cuda.memory.OutOfMemoryError as error:
            raise OutOfDeviceMemory(str(error)) from error


def fixed_branches(job: DeviceJob) -> str:
    """Return the macros of a job for compilers: branches that always go one way are left out."""
    lines = [f"#define GR_FIXED_HELD {', '.join(str(int(h)) for h in job.arrays['held'])}"] if len(job.signals) else []
    lines += ["#define GR_FIXED_SUBSTEPS 1"] if job.substeps == 1 else []
    lines += ["#define GR_ONE_FILTER"] if not job.arrays["which"].any() else []
    return "".join(f"{line}\n" for line in lines)


def device_structures(batch: type[ctypes.Structure]) -> type[ctypes.Structure]:
    """Return the memory layout of ``gr_device`` around that of ``gr_batch``."""
    numbers = "n_values count " + " ".join(f"{n}_each" for n in ARRAYS_PER_PARAMETER_VALUE) + " window"
    fields: list[tuple[str, Any]] = [("batch", batch), *((n, ctypes.c_long) for n in numbers.split())]
    fields += [
        ("again", ctypes.c_void_p),
        ("any", ctypes.c_void_p),
        ("broken", ctypes.c_void_p),
        ("first_row", ctypes.c_long),
        ("n_rows", ctypes.c_long),
    ]
    fields += [(n, ctypes.c_void_p) for n in ("part", "mean", "spread", "smean", "scross")]
    return type("DeviceStructure", (ctypes.Structure,), {"_fields_": fields})


class Window(NamedTuple):
    """Cells and rows of one launch."""

    begin: int
    end: int
    first: int
    last: int

    @property
    def rows(self) -> int:
        return self.last - self.first


def cut_into_windows(kept: np.ndarray, cells: int, substeps: int, row_bytes: int, most: int) -> list[Window]:
    """Return the grid cut into equal ranges; a row belongs to the range at whose end or inside which it is observed."""
    length = max(1, min(cells, MAX_STEPS_PER_LAUNCH // substeps)) if cells else 1
    while True:
        ends = np.unique([*range(length, cells, length), cells]).astype(np.int64)
        last = np.searchsorted(kept, ends, side="right")
        rows = np.diff(last, prepend=0)
        if length == 1 or rows.max(initial=0) * row_bytes <= most:
            begins = np.concatenate([[0], ends[:-1]])
            return [Window(*map(int, w)) for w in zip(begins, ends, last - rows, last, strict=True)]
        length = -(-length // 2)


def run(
    job: DeviceJob,
    machine: Machine,
    batch: type[ctypes.Structure],
    *,
    moments: bool,
    rows: bool,
    progress: Callable[[int, int], None] | None = None,
    most: int = MAX_WINDOW_BYTES,
    fetched: bool = True,
    ends: bool = True,
) -> DeviceResult:
    """Run every realization at every parameter value through the whole grid.

    batch : the memory layout of ``gr_batch``
    fetched : False leaves rows on the machine
    ends : whether the states at the end are wanted
    most : bytes of what is observed that are held on the machine at a time

    Raises ``OutOfDeviceMemory`` before anything is allocated where it does not fit into the memory that is free.
    """
    with machine.lock:
        try:
            made = _DeviceRun(job, machine, batch, moments, rows, most, fetched)
            if made.fits:
                return made.go(progress, ends)
        except OutOfDeviceMemory:
            pass  # what the run held is free again when this is left
    raise OutOfDeviceMemory(_too_large(job, machine, moments))


def _too_large(job: DeviceJob, machine: Machine, moments: bool) -> str:
    """Return what does not fit, and what would."""
    free = machine.free() or 0
    common = sum(a.nbytes for n, a in job.arrays.items() if n not in ("x0", "sx0", "w0", "dw0", "member"))
    common += sum(s.nbytes for s in job.signals if s.ndim == 1)
    common += 16 * job.values * len(job.arrays["kept"]) * job.ny * (1 + job.ns) * moments
    own = 8 * job.values * (2 * (job.nx + job.nw) * (1 + job.ns) + 3)
    own += sum(s[0].nbytes for s in job.signals if s.ndim == 2) + 16 * job.values * job.ny * (1 + job.ns)
    fits = max(0, int((USABLE_MEMORY_SHARE * free - common) // own))
    return (
        f"{job.count} realizations of {job.values} parameter values do not fit into the {free / 2**30:.3g} GiB that "
        f"are free on {machine.name}: {common / 2**30:.3g} GiB are needed whatever their number, and "
        f"{own / 2**20:.3g} MiB for each; {fits} realizations would fit. Nothing has been changed: give fewer, or "
        f"device='cpu'."
    )


class _DeviceRun:
    def __init__(
        self, job: DeviceJob, machine: Machine, batch: type[ctypes.Structure], moments: bool, rows: bool, most: int,
        fetched: bool,
    ) -> None:  # fmt: skip
        for name, dimensions in (("x0", 3), ("sx0", 4)):
            if job.arrays[name].ndim == dimensions and job.arrays[name].shape[1] != job.count:
                raise ValueError(f"{name} has {job.arrays[name].shape[1]} starts for {job.count} realizations.")
        self.job, self.machine, self.moments, self.rows = job, machine, moments, rows
        self.fetched = fetched
        self.Batch, self.Device = batch, device_structures(batch)
        kept, cells = job.arrays["kept"], len(job.arrays["grid"]) - 1
        row_bytes = 8 * job.values * job.count * job.ny * (1 + job.ns)
        free = machine.free()
        most = most if free is None else min(most, max(1 << 20, free // 4))
        self.windows = cut_into_windows(kept, cells, job.substeps, row_bytes, most)
        self.longest = max((w.rows for w in self.windows), default=0)
        self.fits = free is None or self._bytes() <= free

    def _bytes(self) -> int:
        """Return the number of bytes of everything that ``_put`` allocates."""
        job = self.job
        V, M, ns, ny = job.values, job.count, job.ns, job.ny
        held, n = self.longest if self.moments or self.rows else 0, len(job.arrays["kept"])
        given = sum(a.nbytes for a in job.arrays.values()) + sum(s.nbytes for s in job.signals)
        states = 8 * V * M * (job.nx * (1 + ns) + job.nw * (1 + ns * job.moved))
        marks = V * M * (2 * LONG.itemsize + (not self.machine.is_plain))
        observed = 8 * V * M * held * ny * (1 + ns)
        blocks = -(-len(job.arrays["member"]) // REALIZATIONS_PER_BLOCK)
        sums = 16 * V * n * ny * (1 + ns) + 16 * V * blocks * (1 + ns) * held * ny if self.moments else 0
        kept = 8 * V * M * n * ny * (1 + ns) if self.rows and not self.fetched else 0
        return int(given + states + marks + observed + sums + kept)

    def go(self, progress: Callable[[int, int], None] | None, ends: bool) -> DeviceResult:
        self._put()
        found = self._answer()
        for k, window in enumerate(self.windows):
            self._launch(k, window)
            if self.rows and window.rows:
                self._fetch_rows(found, window)
            if progress is not None:
                progress(self.job.count * (k + 1) // len(self.windows), self.job.count)
        fetch = self.machine.fetch
        if ends:
            found.x, found.sx, found.w, found.dw = (
                fetch(self.state[n]) if all(shape) else np.zeros(shape) for n, shape in self.shapes.items()
            )
        found.failed = fetch(self.broken).astype(np.int64)
        found.moments = {n: fetch(a) for n, a in self.sums.items()}
        return found

    def _put(self) -> None:
        job, put, empty = self.job, self.machine.put, self.machine.empty
        V, M, ns, ny = job.values, job.count, job.ns, job.ny
        begins = np.concatenate([np.full(w.rows, w.begin) for w in self.windows] or [np.zeros(0)])
        relative = (job.arrays["kept"] - begins).astype(LONG)
        typed = {
            "kept": relative,
            "member": job.arrays["member"].astype(LONG),
            "which": job.arrays["which"].astype(LONG),
        }
        self.given = {n: put(_not_empty(typed.get(n, a))) for n, a in job.arrays.items()}
        self.tables = [put(s) for s in job.signals]
        width = 2 * job.substeps + 1
        scale = [8 * (width if h == 2 else 1) for h in job.arrays["held"]]
        bases = [self.machine.address(t) for t in self.tables]
        places = [[b + s * w.begin for b, s in zip(bases, scale, strict=True)] for w in self.windows]
        self.places = put(_not_empty(np.array(places, dtype=np.uintp)))
        self.strides = put(_not_empty(np.array([s.shape[1] if s.ndim == 2 else 0 for s in job.signals], dtype=LONG)))
        shapes = {
            "x": (V, M, job.nx),
            "sx": (V, M, ns, job.nx),
            "w": (V, M, job.nw),
            "dw": (V, M, ns * job.moved, job.nw),
        }
        self.state = {n: empty(_some(shape), np.float64) for n, shape in shapes.items()}
        self.shapes = shapes
        self.failed = empty((V, M), LONG)
        self.again = None if self.machine.is_plain else empty((V, M), np.uint8)
        self.any, self.plain = empty((1,), LONG), cast("Machine | None", None)
        self.broken = put(np.full((V, M), -1, dtype=LONG))
        held = self.longest if self.moments or self.rows else 0
        self.y = empty((V * M * held * ny,), np.float64) if held * ny else None
        self.sy = empty((max(1, V * M * held * ns * ny),), np.float64) if held * ny else None
        n = len(job.arrays["kept"])
        sums = {"mean": (V, n, ny), "spread": (V, n, ny), "smean": (V, n, ns, ny), "scross": (V, n, ns, ny)}
        self.sums = {k: empty(s, np.float64) for k, s in sums.items()} if self.moments else {}
        blocks = -(-len(job.arrays["member"]) // REALIZATIONS_PER_BLOCK)
        self.part = empty((max(1, V * blocks * (2 + 2 * ns) * held * ny),), np.float64) if self.moments else None

    def _launch(self, k: int, window: Window) -> None:
        job, members = self.job, len(self.job.arrays["member"])
        given = self._structure(k, window)
        self._step(given, job.values * members)
        if self.moments and window.rows and job.ny and members:
            columns = job.ny * max(1, job.ns)
            self.machine.launch(
                "gr_cuda_moments", job.values * -(-members // REALIZATIONS_PER_BLOCK) * window.rows * columns, given
            )
            self.machine.launch("gr_cuda_join", job.values * window.rows * columns, given)

    def _step(self, given: Any, threads: int) -> None:
        """Step with quick quotients, and with plain ones for realizations where those do not suffice."""
        if self.plain is not None:
            given.again = None
            self.plain.launch("gr_cuda_run", threads, given)
            return
        self.machine.launch("gr_cuda_run", threads, given)
        if self.again is None or not self.machine.fetch(self.any)[0]:
            return
        plain, count = self.machine.plain(), int(self.machine.fetch(self.again).sum())
        assert plain is not None
        plain.launch("gr_cuda_run", threads, given)
        self.any = self.machine.empty((1,), LONG)
        # what happens often would be done twice
        self.plain = plain if count > MAX_SHARE_OF_PLAIN_QUOTIENTS * threads else None

    def _structure(self, k: int, window: Window) -> ctypes.Structure:
        job, at, a = self.job, self.machine.address, self.given
        ns, is_first, size = job.ns, k == 0, LONG.itemsize
        has_own = {"x0": job.arrays["x0"].ndim == 3, "sx0": job.arrays["sx0"].ndim == 4}
        state = {n: at(s) for n, s in self.state.items()}
        goes_on = not is_first or "w0" in a
        batch = self.Batch(
            n_members=len(job.arrays["member"]), member=at(a["member"]), n_cells=window.end - window.begin,
            substeps=job.substeps, grid=at(a["grid"]) + 8 * window.begin,
            x0=at(a["x0"]) if is_first else state["x"], x0_stride=job.nx if has_own["x0"] or not is_first else 0,
            x=state["x"], p=at(a["p"]), p_stride=0, nominal=at(a["nominal"]),
            signal=at(self.places) + k * len(job.signals) * np.dtype(np.uintp).itemsize,
            signal_stride=at(self.strides), held=at(a["held"]), dp=at(a["dp"]),
            sx0=at(a["sx0"]) if is_first else state["sx"],
            sx0_stride=ns * job.nx if has_own["sx0"] or not is_first else 0, sx=state["sx"], n_kept=window.rows,
            kept=at(a["kept"]) + size * window.first, y=None if self.y is None else at(self.y),
            sy=None if self.sy is None else at(self.sy), failed=at(self.failed),
            first_realization=job.first_realization, first_point=job.first_point + window.begin, stream=at(a["stream"]),
            which=at(a["which"]) + size * window.begin, filter=at(a["filter"]), start=at(a["start"]),
            reading=at(a["reading"]), dfilter=at(a["dfilter"]), dstart=at(a["dstart"]), dreading=at(a["dreading"]),
            w0=(state["w"] if not is_first else at(a["w0"])) if goes_on else None,
            dw0=self._moving(is_first), w=state["w"], dw=state["dw"], mix=at(a["mix"]),
        )  # fmt: skip
        each = {f"{n}_each": _each(job.arrays[n]) for n in ARRAYS_PER_PARAMETER_VALUE}
        each["stream_each"] //= 3  # words of a stream
        if not is_first:
            each["x0_each"], each["sx0_each"] = job.count * job.nx, job.count * ns * job.nx
        sums = {n: at(s) for n, s in self.sums.items()}
        return self.Device(
            batch=batch, n_values=job.values, count=job.count, **each, window=window.begin,
            again=None if self.again is None else at(self.again), any=at(self.any), broken=at(self.broken),
            first_row=window.first, n_rows=len(job.arrays["kept"]), part=None if self.part is None else at(self.part),
            **sums,
        )  # fmt: skip

    def _moving(self, is_first: bool) -> int | None:
        if not self.job.moved:
            return None
        if not is_first:
            return self.machine.address(self.state["dw"])
        return self.machine.address(self.given["dw0"]) if "dw0" in self.given else None

    def _answer(self) -> DeviceResult:
        job, nothing = self.job, np.zeros(0)
        found = DeviceResult(nothing, nothing, nothing, nothing, nothing)
        if self.rows:
            n, empty = len(job.arrays["kept"]), np.zeros if self.fetched else self.machine.empty
            found.y = empty((job.values, job.count, n, job.ny), np.float64)
            found.sy = empty((job.values, job.count, n, job.ns, job.ny), np.float64)
        return found

    def _fetch_rows(self, found: DeviceResult, window: Window) -> None:
        job, n = self.job, window.rows
        at = slice(window.first, window.last)
        for to, held, shape in ((found.y, self.y, (n, job.ny)), (found.sy, self.sy, (n, job.ns, job.ny))):
            if to is not None and held is not None and to.size:
                size = job.values * job.count * int(np.prod(shape))
                self.machine.move(held[:size], to, at, self.fetched)


def _each(array: np.ndarray) -> int:
    """Return numbers from one parameter value to the next; none where there is one."""
    return int(array[0].size) if len(array) > 1 else 0


def _some(shape: tuple[int, ...]) -> tuple[int, ...]:
    return shape if all(shape) else (1,)


def _not_empty(array: np.ndarray) -> np.ndarray:
    """Return an array with at least one entry, because a pointer needs something to point to."""
    return array if array.size else np.zeros(1, dtype=array.dtype)


def load(folder: str) -> tuple[DeviceJob, dict[str, Any]]:
    """Return the job of an exported folder, and its description."""
    import json
    import os

    with open(os.path.join(folder, "kernel.json"), encoding="utf-8") as file:
        told = json.load(file)
    with np.load(os.path.join(folder, "arrays.npz")) as arrays:
        given = {n: arrays[n] for n in arrays.files}
    signals = [given.pop(f"signal_{i}") for i in range(told["sizes"]["nu"])]
    return DeviceJob(told["sizes"], given, signals), told


def normals(machine: Machine, batch: type[ctypes.Structure], key: tuple[int, int], shape: tuple[int, int]) -> Any:
    """Return standard normals (realizations, steps) of a stream, left on the machine."""
    # the stream is read until the kernel has ended
    with machine.lock:
        stream, held = machine.put(np.array([*key, 0], dtype=np.uint32)), machine.empty(shape, np.float64)
        given = device_structures(batch)(
            batch=batch(stream=machine.address(stream)), n_rows=shape[1], mean=machine.address(held)
        )  # fmt: skip
        machine.launch("gr_cuda_normals", shape[0] * shape[1], given)
        machine.finish()
    return held


def structure_layout(fields: Iterator[tuple[str, str]] | Sequence[Sequence[str]]) -> type[ctypes.Structure]:
    """Return a structure from pairs of names and ``"long"`` or ``"pointer"``."""
    kinds = {"long": ctypes.c_long, "pointer": ctypes.c_void_p}
    return type("BatchStructure", (ctypes.Structure,), {"_fields_": [(n, kinds[kind]) for n, kind in fields]})
