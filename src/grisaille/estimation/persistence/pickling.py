"""A fit through pickle, by its content: what a file would hold, without what prepared it.

Models and experiments travel by content themselves, the method as the dataclass of options that it is; nothing of the
user's own is executed to bring a fit back, except that the class of an estimator of theirs is imported. Copies are made
the same way.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from grisaille.estimation.estimator import Estimator
from grisaille.experiment.experiment import Experiment
from grisaille.model.classes import Model

if TYPE_CHECKING:
    from grisaille.estimation.fitted import Fitted

Kind = TypeVar("Kind", bound="Fitted")


def reduce_fit(fit: Fitted) -> tuple[Any, ...]:
    """Return what ``__reduce__`` gives."""
    from grisaille.estimation.persistence.saving import fit_arrays, fit_record

    predictions = tuple(p.y for p in fit.estimate.evaluation.predictions)
    content = (fit.initial_model, fit.experiments, fit.method, fit_record(fit), fit_arrays(fit), predictions)
    return restore_fit, (type(fit), *content)


def restore_fit(
    cls: type[Kind],
    model: Model,
    experiments: tuple[Experiment, ...],
    method: Estimator,
    record: Mapping[str, Any],
    arrays: Mapping[str, np.ndarray],
    predictions: tuple[np.ndarray, ...],
) -> Kind:
    """Return a fit of its content."""
    from grisaille.estimation.persistence.loading import rebuild_fit

    if method.__dict__.get("compiled") is False:  # pickled when models could be interpreted
        object.__setattr__(method, "compiled", None)
    return cls.of(rebuild_fit(model, experiments, method, record, arrays, predictions))
