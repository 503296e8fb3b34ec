"""One experiment at given unknowns: what every estimator simulates, filters or collocates.

Receives a model, an experiment and what moves in it; hands on a ``Trial``, whose ``at(θ)`` is a ``Point``: parameters,
levels, signals and a consistent start, with exact derivatives. Nothing that depends on the model and the record alone
is computed again at another θ, and what is refused for reasons of the model and its data is refused here, once.
"""

from grisaille.trial.movement import Movement
from grisaille.trial.point import Point
from grisaille.trial.trial import Trial

__all__ = ["Movement", "Point", "Trial"]
