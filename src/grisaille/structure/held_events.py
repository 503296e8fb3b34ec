"""Relations of states and inputs across which the motion jumps, held as modes: the system that integrators in C run.

Each such relation is replaced by a value v that is constant between events, so that between events the system is
smooth beyond its own switch. Where both sides of a switch drive the motion back to it, the motion *slides*: the right-
hand side is Filippov's convex combination of those on the two sides,

    f = f(v) + s (f(o) − f(v)),    o: the value on the other side,    0 ≤ s ≤ 1,

with s such that the gap of the relation stays where it is, d(gap)/dt = 0. Several relations that slide at once add up
their changes, which is exact where they enter in separate terms. The share s is an unknown of z with the equation

    0 = s                  while the relation is held at v,
    0 = d(gap)/dt          while it slides (σ = 1),

so that integrators solve, and differentiate, sliding motion as any other implicit equation. Layout::

    p = [p; events; v; o; σ; slack]       z = [z; s; pieces]       u = [u; derivatives of inputs that gaps contain]

Relations in conditions of ``when`` are held too, whether the motion feels them or not. Events keep what they have seen
between the parameters and the modes (gr_when.h): for each clause seen, fired, the last time and how often in a row;
what they remember; pulses.

Reference: Filippov, Differential Equations with Discontinuous Righthand Sides, section 4.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise

import casadi as ca
import numpy as np

from grisaille.errors import StructureError
from grisaille.structure.jumping.jump_changes import Changes
from grisaille.structure.switching_pieces import Relation, SwitchingPiece, separate_relations, which_jump, written_out
from grisaille.structure.system import Mode, Reactions, Signal, System

HELD_KINDS = ("lt", "le", "sign", "floor", "ceil")
MAX_RELATIONS_HELD = 1000
"""Relations beyond which none is held, with a warning: each is an unknown of the integrators' linear equations, and 300
of them take 10 s to prepare."""
SOLVED_IN_FORMULAS = 10
"""Implicit unknowns up to which a motion slides along gaps that contain them: their rates are differentiated then."""
WRITTEN_OUT_KINDS = 30
"""Implicit unknowns up to which their rates are written out for gaps that contain them."""
MAX_READABLE_LENGTH = 60
HELD_LABELS = ("value", "other", "sliding", "slack")


@dataclass(frozen=True, eq=False)
class HeldEvents:
    """A system with modes, and the one without them."""

    system: System
    before: System
    slopes: tuple[int, ...]
    """Places in u of the signals whose derivatives are appended to it."""
    is_dated: bool = True
    """Whether the derivatives of instants are known: no gap and no new value contains implicit unknowns whose rates are
    too many to be written out."""

    @property
    def count(self) -> int:
        return len(self.system.modes)

    @property
    def place(self) -> int:
        """Return where the shares stand in z."""
        return self.before.nz - len(self.before.pieces)


def hold_events(system: System, name: Callable[[ca.SX], str]) -> HeldEvents | None:
    """Return the system with modes; None where nothing jumps with states or inputs, or too much does.

    name : a formula in the user's names
    """
    if not system.nx:
        return None
    explicit, pieces = _held(system, name)
    if not pieces and system.reactions is None:
        return None
    pieces = pieces or [_never()]
    n = len(pieces)
    values = ca.vertcat(*(p.symbol for p in pieces))
    others, sliding, shares = (ca.SX.sym(label, n) for label in ("other", "sliding", "share"))
    nz = system.nz - len(system.pieces)
    sizes = np.cumsum([0, system.nx, nz, system.ny])
    reactions, slots = _over(system, explicit[3:])
    rows = _sliding_rows(ca.vertcat(*explicit[:3]), values, others, sliding, shares)
    rhs, residual, observed = (_part(rows, int(a), int(b)) for a, b in pairwise(sizes))
    gaps = ca.vertcat(*(p.relation.gap for p in pieces))
    moving = gaps if reactions is None else ca.vertcat(gaps, reactions.values)
    all_rates, derivatives = _rates(system, moving, rhs, residual)
    rates = _part(all_rates, 0, n)
    if reactions is not None:
        reactions = replace(reactions, rates=ca.densify(_part(all_rates, n, all_rates.numel())))
    implicit = _part(system.z, 0, nz)
    too_long = [nz > SOLVED_IN_FORMULAS and bool(ca.depends_on(gaps[k], implicit)) for k in range(n)]
    own = ca.vertcat(*(shares[k] if too_long[k] else ca.if_else(sliding[k], rates[k], shares[k]) for k in range(n)))
    full = written_out(pieces)
    # the rate of an implicit unknown that shares move contains their rates, which are not known
    unclear = implicit if (nz and ca.depends_on(residual, shares)) or nz > SOLVED_IN_FORMULAS else ca.SX(0, 1)
    modes = tuple(_mode(p, name, unclear, rates[k], shares) for k, p in enumerate(full))
    texts = [m.text for m in modes]
    form = replace(
        system,
        z=ca.vertcat(_part(system.z, 0, nz), shares, _part(system.z, nz, system.nz)),
        u=ca.vertcat(system.u, *(d.symbol for d in derivatives if d.is_new)),
        p=ca.vertcat(system.p, slots, values, others, sliding, ca.SX.sym("slack", n)),
        rhs=ca.densify(rhs),
        residual=ca.densify(ca.vertcat(residual, own, _part(system.residual, nz, system.nz))),
        observed=ca.densify(observed),
        implicit_names=(*system.implicit_names[:nz], *(f"share of '{t}'" for t in texts), *system.implicit_names[nz:]),
        residual_texts=(*system.residual_texts[:nz], *(f"der({t})" for t in texts), *system.residual_texts[nz:]),
        signals=(*system.signals, *(d.signal for d in derivatives if d.is_new)),
        parameter_names=(
            *system.parameter_names, *(f"event {k}" for k in range(slots.numel())),
            *(f"{label} of '{t}'" for label in HELD_LABELS for t in texts),
        ),
        gaps=ca.densify(gaps),
        gap_rates=ca.densify(rates),
        modes=modes,
        reactions=reactions,
    )  # fmt: skip
    undated = nz > WRITTEN_OUT_KINDS and bool(ca.depends_on(moving, implicit))
    return HeldEvents(form, system, tuple(d.place for d in derivatives if d.is_new), not undated)


def _part(column: ca.SX, begin: int, end: int) -> ca.SX:
    """Return entries of a column; CasADi's own slices of nothing are not empty."""
    return column[begin:end] if end > begin else ca.SX(0, 1)


def _never() -> SwitchingPiece:
    """Return a relation that never switches, for models whose events are all of clocks."""
    return SwitchingPiece(ca.SX.sym("never"), Relation(ca.SX(0), ca.SX(1), "lt"))


def _over(system: System, formulas: list[ca.SX]) -> tuple[Reactions | None, ca.SX]:
    """Return events over the symbols of relations that are held, and the parameters in which they are kept."""
    if system.reactions is None:
        return None, ca.SX(0, 1)
    old = system.reactions
    conditions, memory, values = formulas
    kept = ca.SX.sym("kept", 3 * len(old.texts))
    count = len(old.texts)
    slots = ca.vertcat(
        _part(kept, 0, count), old.fired, _part(kept, count, 3 * count), old.was, *(t.pulse for t in old.ticks)
    )
    return replace(old, conditions=ca.densify(conditions), memory=memory, values=ca.densify(values)), slots


def _held(system: System, name: Callable[[ca.SX], str]) -> tuple[list[ca.SX], list[SwitchingPiece]]:
    """Return right-hand side, residual, observed quantities, then conditions, what they remember and values of events,
    over the symbols of the relations that are held.
    """
    nz = system.nz - len(system.pieces)
    moving = [system.u[k] for k, s in enumerate(system.signals) if s.kind != "switch"]
    pieces_of_z = _part(system.z, nz, system.nz)
    symbols = ca.vertcat(system.x, _part(system.z, 0, nz), *moving)
    formulas = [system.rhs, _part(system.residual, 0, nz), system.observed]
    if system.reactions is not None:
        formulas += [system.reactions.conditions, system.reactions.memory, system.reactions.values]
        symbols = ca.vertcat(symbols, system.t)
    smooth, pieces = separate_relations(formulas, symbols)
    if not pieces:
        return formulas, []
    felt = nz > 0 and ca.depends_on(system.rhs, system.z)
    jumping = which_jump(ca.vertcat(*smooth[: 2 if felt else 1]), pieces, symbols)
    can_be = [
        p.relation.kind in HELD_KINDS and not (pieces_of_z.numel() and ca.depends_on(p.relation.gap, pieces_of_z))
        for p in pieces
    ]
    asked = _asked(pieces, ca.vertcat(*smooth[3:5])) if system.reactions is not None else [False] * len(pieces)
    for p, able, needed in zip(written_out(pieces), can_be, asked, strict=True):
        if needed and not able:
            raise StructureError(
                f"The relation '{name(p.relation.value)}' in the condition of a gr.when contains a relation of "
                f"unknowns that are solved for, and cannot be watched: give it a state, tau*der(y) == formula - y."
            )
    is_held = [(jumps and able) or needed for jumps, able, needed in zip(jumping, can_be, asked, strict=True)]
    _hold_inside(pieces, is_held, can_be, symbols)
    if sum(is_held) > MAX_RELATIONS_HELD and any(asked):
        raise StructureError(
            f"{sum(is_held)} relations switch with states or are conditions of gr.when; at most "
            f"{MAX_RELATIONS_HELD} can be watched."
        )
    if sum(is_held) > MAX_RELATIONS_HELD:
        warnings.warn(
            f"{sum(is_held)} relations jump with states, and at most {MAX_RELATIONS_HELD} are located: steps cross "
            "these switches "
            f"under error control only, and what slides along one takes very many steps. Replace relations by smooth "
            f"formulas (gr.smooth_sign), or simulate parts of the model.",
            UserWarning,
            stacklevel=2,
        )
        return formulas, []
    rest = [(p.symbol, p.relation.value) for p, held in zip(pieces, is_held, strict=True) if not held]

    def back(formula: ca.SX) -> ca.SX:
        for symbol, value in reversed(rest):
            formula = ca.substitute(formula, symbol, value)
        return formula

    kept = [
        SwitchingPiece(p.symbol, Relation(back(p.relation.value), back(p.relation.gap), p.relation.kind))
        for p, held in zip(pieces, is_held, strict=True)
        if held
    ]
    return [back(f) for f in smooth], kept


def _hold_inside(pieces: list[SwitchingPiece], is_held: list[bool], can_be: list[bool], symbols: ca.SX) -> None:
    """Gaps of relations that are held must not jump between events: what they jump with is held too."""
    for k in range(len(pieces) - 1, 0, -1):
        open_ones = [able and not held for able, held in zip(can_be[:k], is_held[:k], strict=True)]
        if is_held[k] and any(open_ones):
            jumps = which_jump(pieces[k].relation.gap, pieces[:k], symbols, asked=open_ones)
            is_held[:k] = [held or jump for held, jump in zip(is_held[:k], jumps, strict=True)]


def _asked(pieces: list[SwitchingPiece], conditions: ca.SX) -> list[bool]:
    """Return which relations conditions depend on, also inside the gaps of others."""
    found = [False] * len(pieces)
    formulas = conditions
    for k in range(len(pieces) - 1, -1, -1):
        if ca.depends_on(formulas, pieces[k].symbol):
            found[k] = True
            formulas = ca.vertcat(formulas, pieces[k].relation.gap)
    return found


def _sliding_rows(rows: ca.SX, values: ca.SX, others: ca.SX, sliding: ca.SX, shares: ca.SX) -> ca.SX:
    marks = ca.vertsplit(values)
    own = {m.element_hash() for m in marks}
    free = ca.vertcat(*(s for s in ca.symvar(rows) if s.element_hash() not in own))
    moved, changes = rows, Changes(rows, free, marks)
    for k, mark in enumerate(marks):
        change = changes.across(k)(free, values, ca.vertcat(mark, others[k]))[0]
        entries = [
            ca.SX.binary(ca.OP_IF_ELSE_ZERO, sliding[k], shares[k] * change[i]) if not change[i].is_zero() else ca.SX(0)
            for i in range(rows.numel())
        ]
        moved = moved + ca.vertcat(*entries)
    return ca.SX(moved)


@dataclass(frozen=True)
class _Derivative:
    """Of one signal."""

    symbol: ca.SX
    signal: Signal
    place: int
    is_new: bool


def _rates(system: System, gaps: ca.SX, rhs: ca.SX, residual: ca.SX) -> tuple[ca.SX, list[_Derivative]]:
    """Return d(gap)/dt along the motion, with modes held."""
    nz = residual.numel()
    z = _part(system.z, 0, nz)
    is_implicit = nz > 0 and bool(ca.depends_on(gaps, z)) and nz <= WRITTEN_OUT_KINDS
    moving = ca.vertcat(gaps, residual) if is_implicit else gaps
    derivatives = _derivatives(system, moving)
    u = ca.vertcat(*(system.u[d.place] for d in derivatives)) if derivatives else ca.SX(0, 1)
    du = ca.vertcat(*(d.symbol for d in derivatives)) if derivatives else ca.SX(0, 1)

    def along(formula: ca.SX) -> ca.SX:
        rate = ca.jtimes(formula, system.x, rhs) + ca.jacobian(formula, system.t)
        return rate + ca.jtimes(formula, u, du) if derivatives else rate

    rates = along(gaps)
    if is_implicit:
        rates = rates + ca.jtimes(gaps, z, -ca.solve(ca.jacobian(residual, z), along(residual)))
    return rates, derivatives


def _derivatives(system: System, formula: ca.SX) -> list[_Derivative]:
    known = {(s.name, s.order): k for k, s in enumerate(system.signals)}
    found = []
    for place, signal in enumerate(system.signals):
        if signal.kind == "switch" or not ca.depends_on(formula, system.u[place]):
            continue
        next_one = replace(signal, order=signal.order + 1)
        at = known.get((next_one.name, next_one.order))
        symbol = ca.SX.sym("slope") if at is None else system.u[at]
        found.append(_Derivative(symbol, next_one, place, at is None))
    return found


def _mode(piece: SwitchingPiece, name: Callable[[ca.SX], str], unclear: ca.SX, rate: ca.SX, shares: ca.SX) -> Mode:
    gap, kind = piece.relation.gap, piece.relation.kind
    text = name(piece.relation.value)
    if "@" in text or len(text) > MAX_READABLE_LENGTH:
        found = {name(s) for s in ca.symvar(gap)}
        text = f"a relation of {', '.join(sorted(found))}"
    can_slide = not (unclear.numel() and ca.depends_on(gap, unclear)) and bool(ca.depends_on(rate, shares))
    return Mode(text, kind, can_slide)
