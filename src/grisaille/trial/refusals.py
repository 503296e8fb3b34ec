"""What is refused for reasons of the model, its unknowns and its data, in the same words under every estimator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from grisaille.compilation.memo import Memo
from grisaille.errors import EstimationError
from grisaille.experiment.switching import refuse_moving_thresholds
from grisaille.structure.descriptor.well_posedness import WellPosedness, examine
from grisaille.trial.form import Form
from grisaille.trial.point import Point
from grisaille.trial.trial import Trial

_examined: Memo[WellPosedness] = Memo(256)
EXAMINED = 2
"""Records at whose inputs a nonlinear model is examined."""


def refuse_static(trial: Trial, who: str) -> None:
    """Refuse rows without time; ``who`` follows models in time."""
    if trial.is_static:
        raise EstimationError(
            f"Experiment '{trial.name}' is static, and {who} follows models in time: use gr.OutputError."
        )


def refuse_few_instants(trial: Trial, who: str) -> None:
    """Refuse a record that has no interval."""
    if len(trial.times) < 2:
        raise EstimationError(f"Experiment '{trial.name}' has {len(trial.times)} instant; {who} needs two.")


def refuse_moving_instants(trial: Trial, form: Form, who: str) -> None:
    """Refuse jumps and bends of formulas of time whose instants depend on what is estimated.

    Between jumps nothing shows the derivative that such an instant has.
    """
    if not form.moving_instants:
        return
    inside = [trial.formulas.names.index(n) for n in form.moving_instants]
    moving = [trial.moves.names[k] for k in trial.moves.places("parameter") if trial.reach[k, inside].any()]
    if moving:
        raise EstimationError(
            f"{trial.flat.name} switches at instants that depend on the estimated '{moving[0]}'; {who} needs instants "
            f"that stay. Fix it, or use gr.OutputError."
        )


def refuse_always(point: Point) -> None:
    """What no estimator can do: thresholds and jumps that move with an unknown, jumps that would be differentiated."""
    moves = point.trial.moves
    refuse_moving_thresholds(point.structure, point.dp[moves.places("parameter")], moves.targets("parameter"))
    if not point.trial.is_static:
        point.refuse_moving_jumps()  # makes the signals, where jumps that index reduction differentiates are refused


def require_finite_variance(
    trials: Sequence[Trial], parameters: Mapping[str, float], outputs: Sequence[str] = ()
) -> None:
    """Refuse outputs (the measured ones) of infinite variance, examined where the first records are."""
    conditions = [c for trial in trials[:EXAMINED] for c in trial.conditions]
    named = tuple(outputs) or tuple(dict.fromkeys(o for trial in trials for o in trial.data.outputs))
    model, known = trials[0].model, dict(parameters)
    key = (model.fingerprint, tuple(sorted(known.items())), repr(conditions))
    _examined.get(key, lambda: examine(model, None, conditions, parameters=known)).require("gr.fit", named)
