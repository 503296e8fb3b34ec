"""The names that `grisaille.structure` exports."""

from grisaille.structure.analysis import Analysis as Analysis, analyze as analyze
from grisaille.structure.bipartite_matching import decompose as decompose, maximum_matching as maximum_matching
from grisaille.structure.blocks import BlockUnknown as BlockUnknown
from grisaille.structure.descriptor.noise_filters import noise_filters as noise_filters
from grisaille.structure.descriptor.standard_form import standard_form as standard_form
from grisaille.structure.descriptor.well_posedness import well_posedness as well_posedness
from grisaille.structure.elimination_growth import (
    MAX_FACTORS as MAX_FACTORS,
    Elimination as Elimination,
    eliminate as eliminate,
)
from grisaille.structure.equations import lower_equations as lower_equations
from grisaille.structure.held_events import hold_events as hold_events
from grisaille.structure.parameters import (
    ParameterValues as ParameterValues,
    evaluate_parameters as evaluate_parameters,
)
from grisaille.structure.reduction import Structure as Structure, reduce_model as reduce_model
from grisaille.structure.signature import solve_offsets as solve_offsets
from grisaille.structure.structure_cache import structure_of as structure_of
from grisaille.structure.switch_sides import sides_of as sides_of
from grisaille.structure.switching_pieces import (
    certain_jumps_of as certain_jumps_of,
    is_affine as is_affine,
    jumps_of as jumps_of,
    relations_of as relations_of,
    separate_jumps as separate_jumps,
    separate_relations as separate_relations,
)
from grisaille.structure.system import Signal as Signal, System as System
from grisaille.structure.tearing import tear as tear
from grisaille.structure.time_schedule import why_not_scheduled as why_not_scheduled
