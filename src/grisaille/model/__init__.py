"""Models: Python classes in, a flat list of equations and symbols out.

A class body declares parameters, variables, inputs, outputs, disturbances, connectors and sub-models and lists
equations between them. An instance holds plain *content* under full dotted names; ``flatten.flatten`` turns connections
into equations and hands a ``FlatModel`` to ``structure``. Nothing here computes trajectories.
"""

from grisaille.exports import export_lazily

__getattr__, __dir__, __all__ = export_lazily(__name__, __file__)
