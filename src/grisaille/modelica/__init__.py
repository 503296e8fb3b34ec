"""Modelica models as ``gr.Model`` instances: flat Base Modelica text is read, understood and lowered.

text → ``tokens`` → ``parsing`` → ``tree`` → ``library``, ``model`` and ``evaluation`` (values: numbers, formulas,
arrays, records) → ``lowering`` → the content of a model. Nothing in a text is executed: it is data from the first
letter to the last.
"""

from grisaille.exports import export_lazily

__getattr__, __dir__, __all__ = export_lazily(__name__, __file__)
