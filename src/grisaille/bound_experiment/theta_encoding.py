"""θ → q: all parameters, then the estimated scales, then the estimated noise levels, with exact derivatives.

It follows from what moves and from the names of what is given, so trials of one model share it.
"""

from __future__ import annotations

from functools import cached_property

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from grisaille.bound_experiment.estimated_quantities import EstimatedQuantities
from grisaille.bound_experiment.explicit_start import ExplicitStart, StartSymbols, start_is_explicit
from grisaille.model.flat import FlatModel
from grisaille.numerics.flat_functions import FlatEvaluation, flat_function
from grisaille.structure.parameters import formulas_of
from grisaille.structure.starts.initialization import Initializer
from grisaille.structure.system import System

KEPT_READERS = 16


class Encoding:
    """Formulas of θ and of the given numbers: constants, then fixed starts."""

    def __init__(
        self, model: FlatModel, moves: EstimatedQuantities, constants: tuple[str, ...], demands: tuple[str, ...]
    ) -> None:
        self.moves, self.constants, self.demands = moves, constants, demands
        self.formulas = formulas_of(model, {*constants, *moves.targets("parameter")})
        self._readers: dict[int, tuple[System, ExplicitStart | None]] = {}

    @cached_property
    def symbols(self) -> StartSymbols:
        moves, first = self.moves, len(self.constants)
        theta, given = ca.SX.sym("theta", len(moves)), ca.SX.sym("given", first + len(self.demands))
        values = {n: given[k] for k, n in enumerate(self.constants)}
        values |= {n: theta[k] for n, k in zip(moves.targets("parameter"), moves.places("parameter"), strict=True)}
        demands = {n: given[first + k] for k, n in enumerate(self.demands)}
        return StartSymbols(theta, given, ca.densify(self.formulas.symbolic(values)), demands)

    @cached_property
    def q(self) -> ca.SX:
        levels = [self.symbols.theta[k] for k in (*self.moves.places("scale"), *self.moves.places("noise"))]
        return ca.densify(ca.vertcat(self.symbols.p, *levels))

    @cached_property
    def quantities(self) -> FlatEvaluation:
        """(θ, given) → q and ∂q/∂θ, one column after the other."""
        theta, given = self.symbols.theta, self.symbols.given
        formulas = [self.q, ca.densify(ca.jacobian(self.q, theta))]
        return flat_function(ca.Function("quantities", [theta, given], formulas))

    @cached_property
    def reach(self) -> NDArray[np.bool_]:
        """Return which entries of q depend on each entry of θ, through formulas too: (len(θ), len(q))."""
        return np.array(ca.DM(ca.jacobian_sparsity(self.q, self.symbols.theta)).full(), dtype=bool).T

    def reader(self, initializer: Initializer) -> ExplicitStart | None:
        """Return the explicit formulas of a consistent start, where there are any."""
        system = initializer.system
        known = self._readers.get(id(system))
        if known is None:
            moves = self.moves
            places = zip(moves.targets("start"), moves.places("start"), strict=True)
            demands = {**self.symbols.demands, **{n: self.symbols.theta[k] for n, k in places}}
            free = start_is_explicit(initializer, frozenset(demands))
            known = system, ExplicitStart(initializer, self.symbols, demands) if free else None
            if len(self._readers) >= KEPT_READERS:
                self._readers = {}
            self._readers[id(system)] = known
        return known[1]


def encoding_of(
    model: FlatModel, moves: EstimatedQuantities, constants: tuple[str, ...], demands: tuple[str, ...]
) -> Encoding:
    """Return the encoding of a model, made once for each model."""
    return model.cached_value((moves, constants, "and", demands), lambda: Encoding(model, moves, constants, demands))
