"""Kernels and known signals in, trajectories and sensitivities out.

Receives the kernel of a reduced model, its inputs and a consistent start; hands on labelled trajectories of every
variable the user knows.
"""

from grisaille.exports import export_lazily

__getattr__, __dir__, __all__ = export_lazily(__name__, __file__)
