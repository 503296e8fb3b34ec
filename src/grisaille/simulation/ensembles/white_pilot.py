"""How finely cells are cut under white noise: steps halved on the same paths until the statistics stay.

A few dozen realizations are made with n and with 2n steps per cell. Both see one Brownian path (``filters``), so their
differences d are errors of the steps and not of the sampling. For each quantity and output time

    weak error      max(|mean d|, |sd(y_n) − sd(y_2n)|) / (1 − 2^−p)        p the weak order of the scheme
    strong error    √(mean d²) / (1 − 2^−q)                                 q its strong order

in units of the ensemble's standard deviation there (or of a twentieth of what it has been, where it fades). n is
doubled until the weak error is at most ``WEAK`` and, for schemes of strong order one and more, the strong error at most
``STRONG``: then what every path keeps, such as a radius, is kept to that too. Means may also
be off by rtol of their size. Instability shows in the same way, along the whole trajectory, and through the noise as
well as through the drift.

Where the noise depends on what it drives, the same paths with louder noise must meet the strong tolerance as well: they
stand for the tails of larger ensembles, whose largest increments are ``TAIL`` standard deviations.

Where paths part whatever the step (chaos, thresholds), their differences say nothing: then n is taken at which they
agree to the same tolerances until they part, and mean and standard deviation afterwards do not differ by more than so
few paths can tell; the error that is given is what they can tell.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from grisaille.compilation.batch import MAX_STEPS_PER_CELL
from grisaille.simulation.nominal_sizes import nominal_or_own

Floats = NDArray[np.float64]
PATHS, MORE, FEWER, LONG = 24, 96, 8, 200_000
"""Realizations of a pilot; of a scheme of strong order ½, whose weak error hides behind its strong one; and of a run
with more than ``LONG`` cells."""
TAIL, LOUDEST = 4.4, 2.0
"""The largest of a hundred thousand normals, and the largest factor of the noise."""
MAX_COMPARED_TIMES = 400
"""Output times that are compared, at most; they are spread over all."""
WEAK, STRONG = 0.01, 0.03
"""Tolerances of a statistic and of a path, in standard deviations."""
FADED_DEVIATION = 0.05
"""Part of the largest standard deviation so far below which it does not count as a unit."""
AGREEING_TIME_SHARE = 0.3
"""Part of the time before they part in which paths must agree."""
PARTED_DISTANCE = 0.3
"""Standard deviations between two paths that no longer are the same one."""
TRUSTED_SUBSTEPS = 64
"""Steps per cell from which on a realization that becomes infinite is taken to do so by itself."""
MAX_PILOT_STEPS = 1 << 26
"""Steps of all realizations of one pilot; at least ``MIN_STEPS_PER_CELL`` per cell are tried."""
MIN_STEPS_PER_CELL = 64
MAX_VALUE = 1e100
"""Values beyond it, whose squares might overflow, are cut off."""


@dataclass(frozen=True)
class WhitePilot:
    """What was found; errors are in units of the tolerance."""

    substeps: int
    error: float
    weak: float
    """In standard deviations."""
    strong: float
    paths: int
    parted: float | None = None
    """When paths part."""
    where: str = ""
    """The quantity and instant of the largest error."""

    @property
    def sentence(self) -> str:
        if self.parted is not None:
            return (
                f"paths with steps halved part from t = {self.parted:.4g} on, and their statistics agree within what "
                f"{self.paths} of them tell, {self.weak:.2g} standard deviations"
            )
        return (
            f"{self.paths} paths with steps halved move mean and standard deviation by {self.weak:.2g} standard "
            f"deviations at most, and each other by {self.strong:.2g}"
        )


@dataclass(frozen=True)
class ComparisonScale:
    """The scale in which errors are measured."""

    names: tuple[str, ...]
    nominal: Floats
    times: Floats
    rtol: float
    weak_order: float
    strong_order: float
    is_free: NDArray[np.bool_] | None = None
    """Which quantities have no declared nominal value; None: all have one."""

    def floor(self, values: Floats) -> Floats:
        """Return what is added to the sizes of quantities with these values (realizations, times, names)."""
        if self.is_free is None:
            return np.asarray(1e-3 * self.nominal)
        largest = np.nan_to_num(np.abs(values)).max(axis=(0, 1), initial=0.0)
        return 1e-3 * nominal_or_own(self.nominal, self.is_free, self.names, largest, self.rtol)


def paths_of(cells: int, strong_order: float) -> int:
    """Return realizations of a pilot; they do not depend on how many are asked for."""
    return FEWER if cells > LONG else PATHS if strong_order >= 1 else MORE


def choose_halvings(
    rows: Callable[[int, float], Floats], scale: ComparisonScale, cells: int, has_tails: bool
) -> WhitePilot:
    """Return the smallest number of steps per cell, a power of two, that meets the tolerances, or the best within
    ``MAX_PILOT_STEPS``.

    rows : (realizations, instants, quantities) with so many steps per cell and so many times the noise
    has_tails : whether the noise depends on what it drives
    """
    n, coarse, before = 1, rows(1, 1.0), np.inf
    most = min(MAX_STEPS_PER_CELL // 2, max(MIN_STEPS_PER_CELL, MAX_PILOT_STEPS // max(1, 2 * cells * len(coarse))))
    while True:
        fine = rows(2 * n, 1.0)
        found = compare(coarse, fine, n, scale, before)
        if 4 * n > most:
            return found
        if found.error <= 1.0:
            louder = noise_scale_for(n * cells * len(coarse)) if has_tails else 1.0
            if louder == 1.0 or compare_tails(rows(n, louder), rows(2 * n, louder), scale) <= 1.0:
                return found
        n, coarse, before = 2 * n, fine, found.strong


def compare(coarse: Floats, fine: Floats, n: int, scale: ComparisonScale, before: float) -> WhitePilot:
    """Return the errors of n steps by comparison with 2n; ``before`` is the strong error of n/2."""
    kept = _alike(coarse, fine, is_trusted=n >= TRUSTED_SUBSTEPS)
    if kept is None:
        return WhitePilot(n, np.inf, np.inf, np.inf, len(fine), where="realizations that become infinite")
    a, b = (np.clip(y[kept], -MAX_VALUE, MAX_VALUE) for y in (coarse, fine))
    if len(a) < 2:
        return WhitePilot(n, 0.0, 0.0, 0.0, len(a))
    with np.errstate(invalid="ignore"):
        d, unit = a - b, b.std(axis=0, ddof=1)
        unit = np.fmax(unit, FADED_DEVIATION * np.maximum.accumulate(np.nan_to_num(unit), axis=0))
        size = np.maximum.accumulate(np.abs(b).max(axis=0), axis=0) + scale.floor(b)
        bias, change = np.abs(d.mean(axis=0)), np.abs(a.std(axis=0, ddof=1) - b.std(axis=0, ddof=1))
        apart = np.sqrt((d**2).mean(axis=0))
        tiny = 1e-10 * size
        weak = np.fmax(bias / (unit + scale.rtol / WEAK * size), change / (unit + tiny))
        strong = apart / (unit + scale.rtol / STRONG * size)
    weak, strong, apart = (np.nan_to_num(e, nan=0.0) for e in (weak, strong, apart))
    weak, strong = weak / (1 - 2.0**-scale.weak_order), strong / (1 - 2.0**-scale.strong_order)
    error = np.maximum(weak / WEAK, strong / STRONG if scale.strong_order >= 1 else 0.0)
    worst = np.unravel_index(int(np.argmax(error)), error.shape) if error.size else (0, 0)
    top = float(error.max(initial=0.0))
    where = f"{scale.names[worst[1]]} at t = {scale.times[worst[0]]:.4g}" if error.size else ""
    found = WhitePilot(n, top, float(weak.max(initial=0.0)), float(strong.max(initial=0.0)), len(a), where=where)
    if top > 1.0 and found.strong > PARTED_DISTANCE and found.strong > 0.7 * before:
        return _if_parted(found, error, strong, weak, d, unit + tiny, scale)
    return found


def noise_scale_for(count: int) -> float:
    """Return the factor that makes the largest of so many normals ``TAIL``."""
    return float(np.clip(TAIL / (np.sqrt(2 * np.log(2 * count)) - 0.5), 1.0, LOUDEST))


def compare_tails(coarse: Floats, fine: Floats, scale: ComparisonScale) -> float:
    """Return the largest distance with louder noise, in units of the tolerance; what does not stay finite is left
    out.
    """
    kept = np.isfinite(coarse).all(axis=(1, 2)) & np.isfinite(fine).all(axis=(1, 2))
    if kept.sum() < 2:
        return 0.0
    a, b = (np.clip(y[kept], -MAX_VALUE, MAX_VALUE) for y in (coarse, fine))
    unit = b.std(axis=0, ddof=1)
    unit = np.maximum(unit, FADED_DEVIATION * np.maximum.accumulate(unit, axis=0))
    size = np.maximum.accumulate(np.abs(b).max(axis=0), axis=0) + scale.floor(b)
    apart = np.abs(a - b).max(axis=0) / (unit + scale.rtol / STRONG * size)
    return float(apart.max(initial=0.0) / (1 - 2.0**-scale.strong_order) / STRONG)


def _if_parted(
    found: WhitePilot, error: Floats, strong: Floats, weak: Floats, d: Floats, unit: Floats, scale: ComparisonScale
) -> WhitePilot:
    """Accept steps where paths agree until they part, and statistics do not differ significantly afterwards."""
    parted = (strong > PARTED_DISTANCE).any(axis=1)
    first = int(np.argmax(parted))
    # before they part, their distance grows through every tolerance
    early = scale.times <= scale.times[0] + AGREEING_TIME_SHARE * (scale.times[first] - scale.times[0])
    together = error[early].max(initial=0.0)
    told = d.std(axis=0, ddof=1) / np.sqrt(len(d))
    significant = np.abs(d.mean(axis=0)) > 4 * told
    spread = weak > 4 / np.sqrt(len(d) - 1)
    if early.sum() < 2 or together > 1.0 or significant.any() or spread.any():
        return found
    resolution = float((told / unit).max())
    return WhitePilot(
        found.substeps, 1.0, resolution, found.strong, found.paths, float(scale.times[first]), found.where
    )


def _alike(coarse: Floats, fine: Floats, is_trusted: bool) -> NDArray[np.int64] | None:
    """Return realizations that stay finite with both steps; None where only one of the two does, or it cannot be told
    yet.
    """
    ends = [[_first_bad(y[m]) for y in (coarse, fine)] for m in range(len(fine))]
    bad = [m for m, pair in enumerate(ends) if min(pair) < fine.shape[1]]
    for m in bad:
        if not is_trusted or abs(ends[m][0] - ends[m][1]) > 1 + 0.1 * max(ends[m]):
            return None
    return np.setdiff1d(np.arange(len(fine)), bad)


def _first_bad(y: Floats) -> int:
    """Return the first instant from which on something that was finite is not."""
    bad = (~np.isfinite(y) & np.isfinite(y[0])).any(axis=1)
    return int(np.argmax(bad)) if bad.any() else len(y)
