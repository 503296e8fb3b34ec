"""Functions of the Modelica Standard Library that exports call without bringing them, written anew.

OpenModelica writes the functions that a model calls, but not those that these call. What is a compact, published
set of formulas stands in texts beside this file, in Modelica, with the argument order of version 4.1.0; each names
its sources. Everything else stays refused by name.
"""

from grisaille.exports import export_lazily

__getattr__, __dir__, __all__ = export_lazily(__name__, __file__)
