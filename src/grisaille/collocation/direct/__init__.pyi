"""The names that `grisaille.collocation.direct` exports."""

from grisaille.collocation.direct.direct import DirectOptions as DirectOptions, DirectProgram as DirectProgram
from grisaille.collocation.direct.element import ElementDerivatives as ElementDerivatives, ElementSizes as ElementSizes
from grisaille.collocation.direct.element_elimination import (
    IndefiniteError as IndefiniteError,
    condense as condense,
    multipliers as multipliers,
    scatter as scatter,
    substitute as substitute,
    sweep as sweep,
)
from grisaille.collocation.direct.element_mesh import (
    RADAU_MATRIX as RADAU_MATRIX,
    RADAU_NODES as RADAU_NODES,
    RADAU_POINTS as RADAU_POINTS,
    DirectRecord as DirectRecord,
    RadauElements as RadauElements,
    make_mesh as make_mesh,
)
from grisaille.collocation.direct.initial_path import simulated_point as simulated_point
from grisaille.collocation.direct.path_newton import place as place
from grisaille.collocation.direct.solution_statistics import (
    curvature_at as curvature_at,
    inside_bounds as inside_bounds,
    quantities_along as quantities_along,
    theta_covariance as theta_covariance,
)
