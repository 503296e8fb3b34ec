"""``method="auto"``: which estimator a model and its data call for, and why not another.

    static, or without disturbances        → OutputError       a simulation is all there is to compare with
    linear in its states                   → KalmanML          the exact likelihood
    a jump with a state                    → KalmanML          unscented filter: averages over both sides
    a disturbance without a linear effect  → SimulatedPEM      linearisation would not see it
    otherwise                              → KalmanML          extended filter: the likelihood, linearised on the way

Each estimator says for itself whether it is the one (``Estimator.verdict``). Collocation is never taken unasked: it
serves models that cannot be simulated from where one begins.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from grisaille.errors import EstimationError, GrisailleError
from grisaille.estimation.estimator import Estimator, estimator_of
from grisaille.estimation.subject import Subject
from grisaille.estimators.collocation.collocation import Collocation
from grisaille.estimators.kalman_ml.kalman_ml import KalmanML
from grisaille.estimators.output_error.output_error import OutputError
from grisaille.estimators.simulated_pem.simulated_pem import SimulatedPEM
from grisaille.model.classes import Model

ORDER: tuple[type[Estimator], ...] = (OutputError, KalmanML, SimulatedPEM, Collocation)


def choose_method(
    method: Any, model: Model | None = None, experiments: Any = None, estimate: Iterable[object] | None = None
) -> tuple[Estimator, dict[str, str]]:
    """The estimator, and for each one why it was taken or not."""
    if method != "auto":
        found = estimator_of(method)
        return found, {type(found).__name__: "given"}
    if model is None:
        return OutputError(), {"OutputError": "chosen: least squares on simulated outputs"}
    data = list(experiments) if isinstance(experiments, Sequence) else [experiments]
    names = [] if estimate is None or isinstance(estimate, str) else [str(getattr(e, "path", e)) for e in estimate]
    levels = tuple(n for n in names if n.startswith(("scale(", "noise(")))
    return _choose(Subject(model, data, levels))


def _choose(subject: Subject) -> tuple[Estimator, dict[str, str]]:
    try:
        verdicts = {kind: kind.verdict(subject) for kind in ORDER}
    except GrisailleError:
        subject.refuse_infinite_variance()
        raise
    for kind, verdict in verdicts.items():
        if verdict.is_choice:
            return kind(), {k.__name__: v.reason for k, v in verdicts.items()}
    raise EstimationError(f"No estimator suits {subject.flat.name}: give one by method=.")
