"""The names that `grisaille.structure.stochastic` exports."""

from grisaille.structure.stochastic.diffusion import (
    Diffusion as Diffusion,
    correlation_mask as correlation_mask,
    find_diffusion as find_diffusion,
)
from grisaille.structure.stochastic.lamperti import (
    ChartPoint as ChartPoint,
    LampertiChart as LampertiChart,
    boundary_dimension as boundary_dimension,
    find_charts as find_charts,
    stays_inside as stays_inside,
)
