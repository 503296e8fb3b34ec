"""Bumps of tables and conditions of states that a step of an ensemble passes without meeting them.

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

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from grisaille.simulation.ensembles.engines import Engine, Setting
from grisaille.structure.bends import RateBends

Floats = NDArray[np.float64]
MOST_CELLS = 2000
"""Cells with bends of one realization that are looked at; evenly chosen ones where there are more."""
MISSED = 10.0
"""Tolerances that matter."""


@dataclass(frozen=True)
class Passed:
    """The narrowest bump."""

    text: str
    """A gap that is zero at one of its bends, in the user's names."""
    time: float
    width: float
    """In time."""
    substeps: int
    """Per cell, with which a stage meets it."""


def narrowest_passed(engine: Callable[[Setting], Engine], small: Setting, rtol: float) -> Passed | None:
    """Return the bump that needs the most steps per cell of those that the realizations of ``small`` pass."""
    bends = small.system.rate_bends
    names = small.system.observed_names
    if bends is None or not set(small.system.state_names) <= set(names):
        return None
    columns = tuple(names.index(n) for n in small.system.state_names)
    every = np.arange(small.grid.points.size)
    everywhere = replace(small, observed=columns, grid=replace(small.grid, kept=every))
    (answer,) = engine(everywhere).run([slice(0, every.size)], (), False, True, None)
    states = np.asarray(answer.y)
    with np.errstate(invalid="ignore"):
        size = np.nan_to_num(np.abs(states)).max(axis=(0, 1), initial=0.0) + 1e-3 * small.nominal
    looking = _Looking(small, bends)
    passed = [p for one in states for p in looking.passed(one, size * rtol)]
    return max(passed, key=lambda p: p.substeps, default=None)


@dataclass(frozen=True, eq=False)
class _Looking:
    """The bends of the equations of an ensemble."""

    setting: Setting
    bends: RateBends

    def passed(self, states: Floats, allowed: Floats) -> list[Passed]:
        """Of one realization, at all grid points; allowed : what may be missed of each state."""
        times = self.setting.grid.points
        usable = np.asarray(np.isfinite(states).all(axis=1))
        signs = np.asarray(self._gaps(times, np.nan_to_num(states)) < 0)
        cells = np.flatnonzero((signs[1:] != signs[:-1]).any(axis=1) & usable[1:] & usable[:-1])
        chosen = cells[:: max(1, cells.size // MOST_CELLS)]
        return [p for k in chosen if (p := self._in_cell(int(k), states[k : k + 2], allowed)) is not None]

    def _in_cell(self, k: int, ends: Floats, allowed: Floats) -> Passed | None:
        begin, h = float(self.setting.grid.points[k]), float(np.diff(self.setting.grid.points[k : k + 2])[0])
        shares, of = self._shares(begin, h, ends)
        if shares.size < 2:
            return None
        middles, widths = 0.5 * (shares[1:] + shares[:-1]), np.diff(shares)
        beside = 0.25 * (shares[-1] - shares[0]) + 1e-9
        left, right = max(0.0, shares[0] - beside), min(1.0, shares[-1] + beside)
        line = self._at(self.bends.rates, begin, h, ends, np.array([left, right]))
        along = (middles[:, None] - left) / (right - left)
        apart = np.abs(self._at(self.bends.rates, begin, h, ends, middles) - line[:1] - along * (line[1] - line[0]))
        missed = (h * widths[:, None] * apart / allowed).max(axis=1)
        if not missed.sum() > MISSED:
            return None
        counted = np.flatnonzero(missed > 0.1 * missed.max())
        width = float(widths[counted].max())
        text = self.setting.name(self.bends.gaps[int(of[counted[0]])])
        return Passed(text, begin + h * float(middles[counted[0]]), h * width, int(np.ceil(1.0 / max(width, 1e-9))))

    def _shares(self, begin: float, h: float, ends: Floats) -> tuple[Floats, NDArray[np.int64]]:
        """Where gaps are zero in a cell, and which; also those that are so only beside another one."""
        a, b = self._at(self.bends.values, begin, h, ends, np.array([0.0, 1.0]))
        found = [(a[i] / (a[i] - b[i]), i) for i in np.flatnonzero((a < 0) != (b < 0))]
        for share, _ in tuple(found):
            (at,) = self._at(self.bends.values, begin, h, ends, np.array([share]))
            for i in np.flatnonzero(((a < 0) == (b < 0)) & ((at < 0) != (a < 0))):
                found.append((share * a[i] / (a[i] - at[i]), i))
                found.append((share + (1 - share) * at[i] / (at[i] - b[i]), i))
        found.sort()
        return np.array([s for s, _ in found]), np.array([i for _, i in found], dtype=np.int64)

    def _at(self, function: ca.Function, begin: float, h: float, ends: Floats, shares: Floats) -> Floats:
        states = ends[0] + shares[:, None] * (ends[1] - ends[0])
        return self._evaluated(function, begin + shares * h, states)

    def _gaps(self, times: Floats, states: Floats) -> Floats:
        return self._evaluated(self.bends.values, times, states)

    def _evaluated(self, function: ca.Function, times: Floats, states: Floats) -> Floats:
        s = self.setting
        u = np.zeros((s.system.nu, times.size))
        p = np.repeat(s.p[: s.system.np, None], times.size, axis=1)
        return np.array(function(times[None, :], states.T, u, p).full()).T
