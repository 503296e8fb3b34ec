"""The names that `grisaille.estimation` exports."""

from grisaille.estimation.approximation import (
    ApproximationCheck as ApproximationCheck,
    CriterionMinimum as CriterionMinimum,
    CriterionTerm as CriterionTerm,
    compare_slopes as compare_slopes,
)
from grisaille.estimation.estimate import Estimate as Estimate
from grisaille.estimation.estimator import Estimator as Estimator
from grisaille.estimation.fit_request import FitRequest as FitRequest
from grisaille.estimation.fitted import Fitted as Fitted, with_levels as with_levels
from grisaille.estimation.hac.robust_errors import robust_errors as robust_errors
from grisaille.estimation.likelihood import (
    LikelihoodEvaluation as LikelihoodEvaluation,
    LikelihoodProblem as LikelihoodProblem,
)
from grisaille.estimation.measurements.quantile_residuals import quantile_residuals as quantile_residuals
from grisaille.estimation.noise_levels import (
    SUSPICIOUS_SCALE_FACTOR as SUSPICIOUS_SCALE_FACTOR,
    scan_levels as scan_levels,
    search_near_levels as search_near_levels,
)
from grisaille.estimation.problem import EstimationProblem as EstimationProblem, Evaluation as Evaluation
from grisaille.estimation.uncertainty import root_of as root_of
from grisaille.estimation.unknowns import parameter_guesses as parameter_guesses, resolve_unknowns as resolve_unknowns
