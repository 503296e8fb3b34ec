"""Flat equations in, an index-1 system with states, blocks and hidden constraints out.

Receives the ``FlatModel`` of a model and hands ``Structure`` on: which equations were differentiated, which states were
chosen, what is solved in formulas and what stays implicit, and how to start consistently. Nothing numeric is compiled
here.
"""

from typing import TYPE_CHECKING

from grisaille.exports import exported

if TYPE_CHECKING:
    from grisaille.structure.analysis import Analysis, analyze
    from grisaille.structure.reduction import Structure, reduce_model

__all__ = ["Analysis", "Structure", "analyze", "reduce_model"]

_MODULES = dict.fromkeys(("Analysis", "analyze"), "grisaille.structure.analysis")
_MODULES |= dict.fromkeys(("Structure", "reduce_model"), "grisaille.structure.reduction")
__getattr__ = exported(__name__, _MODULES)
