"""Kernels and known signals in, trajectories and sensitivities out.

Receives the kernel of a reduced model, its inputs and a consistent start; hands on labelled trajectories of every
variable the user knows. Integrators exist twice, as C headers and as their interpreted twins, with one algorithm.
"""

from grisaille.simulation.simulate import simulate

__all__ = ["simulate"]
