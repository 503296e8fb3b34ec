"""``method="auto"``: which estimator a model and its data call for, and why not another.

    static, or without disturbances        → OutputError       a simulation is all there is to compare with
    linear in its states                   → KalmanML          the exact likelihood
    a jump with a state                    → KalmanML          unscented filter: averages over both sides
    a disturbance without a linear effect  → SimulatedPEM      linearisation would not see it
    otherwise                              → KalmanML          extended filter: the likelihood, linearised on the way

Collocation is never taken unasked: it serves models that cannot be simulated from where one begins.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from grisaille.disturbance.stochastic_model import StochasticModel, build_stochastic_model
from grisaille.errors import EstimationError
from grisaille.estimation.kalman_ml import KalmanML
from grisaille.estimation.output_error import OutputError
from grisaille.estimation.simulated_pem import SimulatedPEM
from grisaille.filtering.hidden import hidden_disturbance
from grisaille.model.classes import Model
from grisaille.structure.parameters import evaluate_parameters
from grisaille.structure.prepared import structure_of

ORDER = ("OutputError", "KalmanML", "SimulatedPEM", "Collocation")
UNASKED = "possible, but not taken unasked: for models that cannot be simulated from the guess, or unknown trajectories"


def choose_method(
    method: Any, model: Model | None = None, experiments: Any = None, estimate: Iterable[object] | None = None
) -> tuple[Any, dict[str, str]]:
    """The estimator, and for each one why it was taken or not."""
    if isinstance(method, str):
        if method != "auto":
            raise EstimationError(f"method is {method!r}; give 'auto' or an estimator such as gr.OutputError().")
        if model is None:
            return OutputError(), {"OutputError": "chosen: least squares on simulated outputs"}
        data = list(experiments) if isinstance(experiments, Sequence) else [experiments]
        chosen, why = _choose(model, data, [] if estimate is None or isinstance(estimate, str) else list(estimate))
        return chosen, {name: why[name] for name in ORDER}
    if isinstance(method, type):
        raise EstimationError(f"method is the class {method.__name__}; make an instance: gr.{method.__name__}().")
    if not hasattr(method, "estimate"):
        raise EstimationError(f"method is {method!r}; give 'auto' or an estimator such as gr.OutputError().")
    return method, {type(method).__name__: "given"}


def _choose(model: Model, data: Sequence[Any], estimate: Sequence[object]) -> tuple[Any, dict[str, str]]:
    if any(getattr(e, "is_static", False) for e in data):
        reason = "refused: the experiment is static, and this follows a model in time"
        return OutputError(), {
            "OutputError": "chosen: the model is static, rows are compared with its formulas",
            "KalmanML": reason, "SimulatedPEM": reason, "Collocation": reason,
        }  # fmt: skip
    structure = structure_of(model)
    flat = structure.model
    levels = [
        str(getattr(e, "path", e)) for e in estimate if str(getattr(e, "path", e)).startswith(("scale(", "noise("))
    ]
    if not flat.disturbances:
        none = f"refused: {flat.name} has no disturbances, so every simulation is the same"
        if levels:
            return KalmanML(), {
                "OutputError": f"refused: it does not estimate '{levels[0]}' by name",
                "KalmanML": f"chosen: the likelihood, without disturbances, in which '{levels[0]}' is an unknown",
                "SimulatedPEM": none, "Collocation": UNASKED,
            }  # fmt: skip
        return OutputError(), {
            "OutputError": f"chosen: {flat.name} has no disturbances, so its simulation is its best prediction",
            "KalmanML": "refused: without disturbances its likelihood is that of output error",
            "SimulatedPEM": none, "Collocation": UNASKED,
        }  # fmt: skip
    outputs = tuple(dict.fromkeys(o for e in data for o in e.outputs))
    return _with_disturbances(_stochastic(structure, outputs), flat)


def _stochastic(structure: Any, outputs: Sequence[str]) -> StochasticModel:
    values = evaluate_parameters(structure.model)
    known = dict(zip(values.names, values.values.tolist(), strict=True))
    return build_stochastic_model(structure, outputs, noises=outputs, values=known)


def _with_disturbances(model: StochasticModel, flat: Any) -> tuple[Any, dict[str, str]]:
    names = ", ".join(flat.disturbances)
    ignored = f"refused: it would hold the disturbances {names} at zero"
    hidden = hidden_disturbance(model)
    if hidden:
        return SimulatedPEM(), {
            "OutputError": ignored,
            "KalmanML": f"refused: {hidden} has no linear effect where it is zero, so a linearised filter would not "
            "see it",
            "SimulatedPEM": f"chosen: it simulates {hidden}, whatever the way it enters",
            "Collocation": f"refused: where {hidden} is zero its effect has no slope to start from",
        }  # fmt: skip
    mean = "refused: it compares means only, and the likelihood uses what the data say about each disturbance"
    if not model.nonlinear:
        what = f"chosen: {flat.name} is linear in its states, so the filter and its likelihood are exact"
    elif model.jumps:
        first = model.jumps[0]
        what = f"chosen: the unscented filter, because {first.place} jumps with {first.text}"
    else:
        what = f"chosen: the extended filter, because {model.nonlinear} is not linear"
    return KalmanML(), {"OutputError": ignored, "KalmanML": what, "SimulatedPEM": mean, "Collocation": UNASKED}
