"""The names that `grisaille.structure.descriptor` exports."""

from grisaille.structure.descriptor.descriptor_linearization import Linearizer as Linearizer
from grisaille.structure.descriptor.differentiation_count import count_differentiations as count_differentiations
from grisaille.structure.descriptor.finite_variance import (
    DisturbedSystem as DisturbedSystem,
    NoiseFilter as NoiseFilter,
    augment as augment,
    decide_variance as decide_variance,
    projected_terms as projected_terms,
    projector_on_null as projector_on_null,
    range_of_power as range_of_power,
    white_filter as white_filter,
)
from grisaille.structure.descriptor.operating_point import (
    jet_values as jet_values,
    locate as locate,
    start_point as start_point,
)
from grisaille.structure.descriptor.pencil import (
    CloseDecisionWarning as CloseDecisionWarning,
    Matrix as Matrix,
    build_staircase as build_staircase,
    find_dependence as find_dependence,
    invertible_shift as invertible_shift,
    scale_pencil as scale_pencil,
)
from grisaille.structure.descriptor.standard_form import separate_modes as separate_modes
