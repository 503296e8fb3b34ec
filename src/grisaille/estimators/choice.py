"""``method="auto"``: which estimator a model and its data call for, and why not another.

    static, or without disturbances        → OutputError       a simulation is all there is to compare with
    linear in its states                   → KalmanML          the exact likelihood
    a jump with a state                    → KalmanML          unscented filter: averages over both sides
    a disturbance without a linear effect  → SimulatedPEM      linearisation would not see it
    what no filter follows                 → SimulatedPEM      the past of a state, events of its own
    otherwise                              → KalmanML          extended filter: the likelihood, linearised on the way
    disturbed, and an output with a law    → Collocation       Laplace's method: filters take measurements to be normal

Each estimator says for itself whether it is the one (``Estimator.verdict``), and whether it may serve where that one
refuses the model or the data when it poses its problem. Collocation is taken unasked for the last of these alone: it
serves models that cannot be simulated from where one begins.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from grisaille.errors import EstimationError
from grisaille.estimation.estimator import Estimator, estimator_of
from grisaille.estimation.model_and_data import ModelAndData
from grisaille.estimators.collocation.collocation import Collocation
from grisaille.estimators.kalman_ml.kalman_ml import KalmanML
from grisaille.estimators.output_error.output_error import OutputError
from grisaille.estimators.particle_ml.particle_ml import ParticleML
from grisaille.estimators.simulated_pem.simulated_pem import SimulatedPEM
from grisaille.model.classes import Model

if TYPE_CHECKING:
    from grisaille.experiment.experiment import Experiment

METHODS: tuple[type[Estimator], ...] = (OutputError, KalmanML, SimulatedPEM, Collocation, ParticleML)


@dataclass(frozen=True)
class Candidate:
    """An estimator that may be tried, and for each one why it was taken or not."""

    method: Estimator
    why: dict[str, str]

    def instead_of(self, refused: Mapping[str, str]) -> Candidate:
        """Say which others were tried before and what they said."""
        if not refused:
            return self
        name = type(self.method).__name__
        said = {n: f"refused: {text}" for n, text in refused.items()}
        before = " and ".join(refused)
        taken = f"chosen: {before} would come first, but {'refuse' if len(refused) > 1 else 'refuses'}"
        return Candidate(self.method, {**self.why, **said, name: taken})


def choose_method(
    method: Estimator | str,
    model: Model | None = None,
    experiments: Sequence[Experiment] | None = None,
    estimate: Iterable[object] | None = None,
) -> tuple[Estimator, dict[str, str]]:
    """Return the estimator of the first choice, and for each one why it was taken or not."""
    first = find_candidates(method, model, experiments, estimate)[0]
    return first.method, first.why


def find_candidates(
    method: Any, model: Model | None = None, experiments: Any = None, estimate: Iterable[object] | None = None
) -> list[Candidate]:
    """Return the estimator of the first choice and those that may serve where it refuses, in order."""
    if method != "auto":
        found = estimator_of(method)
        return [Candidate(found, {type(found).__name__: "given"})]
    if model is None:
        return [Candidate(OutputError(), {"OutputError": "chosen: least squares on simulated outputs"})]
    data = list(experiments) if isinstance(experiments, Sequence) else [experiments]
    names = [] if estimate is None or isinstance(estimate, str) else [str(getattr(e, "path", e)) for e in estimate]
    levels = tuple(n for n in names if n.startswith(("scale(", "noise(")))
    return _candidates(ModelAndData(model, data, levels))


def _candidates(subject: ModelAndData) -> list[Candidate]:
    verdicts = {kind: kind.verdict(subject) for kind in METHODS}
    why = {kind.__name__: verdict.reason for kind, verdict in verdicts.items()}
    chosen = [kind for kind, verdict in verdicts.items() if verdict.is_choice][:1]
    if not chosen:
        raise EstimationError(f"No estimator suits {subject.flat.name}: give one by method=.")
    others = [kind for kind, verdict in verdicts.items() if verdict.may_serve and kind not in chosen]
    return [Candidate(kind.for_subject(subject), why) for kind in (*chosen, *others)]
