"""The names that `grisaille.structure.singular` exports."""

from grisaille.structure.singular.like_terms import (
    without_cancelled_terms as without_cancelled_terms,
    without_like_terms as without_like_terms,
)
from grisaille.structure.singular.null_vectors import SampledJacobian as SampledJacobian
from grisaille.structure.singular.rounded_slopes import without_rounded_slopes as without_rounded_slopes
from grisaille.structure.singular.scaling import (
    balanced as balanced,
    equilibrated as equilibrated,
    is_clearly_regular as is_clearly_regular,
    is_regular as is_regular,
    rank as rank,
)
