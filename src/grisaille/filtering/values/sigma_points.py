"""Log-likelihoods of the unscented filter without derivatives, by code that compiles in half a second.

The same averages and updates as ``unscented``, as loops over sigma points in C (``compilation.kalman.sigma_source``);
the two agree to rounding. For models whose formulas do not jump with a state, and linearised steps.
"""

from __future__ import annotations

from functools import cached_property
from typing import ClassVar

import casadi as ca

from grisaille.cache import Cache
from grisaille.compilation.kalman.native import PreparedPass, run_forward
from grisaille.compilation.kalman.passing import PassResult
from grisaille.compilation.kalman.sigma_source import PointFormulas
from grisaille.compilation.library import Library
from grisaille.compilation.step import project
from grisaille.disturbance.duals import Floats
from grisaille.disturbance.stochastic_model import StochasticModel
from grisaille.filtering.extended import ExtendedFilter
from grisaille.filtering.filter import Derivatives
from grisaille.filtering.implicit import Closed
from grisaille.filtering.linearization import after_step_function
from grisaille.filtering.measurement import settle_function
from grisaille.filtering.projection import Projection, augmented
from grisaille.filtering.sigma_points import SigmaPoints

MOST_STATES = 64
"""Whose matrices lie on the stack of the C code."""


class SigmaPointValues(ExtendedFilter):
    """The unscented filter of one record, for values alone."""

    derivatives: ClassVar[Derivatives] = None

    def carry(self, given: PreparedPass, q: Floats, s: Floats, dq: Floats, keep: bool) -> PassResult:
        """Return a pass from s; directions are refused, because there are no derivatives."""
        assert not len(dq), "this filter has no derivatives"
        library = self.library
        assert library is not None, "this filter has no interpreted form"
        return run_forward(library, given, q, s[0], s[1:], dq, keep)

    @property
    def library(self) -> Library | None:
        """The compiled pass; ``None`` where compilation is switched off."""
        if self.newton not in self._by_newton:
            constant = self._is_constant()
            self._by_newton[self.newton] = point_formulas(self.model, self.newton, self.kind.sigma, constant)
        return self._by_newton[self.newton].library

    @cached_property
    def _by_newton(self) -> dict[int, PointFormulas]:
        return {}


def point_formulas(model: StochasticModel, newton: int, sigma: SigmaPoints, constant: bool) -> PointFormulas:
    """Return the functions of one point of a model; made once for all of its records."""
    key = (model.content, model.structure.system.constraint_levels, newton, sigma, constant)
    return _formulas.get(key, lambda: _point_formulas(model, newton, sigma, constant))


_formulas: Cache[PointFormulas] = Cache()


def _point_formulas(model: StochasticModel, newton: int, sigma: SigmaPoints, constant: bool) -> PointFormulas:
    closed, projection = Closed(model, newton), Projection(model)
    symbols = closed.symbols
    f, W, z = closed.flow(*symbols)
    h, _, R, z_seen = closed.seen(*symbols)
    A = closed.rates(*symbols)[1]
    spread, means, covariances = sigma.weights(model.n)
    tangent, turning = _on_constraints(model)
    total = sigma.alpha**2 * (model.n + sigma.kappa)
    return PointFormulas(
        flow=_dense("flow", symbols, [f, W, z]),
        slope=_dense("slope", symbols, [A.T]),
        seen=_dense("seen", symbols, [h, R, z_seen]),
        settle=after_step_function(closed, projection),
        after_update=settle_function(closed, projection),
        tangent=tangent,
        turning=turning,
        spread=spread,
        weights=(float(means[0]), 1 / (2 * total), float(covariances[0])),
        powers=1 if constant else 3,
        is_still=not ca.depends_on(model.drift, model.X),
    )


def _on_constraints(model: StochasticModel) -> tuple[ca.Function | None, ca.Function | None]:
    """The projector on the tangent of hidden constraints and how it turns, row by row (``projection``)."""
    if not model.constraints.numel():
        return None, None
    s = augmented(model)
    nominal, c = ca.SX.sym("nominal", s.nx), ca.SX.sym("c", s.nx)
    slope = ca.jacobian(project(s, s.t, s.x, s.u, s.p, nominal), s.x)
    turn = ca.jacobian(ca.mtimes(slope, c), s.x)
    at = [s.t, s.x, s.u, s.p, nominal]
    return _dense("tangent", at, [slope.T]), _dense("turning", [*at, c], [turn.T])


def _dense(name: str, arguments: list[ca.SX], outputs: list[ca.SX]) -> ca.Function:
    return ca.Function(name, arguments, ca.cse([ca.densify(o) for o in outputs]))
