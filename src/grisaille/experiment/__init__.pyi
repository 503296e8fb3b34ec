"""The names that `grisaille.experiment` exports."""

from grisaille.experiment.decimals import table_with_decimal as table_with_decimal
from grisaille.experiment.experiment import Experiment as Experiment
from grisaille.experiment.piecewise_polynomials import SignalTable as SignalTable, make_table as make_table
from grisaille.experiment.rounded_switches import without_rounded_changes as without_rounded_changes
from grisaille.experiment.rounding import rounding_of as rounding_of
from grisaille.experiment.sampled_signals import SampledSignal as SampledSignal
from grisaille.experiment.turning_points import grid_with_turning_points as grid_with_turning_points
