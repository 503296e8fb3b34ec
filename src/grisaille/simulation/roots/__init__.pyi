"""The names that `grisaille.simulation.roots` exports."""

from grisaille.simulation.roots.linear import StepFailure as StepFailure, lu as lu, lu_solve as lu_solve
from grisaille.simulation.roots.newton import Anchor as Anchor, Newton as Newton
