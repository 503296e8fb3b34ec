"""Log-likelihoods of one trial by another filter than the one that was fitted, without derivatives.

They serve the question whether a filter's approximation matters: the unscented filter beside a linearising one, and the
extended one beside the unscented. Where formulas do not jump with a state the unscented one is compiled in a form that
takes no longer than the first (``sigma_points``).
"""

from __future__ import annotations

from grisaille.compilation.compiler import find_compiler, is_switched_off
from grisaille.disturbance.stochastic_model import StochasticModel
from grisaille.errors import EstimationError
from grisaille.filtering.exact.linear import LinearFilter
from grisaille.filtering.extended import ExtendedFilter
from grisaille.filtering.formulation import FilterKind
from grisaille.filtering.runner import FilterRunner
from grisaille.filtering.values.sigma_points import MOST_STATES, SigmaPointValues
from grisaille.trial import Point

MOST_INTERPRETED = 8
"""States of an unscented filter whose sigma points are written out, which takes a compiler long."""


class ValueRunner(FilterRunner):
    """The log-likelihood of one trial, for values alone."""

    def _choose(self, model: StochasticModel, point: Point) -> LinearFilter | ExtendedFilter:
        o = self.options
        if o.filter != "unscented":
            return super()._choose(model, point)
        has_loops = (
            o.propagation == "linearize" and not model.jumps and o.compiled is not False and not is_switched_off()
            and find_compiler() is not None
        )  # fmt: skip
        if model.n > (MOST_STATES if has_loops else MOST_INTERPRETED):
            raise EstimationError(f"the unscented filter of {model.n} states takes too long for a check.")
        if not has_loops:
            return super()._choose(model, point)
        made = SigmaPointValues(
            model, self.record, point.initializer.nominal[: model.nx], o.initial_covariance,
            kind=FilterKind("unscented", "linearize", sigma=o.sigma), compiled=o.compiled,
        )  # fmt: skip
        made.cells(point.q)
        return made
