"""Quantities that a user names, as formulas of filtered states: variables, outputs, disturbances, expressions of them.

A quantity h(t, X, u, q) has the mean h(X̂) and the variance H P Hᵀ, H = dh/dX at X̂, algebraic unknowns solved for and
differentiated along: exact where h is linear. White noise has no value at an instant, so what contains it is refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import casadi as ca
import numpy as np

from grisaille.disturbance.stochastic_model import StochasticModel
from grisaille.errors import EstimationError, ModelError
from grisaille.filtering.algebraic_model import AlgebraicModel
from grisaille.model.declarations import Declaration
from grisaille.model.expression import Expression, Name, Reference, as_expression
from grisaille.model.lowering.lowering import lower
from grisaille.model.names import suggestion
from grisaille.model.rewriting import Rewriter
from grisaille.simulation.dataset import described
from grisaille.structure.reduction import Structure

if TYPE_CHECKING:
    from collections.abc import Sequence

    from grisaille.estimation.abilities.states import Wanted

STATISTICS = ("mean", "std", "lower", "upper")
SUM_ROUNDING = 1e-9
"""Of the terms of a sum: what is left of it by rounding alone."""


@dataclass(frozen=True, eq=False)
class UncertainUnknowns:
    """The derivatives of X by p unknowns, ``along`` (T, n, p), and of q, ``dq`` (p, len(q)), with their covariance."""

    along: np.ndarray
    dq: np.ndarray
    covariance: np.ndarray


@dataclass(frozen=True, eq=False)
class ObservedFunctions:
    """What names need of a model that is not a ``StochasticModel``."""

    structure: Structure
    t: ca.SX
    q: ca.SX
    quantities: tuple[str, ...]
    outputs: tuple[str, ...]
    observed: ca.SX
    observed_names: tuple[str, ...]
    infinite: tuple[str, ...]


class StateMoments(NamedTuple):
    """Mean and covariance of the states at each time.

    left : (times, n, …) directions of the states that nothing is known about: what moves with them has no mean and
        an infinite standard deviation
    """

    x: np.ndarray
    P: np.ndarray
    left: np.ndarray | None = None


class Quantities:
    """Formulas by label."""

    def __init__(self, model: StochasticModel | ObservedFunctions, wanted: Any = None) -> None:
        self.model = model
        self.rows = {label: self._formula(what) for label, what in _labelled(model, wanted).items()}

    def statistics(
        self, t: np.ndarray, states: StateMoments, z: np.ndarray, u: np.ndarray, q: np.ndarray, width: float,
        noisy: bool = False, unknowns: UncertainUnknowns | None = None,
    ) -> np.ndarray:  # fmt: skip
        """Return (4, times, quantities): mean, standard deviation and a band of ±width of them.

        noisy : outputs as they are measured, with the variance of their noise
        unknowns : whose uncertainty is to be in the bands; P is then that for given unknowns
        """
        x, P, left = states
        value, H, R, by_q = self._evaluated(t, x, z, u, q)
        variance = np.einsum("tij,tjk,tik->ti", H, P, H)
        if noisy:
            variance = variance + R
        if unknowns is not None:
            moved = H @ unknowns.along + by_q @ unknowns.dq.T
            variance = variance + np.einsum("tij,jk,tik->ti", moved, unknowns.covariance, moved)
        std = np.sqrt(np.clip(variance, 0.0, None))
        if left is not None and left.shape[-1]:
            unknown = (np.abs(H @ left) > SUM_ROUNDING * (np.abs(H) @ np.abs(left))).any(axis=-1)
            free = np.where(unknown, np.inf, 0.0)
            return np.stack(
                [np.where(unknown, np.nan, value), std + free, value - width * std - free, value + width * std + free]
            )
        return np.stack([value, std, value - width * std, value + width * std])

    def _evaluated(
        self, t: np.ndarray, x: np.ndarray, z: np.ndarray, u: np.ndarray, q: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        m, N, k = self.model, len(t), len(self.rows)
        assert isinstance(m, StochasticModel)
        closed = AlgebraicModel(m)
        rows = closed.formula(ca.densify(ca.vertcat(*self.rows.values())))
        noise = ca.vertcat(*(self._noise(label) for label in self.rows))
        slopes = [ca.densify(ca.jacobian(rows, by)) for by in (m.X, m.q)]
        function = ca.Function("seen", closed.plain_symbols, [rows, ca.densify(closed.formula(noise)), *slopes])
        value, R, *slope = function(t[None, :], x.T, z.T, u.T, np.repeat(q[:, None], N, axis=1))
        mean = np.array(value.full()).reshape(k, N).T
        H, by_q = (np.array(s.full()).reshape(k, N, -1).transpose(1, 0, 2) for s in slope)
        return mean, H, np.array(R.full()).reshape(k, N).T, by_q

    def _noise(self, label: str) -> ca.SX:
        assert isinstance(self.model, StochasticModel)
        outputs = self.model.outputs
        return self.model.variance[outputs.index(label), outputs.index(label)] if label in outputs else ca.SX(0)

    def _formula(self, what: Expression | str) -> ca.SX:
        m = self.model
        if isinstance(what, str):
            return self._leaf(what)
        try:
            return lower([Rewriter(_full_name)(as_expression(what))], self._leaf)[0]
        except ModelError as error:
            raise EstimationError(
                f"{what} cannot be estimated from states of {m.structure.model.name}: {error}"
            ) from None

    def _leaf(self, name: str) -> ca.SX:
        m = self.model
        if name == "time":
            return m.t
        if name in m.infinite:
            raise EstimationError(
                f"'{name}' contains white noise, so its variance is infinite and no band holds it; pass it through a "
                f"filter in the model, or give its disturbance a spectrum such as gr.spectra.lowpass(bandwidth=…)."
            )
        if name in m.observed_names:
            return m.observed[m.observed_names.index(name)]
        if name in m.quantities:
            return m.q[m.quantities.index(name)]
        hint = suggestion(name, m.observed_names)
        raise EstimationError(f"{m.structure.model.name} has no quantity '{name}'. {hint}")


def _full_name(node: Expression) -> Expression | None:
    """Return members of an instance, or of the class itself, by their path."""
    if isinstance(node, Reference):
        return Name(node.path)
    return Name(node.label) if isinstance(node, Declaration) and node.label else None


def _labelled(
    model: StochasticModel | ObservedFunctions, wanted: Mapping[str, Expression] | Sequence[str] | None
) -> dict[str, Expression | str]:
    if wanted is None:
        return {n: n for n in estimated_names(model.structure) if n not in model.infinite}
    if not isinstance(wanted, str) and hasattr(wanted, "__len__") and not len(wanted):
        raise EstimationError("names= is empty; leave it out for every variable and output of finite variance.")
    if isinstance(wanted, Mapping):
        return {str(label): what for label, what in wanted.items()}
    return {str(getattr(what, "path", what)): getattr(what, "path", what) for what in _listed(wanted)}


def _listed(wanted: Any) -> list[Any]:
    return [wanted] if isinstance(wanted, str) or hasattr(wanted, "path") else list(wanted)


def estimated_names(structure: Structure) -> list[str]:
    """Return every name whose course is estimated: not inputs, which are known, nor formulas of parameters alone."""
    system, constant = structure.system, {s.element_hash() for s in ca.symvar(structure.system.p)}
    rows = zip(system.observed_names, ca.vertsplit(system.observed), strict=True)
    moving = (n for n, row in rows if any(s.element_hash() not in constant for s in ca.symvar(row)))
    return [n for n in moving if n not in structure.model.inputs]


def left_out(structure: Structure, wanted: Wanted, labels: Iterable[str]) -> dict[str, str]:
    """Return an attribute that lists names without values, and why; empty where nothing is missing."""
    missing = [] if wanted is not None else [n for n in estimated_names(structure) if n not in set(labels)]
    return {"left_out": f"{', '.join(missing)}: white noise has no value at an instant"} if missing else {}


def unit_and_description(structure: Structure, wanted: Wanted, label: str) -> dict[str, str]:
    """Return unit and description of the quantity of a label; an expression has none, unless it is a member."""
    what = wanted[label] if isinstance(wanted, Mapping) else label
    named = _full_name(what) if isinstance(what, Expression) else None
    return described(structure, what if isinstance(what, str) else named.leaf_text() if named is not None else "")
