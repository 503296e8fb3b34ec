"""Grey-box modelling with differential-algebraic equations.

The modelling language is imported at once; everything else, with what it needs, when it is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from grisaille import examples, laws
from grisaille.errors import (
    CompilationError,
    DataError,
    EstimationError,
    GrisailleError,
    ModelError,
    SimulationError,
    StructureError,
)
from grisaille.exports import exported as _exported
from grisaille.laws import (
    Beta,
    Gamma,
    HalfCauchy,
    HalfNormal,
    LogNormal,
    MultivariateNormal,
    Normal,
    Smoothness,
    Uniform,
)
from grisaille.model import spectra
from grisaille.model.classes import Model
from grisaille.model.connectors import Connector, Flow, Potential, connect
from grisaille.model.copies import copies
from grisaille.model.declarations import Discrete, Disturbance, Input, Output, Parameter, Variable
from grisaille.model.delays import delay
from grisaille.model.functions import (
    acos,
    acosh,
    array,
    asin,
    asinh,
    atan,
    atan2,
    atanh,
    ceil,
    cos,
    cosh,
    der,
    exp,
    floor,
    log,
    log10,
    maximum,
    minimum,
    sign,
    sin,
    sinh,
    smooth_abs,
    smooth_sign,
    sqrt,
    tan,
    tanh,
    time,
    where,
)
from grisaille.model.table_functions import table, table2
from grisaille.model.whens import clock, pre, reinit, when

if TYPE_CHECKING:
    from grisaille.assessment.sensitivity import sensitivity
    from grisaille.estimators.collocation.collocation import Collocation
    from grisaille.estimators.fitting import evaluate
    from grisaille.estimators.kalman_ml.kalman_ml import KalmanML
    from grisaille.estimators.output_error.output_error import OutputError
    from grisaille.estimators.particle_ml.particle_ml import ParticleML
    from grisaille.estimators.simulated_pem.simulated_pem import SimulatedPEM
    from grisaille.experiment.experiment import Experiment
    from grisaille.modelica.reading import read_modelica
    from grisaille.problem.folder import load_problem
    from grisaille.results.bootstrap import bootstrap
    from grisaille.results.comparison import compare
    from grisaille.results.fit import Fit
    from grisaille.results.fitting import fit
    from grisaille.results.loading import load
    from grisaille.results.log_density import log_density
    from grisaille.results.monte_carlo import monte_carlo
    from grisaille.results.multistart import multistart
    from grisaille.simulation.simulate import simulate
    from grisaille.simulation.simulator import Simulator
    from grisaille.structure.analysis import Analysis, analyze
    from grisaille.structure.descriptor.well_posedness import WellPosedness, well_posedness

__version__ = "0.2.0"

__all__ = [
    "Analysis",
    "Beta",
    "Collocation",
    "CompilationError",
    "Connector",
    "DataError",
    "Discrete",
    "Disturbance",
    "EstimationError",
    "Experiment",
    "Fit",
    "Flow",
    "Gamma",
    "GrisailleError",
    "HalfCauchy",
    "HalfNormal",
    "Input",
    "KalmanML",
    "LogNormal",
    "Model",
    "ModelError",
    "MultivariateNormal",
    "Normal",
    "Output",
    "OutputError",
    "Parameter",
    "ParticleML",
    "Potential",
    "SimulatedPEM",
    "SimulationError",
    "Simulator",
    "Smoothness",
    "StructureError",
    "Uniform",
    "Variable",
    "WellPosedness",
    "__version__",
    "acos",
    "acosh",
    "analyze",
    "array",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "bootstrap",
    "ceil",
    "clock",
    "compare",
    "connect",
    "copies",
    "cos",
    "cosh",
    "delay",
    "der",
    "evaluate",
    "examples",
    "exp",
    "fit",
    "floor",
    "laws",
    "load",
    "load_problem",
    "log",
    "log10",
    "log_density",
    "maximum",
    "minimum",
    "monte_carlo",
    "multistart",
    "pre",
    "read_modelica",
    "reinit",
    "sensitivity",
    "sign",
    "simulate",
    "sin",
    "sinh",
    "smooth_abs",
    "smooth_sign",
    "spectra",
    "sqrt",
    "table",
    "table2",
    "tan",
    "tanh",
    "time",
    "well_posedness",
    "when",
    "where",
]

_LAZY = {
    "Analysis": "grisaille.structure.analysis",
    "Collocation": "grisaille.estimators.collocation.collocation",
    "Experiment": "grisaille.experiment.experiment",
    "Fit": "grisaille.results.fit",
    "KalmanML": "grisaille.estimators.kalman_ml.kalman_ml",
    "OutputError": "grisaille.estimators.output_error.output_error",
    "ParticleML": "grisaille.estimators.particle_ml.particle_ml",
    "SimulatedPEM": "grisaille.estimators.simulated_pem.simulated_pem",
    "Simulator": "grisaille.simulation.simulator",
    "WellPosedness": "grisaille.structure.descriptor.well_posedness",
    "analyze": "grisaille.structure.analysis",
    "bootstrap": "grisaille.results.bootstrap",
    "compare": "grisaille.results.comparison",
    "evaluate": "grisaille.estimators.fitting",
    "fit": "grisaille.results.fitting",
    "load": "grisaille.results.loading",
    "load_problem": "grisaille.problem.folder",
    "log_density": "grisaille.results.log_density",
    "monte_carlo": "grisaille.results.monte_carlo",
    "multistart": "grisaille.results.multistart",
    "read_modelica": "grisaille.modelica.reading",
    "sensitivity": "grisaille.assessment.sensitivity",
    "simulate": "grisaille.simulation.simulate",
    "well_posedness": "grisaille.structure.descriptor.well_posedness",
}


__getattr__ = _exported(__name__, _LAZY)


def __dir__() -> list[str]:
    """The public names; modules are imported by theirs."""
    return list(__all__)
