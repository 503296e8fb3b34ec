"""What is refused for reasons of the model, its unknowns and its data, in the same words under every estimator."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from grisaille.bound_experiment.bound_experiment import BoundExperiment
from grisaille.bound_experiment.dead_times import dead_times_at, refuse_dead_times, refuse_rough_past
from grisaille.bound_experiment.experiment_point import ExperimentPoint
from grisaille.bound_experiment.system_form import SystemForm
from grisaille.cache import Cache
from grisaille.errors import EstimationError, GrisailleError
from grisaille.experiment.switching_times import refuse_moving_thresholds
from grisaille.structure.descriptor.differentiation_count import DifferentiationCount, count_differentiations
from grisaille.structure.descriptor.well_posedness import WellPosedness, examine
from grisaille.structure.reduction import Structure
from grisaille.structure.time_schedule import why_not_scheduled

_counted: Cache[DifferentiationCount] = Cache(256)
_examined: Cache[WellPosedness] = Cache(256)
EXAMINED_RECORDS = 2
"""Records at whose inputs a nonlinear model is examined."""


def refuse_static(trial: BoundExperiment, who: str) -> None:
    """Refuse rows without time; ``who`` follows models in time."""
    if trial.is_static:
        raise EstimationError(
            f"Experiment '{trial.name}' is static, and {who} follows models in time: use gr.OutputError."
        )


def scheduled_trial(trial: BoundExperiment, who: str) -> BoundExperiment:
    """Return the trial with discrete variables as signals; refused where events of its own are not known before a run,
    because ``who`` knows equations and signals only.
    """
    why = why_not_scheduled(trial.structure) if trial.flat.whens else ""
    if why:
        raise EstimationError(
            f"{trial.flat.name} has events of its own, gr.when({trial.flat.whens[0].clauses[0].text}), which {who} "
            f"does not follow: {why}, and only discrete variables that clocks and relations of time set to values "
            f"known beforehand are signals to it. Use gr.OutputError(), or gr.SimulatedPEM() where disturbances matter."
        )
    return trial.scheduled()


def refuse_events(trial: BoundExperiment, who: str) -> None:
    """Refuse models whose states or discrete variables change at events; ``who`` knows equations only."""
    if trial.flat.whens:
        raise EstimationError(
            f"{trial.flat.name} has events of its own, gr.when({trial.flat.whens[0].clauses[0].text}), which {who} "
            f"does not follow: use gr.OutputError(), or gr.SimulatedPEM() where disturbances matter."
        )


def refuse_few_instants(trial: BoundExperiment, who: str) -> None:
    """Refuse a record that has no interval."""
    if len(trial.times) < 2:
        raise EstimationError(f"Experiment '{trial.name}' has {len(trial.times)} instant; {who} needs two.")


def refuse_moving_instants(trial: BoundExperiment, form: SystemForm, who: str) -> None:
    """Refuse breaks of signals whose instants depend on what is estimated: delays, and formulas of time that switch."""
    moving = list(dead_times_at(trial, form.structure.system).values())
    if moving:
        raise EstimationError(
            f"{trial.flat.name} is delayed by the estimated '{moving[0]}'; {who} needs instants that stay. Fix it and "
            f"compare fits at several values, or use gr.KalmanML(), gr.OutputError() or gr.SimulatedPEM()."
        )
    refuse_moving_switches(trial, form, who)


def refuse_moving_switches(trial: BoundExperiment, form: SystemForm, who: str) -> None:
    """Refuse jumps and bends of formulas of time whose instants depend on what is estimated.

    Between jumps nothing shows the derivative that such an instant has.
    """
    instants = form.structure.system.has.moving_instants
    if not instants:
        return
    inside = [trial.formulas.names.index(n) for n in instants]
    moving = [trial.moves.names[k] for k in trial.moves.places("parameter") if trial.reach[k, inside].any()]
    if moving and form.structure.system.schedule is not None:
        raise EstimationError(
            f"The events of {trial.flat.name} depend on the estimated '{moving[0]}'; {who} needs instants and values "
            f"of discrete variables that stay. Fix it, or use gr.OutputError()."
        )
    if moving:
        raise EstimationError(
            f"{trial.flat.name} switches at instants that depend on the estimated '{moving[0]}'; {who} needs instants "
            f"that stay. Fix it, or use gr.OutputError."
        )


def refuse_always(points: Sequence[ExperimentPoint]) -> None:
    """Refuse, for every estimator, thresholds and jumps that depend on an unknown, jumps that would be differentiated,
    and measured outputs of infinite variance.
    """
    for point in points:
        structure, moves = point.structure, point.trial.moves
        if structure.jumps.of_inputs:
            refuse_moving_thresholds(structure, point.dp[moves.places("parameter")], moves.targets("parameter"))
        if structure.system.delays:
            refuse_dead_times(point)
            refuse_rough_past(point)
        if not point.trial.is_static:
            _ = point.signals  # where jumps that index reduction differentiates are refused
            if point.has_moving_jumps:
                point.refuse_moving_jumps()
    for point in points[:EXAMINED_RECORDS]:
        if point.trial.flat.disturbances:
            refuse_infinite_variance(point)


def refuse_infinite_variance(point: ExperimentPoint) -> None:
    """Refuse measured outputs that white noise or a derivative of it reaches.

    Derivatives that are counted in the equations may be too many, never too few, unless the equations divide by zero:
    what they show to be finite is. Otherwise the equations are linearised where the record is.
    """
    trial, structure = point.trial, point.structure
    finite = structure.cached_value("counted finite", lambda: _counted_finite(structure, trial.model.structure_key))
    if not (finite.issuperset(trial.data.outputs) and _has_rates(point)):
        where = (trial.model.fingerprint, point.p.tobytes(), repr(trial.conditions))
        found = _examined.get(where, lambda: examine(trial.model, None, trial.conditions, parameters=point.known))
        found.require("gr.fit", trial.data.outputs)


def _counted_finite(structure: Structure, key: str) -> frozenset[str]:
    """Return outputs whose variance is finite by the number of derivatives on the way to them."""
    excess = {n: d.spectrum.pole_excess for n, d in structure.model.disturbances.items()}
    entry = (key, structure.system.pivot_texts, tuple(excess.values()))
    count = _counted.get(entry, lambda: count_differentiations(structure, excess))
    return frozenset(output for output in structure.model.outputs if count.is_finite(output, excess))


def _has_rates(point: ExperimentPoint) -> bool:
    """Return whether x' is finite at the start: the equations divide by nothing that vanishes."""
    if point.trial.is_static:
        return True
    try:
        start = point.start
    except GrisailleError:
        return True  # each estimator says for itself what it needs of a start
    (rates,) = point.initializer.rates(point.t0, start.x, start.z, point.u, point.p)
    return bool(np.isfinite(rates).all())
