"""Numbers of laws that grow without end: data that scatter no more than the law's limit have no largest likelihood.

Counts that scatter no more than Poisson's let the size of a negative binomial law grow, residuals without tails the
degrees of freedom of Student's. The likelihood gains less and less, and a search would go on for thousands of steps.
"""

from __future__ import annotations

import numpy as np

from grisaille.estimation.measurements.measured_problem import MeasuredEvaluation, MeasuredProblem
from grisaille.model.measurement.distributions import innermost

MAX_RELATIVE_ERROR = 5.0
"""Standard errors of an unknown in units of itself from which on data do not tell its size."""
MAX_REMAINING_GAIN = 0.5
"""Of log-likelihood: what is left to gain."""
LIMIT_LAWS = {"NegativeBinomial": "gr.laws.Poisson()", "Student": "normal noise"}
"""What laws become as their numbers grow."""


def find_unbounded_parameter(problem: MeasuredProblem, evaluation: MeasuredEvaluation) -> str:
    """Say which number of a law grows without end; empty for none."""
    for k, unknown in enumerate(problem.unknowns):
        value, told = float(evaluation.theta[k]), float(evaluation.curvature[k, k])
        if unknown.kind != "parameter" or np.isfinite(unknown.upper) or not value > 0:
            continue
        gain = -float(evaluation.slope[k]) * value
        if not (0 < gain < MAX_REMAINING_GAIN and told * (MAX_RELATIVE_ERROR * value) ** 2 < 1):
            continue
        for output, law in problem.laws.items():
            if any(unknown.target in formula.parameters for formula in law.formulas.values()):
                name = type(innermost(law.law)).__name__
                return (
                    f"the likelihood grows with {unknown.name}, which is {value:.3g} by now, without end: '{output}' "
                    f"has nothing of what {name} adds to {LIMIT_LAWS.get(name, 'the law that it becomes there')}. "
                    "Give the "
                    f"output that law, or {unknown.target} bounds="
                )
    return ""
