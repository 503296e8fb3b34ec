"""Laws: how likely values are, as priors of unknowns and, with their location left open, of measurements.

    gr.Normal(1.2, 0.06)    gr.LogNormal(1e-3, 0.5)    gr.Gamma(2.0, 5.0)    gr.Beta(0.3, 20.0)    gr.HalfNormal(0.1)
    gr.laws.Student(1.2, 4.0, 0.06)    gr.laws.Laplace(0.0, 0.1)    gr.laws.Truncated(0.0, None, gr.Normal(1.0, 0.5))

Receives numbers; hands on log-densities with exact derivatives, draws, distribution functions, quantiles and supports.
It stands below the models, whose parameters and outputs have laws, and needs nothing but random bits. A law of your own
derives from ``Law`` and gives a ``formula`` and a ``support`` (``laws.law``).
"""

from grisaille.exports import export_lazily

__getattr__, __dir__, __all__ = export_lazily(__name__, __file__)
