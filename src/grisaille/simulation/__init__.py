"""Kernels and known signals in, trajectories and sensitivities out.

Receives the kernel of a reduced model, its inputs and a consistent start; hands on labelled trajectories of every
variable the user knows.
"""

from grisaille.simulation.simulate import simulate

__all__ = ["simulate"]
