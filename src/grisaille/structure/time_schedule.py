"""Events that are known before a run: clocks and relations of time that set discrete variables.

Where no condition and no new value contains a state, an unknown that is solved for or an input, discrete variables are
signals of time like ``time > 5``: constant between instants that are computed beforehand
(``experiment/event_schedule.py``).
Filters and collocation, which know equations and signals, then follow them:

    p = [p], of which those of discrete variables are their starts       u = [u; discrete variables]
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import casadi as ca

from grisaille.structure.reduction import Structure, with_system
from grisaille.structure.switching_pieces import relations_of
from grisaille.structure.system import FORMULA_FIELDS, Reactions, Schedule, Signal, System


def why_not_scheduled(structure: Structure) -> str:
    """Return why events are not known before a run, in words; empty where they are, or where there are none."""
    system = structure.system
    if system.reactions is None:
        return ""
    return next(_reasons(system, system.reactions, tuple(structure.model.discretes)), "")


def with_schedule(structure: Structure) -> Structure:
    """Return the structure whose discrete variables are signals; itself where there are none."""
    system, r = structure.system, structure.system.reactions
    if r is None:
        return structure
    names = tuple(structure.model.discretes)
    places = tuple(system.parameter_names.index(n) for n in names)
    starts = ca.vertcat(*(system.p[k] for k in places))
    levels = ca.SX.sym("n", len(names))
    formulas = ca.substitute([getattr(system, f) for f in FORMULA_FIELDS], [starts], [levels])
    known = _switches(system)
    conditions, memory, values = (_in_time(f, known) for f in (r.conditions, r.memory, r.values))
    order = [r.targets.index(system.nx + k) for k in places]
    schedule = Schedule(
        names, places, replace(r, conditions=conditions, memory=memory, values=ca.vertcat(*(values[k] for k in order)))
    )
    return with_system(
        structure,
        replace(
            system,
            **dict(zip(FORMULA_FIELDS, map(ca.densify, formulas), strict=True)),
            u=ca.vertcat(system.u, levels),
            signals=(*system.signals, *(Signal(n, 0, "switch") for n in names)),
            switches=ca.vertcat(system.switches, starts),
            reactions=None,
            schedule=schedule,
        ),
    )


def _reasons(system: System, r: Reactions, discretes: tuple[str, ...]) -> Iterator[str]:
    if True in r.lasting:
        yield f"gr.when({r.texts[r.lasting.index(True)]}) fires in every pass in which it holds"
    for text, places in zip(r.texts, r.resets, strict=True):
        if places:
            yield f"gr.when({text}) sets the state '{system.state_names[places[0]]}'"
    known = _switches(system)
    for k, text in enumerate(r.texts):
        if found := _moving(system, _in_time(r.conditions[k], known)):
            yield f"gr.when({text}) fires with '{found}'"
    if found := _moving(system, _in_time(r.memory, known)):
        yield f"a gr.when fires with '{found}'"
    for k, target in enumerate(r.targets):
        if target >= system.nx and (found := _moving(system, _in_time(r.values[k], known))):
            yield f"'{system.parameter_names[target - system.nx]}' takes a value that contains '{found}'"
    for name in discretes:
        if ca.depends_on(system.constraints, system.p[system.parameter_names.index(name)]):
            yield f"'{name}' makes a constraint between states jump"
    formulas = ca.vertcat(*(ca.vec(getattr(system, field)) for field in FORMULA_FIELDS))
    for relation in relations_of(formulas, system.t):
        for name in discretes:
            if ca.depends_on(relation.gap, system.p[system.parameter_names.index(name)]):
                yield f"'{name}' moves the instant at which a relation of time in the equations switches"


def _switches(system: System) -> tuple[ca.SX, ca.SX]:
    """Return signals that are formulas of time, and these formulas."""
    places = [k for k, s in enumerate(system.signals) if s.kind == "switch" and s.order == 0]
    return ca.vertcat(ca.SX(0, 1), *(system.u[k] for k in places)), system.switches


def _in_time(formula: ca.SX, known: tuple[ca.SX, ca.SX]) -> ca.SX:
    return ca.substitute(formula, *known) if known[0].numel() else formula


def _moving(system: System, formula: ca.SX) -> str:
    """Return the first state, implicit unknown or signal in a formula."""
    names = (*system.state_names, *system.implicit_names, *(s.name for s in system.signals))
    symbols = ca.vertsplit(ca.vertcat(system.x, system.z, system.u))
    inside = {s.element_hash() for s in ca.symvar(formula)}
    return next((n for n, s in zip(names, symbols, strict=True) if s.element_hash() in inside), "")
