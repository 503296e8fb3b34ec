"""The names that `grisaille.simulation` exports."""

from grisaille.simulation.assertions import ConditionFormulas as ConditionFormulas
from grisaille.simulation.delayed_unknowns import require_points as require_points
from grisaille.simulation.integration import integrate as integrate, run as run
from grisaille.simulation.nominal_sizes import NominalSizes as NominalSizes
from grisaille.simulation.posing import SimulationSetup as SimulationSetup, pose as pose
from grisaille.simulation.runner import Runner as Runner
from grisaille.simulation.simulation_options import SimulationOptions as SimulationOptions
from grisaille.simulation.simulation_runs import (
    IntegratorOptions as IntegratorOptions,
    SimulationRuns as SimulationRuns,
)
from grisaille.simulation.simulation_steps import SimulationSteps as SimulationSteps
from grisaille.simulation.status_messages import FIT_ADVICE as FIT_ADVICE, SIMULATION_ADVICE as SIMULATION_ADVICE
