"""The names that `grisaille.filtering` exports."""

from grisaille.filtering.filter import (
    Filter as Filter,
    FilterPoint as FilterPoint,
    FilterStates as FilterStates,
    StartMoments as StartMoments,
)
from grisaille.filtering.filter_methods import FilterMethod as FilterMethod
from grisaille.filtering.kalman import Likelihood as Likelihood
from grisaille.filtering.model_functions import ModelFunctions as ModelFunctions
