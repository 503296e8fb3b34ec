"""Statistics over realizations, accumulated block by block so that trajectories need not be stored.

A reducer is given blocks of realizations in a fixed order and then asked for its result:

``Mean``        (1/M) Σ y_m and, with sensitivities, (1/M) Σ ∂y_m, which is the derivative of the mean
``Variance``    Σ (y_m − mean)² / (M − 1) and 2/(M − 1) Σ (y_m − mean)(∂y_m − mean)
``Quantiles``   of the empirical distribution at each instant, by linear interpolation between order statistics, as
                ``numpy.quantile``; exact: all realizations are held, but only for a slab of instants at a time

Moments are formed in blocks of 32 realizations joined in order (Chan, Golub & LeVeque 1983), so their digits do not
depend on the number of threads. Another reducer needs ``suffix``, ``needs_rows``, ``update`` and ``result``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from grisaille.compilation.sample_moments import SampleMoments
from grisaille.errors import DataError

Floats = NDArray[np.float64]

REALIZATIONS_PER_BLOCK = 32
"""Realizations per block."""


@dataclass(frozen=True, eq=False)
class RealizationBlock:
    """What some realizations gave at the output times ``instants``."""

    instants: slice
    moments: SampleMoments | None
    """Over all realizations, when the blocks have been joined already."""
    y: Floats | None = None
    """(realizations, instants, ny)"""
    is_last: bool = True
    """Whether all realizations have been seen at these instants."""
    sy: Floats | None = None
    """(realizations, instants, ns, ny)"""


@dataclass(frozen=True, eq=False)
class Statistic:
    """One result: ``values`` with dimensions (…, time, variable) and, with directions, ``slopes`` (time, parameter,
    variable)."""

    dims: tuple[str, ...]
    values: Floats
    slopes: Floats | None = None
    coordinates: dict[str, Floats] = field(default_factory=dict)


class Reducer(Protocol):
    @property
    def suffix(self) -> str:
        """Of the variables' names when several statistics are asked for."""

    @property
    def needs_rows(self) -> bool:
        """Return whether each realization's own values are needed, or moments are enough."""

    def update(self, block: RealizationBlock) -> None: ...
    def result(self) -> Statistic: ...


@dataclass(eq=False)
class OfMoments:
    """Statistics that moments are enough for; abstract."""

    parts: list[SampleMoments] = field(default_factory=list)
    needs_rows: ClassVar[bool] = False

    def update(self, block: RealizationBlock) -> None:
        if block.moments is not None:
            self.parts.append(block.moments)


class Mean(OfMoments):
    """The mean over realizations."""

    suffix = "mean"

    def result(self) -> Statistic:
        return Statistic((), _over_time(self.parts, "mean"), _over_time(self.parts, "smean"))


class Variance(OfMoments):
    """The variance over realizations, without bias (divided by M − 1)."""

    suffix = "variance"

    def result(self) -> Statistic:
        count = self.parts[0].count
        if count < 2:
            raise DataError("A variance needs at least two realizations: give realizations=2 or more.")
        spread, cross = _over_time(self.parts, "spread"), _over_time(self.parts, "scross")
        return Statistic((), spread / (count - 1), 2 * cross / (count - 1))


class Quantiles:
    """Quantiles over realizations."""

    suffix, needs_rows = "quantile", True

    def __init__(self, levels: Sequence[float] = (0.05, 0.25, 0.5, 0.75, 0.95)) -> None:
        self.levels = np.asarray(levels, dtype=float)
        if self.levels.ndim != 1 or not self.levels.size or not np.all((self.levels >= 0) & (self.levels <= 1)):
            raise DataError(f"Quantiles are taken at levels from 0 to 1, not {levels!r}.")
        self.waiting: list[Floats] = []
        self.parts: list[Floats] = []

    def update(self, block: RealizationBlock) -> None:
        if block.y is not None:
            self.waiting.append(block.y)
        if block.is_last:
            self.parts.append(np.quantile(np.concatenate(self.waiting), self.levels, axis=0))
            self.waiting = []

    def result(self) -> Statistic:
        return Statistic(("quantile",), np.concatenate(self.parts, axis=1), None, {"quantile": self.levels})


NAMED_STATISTICS: dict[str, type[Any]] = {"mean": Mean, "variance": Variance, "quantiles": Quantiles}


def make_reducers(wanted: Any) -> tuple[list[Reducer], bool]:
    """Return fresh reducers for ``reduce=``, and whether a single one was asked for (variables then keep their
    names).
    """
    single = isinstance(wanted, str) or hasattr(wanted, "update")
    return [_reducer(w) for w in ([wanted] if single else wanted)], single


def _reducer(wanted: Any) -> Reducer:
    if isinstance(wanted, str) and wanted in NAMED_STATISTICS:
        return NAMED_STATISTICS[wanted]()  # type: ignore[no-any-return]
    if hasattr(wanted, "update") and hasattr(wanted, "result"):
        return wanted  # type: ignore[no-any-return]
    raise DataError(f"reduce={wanted!r}: statistics are {', '.join(map(repr, NAMED_STATISTICS))}, or a reducer object.")


def _over_time(parts: list[SampleMoments], name: str) -> Floats:
    return np.concatenate([getattr(part, name) for part in parts])
