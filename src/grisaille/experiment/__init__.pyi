"""The names that `grisaille.experiment` exports."""

from grisaille.experiment.experiment import Experiment as Experiment
