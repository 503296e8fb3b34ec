"""One step of a stochastic differential equation dx = f dt + B dV (Itô) as a single straight-line formula.

With ΔW = ∫dV over the step and H = (1/h)∫(V − V₀) ds − ΔW/2, independent with variances h and h/12:

``euler-maruyama``   x + h f + B ΔW.   Strong order ½; 1 where the noise does not drive what B depends on.

``rk4-maruyama``     the same with the fourth-order Runge–Kutta increment of f: exact in the limit of small noise.

``milstein``         … + ½ Σ_jk (∂B_k/∂x) B_j (ΔW_j ΔW_k − δ_jk h).   Strong order 1, for commutative noise.

``strang-rk4``       the drift f° of Stratonovich and the noise in turn, each the flow of a smooth equation by RK4::

    noise ½ΔW + H − ½C      drift over h/2      noise C      drift over h/2      noise ½ΔW − H − ½C        C = √⅔ ΔW

C makes the mean of ∫(V − V₀)² right: strong order 1.5 for commutative noise, ½ (weak order 1) for other, where nine
tenths of what ΔW and H tell about iterated integrals are met. What the noise and the drift keep, such as a radius, is
kept to the accuracy of RK4. Reference: J. Foster, G. dos Reis, C. Strange, SIAM J. Numer. Anal. 62 (2024) 500.

``additive-rk4``     for noise that does not drive what B depends on; strong order 1.5, order 4 without noise::

    k1 = f(t, x)                            k2 = f(t + h/2, x + h/2 k1 + B η2)      η2 = ΔW/2 + (3 + √3)/2 H
    k3 = f(t + h/2, x + h/2 k2 + B η3)      k4 = f(t + h, x + h k3 + B ΔW)          η3 = ΔW/2 + (3 − √3)/2 H
    x⁺ = x + h/6 (k1 + 2 k2 + 2 k3 + k4) + B (ΔW/2 + H) + B(t + h, x + h k1) (ΔW/2 − H)

``lamperti``         ``additive-rk4`` in coordinates where the noise is additive (``stochastic/lamperti.py``); near the
boundary of a power, where a step might overstep it, Milstein's step instead.

The weights of H follow from two conditions, Σ b_i η_i = ∫(V − V₀)ds/h and Σ b_i E η_i η_iᵀ = (h/2) I: then the terms
f'BΔZ and ½ f''[B, B] h²/2 of the expansion are met, and what remains is of order h² in mean square and h³ in the mean.
After the step, states are projected on the constraints (``step.project``), twice. Signals enter at t, t + h/2 and
t + h as in ``step``. Algebraic unknowns that stay implicit are carried along as states and solved inside f and B
(``carried``). Parameters are followed by the entries of D, column by column. Reference: P. E. Kloeden,
E. Platen, Numerical Solution of Stochastic Differential Equations (1992), chapters 10, 11; A. Rößler, SIAM J. Numer.
Anal. 48 (2010) 922.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import sqrt
from typing import NamedTuple

import casadi as ca

from grisaille.cache import Cache
from grisaille.compilation.implicit_as_states import (
    ALGEBRAIC_EFFORTS,
    UNSOLVED_VALUE,
    AlgebraicEffort,
    ImplicitAsStates,
)
from grisaille.compilation.implicit_step import formulate_implicit_step
from grisaille.compilation.step import StepFormula, project
from grisaille.errors import CompilationError
from grisaille.structure.reduction import Structure
from grisaille.structure.stochastic.diffusion import Diffusion, find_diffusion, split_noise
from grisaille.structure.stochastic.lamperti import ChartPoint, LampertiChart, find_charts, stays_inside
from grisaille.structure.system import System

MAX_PROJECTIONS = 2
"""Projections on the constraints after a step: noise leaves violations of order h or h^{1.5}, and each squares them."""


class DriftAndNoise(NamedTuple):
    """f and B as functions of (t, x, u) in the coordinates that are stepped."""

    drift: Callable[[ca.SX, ca.SX, ca.SX], ca.SX]
    noise: Callable[[ca.SX, ca.SX, ca.SX], ca.SX]
    smooth_drift: Callable[[ca.SX, ca.SX, ca.SX], ca.SX] | None = None
    """f in the sense of Stratonovich."""


class StepInterval(NamedTuple):
    """One step: its beginning, length and signals."""

    t: ca.SX
    h: ca.SX
    x: ca.SX
    ua: ca.SX
    um: ca.SX
    ub: ca.SX


Step = Callable[[DriftAndNoise, StepInterval, ca.SX], ca.SX]
"""(f and B, a step, normals) → x after it"""


@dataclass(frozen=True)
class WhiteScheme:
    """A step of a stochastic differential equation, as data."""

    name: str
    """As options and files name it."""
    step: Step | None = None
    """None where coordinates are changed first (``lamperti``), or there is no noise."""
    normals_per_noise: int = 1
    unfit: str = ""
    """Why it does not suit a model that it does not suit."""


@dataclass(frozen=True)
class SchemeChoice:
    """A scheme, its strong order, and why it was taken."""

    scheme: WhiteScheme
    strong_order: float
    reason: str
    charts: tuple[LampertiChart, ...] = ()
    is_offered: bool = True
    """Whether ``"auto"`` may take it."""

    @property
    def name(self) -> str:
        return self.scheme.name

    @property
    def weak_order(self) -> int:
        """Of means of smooth functions."""
        return 2 if self.strong_order == 1.5 else 1

    @property
    def status(self) -> str:
        return f"{self.name}, strong order {self.strong_order:g}: {self.reason}"


@dataclass(frozen=True)
class WhiteNoiseInfo:
    """What a caller of a stochastic step needs besides the formula."""

    choice: SchemeChoice
    names: tuple[str, ...]
    """White disturbances, in the order of D's rows."""
    white: tuple[int, ...]
    """Their places in ``u``; values there are ignored."""
    readings: tuple[str, ...]
    infinite: tuple[str, ...]
    """Observed names that have no value at an instant."""
    is_decoupled: bool
    """Whether the noise does not depend on what it drives."""
    status: str
    carried: ImplicitAsStates | None = None
    """Where algebraic unknowns are states of the step."""


def white_step(
    structure: Structure,
    scheme: str = "auto",
    point: ChartPoint | None = None,
    effort: AlgebraicEffort = ALGEBRAIC_EFFORTS[0],
) -> tuple[StepFormula, WhiteNoiseInfo]:
    """Return the step of a model with white disturbances; coloured ones stay signals.

    point : where a trajectory begins; decides whether a transform's boundary can be reached, where there is one
    effort : how hard algebraic unknowns are solved, where there are any
    """
    known = _SPLIT.get((id(structure.model), id(structure.system)), lambda: _Split(structure))
    diffusion = known.diffusion
    choice = choose_scheme(diffusion, scheme, point)
    carried = known.carried(effort)
    info = WhiteNoiseInfo(
        choice,
        diffusion.names,
        diffusion.white,
        diffusion.readings,
        diffusion.infinite,
        diffusion.is_decoupled,
        _status(diffusion, choice),
        carried,
    )
    key = choice.name, None if carried is None else effort
    if key not in known.formulas:
        known.formulas[key] = (
            formulate(diffusion, choice) if carried is None else _formulate(diffusion, choice, carried)
        )
    return known.formulas[key], info


def fused_step(structure: Structure, effort: AlgebraicEffort) -> tuple[StepFormula, WhiteNoiseInfo]:
    """Return the Runge–Kutta step of a model without white noise that solves its implicit unknowns inside."""
    _refuse_pieces(
        structure.system,
        "which steps that solve it inside cannot follow",
        "take method='auto' on the processor, which does",
    )
    key = id(structure.system), effort
    formula, carried, _ = _FUSED.get(key, lambda: (*formulate_implicit_step(structure.system, effort), structure))
    choice = SchemeChoice(WhiteScheme("fused"), 4.0, "implicit unknowns are solved inside each step")
    return formula, WhiteNoiseInfo(choice, (), (), (), (), True, "", carried)


_FUSED: Cache[tuple[StepFormula, ImplicitAsStates, Structure]] = Cache(16)


class _Split:
    """Properties of one structure, kept with it so that no other one gets its identity."""

    def __init__(self, structure: Structure) -> None:
        self.structure, self.diffusion = structure, find_diffusion(structure)
        self.formulas: dict[tuple[str, AlgebraicEffort | None], StepFormula] = {}
        self._carried: dict[AlgebraicEffort, ImplicitAsStates] = {}

    def carried(self, effort: AlgebraicEffort) -> ImplicitAsStates | None:
        """Return the same object at every call."""
        system = self.structure.system
        if not system.nz:
            return None
        _refuse_pieces(
            system, "and under white noise it jumps without end",
            "give the noise a colour, such as gr.spectra.lowpass(bandwidth=…)",
        )  # fmt: skip
        return self._carried.setdefault(effort, ImplicitAsStates(system, effort))


_SPLIT: Cache[_Split] = Cache(16)


def _refuse_pieces(system: System, why: str, remedy: str) -> None:
    if not system.pieces:
        return
    relation, equation = system.pieces[0]
    raise CompilationError(
        f"'{relation}' jumps inside '{equation}', which is solved for "
        f"{{{', '.join(system.implicit_names[: -len(system.pieces)])}}} in every step, {why}. "
        f"Smooth it, as with 0.5*(1 + gr.tanh(…/width)), or {remedy}."
    )


def formulate_stochastic_step(system: System, white: Sequence[int], scheme: str = "auto") -> StepFormula:
    """Return the step of a reduced system whose signals ``white`` are white noise in the sense of Itô, with any D."""
    diffusion = split_noise(system, white)
    return formulate(diffusion, choose_scheme(diffusion, scheme))


def choose_scheme(diffusion: Diffusion, scheme: str = "auto", point: ChartPoint | None = None) -> SchemeChoice:
    """Return the scheme of highest order that the noise allows, or the one asked for where it applies."""
    if scheme not in WHITE_SCHEME_NAMES:
        raise CompilationError(f"scheme is {scheme!r}; it must be one of {', '.join(map(repr, WHITE_SCHEME_NAMES))}.")
    named = _BY_NAME.get(scheme)
    offers = _offers(diffusion, point, insist=named is LAMPERTI)
    if named is None:
        return _best(offers)
    if scheme not in offers:
        raise CompilationError(
            f"The scheme '{scheme}' does not fit this model: {named.unfit}. Use scheme='auto', which takes "
            f"{_best(offers).name} here."
        )
    return offers[scheme]


def formulate(
    diffusion: Diffusion, choice: SchemeChoice, effort: AlgebraicEffort = ALGEBRAIC_EFFORTS[0]
) -> StepFormula:
    """Return the step with one scheme, symbolically."""
    carried = ImplicitAsStates(diffusion.system, effort) if diffusion.system.nz else None
    return _formulate(diffusion, choice, carried)


def _formulate(diffusion: Diffusion, choice: SchemeChoice, carried: ImplicitAsStates | None) -> StepFormula:
    system, nw = diffusion.system, diffusion.nw
    nx = system.nx + 3 * system.nz
    t, h, x = ca.SX.sym("t"), ca.SX.sym("h"), ca.SX.sym("x", nx)
    ua, um, ub = (ca.SX.sym(name, system.nu) for name in ("ua", "um", "ub"))
    p, nominal = ca.SX.sym("p", system.np + nw * nw), ca.SX.sym("nominal", nx)
    v = ca.SX.sym("v", choice.scheme.normals_per_noise * nw)
    values, root = p[: system.np], ca.reshape(p[system.np :], nw, nw)
    cell = StepInterval(t, h, x, ua, um, ub)
    inside = None if carried is None else _Inside(diffusion, carried, cell, values, root)
    if choice.scheme.step is None:
        after = _lamperti(diffusion, choice.charts, cell, values, root, v)
    else:
        field = _field(diffusion, values, root) if inside is None else inside.field
        after = choice.scheme.step(field, cell, v)[: system.nx]
    for _ in range(MAX_PROJECTIONS):
        after = project(system, t + h, after, ub, values, nominal[: system.nx])
    after = after if inside is None else inside.ended(after)
    return StepFormula(
        t=t, h=h, x=x, signals=(ua, um, ub), p=p, nominal=nominal, after=ca.densify(ca.cse(after)), noise=v
    )


class _Inside:
    """f and B of X = (x, z, ρ, ζ), with z solved from what it is when the step begins."""

    def __init__(
        self, diffusion: Diffusion, carried: ImplicitAsStates, cell: StepInterval, p: ca.SX, root: ca.SX
    ) -> None:
        self.diffusion, self.carried, self.cell, self.p, self.root = diffusion, carried, cell, p, root
        x, z, self.rho, self.zeta = carried.split(cell.x)
        self.z, first = carried.begin(cell.t, x, z, cell.ua, p)
        self.sign = carried.orientation(cell.t, x, self.z, cell.ua, p)
        self.corrections = [first]

    @property
    def field(self) -> DriftAndNoise:
        d = self.diffusion
        return DriftAndNoise(self._closed(d.drift), self._closed(d.noise), self._closed(d.smooth_drift))

    def ended(self, x: ca.SX) -> ca.SX:
        """Return X after a step."""
        c = self.cell
        z, last = self.carried.solve(c.t + c.h, x, self.z, c.ub, self.p)
        rho = self.rho
        for correction in [*self.corrections, last]:
            rho = ca.fmax(rho, correction)
        turned = self.sign * self.carried.orientation(c.t + c.h, x, z, c.ub, self.p) < 0
        return ca.vertcat(x, z, ca.if_else(turned, UNSOLVED_VALUE, rho), ca.fmax(self.zeta, ca.fabs(z)))

    def _closed(self, formula: ca.SX) -> Callable[[ca.SX, ca.SX, ca.SX], ca.SX]:
        """Return a formula of rows for x, with rows of zeros for the rest of X."""
        d, s = self.diffusion, self.diffusion.system
        of = ca.Function("f", [*d.symbols, s.z], [formula])
        is_implicit, rest = ca.depends_on(formula, s.z), ca.SX(3 * s.nz, formula.size2())

        def value(t: ca.SX, X: ca.SX, u: ca.SX) -> ca.SX:
            x, z = self.carried.split(X)[0], self.z
            if is_implicit:
                z, last = self.carried.solve(t, x, self.z, u, self.p)
                self.corrections.append(last)
            return ca.vertcat(of(t, x, u, self.p, self.root, z), rest)

        return value


def _offers(diffusion: Diffusion, point: ChartPoint | None, insist: bool) -> dict[str, SchemeChoice]:
    """Return every scheme that applies; ``insist`` takes a transform whose boundary might be reached."""
    decoupled, commutative = diffusion.is_decoupled, diffusion.is_commutative
    plain = 1.0 if decoupled else 0.5
    charts = () if decoupled or diffusion.system.nz else find_charts(diffusion) or ()
    outside = [c for c in charts if not insist and not stays_inside(diffusion, c, point)]
    choices = [
        SchemeChoice(EULER_MARUYAMA, plain, "the simplest"),
        SchemeChoice(RK4_MARUYAMA, plain, "Runge–Kutta for the drift" if commutative else _DOES_NOT_COMMUTE),
    ]
    if commutative:
        choices.append(SchemeChoice(MILSTEIN, 1.0, _COMMUTES + _left_out(diffusion, outside)))
    if not decoupled:
        reason = _COMMUTES + _left_out(diffusion, outside) if commutative else _DOES_NOT_COMMUTE
        # near the end of a power's domain Milstein's method stays inside more often
        inside = all(c.exponent == 1.0 for c in outside)
        choices.append(SchemeChoice(STRANG, 1.5 if commutative else 0.5, reason, is_offered=inside))
    if decoupled:
        how = "is additive" if diffusion.is_additive else "does not depend on what it drives"
        choices.append(SchemeChoice(ADDITIVE, 1.5, f"the noise {how}"))
    if charts and not outside:
        told = "; ".join(c.describe(diffusion.system.state_names[c.state]) for c in charts)
        choices.append(SchemeChoice(LAMPERTI, 1.5, f"the noise is additive in {told}", charts))
    return {choice.name: choice for choice in choices}


def _best(offers: dict[str, SchemeChoice]) -> SchemeChoice:
    """Return the highest order; the more elaborate one among equals."""
    return max((c for c in reversed(offers.values()) if c.is_offered), key=lambda choice: choice.strong_order)


_COMMUTES = "the noise depends on what it drives, and commutes"
_DOES_NOT_COMMUTE = "the noise does not commute, and its iterated integrals are not products of increments"


def _left_out(diffusion: Diffusion, outside: Sequence[LampertiChart]) -> str:
    if not outside:
        return ""
    told = outside[0].describe(diffusion.system.state_names[outside[0].state])
    return f" (in {told}, it would be additive, but that condition is not known to hold)"


def _status(diffusion: Diffusion, choice: SchemeChoice) -> str:
    reading = "Itô" if "stratonovich" not in diffusion.readings else "Stratonovich"
    agree = "" if not diffusion.is_decoupled else " (both readings agree)"
    return f"White noise {', '.join(diffusion.names)}, read as {reading}{agree}; {choice.status}."


def _field(diffusion: Diffusion, p: ca.SX, root: ca.SX) -> DriftAndNoise:
    f = ca.Function("f", diffusion.symbols, [diffusion.drift])
    B = ca.Function("B", diffusion.symbols, [diffusion.noise])
    smooth = ca.Function("s", diffusion.symbols, [diffusion.smooth_drift])
    return DriftAndNoise(
        lambda t, x, u: f(t, x, u, p, root),
        lambda t, x, u: B(t, x, u, p, root),
        lambda t, x, u: smooth(t, x, u, p, root),
    )


def _euler_maruyama(field: DriftAndNoise, c: StepInterval, v: ca.SX) -> ca.SX:
    return c.x + c.h * field.drift(c.t, c.x, c.ua) + ca.mtimes(field.noise(c.t, c.x, c.ua), ca.sqrt(c.h) * v)


def _rk4_maruyama(field: DriftAndNoise, c: StepInterval, v: ca.SX) -> ca.SX:
    return _stages(field, c, [ca.SX(c.x.numel(), 1)] * 3) + ca.mtimes(field.noise(c.t, c.x, c.ua), ca.sqrt(c.h) * v)


def _milstein(field: DriftAndNoise, c: StepInterval, v: ca.SX) -> ca.SX:
    dW = ca.sqrt(c.h) * v
    B = ca.densify(field.noise(c.t, c.x, c.ua))
    products = ca.mtimes(dW, dW.T) - c.h * ca.SX.eye(v.numel())
    directions = ca.densify(ca.mtimes(B, products))
    second = ca.SX(c.x.numel(), 1)
    for k in range(v.numel()):
        # where the noise vanishes with a root its slope is infinite, and the product zero
        is_there = ca.sumsqr(directions[:, k]) > 0
        second += ca.if_else(is_there, ca.jtimes(B[:, k], c.x, directions[:, k]), 0)
    return _rk4_maruyama(field, c, v) + 0.5 * second


def _strang(field: DriftAndNoise, c: StepInterval, v: ca.SX) -> ca.SX:
    """Return noise, drift, noise, drift, noise; signals at quarters of the step from the parabola through three
    values.
    """
    nw, half, smooth = v.numel() // 2, 0.5 * c.h, field.smooth_drift
    assert smooth is not None
    dW, H = ca.sqrt(c.h) * v[:nw], ca.sqrt(c.h / 12.0) * v[nw:]
    C = sqrt(2 / 3) * dW
    first, last = (3 * c.ua + 6 * c.um - c.ub) / 8, (6 * c.um + 3 * c.ub - c.ua) / 8
    x = _flow(lambda y: ca.mtimes(field.noise(c.t, y, c.ua), 0.5 * (dW - C) + H), c.x)
    x = _stages(
        DriftAndNoise(smooth, field.noise), StepInterval(c.t, half, x, c.ua, first, c.um), [ca.SX(x.numel(), 1)] * 3
    )
    for _ in range(2):  # the longest piece in halves
        x = _flow(lambda y: ca.mtimes(field.noise(c.t + half, y, c.um), 0.5 * C), x)
    x = _stages(
        DriftAndNoise(smooth, field.noise),
        StepInterval(c.t + half, half, x, c.um, last, c.ub),
        [ca.SX(x.numel(), 1)] * 3,
    )
    return _flow(lambda y: ca.mtimes(field.noise(c.t + c.h, y, c.ub), 0.5 * (dW - C) - H), x)


def _flow(rate: Callable[[ca.SX], ca.SX], x: ca.SX) -> ca.SX:
    """Return y(1) of y' = rate(y), y(0) = x, by one step of the classical Runge–Kutta method."""
    k1 = rate(x)
    k2 = rate(x + 0.5 * k1)
    k3 = rate(x + 0.5 * k2)
    return x + (k1 + 2 * (k2 + k3) + rate(x + k3)) / 6.0


def _additive(field: DriftAndNoise, c: StepInterval, v: ca.SX) -> ca.SX:
    nw = v.numel() // 2
    dW, H = ca.sqrt(c.h) * v[:nw], ca.sqrt(c.h / 12.0) * v[nw:]
    B = field.noise(c.t, c.x, c.ua)
    # the predictor must not see the noise of this step: correlated with it, it would add a drift of order h
    later = field.noise(c.t + c.h, c.x + c.h * field.drift(c.t, c.x, c.ua), c.ub)
    shifts = [0.5 * dW + 0.5 * (3 + sqrt(3)) * H, 0.5 * dW + 0.5 * (3 - sqrt(3)) * H, dW]
    moved = _stages(field, c, [ca.mtimes(B, shift) for shift in shifts])
    return moved + ca.mtimes(B, 0.5 * dW + H) + ca.mtimes(later, 0.5 * dW - H)


def _stages(field: DriftAndNoise, c: StepInterval, shifts: Sequence[ca.SX]) -> ca.SX:
    """Return the classical Runge–Kutta step with stages two to four displaced."""
    half = 0.5 * c.h
    k1 = field.drift(c.t, c.x, c.ua)
    k2 = field.drift(c.t + half, c.x + half * k1 + shifts[0], c.um)
    k3 = field.drift(c.t + half, c.x + half * k2 + shifts[1], c.um)
    k4 = field.drift(c.t + c.h, c.x + c.h * k3 + shifts[2], c.ub)
    return c.x + c.h / 6.0 * (k1 + 2 * (k2 + k3) + k4)


def _lamperti(
    diffusion: Diffusion, charts: Sequence[LampertiChart], c: StepInterval, p: ca.SX, root: ca.SX, v: ca.SX
) -> ca.SX:
    """Return the additive step in coordinates that are zero at the beginning of the step for states with a chart.

    So near to a power's boundary that a step might overstep it, Milstein's step takes over smoothly.
    """
    numbers = ca.SX.sym("start", c.x.numel()), ca.SX.sym("h")
    weight, clear = ca.SX(1), ca.SX(numbers[0])
    for chart in charts:
        share, clear[chart.state] = chart.clear_start(numbers[0][chart.state], numbers[1])
        weight = weight * share
    if all(chart.exponent == 1.0 for chart in charts):
        return _transformed(diffusion, charts, c, p, root, v)
    t, _, u, q, D = diffusion.symbols
    clearance = ca.Function("clearance", [*numbers, t, u, q, D], [weight, clear])
    share, start = clearance(c.x, c.h, c.t, c.ua, p, root)
    moved = _transformed(diffusion, charts, c._replace(x=start), p, root, v)
    plain = _milstein(_field(diffusion, p, root), c, v[: diffusion.nw])
    return share * moved + (1 - share) * plain


def _transformed(
    diffusion: Diffusion, charts: Sequence[LampertiChart], c: StepInterval, p: ca.SX, root: ca.SX, v: ca.SX
) -> ca.SX:
    symbols = diffusion.symbols
    y, start = ca.SX.sym("y", c.x.numel()), ca.SX.sym("start", c.x.numel())
    position, noise, begin = ca.SX(y), ca.SX(diffusion.noise), ca.SX(c.x)
    for chart in charts:
        i = chart.state
        position[i] = chart.position(y[i], start[i])
        noise[i, :] = chart.strength
        begin[i] = 0
    rate = ca.substitute(diffusion.drift, symbols[1], position)
    for chart in charts:
        i = chart.state
        rate[i] = chart.rate(rate[i], y[i], start[i])
    arguments = [symbols[0], y, *symbols[2:], start]
    f, B = ca.Function("f", arguments, [rate]), ca.Function("B", arguments, [noise])
    back = ca.Function("back", arguments, [position])
    field = DriftAndNoise(lambda t, z, u: f(t, z, u, p, root, c.x), lambda t, z, u: B(t, z, u, p, root, c.x))
    moved = _additive(field, c._replace(x=begin), v)
    return back(c.t, moved, c.ub, p, root, c.x)


EULER_MARUYAMA = WhiteScheme("euler-maruyama", _euler_maruyama)
RK4_MARUYAMA = WhiteScheme("rk4-maruyama", _rk4_maruyama)
MILSTEIN = WhiteScheme("milstein", _milstein, unfit="its noise does not commute")
STRANG = WhiteScheme(
    "strang-rk4", _strang, 2, "its noise does not depend on states that it drives, and additive-rk4 is cheaper"
)
ADDITIVE = WhiteScheme("additive-rk4", _additive, 2, "its noise depends on states that it drives")
LAMPERTI = WhiteScheme("lamperti", None, 2, "no elementary transform makes its noise additive, or none is needed")
_BY_NAME = {s.name: s for s in (EULER_MARUYAMA, RK4_MARUYAMA, MILSTEIN, STRANG, ADDITIVE, LAMPERTI)}
WHITE_SCHEME_NAMES = ("auto", *_BY_NAME)
"""What may be asked for: the best that fits, or one of them."""
