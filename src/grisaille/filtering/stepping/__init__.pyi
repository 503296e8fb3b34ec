"""The names that `grisaille.filtering.stepping` exports."""

from grisaille.filtering.stepping.skipped_features import bends_of_model as bends_of_model
from grisaille.filtering.stepping.step_passes import StepPasses as StepPasses
