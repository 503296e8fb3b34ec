"""Formulas that have a value for each sample: standard deviations of noise, and the numbers of laws.

A formula may contain parameters, inputs, time and variables; it is evaluated along the predicted trajectory.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import casadi as ca
import numpy as np

from grisaille.model.expression import Expression, Name, postorder
from grisaille.model.flat import FlatModel
from grisaille.model.lowering.lowering import lower


@dataclass(frozen=True, eq=False)
class SampleFormula:
    """A formula with a value for each sample.

    function : of (p, observed values, t)
    needs : observed names in the formula
    parameters : in the formula, through formulas of other parameters too
    """

    function: ca.Function
    needs: tuple[str, ...]
    parameters: tuple[str, ...]

    @classmethod
    def of(cls, model: FlatModel, formula: Expression) -> SampleFormula:
        """Compile a formula of names of the model."""
        names = dict.fromkeys(node.path for node in postorder([formula]) if isinstance(node, Name))
        needs = tuple(n for n in names if n not in model.parameters and n != "time")
        p = {n: ca.SX.sym(f"p{k}") for k, n in enumerate(model.parameters)}
        y = {n: ca.SX.sym(f"y{k}") for k, n in enumerate(needs)}
        t = ca.SX.sym("t")
        leaves: Mapping[str, ca.SX] = {**p, **y, "time": t}
        value = lower([formula], leaves.__getitem__)[0]
        columns = [ca.vertcat(*p.values()) if p else ca.SX(0, 1), ca.vertcat(*y.values()) if y else ca.SX(0, 1), t]
        return cls(ca.Function("formula", columns, [value]), needs, parameters_in(model, formula))

    def values(self, p: np.ndarray, observed: np.ndarray, t: np.ndarray) -> np.ndarray:
        """Return one value for each sample; ``observed`` is (samples, needs), ``p`` (parameters,) or (…, samples)."""
        n = len(t)
        values = self.function(
            np.repeat(p[:, None], n, axis=1) if p.ndim == 1 else p, observed.T.reshape(-1, n), t[None, :]
        )
        return np.array(values.full()).ravel()

    def slopes(self, p: np.ndarray, observed: np.ndarray, t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return derivatives by parameters, (samples, parameters), and by what it needs, (samples, needs)."""
        n = len(t)
        found = self._slopes(np.repeat(p[:, None], n, axis=1), observed.T.reshape(-1, n), t[None, :])
        by_all = np.array(found.full()).reshape(len(p) + len(self.needs), n).T
        return by_all[:, : len(p)], by_all[:, len(p) :]

    def depends_on(self, names: Sequence[str]) -> bool:
        """Return whether values depend on predictions or on parameters of these names."""
        return bool(self.needs) or not set(names).isdisjoint(self.parameters)

    @cached_property
    def follows_time(self) -> bool:
        """Return whether the formula contains time."""
        p, y, t = (ca.SX.sym(n, *self.function.size_in(k)) for k, n in enumerate("pyt"))
        return bool(ca.depends_on(self.function(p, y, t), t))

    @property
    def is_constant(self) -> bool:
        """Return whether all samples have the same value."""
        return not self.needs and not self.follows_time

    @cached_property
    def _slopes(self) -> ca.Function:
        p, y, t = (ca.SX.sym(n, *self.function.size_in(k)) for k, n in enumerate("pyt"))
        slopes = ca.jacobian(self.function(p, y, t), ca.vertcat(p, y))
        return ca.Function("formula_slopes", [p, y, t], [ca.densify(slopes.T)])


def parameters_in(model: FlatModel, formula: Expression) -> tuple[str, ...]:
    """Return the parameters that a formula contains, through formulas of other parameters too."""
    found: dict[str, None] = {}
    waiting = [formula]
    while waiting:
        names = [node.path for node in postorder(waiting) if isinstance(node, Name) and node.path in model.parameters]
        fresh = [n for n in dict.fromkeys(names) if n not in found]
        found.update(dict.fromkeys(fresh))
        waiting = [v for n in fresh if (v := model.parameters[n].value) is not None]
    return tuple(found)
