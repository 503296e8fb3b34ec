"""A task × many in, a table out: multistart, Monte Carlo, bootstrap.

Receives a model, data and a method; varies the start or the data, fits each variation in parallel and keeps every
finished run; hands on a table with one row per run, from which any single run can be repeated alone.
"""

from grisaille.exports import export_lazily

__getattr__, __dir__, __all__ = export_lazily(__name__, __file__)
