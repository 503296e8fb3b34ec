"""One experiment at given unknowns: what every estimator simulates, filters or collocates.

Receives a model, an experiment and what moves in it; hands on a ``BoundExperiment``, whose ``at(θ)`` is a
``ExperimentPoint``: parameters,
levels, signals and a consistent start, with exact derivatives. Nothing that depends on the model and the record alone
is computed again at another θ, and what is refused for reasons of the model and its data is refused here, once.
"""

from grisaille.exports import export_lazily

__getattr__, __dir__, __all__ = export_lazily(__name__, __file__)
