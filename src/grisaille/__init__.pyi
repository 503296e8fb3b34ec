"""Grey-box modelling with differential-algebraic equations: the public names, each once."""

from grisaille import examples as examples, laws as laws
from grisaille.assessment.sensitivity import sensitivity as sensitivity
from grisaille.errors import (
    CompilationError as CompilationError,
    DataError as DataError,
    EstimationError as EstimationError,
    GrisailleError as GrisailleError,
    ModelError as ModelError,
    SimulationError as SimulationError,
    StructureError as StructureError,
)
from grisaille.estimators.collocation.collocation import Collocation as Collocation
from grisaille.estimators.fitting import evaluate as evaluate
from grisaille.estimators.kalman_ml.kalman_ml import KalmanML as KalmanML
from grisaille.estimators.output_error.output_error import OutputError as OutputError
from grisaille.estimators.particle_ml.particle_ml import ParticleML as ParticleML
from grisaille.estimators.simulated_pem.simulated_pem import SimulatedPEM as SimulatedPEM
from grisaille.experiment.experiment import Experiment as Experiment
from grisaille.laws import (
    Beta as Beta,
    Gamma as Gamma,
    HalfCauchy as HalfCauchy,
    HalfNormal as HalfNormal,
    LogNormal as LogNormal,
    MultivariateNormal as MultivariateNormal,
    Normal as Normal,
    Smoothness as Smoothness,
    Uniform as Uniform,
)
from grisaille.model import spectra as spectra
from grisaille.model.classes import Model as Model
from grisaille.model.connectors import Connector as Connector, Flow as Flow, Potential as Potential, connect as connect
from grisaille.model.copies import copies as copies
from grisaille.model.declarations import (
    Discrete as Discrete,
    Disturbance as Disturbance,
    Input as Input,
    Output as Output,
    Parameter as Parameter,
    Variable as Variable,
)
from grisaille.model.delays import delay as delay
from grisaille.model.functions import (
    acos as acos,
    acosh as acosh,
    array as array,
    asin as asin,
    asinh as asinh,
    atan as atan,
    atan2 as atan2,
    atanh as atanh,
    ceil as ceil,
    cos as cos,
    cosh as cosh,
    der as der,
    exp as exp,
    floor as floor,
    log as log,
    log10 as log10,
    maximum as maximum,
    minimum as minimum,
    sign as sign,
    sin as sin,
    sinh as sinh,
    smooth_abs as smooth_abs,
    smooth_sign as smooth_sign,
    sqrt as sqrt,
    tan as tan,
    tanh as tanh,
    time as time,
    where as where,
)
from grisaille.model.table_functions import table as table, table2 as table2
from grisaille.model.whens import clock as clock, pre as pre, reinit as reinit, when as when
from grisaille.modelica.reading import read_modelica as read_modelica
from grisaille.problem.folder import load_problem as load_problem
from grisaille.results.bootstrap import bootstrap as bootstrap
from grisaille.results.comparison import compare as compare
from grisaille.results.fit import Fit as Fit
from grisaille.results.fitting import fit as fit
from grisaille.results.loading import load as load
from grisaille.results.log_density import log_density as log_density
from grisaille.results.monte_carlo import monte_carlo as monte_carlo
from grisaille.results.multistart import multistart as multistart
from grisaille.results.posterior import posterior as posterior
from grisaille.results.prior_predictive import prior_predictive as prior_predictive
from grisaille.simulation.simulate import simulate as simulate
from grisaille.simulation.simulator import Simulator as Simulator
from grisaille.structure.analysis import Analysis as Analysis, analyze as analyze
from grisaille.structure.descriptor.well_posedness import (
    WellPosedness as WellPosedness,
    well_posedness as well_posedness,
)

__version__: str
