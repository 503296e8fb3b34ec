"""Log-likelihoods of one trial by another filter than the one that was fitted, without derivatives.

They serve the question whether a filter's approximation matters: the unscented filter beside a linearising one, and the
extended one beside the unscented. Where formulas do not jump with a state the unscented one is compiled in a form that
takes no longer than the first (``sigma_points``).
"""

from __future__ import annotations

from collections.abc import Mapping

from grisaille.bound_experiment import ExperimentPoint
from grisaille.disturbance.stochastic_model import StochasticModel
from grisaille.errors import EstimationError
from grisaille.filtering.filter import Filter
from grisaille.filtering.filter_methods import make_nonlinear
from grisaille.filtering.filter_runner import FilterRunner
from grisaille.filtering.formulation import FilterKind, formulate
from grisaille.filtering.initial_moments import variances_by_name
from grisaille.filtering.nonlinear.extended import ExtendedFilter
from grisaille.filtering.values.sigma_point_values import MAX_STATES, SigmaPointValues

MAX_WRITTEN_OUT = 8
"""States of an unscented filter whose sigma points are written out, which takes a compiler long."""


class ValueRunner(FilterRunner):
    """The log-likelihood of one trial, for values alone."""

    unscented: ExtendedFilter | None = None
    """The unscented filter, once it is prepared."""

    def _choose(self, model: StochasticModel, point: ExperimentPoint) -> Filter:
        o = self.options
        if o.filter != "unscented":
            return super()._choose(model, point)
        kind = FilterKind("unscented", o.propagation, sigma=o.sigma, solver=o.solver)
        has_loops = formulate(model, kind).has_loops
        if model.n > (MAX_STATES if has_loops else MAX_WRITTEN_OUT):
            raise EstimationError(f"the unscented filter of {model.n} states takes too long for a check.")
        made_as = SigmaPointValues if has_loops else ExtendedFilter
        if isinstance(o.initial_covariance, Mapping):
            variances_by_name(model, o.initial_covariance)  # refuses what contradicts the model
        self.unscented = make_nonlinear(o, kind, model, self.record, point, made_as)
        return self.unscented
