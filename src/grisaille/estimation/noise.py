"""Measurement noise of the outputs: a known standard deviation, a formula, or unknown.

A formula may contain parameters, inputs, time and variables; it is evaluated along the predicted trajectory. Unknown
noise (``noise=None``) is equal for all samples of an output and estimated from its residuals.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import casadi as ca
import numpy as np

from grisaille.errors import EstimationError
from grisaille.model.expression import Expression, Name, postorder
from grisaille.model.flat import FlatModel
from grisaille.model.lowering.lowering import lower
from grisaille.trial.unknown import Unknown


@dataclass(frozen=True)
class NoiseLevel:
    """The standard deviation of one output."""

    output: str
    known: bool
    needs: tuple[str, ...]
    """Observed names in the formula."""
    function: ca.Function | None
    """Of (p, observed values, t)."""
    parameters: tuple[str, ...] = ()
    """In the formula, through formulas of other parameters too."""

    def at(self, p: np.ndarray, observed: np.ndarray, t: np.ndarray) -> np.ndarray:
        """One value per sample; ``observed`` is (samples, needs)."""
        if self.function is None:
            return np.full(len(t), np.nan)
        n = len(t)
        values = self.function(np.repeat(p[:, None], n, axis=1), observed.T.reshape(-1, n), t[None, :])
        sigma = np.array(values.full()).ravel()
        if not (np.isfinite(sigma).all() and (sigma > 0).all()):
            k = int(np.flatnonzero(~((sigma > 0) & np.isfinite(sigma)))[0])
            raise EstimationError(
                f"The noise of output '{self.output}' is {sigma[k]:g} at t = {t[k]:g}; it must be positive."
            )
        return sigma


def noise_levels(model: FlatModel, outputs: Sequence[str]) -> dict[str, NoiseLevel]:
    """The noise of each measured output."""
    return {name: model.kept(("noise", name), partial(_level, model, name)) for name in outputs}


def refuse_estimated_noise(levels: Mapping[str, NoiseLevel], unknowns: Sequence[Unknown]) -> None:
    """Least squares cannot estimate what stands in a noise formula: it would only make the noise large."""
    estimated = {u.target for u in unknowns if u.kind == "parameter"}
    for output, level in levels.items():
        both = [n for n in level.parameters if n in estimated]
        if both:
            raise EstimationError(
                f"The noise of output '{output}' contains '{both[0]}', which is estimated: least squares would make "
                f"the noise large instead of the residuals small. Fix '{both[0]}', or leave the noise open (noise=None)"
                f", which estimates one level for all samples and reports it as noise({output})."
            )


def parameters_in(model: FlatModel, formula: Expression) -> tuple[str, ...]:
    """Parameters that a formula contains, through formulas of other parameters too."""
    found: dict[str, None] = {}
    waiting = [formula]
    while waiting:
        names = [node.path for node in postorder(waiting) if isinstance(node, Name) and node.path in model.parameters]
        fresh = [n for n in dict.fromkeys(names) if n not in found]
        found.update(dict.fromkeys(fresh))
        waiting = [v for n in fresh if (v := model.parameters[n].value) is not None]
    return tuple(found)


def _level(model: FlatModel, output: str) -> NoiseLevel:
    formula = model.outputs[output].noise
    if formula is None:
        return NoiseLevel(output, False, (), None)
    names = dict.fromkeys(node.path for node in postorder([formula]) if isinstance(node, Name))
    needs = tuple(n for n in names if n not in model.parameters and n != "time")
    p = {n: ca.SX.sym(f"p{k}") for k, n in enumerate(model.parameters)}
    y = {n: ca.SX.sym(f"y{k}") for k, n in enumerate(needs)}
    t = ca.SX.sym("t")
    leaves: Mapping[str, ca.SX] = {**p, **y, "time": t}
    sigma = lower([formula], leaves.__getitem__)[0]
    columns = [ca.vertcat(*p.values()) if p else ca.SX(0, 1), ca.vertcat(*y.values()) if y else ca.SX(0, 1), t]
    return NoiseLevel(output, True, needs, ca.Function("sigma", columns, [sigma]), parameters_in(model, formula))
