"""The reduced system: what ``structure`` hands to ``compilation``.

::

    x' = rhs(t, x, z, u, p)            states, in redundant coordinates where the index was above one
    0  = residual(t, x, z, u, p)       what remains implicit after tearing; ∂residual/∂z is square and nonsingular
    0  = constraints(t, x, u, p)       hidden constraints, kept so that integrators can project on them
    y  = observed(t, x, z, u, p)       every name the user knows

Argument order everywhere: ``(t, x, z, u, p)``. All are CasADi ``SX`` column vectors with user names beside them; the
names never reach generated code.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import casadi as ca

from grisaille.structure.bends import RateBends
from grisaille.structure.delays.delay import Delay
from grisaille.structure.relations_as_unknowns import LEEWAY_SIGNAL

FORMULA_FIELDS = ("rhs", "residual", "constraints", "observed")
"""Fields of a system that are formulas of (t, x, z, u, p)."""


@dataclass(frozen=True)
class Signal:
    """One entry of ``u``: an input or a disturbance, differentiated ``order`` times by the index reduction."""

    name: str
    order: int
    kind: str
    """``"input"``, ``"disturbance"``, ``"switch"`` for a formula of time that is constant between jumps, ``"delayed"``
    for what repeats another signal or an unknown (``delays/delay.py``); ``"now"``, ``"hat"`` and ``"rate"`` for what
    tells where breaks move (``delays/moving_breaks.py``)."""


@dataclass(frozen=True)
class Mode:
    """A relation that is held between events (``structure/held_events.py``)."""

    text: str
    """In the user's names."""
    kind: str
    """``"lt"``, ``"le"``, ``"sign"``, ``"floor"`` or ``"ceil"``."""
    can_slide: bool
    """The rate of its gap is a formula of its share."""


@dataclass(frozen=True, eq=False)
class Tick:
    """A source of conditions that are true for an instant: a clock, or the start of a run."""

    text: str
    pulse: ca.SX
    """The symbol that is 1 then."""
    signal: str
    """The switch signal that counts the ticks of a clock; empty for the start."""
    period: ca.SX
    start: ca.SX
    instant: ca.SX
    """Of the last tick, over the counting signal and p."""


@dataclass(frozen=True, eq=False)
class Reactions:
    """The reactions to events (``structure/when_lowering.py``): formulas of (t, x, z, u, p) and of their own
    symbols."""

    texts: tuple[str, ...]
    """The condition of each clause, as it was written."""
    group: tuple[int, ...]
    """Clauses of one ``when``, of which the first fires."""
    lasting: tuple[bool, ...]
    """Clauses that fire in every pass in which their condition holds, not only where it becomes true."""
    conditions: ca.SX
    memory: ca.SX
    was: ca.SX
    """Symbols: what ``memory`` was before the last pass."""
    fired: ca.SX
    """Symbols: one for each clause."""
    ticks: tuple[Tick, ...]
    counters: tuple[int, ...]
    """Places in u of the counting signals, -1 for the start."""
    values: ca.SX
    """What the targets become."""
    targets: tuple[int, ...]
    """Places in x, or nx + places in p."""
    resets: tuple[tuple[int, ...], ...]
    """For each clause the places in x that it sets."""
    yields: tuple[int, ...]
    """For each state the lowest level of the constraints it is in: the higher, the sooner it follows a reset."""
    clashes: tuple[tuple[int, int, str, str], ...] = ()
    """(clause, other, unknown, discrete variable) of clauses that must not fire at once: the first needs an unknown
    that is solved for after the other one has set a discrete variable, and is not decided after it."""
    ranks: tuple[int, ...] = ()
    """Of clauses: those of a lower rank are decided first, since they may set what the others need."""
    begins: tuple[bool, ...] = ()
    """Clauses that may fire during initialization: those that last, and those that ask for it."""
    remembered: tuple[int, ...] = ()
    """Places in p of the discrete variables, with which ``memory`` begins."""
    rates: ca.SX = field(default_factory=lambda: ca.SX(0, 1))
    """d(values)/dt along the motion; with modes only."""

    @property
    def slots(self) -> int:
        """Return parameters that integrators keep events in, before the modes."""
        return 4 * len(self.texts) + int(self.was.numel()) + len(self.ticks)


@dataclass(frozen=True, eq=False)
class Schedule:
    """Events whose instants and values are known before a run (``structure/time_schedule.py``)."""

    names: tuple[str, ...]
    """Discrete variables, in the order of their signals, which are the last ones."""
    places: tuple[int, ...]
    """Of their starts in p."""
    reactions: Reactions
    """Conditions, memory and, for each of the names, its new value: formulas of t, p and of their own symbols."""


@dataclass(frozen=True, eq=False)
class MovingBreaks:
    """A clock that moves with dead times (``delays/moving_breaks.py``): formulas of (t, u, p) of the new system."""

    plain: System
    """The system on the usual clock; its u are the first of the new ones."""
    taus: tuple[str, ...]
    """Dead times that move, in the user's names."""
    t: ca.SX
    u: ca.SX
    stretch: ca.SX
    """dt/ds"""
    follows: bool
    """Whether steps end on the breaks; else signals are projected on steps that stay."""
    standing: System | None = None
    """The system over the same u for signals that are projected."""
    refused: str = ""
    """Why they cannot be projected, in words."""

    def put(self, formulas: Sequence[ca.SX]) -> list[ca.SX]:
        """Return formulas of the plain system on the new clock, before they are stretched."""
        found = ca.substitute(list(formulas), [self.plain.t, self.plain.u], [self.t, self.u])
        return [ca.SX(f) for f in found]


@dataclass(frozen=True)
class Features:
    """The features of a system beside equations and given signals, looked up before their code is entered."""

    delays: bool
    pasts: tuple[int, ...]
    """Places in u of delayed unknowns and their derivatives."""
    leeway: int | None
    """Place in u of what relations held as unknowns leave to a switch (``structure/relations_as_unknowns.py``)."""
    switches: bool
    """Formulas of time that jump."""
    instants: bool
    """Breaks of signals at instants that may depend on parameters: switches or delays."""
    divisors: bool
    """Formulas of p that must not vanish."""
    moving_instants: tuple[str, ...]
    """Parameters that instants at which formulas of time switch or bend depend on."""
    dead_times: tuple[str, ...]
    """Parameters that dead times depend on."""
    timing: tuple[int, ...]
    """Places in p of both."""
    stepped_around: bool
    """Derivatives of disturbances, or breaks that move: what the steps of ensembles cannot pass as it is."""


@dataclass(frozen=True)
class SymbolOrigins:
    """Equations that were solved together, and for what."""

    unknowns: tuple[str, ...]
    equations: tuple[str, ...]


@dataclass(frozen=True)
class System:
    t: ca.SX
    x: ca.SX
    z: ca.SX
    u: ca.SX
    p: ca.SX
    rhs: ca.SX
    residual: ca.SX
    constraints: ca.SX
    observed: ca.SX
    state_names: tuple[str, ...]
    """``"x"``, ``"der(x)"``, …"""
    implicit_names: tuple[str, ...]
    signals: tuple[Signal, ...]
    parameter_names: tuple[str, ...]
    observed_names: tuple[str, ...]
    constraint_texts: tuple[str, ...]
    constraint_levels: tuple[int, ...]
    """How often each constraint was differentiated: positions 0, velocities 1, … (projection goes level by level)."""
    residual_texts: tuple[str, ...]
    pivots: ca.SX
    """Functions of ``p`` (and ``t``-free) that were divided by; they must not vanish."""
    pivot_texts: tuple[str, ...]
    switches: ca.SX = field(default_factory=lambda: ca.SX(0, 1))
    """Values of the switch signals (order zero) as formulas of ``t`` and ``p``, in the order of ``signals``."""
    pieces: tuple[tuple[str, str], ...] = ()
    """(relation, equation) of the last entries of z, which stand for relations of the entries before them."""
    smooth: tuple[tuple[str, ca.SX], ...] = ()
    """Equations (text, residual) that index reduction differentiates and that contain a switch: they must not jump."""
    delays: tuple[Delay, ...] = ()
    """One for each delayed signal of order zero, in the order of ``signals``."""
    moving: MovingBreaks | None = None
    """How breaks of the signals move with parameters, where they do."""
    modes: tuple[Mode, ...] = ()
    """Relations held between events; their values are the last parameters, see ``structure/held_events.py``."""
    gaps: ca.SX = field(default_factory=lambda: ca.SX(0, 1))
    """One per mode, zero where its relation switches; at integers for ``floor`` and ``ceil``."""
    initial: ca.SX = field(default_factory=lambda: ca.SX(0, 1))
    """Residuals of what must hold at the first instant besides the equations."""
    initial_texts: tuple[str, ...] = ()
    gap_rates: ca.SX = field(default_factory=lambda: ca.SX(0, 1))
    """Their derivatives by time along the motion."""
    reactions: Reactions | None = None
    """What ``when`` does; None where a model has no events of its own, or where they are signals."""
    schedule: Schedule | None = None
    """How discrete variables that are signals change."""
    origins: Mapping[str, tuple[str, SymbolOrigins | None]] = field(default_factory=dict, compare=False, repr=False)
    """State → the name of its rate, and what that follows from, None where the rate is a state too; algebraic unknown →
    its own name, and what it follows from."""

    @cached_property
    def has(self) -> Features:
        """Return what is found once."""
        switches, scheduled = bool(self.switches.numel()), []
        if switches and self.schedule is not None:
            r = self.schedule.reactions
            scheduled = [r.conditions, r.memory, r.values]
        instants = self._parameters_in([self.switches, *scheduled]) if switches else ()
        dead_times = self._parameters_in([d.tau for d in self.delays]) if self.delays else ()
        unknown = {d.name for d in self.delays if d.kind == "unknown"}
        return Features(
            delays=bool(self.delays),
            pasts=tuple(k for k, s in enumerate(self.signals) if s.kind == "delayed" and s.name in unknown),
            leeway=next((k for k, s in enumerate(self.signals) if s.name == LEEWAY_SIGNAL), None),
            switches=switches,
            instants=switches or bool(self.delays),
            divisors=bool(self.pivot_texts),
            moving_instants=instants,
            dead_times=dead_times,
            timing=tuple(self.parameter_names.index(n) for n in dict.fromkeys((*instants, *dead_times))),
            stepped_around=self.moving is not None or any(s.kind == "disturbance" and s.order for s in self.signals),
        )

    def _parameters_in(self, formulas: Sequence[ca.SX]) -> tuple[str, ...]:
        inside = {s.element_hash() for f in formulas for s in ca.symvar(f)}
        symbols = zip(self.parameter_names, ca.vertsplit(self.p) if self.np else (), strict=True)
        return tuple(n for n, s in symbols if s.element_hash() in inside)

    @cached_property
    def content(self) -> str:
        """Return the formulas that compiled code is made of, as text: equal for systems that share it."""
        arguments = [self.t, self.x, self.z, self.u, self.p]
        formulas = [self.rhs, self.residual, self.constraints, self.observed, self.gaps, self.gap_rates]
        if self.modes and (r := self.reactions) is not None:
            formulas += [r.conditions, r.memory, r.values, r.rates, *(t.instant for t in r.ticks)]
        return str(ca.Function("content", arguments, formulas).serialize())

    @cached_property
    def switch_function(self) -> ca.Function:
        """(t, p) → values of the switch signals."""
        return ca.Function("switches", [self.t, self.p], [ca.densify(self.switches)])

    @cached_property
    def dead_times(self) -> ca.Function:
        """Return parameters → the dead time of each delayed signal."""
        return ca.Function("taus", [self.p], [ca.densify(ca.vertcat(*(d.tau for d in self.delays)))])

    @cached_property
    def dead_time_slopes(self) -> ca.Function:
        """Return parameters → derivatives of the dead times by parameters, one parameter after the other."""
        taus = ca.vertcat(*(d.tau for d in self.delays))
        return ca.Function("dtaus", [self.p], [ca.densify(ca.vec(ca.jacobian(taus, self.p)))])

    @cached_property
    def rate_bends(self) -> RateBends | None:
        """Return the bends of the rates with states alone; None where there are none."""
        return RateBends.of(self)

    @cached_property
    def pivot_function(self) -> ca.Function:
        """Return parameters → values of the divisors."""
        return ca.Function("pivots", [self.p], [ca.densify(self.pivots)])

    @cached_property
    def observed_states(self) -> tuple[tuple[int, int], ...]:
        """Return places of the states that users know by name, among states and among what is observed."""
        places = {name: k for k, name in enumerate(self.observed_names)}
        return tuple((k, places[n]) for k, n in enumerate(self.state_names) if n in places)

    @cached_property
    def nx(self) -> int:
        return int(self.x.numel())

    @cached_property
    def nz(self) -> int:
        return int(self.z.numel())

    @cached_property
    def nu(self) -> int:
        return int(self.u.numel())

    @cached_property
    def np(self) -> int:
        return int(self.p.numel())

    @cached_property
    def nc(self) -> int:
        return int(self.constraints.numel())

    @cached_property
    def ny(self) -> int:
        return int(self.observed.numel())
