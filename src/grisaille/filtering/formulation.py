"""Which formulas make which nonlinear filter: steps of ``moments`` or ``linearization``, updates of ``measurement``,
``iterated`` or ``unscented``."""

from __future__ import annotations

from dataclasses import dataclass, field

from grisaille.cache import Cache
from grisaille.compilation.kalman.program import FilterFormulas, Formulation
from grisaille.disturbance.stochastic_model import StochasticModel
from grisaille.filtering.algebraic_model import NEWTON_STEPS, AlgebraicModel
from grisaille.filtering.constraint_projection import ConstraintProjection
from grisaille.filtering.filter_loops import (
    Stepping,
    linearised_loops,
    linearised_products,
    unscented_loops,
    unscented_products,
)
from grisaille.filtering.linearization import after_step_function, coefficients_function
from grisaille.filtering.measurement import linearized_update, update_function
from grisaille.filtering.moment_steps import STAGE_TABLES, linearized_rates, moment_step
from grisaille.filtering.nonlinear.iterated import UPDATE_ITERATIONS, iterated_update
from grisaille.filtering.sigma_points import SigmaPoints
from grisaille.filtering.square_root_steps import square_root_step
from grisaille.filtering.unscented import unscented_rates, unscented_update


@dataclass(frozen=True)
class FilterKind:
    """Which nonlinear filter.

    update : ``"extended"``, ``"iterated"`` or ``"unscented"``
    propagation : ``"linearize"`` (exact steps of the linearised equation), ``"moments"`` (of mean and covariance) or
        ``"square-root"`` (of mean and a square root, over sigma points)
    solver : steps of the last two, ``"rk4"`` or ``"euler"``
    constant : nothing in the equations moves between samples but the states (held inputs, no formulas of time)
    sigma : points of the unscented filter
    newton : steps that solve algebraic unknowns at every point
    """

    update: str = "extended"
    propagation: str = "linearize"
    constant: bool = False
    sigma: SigmaPoints = field(default_factory=SigmaPoints)
    solver: str = "rk4"
    newton: int = NEWTON_STEPS


def formulate(model: StochasticModel, kind: FilterKind) -> Formulation:
    """Step and update of a filter; made once for all records of a model."""
    key = (model.content, model.structure.system.constraint_levels, kind)
    return _formulated.get(key, lambda: _formulate(model, kind))


_formulated: Cache[Formulation] = Cache()


def _formulate(model: StochasticModel, kind: FilterKind) -> Formulation:
    """Formulate with loops, except for roots of covariances and averages that are cut."""
    if kind.propagation == "square-root" or (kind.update == "unscented" and model.jumps):
        return Formulation(lambda: _write(model, kind))
    newton = kind.newton
    stepping = Stepping(kind.constant, 0 if kind.propagation == "linearize" else len(STAGE_TABLES[kind.solver].parts))
    if kind.update == "unscented":
        return Formulation(
            lambda: _write(model, kind), lambda: unscented_loops(model, newton, stepping, kind.sigma),
            unscented_products(model, stepping),
        )  # fmt: skip
    looks = UPDATE_ITERATIONS if kind.update == "iterated" else 1
    return Formulation(
        lambda: _write(model, kind), lambda: linearised_loops(model, newton, stepping, looks),
        linearised_products(model, stepping),
    )  # fmt: skip


def _write(model: StochasticModel, kind: FilterKind) -> FilterFormulas:
    is_plain = kind.propagation == "moments" and kind.update != "unscented"
    closed, projection = AlgebraicModel(model, kind.newton), ConstraintProjection(model, 1 if is_plain else 2)
    rates = unscented_rates(closed, kind.sigma) if kind.update == "unscented" else linearized_rates(closed)
    if kind.update == "unscented":
        update = unscented_update(closed, kind.sigma)
    else:
        update = iterated_update(closed) if kind.update == "iterated" else linearized_update(closed)
    at_samples = update_function(closed, update, projection)
    if kind.propagation == "linearize":
        coefficients, settle = (
            coefficients_function(closed, rates, kind.constant, projection if kind.update == "unscented" else None),
            after_step_function(closed, projection),
        )
        return FilterFormulas(coefficients, at_samples, settle, model.n)
    if kind.propagation == "square-root":
        return FilterFormulas(square_root_step(closed, kind.sigma, projection, kind.solver), at_samples)
    is_averaged = kind.update == "unscented"
    return FilterFormulas(moment_step(closed, rates, projection, kind.solver, is_averaged), at_samples)
