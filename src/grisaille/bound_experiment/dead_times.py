"""Dead times that depend on unknowns: which of them do, and what is refused then."""

from __future__ import annotations

from typing import TYPE_CHECKING

import casadi as ca

from grisaille.errors import EstimationError
from grisaille.structure.switching_pieces import jumps_of
from grisaille.structure.system import System

if TYPE_CHECKING:
    from grisaille.bound_experiment.bound_experiment import BoundExperiment
    from grisaille.bound_experiment.experiment_point import ExperimentPoint


def dead_times_at(trial: BoundExperiment, system: System) -> dict[str, str]:
    """Return the dead times that depend on unknowns as texts, each with the name of the first such unknown."""
    found: dict[str, str] = {}
    if not system.delays:
        return found
    symbols = {s.element_hash(): k for k, s in enumerate(ca.vertsplit(system.p))} if system.np else {}
    for delay in system.delays:
        inside = [symbols[s.element_hash()] for s in ca.symvar(delay.tau)]
        names = [trial.moves.names[k] for k in trial.moves.places("parameter") if trial.reach[k, inside].any()]
        if names:
            found[delay.text] = names[0]
    return found


def moving_dead_times(trial: BoundExperiment) -> list[int]:
    """Return entries of θ that a dead time depends on."""
    inside = [trial.formulas.names.index(n) for n in trial.structure.system.has.dead_times]
    return [k for k in trial.moves.places("parameter") if trial.reach[k, inside].any()]


def refuse_dead_times(point: ExperimentPoint) -> None:
    """Refuse estimated dead times by which outputs have no derivative, or whose signals index reduction
    differentiates.
    """
    moving = point.structure.system.moving
    if moving is None:
        return
    system, trial = moving.plain, point.trial
    moved = dead_times_at(trial, system)
    if system.reactions is not None:
        raise EstimationError(
            f"'{next(iter(moved.values()))}' is estimated, and {trial.flat.name} is delayed by it and has events "
            f"(gr.when), whose share in the derivative is not known: compare fits at fixed values of the dead time."
        )
    delays = {d.name: d for d in system.delays if d.text in moved}
    for s in system.signals:
        if s.kind == "delayed" and s.order and s.name in delays:
            raise EstimationError(
                f"'{moved[delays[s.name].text]}' is estimated, but index reduction differentiates {s.name}: at its "
                f"breaks the derivative by the dead time is an impulse. Fix the dead time, compare fits at several "
                f"values of it, or pass the delayed signal through a filter in the model, der(d) == ({s.name} - d) / T."
            )
    held = [k for k, s in enumerate(system.signals) if s.name in delays and _jumps(point, delays[s.name].source)]
    for output in trial.data.outputs:
        for k in held:
            if _feels(system, system.observed[system.observed_names.index(output)], system.u[k]):
                name = system.signals[k].name
                raise EstimationError(
                    f"'{moved[delays[name].text]}' is estimated, but the output '{output}' contains {name} directly, "
                    f"which is held between samples: no prediction changes with the dead time until a jump passes a "
                    f"sample, so that there is no derivative. Join the input's samples by lines (hold='foh'), pass the "
                    f"delayed input through a lag in the model, or compare fits at fixed values of the dead time."
                )


def refuse_rough_past(point: ExperimentPoint) -> None:
    """Refuse derivatives where an unknown is delayed that may jump: the share of its later jumps is not computed."""
    system = point.structure.system
    plain = system if system.moving is None else system.moving.plain
    if len(point.dq) and dead_times_at(point.trial, plain) and plain.reactions is not None:
        refuse_dead_times(point)
    for delay in plain.delays if len(point.dq) else ():
        if delay.kind != "unknown":
            continue
        formula = plain.observed[plain.observed_names.index(delay.source)]
        rough = [plain.u[k] for k, s in enumerate(plain.signals) if not _is_continuous(point, s.name, s.kind)]
        if ca.depends_on(formula, ca.vertcat(plain.z, *rough)) or jumps_of(formula, plain.x):
            raise EstimationError(
                f"There are no derivatives where {delay.name} is in the equations: {delay.source} is no smooth formula "
                f"of states and may jump, and its jumps come back. Delay the states that it is made of, or let a state "
                f"follow it, der(f) == ({delay.source} - f) / T, and delay that."
            )


def _is_continuous(point: ExperimentPoint, name: str, kind: str) -> bool:
    return kind == "input" and not point.trial.is_held(name)


def _jumps(point: ExperimentPoint, source: str) -> bool:
    """Return whether an input or a switch jumps."""
    trial = point.trial
    if source in point.signals.switches:
        return bool(len(point.signals.switches[source].kinks))
    return source in trial.flat.inputs and trial.is_held(source)


def _feels(system: System, formula: ca.SX, signal: ca.SX) -> bool:
    """Return whether a formula depends on a signal at an instant: directly, or through implicit unknowns."""
    if ca.depends_on(formula, signal):
        return True
    if not system.nz or not ca.depends_on(formula, system.z):
        return False
    touched = {i for i in range(system.nz) if ca.depends_on(formula, system.z[i])}
    while True:  # unknowns that share an equation are solved together
        rows = [r for r in ca.vertsplit(system.residual) if any(ca.depends_on(r, system.z[i]) for i in touched)]
        if any(ca.depends_on(r, signal) for r in rows):
            return True
        more = {i for i in range(system.nz) if any(ca.depends_on(r, system.z[i]) for r in rows)}
        if more == touched:
            return False
        touched |= more
