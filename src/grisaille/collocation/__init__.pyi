"""The names that `grisaille.collocation` exports."""

from grisaille.collocation.banded import BandedFactor as BandedFactor, NotPositiveDefinite as NotPositiveDefinite
from grisaille.collocation.direct.marginal import marginal as marginal
from grisaille.collocation.intensity import (
    OutputMisfit as OutputMisfit,
    errors_of_roots as errors_of_roots,
    first_root as first_root,
    joint_root as joint_root,
)
from grisaille.collocation.knots import SAME_KNOT as SAME_KNOT, merge_knots as merge_knots
from grisaille.collocation.normal_equations import (
    CollocationPoints as CollocationPoints,
    NormalEquations as NormalEquations,
    ResidualBlock as ResidualBlock,
)
from grisaille.collocation.quadrature import make_quadrature as make_quadrature
from grisaille.collocation.spline_mesh import SplineMesh as SplineMesh
from grisaille.collocation.splines import make_spline as make_spline
from grisaille.collocation.vectorised import Vectorised as Vectorised
