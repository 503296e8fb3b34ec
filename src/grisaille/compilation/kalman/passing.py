"""One pass of a nonlinear filter over a record: what it is given, what it answers, and the pass itself in NumPy.

The C twins are gr_filter.h and gr_filter_reverse.h; they make the same operations in the same order, so numbers agree
to rounding.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from grisaille.compilation.evaluation import FlatEvaluation
from grisaille.compilation.kalman.linearized import solve_linearized
from grisaille.compilation.kalman.program import FilterProgram

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class FilterPass:
    """K cells with signals at halves of their steps; a sample at each bound, or −1."""

    bounds: Floats
    stages: Floats
    """(Σ (2 steps + 1), nu), cell after cell."""
    signals: Floats
    """(K + 1, nu) at the bounds."""
    sample: NDArray[np.int64]
    y: Floats
    mask: Floats
    scale: Floats
    """(samples, ny): values with zeros where there are none, one where there are, and factors of noise deviations."""
    q: Floats
    nominal: Floats
    steps: NDArray[np.int64]
    """(K,) steps of each cell."""
    robust: float = np.inf
    """Huber's threshold in standard deviations; −c for the smooth loss."""
    condition: bool = False
    doublings: int = 0
    """Frozen, of a linearised step."""
    given: Floats | None = None
    """(K + 1, size): what the filter carries at a bound before its update, not what it arrives with; NaN: keep."""

    @property
    def edges(self) -> NDArray[np.int64]:
        """(K + 1,) where the stages of each cell begin."""
        return np.concatenate([[0], np.cumsum(2 * self.steps + 1)])

    def part(self, first: int, last: int, sample: NDArray[np.int64] | None = None) -> FilterPass:
        """Cells first … last − 1 alone, with no samples or those given at their bounds."""
        none = np.full(last - first + 1, -1, dtype=np.int64)
        edges = self.edges
        return replace(
            self, bounds=self.bounds[first : last + 1], stages=self.stages[edges[first] : edges[last]],
            signals=self.signals[first : last + 1], sample=none if sample is None else sample,
            steps=self.steps[first:last], given=None if self.given is None else self.given[first : last + 1],
        )  # fmt: skip

    def step_by_step(self) -> FilterPass:
        """The same pass with a bound after every step, so that all that is carried can be kept."""
        first = np.concatenate([[0], np.cumsum(self.steps)])
        lengths, number = np.diff(self.bounds), np.concatenate([np.arange(m) for m in self.steps])
        cell = np.repeat(np.arange(len(self.steps)), self.steps)
        bounds = np.append(self.bounds[cell] + lengths[cell] * (number / self.steps[cell]), self.bounds[-1])
        rows = self.edges[:-1][cell] + 2 * number
        sample, signals = np.full(len(bounds), -1, dtype=np.int64), np.empty((len(bounds), self.signals.shape[1]))
        signals[:-1], sample[first] = self.stages[rows], self.sample
        signals[first] = self.signals
        given = None
        if self.given is not None:
            given = np.full((len(bounds), self.given.shape[1]), np.nan)
            given[first] = self.given
        stages = self.stages[(rows[:, None] + np.arange(3)).ravel()]
        return replace(
            self, bounds=bounds, stages=stages, signals=signals, sample=sample, given=given,
            steps=np.ones(len(cell), dtype=np.int64),
        )  # fmt: skip


@dataclass(eq=False)
class PassResult:
    """Sums over the samples (``filtering.kalman.Sums``), and what the filter carries at the end."""

    s: Floats
    ds: Floats
    """(ns, size); after a reverse pass the adjoint of the start, (size,)."""
    base: Floats
    information: Floats
    innovations: Floats
    variances: Floats
    slopes: Floats
    kept: Floats | None = None
    """(K + 1, 2, size) before and after each update."""
    lq: Floats | None = None
    count: int = 0
    failed: int = -1

    @classmethod
    def empty(cls, given: FilterPass, s: Floats, ds: Floats, keep: bool) -> PassResult:
        ns, shape = len(ds), given.y.shape
        return cls(
            s.copy(), ds.copy(), np.zeros(1 + ns), np.zeros((ns, ns)), np.full(shape, np.nan), np.full(shape, np.nan),
            np.zeros((shape[0], ns, shape[1])), np.full((len(given.bounds), 2, len(s)), np.nan) if keep else None,
        )  # fmt: skip


def run_interpreted(
    program: FilterProgram, given: FilterPass, s: Floats, ds: Floats, dq: Floats, keep: bool
) -> PassResult:
    """The pass from s along directions ds, (ns, size), and dq, (ns, nq)."""
    update = program.evaluate("gr_update", len(ds))
    result = PassResult.empty(given, s, ds, keep)
    waiting, edges = given.condition, given.edges
    for k, sample in enumerate(given.sample.tolist()):
        if k:
            _over_cell(program, given, k - 1, int(edges[k - 1]), result, dq)
        if result.kept is not None:
            result.kept[k, 0] = result.s
        if given.given is not None:
            there = ~np.isnan(given.given[k])
            result.s, result.ds = np.where(there, given.given[k], result.s), np.where(there, 0.0, result.ds)
        if sample >= 0:
            if not _at_sample(update, given, k, sample, result, dq, counted=not waiting):
                result.failed = sample
                return result
            waiting = False
        if result.kept is not None:
            result.kept[k, 1] = result.s
    return result


def _over_cell(program: FilterProgram, given: FilterPass, cell: int, first: int, r: PassResult, dq: Floats) -> None:
    m, length = int(given.steps[cell]), given.bounds[cell + 1] - given.bounds[cell]
    carry = _linearized if program.formulas.settle is not None else _direct
    for i in range(m):
        t, u = given.bounds[cell] + length * (i / m), given.stages[first + 2 * i : first + 2 * i + 3]
        found = carry(program, given, t, length / m, u, np.concatenate([r.s[None], r.ds]), dq)
        r.s, r.ds = found[0], found[1:]


def _direct(
    program: FilterProgram, given: FilterPass, t: float, h: float, u: Floats, s: Floats, dq: Floats
) -> Floats:  # fmt: skip
    step = program.evaluate("gr_step", len(dq))
    return _stacked(step(t, h, s[0], *u, given.q, given.nominal, *_seeds(s, dq)), len(dq))


def _linearized(
    program: FilterProgram, given: FilterPass, t: float, h: float, u: Floats, s: Floats, dq: Floats
) -> Floats:  # fmt: skip
    coefficients, settle = program.evaluate("gr_coefficients", len(dq)), program.evaluate("gr_settle", len(dq))
    c = _stacked(coefficients(t, h, s[0], *u, given.q, given.nominal, *_seeds(s, dq)), len(dq))
    moved, _ = solve_linearized(c, s, h, given.doublings, program.formulas.n, program.formulas.powers)
    return _stacked(settle(t + h, moved[0], u[2], given.q, given.nominal, *_seeds(moved, dq)), len(dq))


def _seeds(s: Floats, dq: Floats) -> tuple[Floats, ...]:
    return (s[1:], dq) if len(dq) else ()


def _stacked(found: list[Floats], ns: int) -> Floats:
    """One output and its derivatives, the value first."""
    value = found[0][None]
    return np.concatenate([value, found[1].reshape(ns, value.shape[1])]) if ns else value


def _at_sample(
    update: FlatEvaluation, given: FilterPass, k: int, sample: int, r: PassResult, dq: Floats, counted: bool
) -> bool:
    data = (given.y[sample], given.mask[sample], given.scale[sample])
    directions = (r.ds, dq) if len(dq) else ()
    found = update(given.bounds[k], r.s, given.signals[k], given.q, given.nominal, *data, *directions)
    ny, ns = given.y.shape[1], len(dq)
    e, V = found[1], _full(found[2], ny)
    weighed = _weigh(e, V, given.robust)
    if weighed is None:
        return False
    inverse, a, added, slope = weighed
    de, dV = np.zeros((0, ny)), np.zeros((0, ny, ny))
    r.s = found[0]
    if ns:
        r.ds, de = found[3].reshape(r.ds.shape), found[4].reshape(ns, ny)
        dV = _full(found[5].reshape(ns, -1), ny)
    seen = given.mask[sample] != 0
    r.innovations[sample, seen], r.variances[sample, seen] = e[seen], np.diag(V)[seen]
    r.slopes[sample][:, seen] = de[:, seen]
    if counted:
        whitened = inverse @ dV
        r.count += int(seen.sum())
        r.base[0] += added
        r.base[1:] += np.trace(whitened, axis1=-2, axis2=-1) + slope * (2 * de @ a - (dV @ a) @ a)
        r.information += de @ inverse @ de.T + 0.5 * np.einsum("aij,bji->ab", whitened, whitened)
    return True


def _weigh(e: Floats, V: Floats, robust: float) -> tuple[Floats, Floats, float, float] | None:
    """V⁻¹, V⁻¹e, log det V + ρ, ρ'."""
    if not (np.isfinite(e).all() and np.isfinite(V).all()):
        return None
    try:
        root, inverse = np.linalg.cholesky(V), np.asarray(np.linalg.inv(V), dtype=np.float64)
    except np.linalg.LinAlgError:
        return None
    a = inverse @ e
    v, log_det = float(e @ a), 2 * float(np.log(np.diag(root)).sum())
    if robust < 0:
        bend = math.sqrt(1 + v / robust**2)
        return inverse, a, log_det + 2 * robust**2 * (bend - 1), 1 / bend
    if v > robust * robust:
        return inverse, a, log_det + robust * (2 * math.sqrt(v) - robust), robust / math.sqrt(v)
    return inverse, a, log_det + v, 1.0


def _full(V: Floats, ny: int) -> Floats:
    column, row = np.triu_indices(ny)
    full = np.zeros((*V.shape[:-1], ny, ny))
    full[..., row, column] = full[..., column, row] = V
    return full
