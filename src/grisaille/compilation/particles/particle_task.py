"""A run of a particle filter: the arrays that C reads and fills (kernels/gr_particles.h)."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from grisaille.compilation.shared_library import SharedLibrary
from grisaille.numerics.philox import Key

Floats = NDArray[np.float64]
Whole = NDArray[np.int64]
CHARTS = ("identity", "exponential", "logistic")
"""How coordinates of a search become values, by number in C."""
_LONG = np.dtype(ctypes.c_long)
_LAW = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.c_long, ctypes.c_long, ctypes.POINTER(ctypes.c_double), ctypes.POINTER(ctypes.c_double)
)


class _Stream(ctypes.Structure):
    """``gr_stream``."""

    _fields_ = (("k0", ctypes.c_uint32), ("k1", ctypes.c_uint32), ("antithetic", ctypes.c_uint32))


_KINDS = {"n_particles n_cells n_root guided n_walking failed": ctypes.c_long, "stream": _Stream, "law": _LAW}
_NAMES = (
    "n_particles n_cells bounds stages steps signals sample y scale inflation by_law q nominal enter start root n_root "
    "stream guided law n_walking walking deviation chart limits centre dq dstart lowest highest terms effective "
    "predicted variance position error bias excess mean covariance kept kept_weight ancestor walk_mean end work failed"
).split()


def _kind(name: str) -> type:
    return next((kind for names, kind in _KINDS.items() if name in names.split()), ctypes.c_void_p)


class ParticleTask(ctypes.Structure):
    """``gr_particle_task``."""

    _fields_ = tuple((name, _kind(name)) for name in _NAMES)


class MeasurementLaws(Protocol):
    """The laws of outputs that are not normal, for all particles at once; ``seen`` is (particles, columns)."""

    @property
    def columns(self) -> int:
        """Return how many numbers are seen: outputs, then what laws need besides."""

    def pseudo_measurements(self, sample: int, seen: Floats) -> Floats:
        """Return (particles, ny, 2): a deviation from the prediction that stands for the measurement, its variance."""

    def log_densities(self, sample: int, seen: Floats) -> Floats:
        """Return (particles,), added over outputs."""


@dataclass(frozen=True, eq=False)
class ParticleRecord:
    """A record on cells, as it is read by every run."""

    bounds: Floats
    stages: Floats
    """(Σ (2 steps + 1), nu) signals at halves of steps, cell after cell."""
    steps: Whole
    signals: Floats
    """(K + 1, nu) at the bounds."""
    sample: Whole
    """(K + 1,), −1: none."""
    y: Floats
    """(N, ny), NaN: not measured."""
    scale: Floats
    """(N, ny) factors of standard deviations."""
    by_law: NDArray[np.bool_]
    """(ny,) outputs whose law is not normal."""

    def unmeasured(self, first: int, last: int) -> ParticleRecord:
        """Return the cells [first, last) with the samples at their ends, none of which is measured."""
        edges = np.concatenate([[0], np.cumsum(2 * self.steps + 1)])
        sample = np.where(self.sample[first : last + 1] >= 0, np.cumsum(self.sample[first : last + 1] >= 0) - 1, -1)
        count = int(sample.max()) + 1
        return ParticleRecord(
            self.bounds[first : last + 1], self.stages[edges[first] : edges[last]], self.steps[first:last],
            self.signals[first : last + 1], sample, np.full((count, self.y.shape[1]), np.nan),
            np.ones((count, self.y.shape[1])), self.by_law,
        )  # fmt: skip


@dataclass(frozen=True, eq=False)
class Walk:
    """Unknowns that walk with the particles, as iterated filtering has them."""

    coordinates: Floats
    """(J, n), in coordinates of the search."""
    deviations: Floats
    """(N + 1, n) of their steps: at the start, and at each sample."""
    charts: Whole
    """(n,) places in ``CHARTS``."""
    limits: Floats
    """(n, 2)"""
    centre: Floats
    """(n,) values to which q and the start belong."""
    dq: Floats
    """(n, nq)"""
    dstart: Floats
    """(n, ns)"""


@dataclass(frozen=True, eq=False)
class ParticleRun:
    """What one run is given beside the record."""

    particles: int
    q: Floats
    nominal: Floats
    start: Floats
    """(ns,)"""
    root: Floats
    """(ns, r) of the covariance at the start."""
    stream: Key
    guided: int
    """How often the prediction of a particle is linearised; zero: proposals of the model."""
    inflation: Floats
    """(N, ny) variances added in proposals."""
    enter: Floats | None = None
    """(J, ns) where each particle begins, after the first sample; None: they are drawn before it."""
    laws: MeasurementLaws | None = None
    walk: Walk | None = None
    limits: tuple[Floats, Floats] | None = None
    """(ns,) lowest and highest states."""
    wants: frozenset[str] = frozenset()
    """``"predictions"``, ``"moments"``, ``"paths"``, ``"errors"``"""


@dataclass(frozen=True, eq=False)
class ParticleAnswer:
    """What a run has found; entries of samples that were not measured are zero."""

    terms: Floats
    """(N,) logarithms of the mean weights, whose sum is the estimate of log L."""
    effective: Floats
    """(N,) effective number of particles."""
    failed: int
    """The sample at which no particle explained the measurement; −1: none."""
    end: Floats
    """(J, ns)"""
    predicted: Floats | None = None
    """(N, ny) means of the outputs before the sample is used."""
    variance: Floats | None = None
    """(N, ny)"""
    position: Floats | None = None
    """(N, ny) P(Y ≤ y | what was measured before), of normal outputs."""
    error: Floats | None = None
    """(N, ny) mean square of what halving the steps changes."""
    bias: Floats | None = None
    """(N, ny) its mean."""
    excess: Floats | None = None
    """(N, ny) mean square of what the linearised prediction misses."""
    mean: Floats | None = None
    """(N, ns) by weights."""
    covariance: Floats | None = None
    """(N, states, states)"""
    paths: Floats | None = None
    """(N, J, ns)"""
    weights: Floats | None = None
    """(N, J), of sum one at each sample."""
    ancestors: Whole | None = None
    """(N, J) places at the sample before."""
    coordinates: Floats | None = None
    """(J, n) of what walked."""
    walk_mean: Floats | None = None
    """(N, n)"""


@dataclass
class _Memory:
    """Arrays by name, kept alive while C reads them."""

    arrays: dict[str, NDArray[np.generic]] = field(default_factory=dict)

    def give(self, name: str, value: NDArray[np.generic], kind: object = np.float64) -> int:
        self.arrays[name] = np.ascontiguousarray(value, dtype=kind)  # type: ignore[call-overload]
        return int(self.arrays[name].ctypes.data)


def particle_lanes(library: SharedLibrary) -> int:
    """Return how many particles C moves at once: their number must be a multiple of it."""
    return int(library.function("gr_particle_lanes")())


def run_particles(library: SharedLibrary, record: ParticleRecord, run: ParticleRun, states: int) -> ParticleAnswer:
    """Return the result of one pass over a record.

    states : how many numbers of a particle are states of the model
    """
    J, (N, ny), ns = run.particles, record.y.shape, len(run.start)
    memory, given = _Memory(), {}
    for name in ("bounds", "stages", "signals", "y", "scale"):
        given[name] = memory.give(name, getattr(record, name))
    for name in ("steps", "sample", "by_law"):
        given[name] = memory.give(name, getattr(record, name), _LONG)
    for name in ("q", "nominal", "start", "root", "inflation"):
        given[name] = memory.give(name, getattr(run, name))
    if run.enter is not None:
        given["enter"] = memory.give("enter", run.enter)
    if run.limits is not None:
        given["lowest"], given["highest"] = (
            memory.give(n, v) for n, v in zip(("lowest", "highest"), run.limits, strict=True)
        )
    shapes: dict[str, tuple[int, ...]] = {
        "terms": (N,), "effective": (N,), "end": (J, ns)
    }  # fmt: skip
    if run.wants & {"predictions", "errors"}:
        shapes |= {"predicted": (N, ny), "variance": (N, ny), "position": (N, ny)}
    if "errors" in run.wants:
        shapes |= {"error": (N, ny), "bias": (N, ny), "excess": (N, ny)}
    if "moments" in run.wants:
        shapes |= {"mean": (N, ns), "covariance": (N, states, states)}
    if "paths" in run.wants:
        shapes |= {"kept": (N, J, ns), "kept_weight": (N, J)}
    walk = run.walk
    if walk is not None:
        n = len(walk.centre)
        shapes["walk_mean"] = (N, n)
        given |= {
            "walking": memory.give("walking", walk.coordinates.copy()),
            "chart": memory.give("chart", walk.charts, _LONG),
            "deviation": memory.give("deviation", walk.deviations), "limits": memory.give("limits", walk.limits),
            "centre": memory.give("centre", walk.centre), "dq": memory.give("dq", walk.dq),
            "dstart": memory.give("dstart", walk.dstart), "n_walking": n,
        }  # fmt: skip
    found = {name: np.zeros(shape) for name, shape in shapes.items()}
    given |= {name: int(array.ctypes.data) for name, array in found.items()}
    if "paths" in run.wants:
        given["ancestor"] = memory.give("ancestor", np.zeros((N, J)), _LONG)
    caught: list[BaseException] = []
    law = _LAW(_callback(run.laws, J, caught)) if run.laws is not None else _LAW()
    task = ParticleTask(
        n_particles=J, n_cells=len(record.bounds) - 1, n_root=run.root.shape[1], guided=int(run.guided), law=law,
        stream=_Stream(*run.stream, 0), **given,
    )  # fmt: skip
    pointer = ctypes.POINTER(ParticleTask)
    work = np.empty(int(library.function("gr_particle_work", pointer)(ctypes.byref(task))))
    task.work = work.ctypes.data
    library.function("gr_particles", pointer)(ctypes.byref(task))
    if caught:
        raise caught[0]
    names = ("predicted", "variance", "position", "error", "bias", "excess", "mean", "covariance", "walk_mean")
    kept = {name: found.get(name) for name in names}
    ancestors, coordinates = memory.arrays.get("ancestor"), memory.arrays.get("walking")
    return ParticleAnswer(
        found["terms"], found["effective"], int(task.failed), found["end"], paths=found.get("kept"),
        weights=found.get("kept_weight"), ancestors=None if ancestors is None else ancestors.astype(np.int64),
        coordinates=None if coordinates is None else coordinates.astype(np.float64), **kept,
    )  # fmt: skip


def _callback(laws: MeasurementLaws, J: int, caught: list[BaseException]) -> Callable[..., int]:
    """Return what C calls; an exception ends the filter and is raised after it."""

    def call(
        what: int, sample: int, seen: ctypes._Pointer[ctypes.c_double], out: ctypes._Pointer[ctypes.c_double]
    ) -> int:
        try:
            ask = laws.log_densities if what else laws.pseudo_measurements
            answer = ask(sample, np.ctypeslib.as_array(seen, shape=(J, laws.columns)))
            np.ctypeslib.as_array(out, shape=answer.shape)[...] = answer
        except BaseException as error:
            caught.append(error)
            return 1
        return 0

    return call
