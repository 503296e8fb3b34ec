"""A log-density in, draws from the posterior and what may be said about them out.

Receives a fitted model with proper priors; samples its unknowns in coordinates on the whole line by a Hamiltonian Monte
Carlo method of its own (``nuts``), chain by chain, in blocks that are kept; hands on labelled draws, their diagnostics
in words, and draws from priors and of predictions.
"""

from grisaille.exports import export_lazily

__getattr__, __dir__, __all__ = export_lazily(__name__, __file__)
