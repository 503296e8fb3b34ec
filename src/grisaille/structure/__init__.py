"""Flat equations in, an index-1 system with states, blocks and hidden constraints out.

Receives the ``FlatModel`` of a model and hands ``Structure`` on: which equations were differentiated, which states were
chosen, what is solved in formulas and what stays implicit, and how to start consistently. Nothing numeric is compiled
here.
"""

from grisaille.exports import export_lazily

__getattr__, __dir__, __all__ = export_lazily(__name__, __file__)
