"""The Lamperti transform: coordinates in which level-dependent noise is additive.

::

    dx = f dt + g(x) c dV,   y = ∫ dx/g(x)      ⇒      dy = (f/g − ½ |c|² g'(x)) dt + c dV

for the factors whose integral and its inverse are elementary, state by state:

    linear    g = x + s      x = (x₀ + s) eʸ − s        x never crosses −s
    power     g = xᵃ         x = |x₀^{1−a} + (1 − a) y|^{1/(1−a)}        x > 0; needs a boundary that is not reached

y is counted from the beginning of a step, where it is zero and x = x₀; answers stay in the user's variables. c is a row
vector that may depend on time, signals and parameters, not on states. A transform holds on one side of the boundary,
x = −s or x = 0, so it is taken only where the boundary cannot be reached:

    linear    f at the boundary is zero, or a function of parameters that points to the side of the start;
    power     ½ ≤ a < 1, f at the boundary is a function of parameters, and δ ≥ 2, where δ = 1 + 2 y·(drift of y)/|c|²
              is the dimension of the Bessel process that y is like near it (for a = ½: Feller's 2 f(0) ≥ |c|²).

Reference: S. M. Iacus, Simulation and Inference for Stochastic Differential Equations (2008), 1.11; A. Alfonsi, Stat.
Probab. Lett. 83 (2013) 602.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import casadi as ca
import numpy as np

from grisaille.structure.stochastic.diffusion import Diffusion
from grisaille.structure.switching_pieces import relations_of

_LEVELS = (0.3, 0.8, 1.7, 4.1)
"""Where a factor is compared with a power."""
_NEAR = 1e-5
"""How near to the boundary, in y relative to the start, its dimension is computed."""
TOUCHING, CLEAR = 5.0, 7.0
"""Standard deviations of a step's noise between a power's boundary and y: up to the first a step may overstep it, from
the second on none does."""
_TINY = 1e-200
"""Keeps starts away from zero where there is no noise."""


class ChartPoint(NamedTuple):
    """The beginning of a trajectory: numbers for (t, x, u, p, D)."""

    t: float
    x: np.ndarray
    u: np.ndarray
    p: np.ndarray
    root: np.ndarray


@dataclass(frozen=True, eq=False)
class LampertiChart:
    """The transform of one state; ``exponent`` is 1 for the linear family."""

    state: int
    exponent: float
    shift: ca.SX
    """s, a formula of parameters; zero for powers."""
    strength: ca.SX
    """Row c, 1 × nw: the factors of the independent Wiener processes over g."""

    def position(self, y: ca.SX, start: ca.SX) -> ca.SX:
        """Return x at coordinate y of a step that began at ``start``."""
        if self.exponent == 1.0:
            return (start + self.shift) * ca.exp(y) - self.shift
        r = ca.fabs(self.root(y, start))
        return r**2 if self.exponent == 0.5 else r ** (1.0 / (1.0 - self.exponent))

    def rate(self, drift: ca.SX, y: ca.SX, start: ca.SX) -> ca.SX:
        """Return f/g − ½ |c|² g' at y, where ``drift`` is f at the position."""
        size = ca.sumsqr(self.strength)
        if self.exponent == 1.0:
            return drift / ((start + self.shift) * ca.exp(y)) - 0.5 * size
        a, r = self.exponent, self.root(y, start)
        factor = 1.0 / r if a == 0.5 else ca.sign(r) * ca.fabs(r) ** (-a / (1.0 - a))
        return drift * factor - 0.5 * size * a / r

    def root(self, y: ca.SX, start: ca.SX) -> ca.SX:
        """Return x^{1−a}; beyond zero, mirrored paths stand for paths that overstep it."""
        a = self.exponent
        return (ca.sqrt(start) if a == 0.5 else start ** (1.0 - a)) + (1.0 - a) * y

    def clear_start(self, start: ca.SX, h: ca.SX) -> tuple[ca.SX, ca.SX]:
        """Return weight of the transform in a step of length h, from 0 near the boundary to 1, and a start it can be
        taken at.

        The drift of y is like 1/y: a step that comes near zero would be thrown out by any distance.
        """
        if self.exponent == 1.0:
            return ca.SX(1), start
        reach = (1.0 - self.exponent) ** 2 * ca.sumsqr(self.strength) * h
        power = 2.0 * (1.0 - self.exponent)
        nearest = TOUCHING**2 * reach
        safe = ca.fmax(start, (nearest if power == 1.0 else nearest ** (1.0 / power)) + _TINY)
        part = reach / (safe if power == 1.0 else safe**power)
        first, last = 1.0 / TOUCHING**2, 1.0 / CLEAR**2
        s = ca.fmin(ca.fmax((first - part) / (first - last), 0.0), 1.0)
        return s**2 * (3 - 2 * s), safe

    def describe(self, name: str) -> str:
        """Return the transform and its condition, in words."""
        if self.exponent == 1.0:
            shifted = ca.sparsify(self.shift).nnz() > 0
            return f"log({name} + s), {name} on its side of -s" if shifted else f"log({name}), {name} not zero"
        return f"{name}**{1.0 - self.exponent:g}/{1.0 - self.exponent:g}, {name} > 0 and zero not reached"


def find_charts(diffusion: Diffusion) -> tuple[LampertiChart, ...] | None:
    """Return charts for every state with level-dependent noise, or None when some state has no elementary one."""
    if diffusion.is_additive or diffusion.system.nc:
        return None
    x = diffusion.system.x
    rows = [i for i in diffusion.driven if ca.depends_on(diffusion.gain[i, :], x)]
    charts = [_chart(diffusion, i) for i in rows]
    return tuple(c for c in charts if c is not None) if all(charts) else None


def stays_inside(diffusion: Diffusion, chart: LampertiChart, point: ChartPoint | None) -> bool:
    """Return whether the boundary of a chart is known not to be reached; False where that cannot be told."""
    system, i = diffusion.system, chart.state
    edge = ca.simplify(ca.substitute(diffusion.drift[i], system.x[i], -chart.shift))
    still = diffusion.vanishes(edge)
    if point is None:
        return still and chart.exponent == 1.0
    if not still and ca.depends_on(edge, ca.vertcat(system.t, system.x, system.u)):
        return False
    distance, inward = ca.Function("edge", diffusion.symbols, [system.x[i] + chart.shift, edge])(*point)
    if chart.exponent == 1.0:
        return float(distance) != 0 and (still or float(distance * inward) > 0)
    return 0.5 <= chart.exponent < 1.0 and float(distance) > 0 and boundary_dimension(diffusion, chart, point) >= 2.0


def boundary_dimension(diffusion: Diffusion, chart: LampertiChart, point: ChartPoint) -> float:
    """δ of the Bessel process that a power's coordinate is like near zero, other states where they begin."""
    y, a = ca.SX.sym("y"), chart.exponent
    start = diffusion.system.x[chart.state]
    inside = ca.substitute(diffusion.drift[chart.state], start, chart.position(y, start))
    whole = chart.root(y, start) / (1.0 - a)
    dimension = 1.0 + 2.0 * whole * chart.rate(inside, y, start) / ca.sumsqr(chart.strength)
    function = ca.Function("dimension", [y, *diffusion.symbols], [dimension])
    level = float(point.x[chart.state]) ** (1.0 - a)
    return float(function((_NEAR - 1.0) * level / (1.0 - a), *point))


def _chart(diffusion: Diffusion, i: int) -> LampertiChart | None:
    """Return g_ik = c_k·g(x_i) for all k, or None."""
    x = diffusion.system.x
    others = [x[j] for j in range(diffusion.system.nx) if j != i]
    columns = diffusion.gain[i, :].sparsity().get_col()
    entries = [diffusion.gain[i, k] for k in columns]
    if others and ca.depends_on(ca.vertcat(*entries), ca.vertcat(*others)):
        return None
    if entries and relations_of(ca.vertcat(*entries), x[i]):  # a factor in pieces has no single chart
        return None
    return _linear(diffusion, i) or _power(diffusion, i, columns)


def _linear(diffusion: Diffusion, i: int) -> LampertiChart | None:
    """Return g_i = b (x_i + s) with s free of time and signals."""
    row, own = ca.densify(diffusion.gain[i, :]), diffusion.system.x[i]
    slope = ca.simplify(ca.jacobian(row.T, own))
    if ca.depends_on(slope, own):
        return None
    first = next(k for k in range(row.numel()) if not ca.SX(slope[k]).is_zero())
    offset = ca.simplify(ca.substitute(row, own, ca.SX(0)))
    shift = ca.simplify(offset[first] / slope[first])
    changing = ca.vertcat(diffusion.system.t, diffusion.system.u)
    common = ca.vertcat(*(offset[k] - shift * slope[k] for k in range(row.numel())))
    if ca.depends_on(shift, changing) or not diffusion.vanishes(common):
        return None
    return LampertiChart(i, 1.0, shift, _strength(diffusion, slope.T))


def _power(diffusion: Diffusion, i: int, columns: list[int]) -> LampertiChart | None:
    """Return g_i = c x_iᵃ with a number a: recognised by values, because x·x^{a−1} does not simplify."""
    row, own = ca.densify(diffusion.gain[i, :]), diffusion.system.x[i]
    others = [s for s in diffusion.symbols[2:] if s.numel()]
    function = ca.Function("row", [own, diffusion.system.t, *others], [row])
    exponents = []
    for k in range(3):
        random = np.random.default_rng(k)
        point = [random.uniform(0.5, 1.5, s.shape) for s in (diffusion.system.t, *others)]
        at_one = np.array(function(1.0, *point)).ravel()[columns]
        for level in _LEVELS:
            with np.errstate(all="ignore"):
                ratio = np.array(function(level, *point)).ravel()[columns] / at_one
                exponents += (np.log(np.abs(ratio)) / np.log(level)).tolist()
    a = round(float(np.mean(exponents)), 9)
    if not np.allclose(exponents, a, rtol=0.0, atol=1e-9) or a in (0.0, 1.0):
        return None
    return LampertiChart(i, a, ca.SX(0), _strength(diffusion, ca.substitute(row, own, ca.SX(1))))


def _strength(diffusion: Diffusion, row: ca.SX) -> ca.SX:
    return ca.densify(ca.mtimes(ca.sparsify(row), diffusion.masked_root))
