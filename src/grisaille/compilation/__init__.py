"""From the reduced system to functions that run.

Receives a ``structure.system.System``; hands on a ``kernel.Kernel`` (its functions and Jacobians, and
compiled integrators of whole trajectories) or a ``frozen.FusedStep`` (one step as a single formula, run over a grid
for many realizations at once). On the way: ``derivatives`` and ``step`` write formulas, ``printer`` turns them into C,
``library`` has them built by ``compiler`` or finds them in ``cache``.
"""

from grisaille.exports import export_lazily

__getattr__, __dir__, __all__ = export_lazily(__name__, __file__)
