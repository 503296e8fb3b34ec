"""Bumps of tables and conditions of states that lie inside a step of an ensemble and are not met by it.

Steps per cell are chosen by comparing n with 2n, which sees nothing of a bump that the stages of neither meet. So the
first realizations are asked where, between two grid points, the right-hand side bends with the states and bends back:
with states on the line between both, the rates there are compared with those on the line between the rates just before
the first of these bends and just behind the last one,

    missed = h ∑ w |f(middle) − line(middle)| / (rtol · size),

w being the shares of the cell between neighbouring bends. Gaps that contain signals are not looked at.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from grisaille.cache import Cache, IdentityKey
from grisaille.compilation.casadi_evaluation import FlatEvaluation, flat_over_points
from grisaille.simulation.ensembles.engines import Engine, EnsembleSetup
from grisaille.structure.bends import RateBends

Floats = NDArray[np.float64]
MAX_CELLS = 2000
"""Cells with bends of one realization that are looked at; evenly chosen ones where there are more."""
MAX_MISSED_TOLERANCES = 10.0
"""Tolerances that matter."""
MAX_KEPT = 100_000
"""Points of a function that is kept."""
_OF_POINTS: Cache[FlatEvaluation] = Cache(16)
"""Functions of many points in one call."""


@dataclass(frozen=True)
class SkippedFeature:
    """The narrowest bump that steps of an ensemble skip."""

    text: str
    """A gap that is zero at one of its bends, in the user's names."""
    time: float
    width: float
    """In time."""
    substeps: int
    """Per cell, with which a stage meets it."""


def narrowest_skipped_feature(
    engine: Callable[[EnsembleSetup], Engine], small: EnsembleSetup, rtol: float
) -> SkippedFeature | None:
    """Return the bump that needs the most steps per cell of those that the realizations of ``small`` pass."""
    bends = small.system.rate_bends
    names = small.system.observed_names
    if bends is None or not set(small.system.state_names) <= set(names):
        return None
    columns = tuple(names.index(n) for n in small.system.state_names)
    every = np.arange(small.grid.points.size)
    # where states are observed anyway, steps that are built already do
    observed = small.observed if set(columns) <= set(small.observed) else columns
    everywhere = replace(small, observed=observed, grid=replace(small.grid, kept=every))
    (answer,) = engine(everywhere).run([slice(0, every.size)], (), False, True, None)
    states = np.asarray(answer.y)[..., [observed.index(c) for c in columns]]
    with np.errstate(invalid="ignore"):
        size = np.nan_to_num(np.abs(states)).max(axis=(0, 1), initial=0.0) + 1e-3 * small.nominal
    looking = _FeatureSearch(small, bends)
    passed = [p for one in states for p in looking.passed(one, size * rtol)]
    return max(passed, key=lambda p: p.substeps, default=None)


@dataclass(frozen=True, eq=False)
class _MetBends:
    """The bends that a realization meets in a cell."""

    cell: int
    shares: Floats
    """Of the cell, in order."""
    of: NDArray[np.int64]
    """Which gap is zero there."""

    @classmethod
    def of_cell(cls, cell: int, first: list[tuple[float, int]], ends: Floats, beside: Floats) -> _MetBends:
        """Return the bends whose gaps change sign between the ends, and those that do so only beside one of these.

        first : shares and gaps of the former; ends, beside : all gaps at both ends of the cell, and at these shares
        """
        a, b = ends
        found = list(first)
        for (share, _), at in zip(first, beside, strict=True):
            for i in np.flatnonzero(((a < 0) == (b < 0)) & ((at < 0) != (a < 0))).tolist():
                found.append((share * a[i] / (a[i] - at[i]), i))
                found.append((share + (1 - share) * at[i] / (at[i] - b[i]), i))
        found.sort()
        return cls(cell, np.array([s for s, _ in found]), np.array([i for _, i in found], dtype=np.int64))

    @property
    def middles(self) -> Floats:
        """Between neighbouring bends."""
        return np.asarray(0.5 * (self.shares[1:] + self.shares[:-1]))

    @property
    def beside(self) -> Floats:
        """Just before the first bend and just behind the last one."""
        away = 0.25 * (self.shares[-1] - self.shares[0]) + 1e-9
        return np.array([max(0.0, self.shares[0] - away), min(1.0, self.shares[-1] + away)])


@dataclass(frozen=True, eq=False)
class _FeatureSearch:
    """The bends of the equations of an ensemble."""

    setting: EnsembleSetup
    bends: RateBends

    def passed(self, states: Floats, allowed: Floats) -> list[SkippedFeature]:
        """Return the features that one realization skips, at all grid points; allowed : what may be missed of each
        state.
        """
        usable = np.asarray(np.isfinite(states).all(axis=1))
        states = np.nan_to_num(states)
        gaps = self._evaluated(self.bends.values, self.setting.grid.points, states)
        signs = gaps < 0
        cells = np.flatnonzero((signs[1:] != signs[:-1]).any(axis=1) & usable[1:] & usable[:-1])
        chosen = cells[:: max(1, cells.size // MAX_CELLS)]
        met = [m for m in self._met(chosen, gaps, states) if m.shares.size > 1]
        if not met:
            return []
        points = [np.append(m.beside, m.middles) for m in met]
        rates = self._at(
            self.bends.rates, np.repeat([m.cell for m in met], [p.size for p in points]), np.concatenate(points), states
        )
        parts = np.split(rates, np.cumsum([p.size for p in points])[:-1])
        found = [self._missed(m, part, allowed) for m, part in zip(met, parts, strict=True)]
        return [p for p in found if p is not None]

    def _missed(self, met: _MetBends, rates: Floats, allowed: Floats) -> SkippedFeature | None:
        """Return the bump between the bends of a cell, where it matters; rates : beside it, then between its bends."""
        begin, end = self.setting.grid.points[met.cell : met.cell + 2].tolist()
        h, widths, line = end - begin, np.diff(met.shares), rates[:2]
        along = ((met.middles - met.beside[0]) / (met.beside[1] - met.beside[0]))[:, None]
        apart = np.abs(rates[2:] - line[:1] - along * (line[1] - line[0]))
        missed = (h * widths[:, None] * apart / allowed).max(axis=1)
        if not missed.sum() > MAX_MISSED_TOLERANCES:
            return None
        counted = np.flatnonzero(missed > 0.1 * missed.max())
        width = float(widths[counted].max())
        text = self.setting.name(self.bends.gaps[int(met.of[counted[0]])])
        at = begin + h * float(met.middles[counted[0]])
        return SkippedFeature(text, at, h * width, int(np.ceil(1.0 / max(width, 1e-9))))

    def _met(self, cells: NDArray[np.int64], gaps: Floats, states: Floats) -> list[_MetBends]:
        """Return where gaps are zero in each cell, and which; also those that are so only beside another one."""
        rows, of = np.nonzero((gaps[cells] < 0) != (gaps[cells + 1] < 0))
        a, b = gaps[cells[rows], of], gaps[cells[rows] + 1, of]
        first = a / (a - b)
        beside = self._at(self.bends.values, cells[rows], first, states)
        parts = np.searchsorted(rows, np.arange(cells.size + 1))
        return [
            _MetBends.of_cell(
                cell, list(zip(first[i:j].tolist(), of[i:j].tolist(), strict=True)), gaps[cell : cell + 2], beside[i:j]
            )
            for cell, i, j in zip(cells.tolist(), parts[:-1], parts[1:], strict=True)
        ]

    def _at(self, function: ca.Function, cells: NDArray[np.int64], shares: Floats, states: Floats) -> Floats:
        """Return states at shares of the way through cells, on the lines between the states at their ends."""
        times = self.setting.grid.points
        between = states[cells] + shares[:, None] * (states[cells + 1] - states[cells])
        return self._evaluated(function, times[cells] + shares * (times[cells + 1] - times[cells]), between)

    def _evaluated(self, function: ca.Function, times: Floats, states: Floats) -> Floats:
        count, s = times.size, self.setting
        if not count:
            return np.zeros((0, function.numel_out(0)))
        make = partial(flat_over_points, function, count, (2, 3))
        evaluate = make() if count > MAX_KEPT else _OF_POINTS.get((IdentityKey(function), count), make)
        found = evaluate(times, np.ascontiguousarray(states), np.zeros(s.system.nu), s.p[: s.system.np])
        return found[0].reshape(count, -1)
