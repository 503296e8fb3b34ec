"""A model with its data, from which an estimator is chosen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from grisaille.bound_experiment import BoundExperiment
from grisaille.bound_experiment.shared_refusals import refuse_infinite_variance
from grisaille.disturbance.stochastic_model import StochasticModel, build_stochastic_model
from grisaille.errors import GrisailleError
from grisaille.model.classes import Model
from grisaille.model.flat import FlatModel
from grisaille.structure.parameters import evaluate_parameters
from grisaille.structure.structure_cache import structure_of
from grisaille.structure.time_schedule import why_not_scheduled

if TYPE_CHECKING:
    from grisaille.experiment.experiment import Experiment


STATIC_REFUSAL = "refused: the experiment is static, and this follows a model in time"
NOT_AUTOMATIC = (
    "possible, but not taken unasked: for models that cannot be simulated from the guess, or unknown trajectories"
)


@dataclass(frozen=True)
class ModelAndData:
    """What is to be fitted to what."""

    model: Model
    data: Sequence[Experiment]
    levels: tuple[str, ...] = ()
    """Levels of noise that are named among the unknowns."""

    @property
    def is_static(self) -> bool:
        return any(e.is_static for e in self.data)

    @property
    def flat(self) -> FlatModel:
        return structure_of(self.model).model

    @property
    def disturbances(self) -> tuple[str, ...]:
        return tuple(self.flat.disturbances)

    @property
    def outputs(self) -> tuple[str, ...]:
        """Return what was measured."""
        return tuple(dict.fromkeys(o for e in self.data for o in e.outputs))

    @property
    def output_with_law(self) -> str:
        """Return the first measured output that declares another law than normal noise; empty where there is none."""
        declared = self.flat.outputs
        return next((n for n in self.outputs if n in declared and declared[n].distribution is not None), "")

    @cached_property
    def stochastic(self) -> StochasticModel:
        """Return the reduced model with its disturbances, at the model's own values."""
        values = evaluate_parameters(self.flat)
        outputs = self.outputs
        known = dict(zip(values.names, values.values.tolist(), strict=True))
        return build_stochastic_model(structure_of(self.model), outputs, noises=outputs, values=known)

    @cached_property
    def why_not_scheduled(self) -> str:
        """Return why events of the model are not known before a run; empty where they are or where there are none."""
        return why_not_scheduled(structure_of(self.model))

    @cached_property
    def why_not_filtered(self) -> str:
        """Return why filters and collocation cannot follow the model, in their own words; empty where they can.

        Raises what no estimator can do about white noise, in the words that all have for it.
        """
        try:
            self.stochastic  # noqa: B018
        except GrisailleError as error:
            self.refuse_infinite_variance()
            return str(error)
        return ""

    @cached_property
    def hidden(self) -> str:
        """Return a disturbance without a linear effect where it is zero; empty where there is none."""
        return "" if self.why_not_filtered else self.stochastic.hidden

    def refuse_infinite_variance(self) -> None:
        """Refuse what no estimator can do about white noise, in the words that all have for it."""
        for experiment in self.data if self.disturbances else ():
            refuse_infinite_variance(BoundExperiment.of(self.model, experiment).at())
