"""The names that `grisaille.filtering.values` exports."""

from grisaille.filtering.values.sigma_point_values import SigmaPointValues as SigmaPointValues
from grisaille.filtering.values.value_runner import ValueRunner as ValueRunner
