"""The names that `grisaille.numerics` exports."""

from grisaille.numerics.assignment import best_assignment as best_assignment
from grisaille.numerics.philox import Purpose as Purpose, stream_key as stream_key
from grisaille.numerics.quadratic import (
    OWN_UNITS as OWN_UNITS,
    HessianQuadratic as HessianQuadratic,
    SquaresQuadratic as SquaresQuadratic,
    bounded_step as bounded_step,
    is_definite as is_definite,
)
from grisaille.numerics.sides import reach as reach
