"""A run of an integrator before it begins: which model, from where to where, by which signals, how closely.

Single runs, fits, ensembles and devices make a ``Plan``, derive others from it (without derivatives, over a part of the
time, with other tolerances) by naming what differs, and get their tasks from it alone::

    plan.but(t0=t, x=x, z=z).task()

A plan is a value: arrays in it are read, never written. A task has its own copy of what integrators change, and shares
the rest.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from grisaille.compilation.schemes import AUTO, Among
from grisaille.compilation.task import ModelDimensions, Task

Floats = NDArray[np.float64]
Functions = TypeVar("Functions", bound=ModelDimensions)


class SignalArrays(Protocol):
    """Piecewise polynomials u_i(t) = Σ_k coef[segment, i, k] (t - breaks[segment])^k."""

    @property
    def breaks(self) -> np.ndarray: ...
    @property
    def coef(self) -> np.ndarray: ...
    @property
    def kink(self) -> np.ndarray:
        """Per break: 1 where a step must end, 2 where that instant depends on a parameter."""


def _nothing() -> Floats:
    return np.zeros(0)


@dataclass(frozen=True, eq=False)
class Plan(Generic[Functions]):
    """One run, from ``t0`` to ``t1``; fields that ``gr_task`` has too are described in gr_task.h.

    ``dp`` (or else ``sx``, ``sz``) gives the number of sensitivity directions, a row each; what is left out is zero.
    Without signals all of them are zero. Scalars for ``atol`` and ``nominal`` are spread over their vectors.
    """

    kernel: Functions
    """The model's functions."""
    t0: float
    t1: float
    times: ArrayLike = field(default_factory=_nothing)
    """Rows asked for."""
    signals: SignalArrays | None = None
    p: ArrayLike = field(default_factory=_nothing)
    x: ArrayLike = field(default_factory=_nothing)
    z: ArrayLike | None = None
    dp: ArrayLike | None = None
    sx: ArrayLike | None = None
    sz: ArrayLike | None = None
    rtol: float = 1e-6
    atol: ArrayLike = 1e-9
    nominal: ArrayLike = 1.0
    h: float = 0.0
    hmax: float = 0.0
    fixed_step: float = 0.0
    max_steps: int = 10_000_000
    most_events: int = 0
    """Rows of the list of events."""
    past: Any = None
    """What is known of delayed unknowns (``simulation/delayed_unknowns.py``); C never sees it."""
    among: Among = AUTO
    """The scheme, or a choice among several."""

    def replace(self, **changed: Any) -> Plan[Functions]:
        """Return the same run, except for these fields."""
        return replace(self, **changed)

    def without_derivatives(self) -> Plan[Functions]:
        """Return the plan without derivatives and without a list of events."""
        return replace(self, dp=None, sx=None, sz=None, most_events=0)

    def task(self) -> Task:
        """Return what an integrator is given; every array is checked for its shape."""
        kernel = self.kernel
        nx, nz, np_ = kernel.nx, kernel.nz, kernel.np
        ns = next((int(np.shape(s)[0]) for s in (self.dp, self.sx, self.sz) if s is not None), 0)
        times = _shared("times", self.times, (int(np.size(self.times)),))
        return Task(
            t0=float(self.t0), t1=float(self.t1), t=float(self.t0), plan=self,
            p=_own("p", self.p, (np_,)), x=_own("x", self.x, (nx,)), z=_own("z", self.z, (nz,)),
            ns=ns, dp=_own("dp", self.dp, (ns, np_)), sx=_own("sx", self.sx, (ns, nx)),
            sz=_own("sz", self.sz, (ns, nz)), dt=np.zeros(ns),
            **self._signals(),
            n_times=times.size, times=times, y=np.zeros((times.size, kernel.ny)),
            sy=np.zeros((times.size, ns, kernel.ny)),
            rtol=float(self.rtol), atol=_spread("atol", self.atol, nx + nz),
            nominal=_spread("nominal", self.nominal, nx), h=float(self.h), hmax=float(self.hmax),
            fixed_step=float(self.fixed_step), max_steps=int(self.max_steps),
            most_events=self.most_events, events=np.zeros((self.most_events, 3)),
        )  # fmt: skip

    def _signals(self) -> dict[str, Any]:
        """Return the fields of a task that describe signals."""
        nu, given = self.kernel.nu, self.signals
        if given is None and nu == 0:
            nothing = {"breaks": np.zeros(0), "coef": np.zeros((0, 0, 1)), "kink": np.zeros(0, np.uint8)}
            return {"n_breaks": 0, "degree": 0, **nothing}
        if given is None:
            breaks = np.array([self.t0, self.t1 if self.t1 > self.t0 else self.t0 + 1.0], dtype=float)
            flags, table = np.zeros(2, np.uint8), np.zeros((1, nu, 1))
        else:
            breaks = _shared("breaks", given.breaks, (int(np.size(given.breaks)),))
            flags, table = np.asarray(given.kink, np.uint8, order="C"), np.asarray(given.coef, np.float64, order="C")
        if breaks.size < 2 or table.ndim != 3 or table.shape[:2] != (breaks.size - 1, nu):
            raise ValueError(
                f"coef has shape {table.shape}, expected ({breaks.size - 1}, {nu}, degree + 1), 2 breaks or more."
            )
        if flags.shape != breaks.shape:
            raise ValueError(f"kink has shape {flags.shape}, expected {breaks.shape}.")
        return {"n_breaks": breaks.size, "breaks": breaks, "coef": table, "degree": table.shape[2] - 1, "kink": flags}


def _shared(name: str, value: ArrayLike, shape: tuple[int, ...]) -> Floats:
    """Return an array as C reads it, not copied where it has that form already."""
    array = np.asarray(value, dtype=np.float64, order="C")
    if array.shape != shape:
        raise ValueError(f"{name} has shape {array.shape}, expected {shape}.")
    return array


def _own(name: str, value: ArrayLike | None, shape: tuple[int, ...]) -> Floats:
    """Return a copy, zeros where nothing is given."""
    return np.zeros(shape) if value is None else np.array(_shared(name, value, shape))


def _spread(name: str, value: ArrayLike, n: int) -> Floats:
    return np.full(n, float(value)) if np.ndim(value) == 0 else _shared(name, value, (n,))  # type: ignore[arg-type]
