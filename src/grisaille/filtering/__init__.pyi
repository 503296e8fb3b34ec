"""The names that `grisaille.filtering` exports."""

from grisaille.filtering.algebraic_model import AlgebraicModel as AlgebraicModel
from grisaille.filtering.algebraic_roots import AlgebraicRoots as AlgebraicRoots
from grisaille.filtering.averaged_bends import positive_part as positive_part, share_above as share_above
from grisaille.filtering.compiled_sums import (
    add_up as add_up,
    add_up_given as add_up_given,
    filter_moments as filter_moments,
    filter_states as filter_states,
)
from grisaille.filtering.filter import (
    Filter as Filter,
    FilterPoint as FilterPoint,
    FilterStates as FilterStates,
    StartMoments as StartMoments,
)
from grisaille.filtering.filter_methods import FilterMethod as FilterMethod, FilterOptions as FilterOptions
from grisaille.filtering.filter_runner import FilterResult as FilterResult, FilterRunner as FilterRunner
from grisaille.filtering.filter_steps import FilterSteps as FilterSteps
from grisaille.filtering.kalman import (
    DiscreteModel as DiscreteModel,
    Likelihood as Likelihood,
    likelihood_of_sums as likelihood_of_sums,
)
from grisaille.filtering.model_functions import ModelFunctions as ModelFunctions
from grisaille.filtering.passes import Passes as Passes
from grisaille.filtering.sigma_points import SigmaPoints as SigmaPoints, square_root as square_root
from grisaille.filtering.smoother import smooth as smooth
from grisaille.filtering.stepping.local_errors import local_errors as local_errors
