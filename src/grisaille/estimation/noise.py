"""Measurement noise of the outputs: a known standard deviation, a formula, or unknown.

A formula may contain parameters, inputs, time and variables; it is evaluated along the predicted trajectory. Where it
contains variables or estimated parameters it follows the estimates, by one rule for both (``problem.py``). Unknown
noise (``noise=None``) is equal for all samples of an output and estimated from its residuals.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial

import casadi as ca
import numpy as np

from grisaille.errors import EstimationError
from grisaille.model.expression import Expression, Name, postorder
from grisaille.model.flat import FlatModel
from grisaille.model.lowering.lowering import lower
from grisaille.structure.reduction import Structure
from grisaille.structure.starts.declared import declared_starts
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

    def slopes(self, p: np.ndarray, observed: np.ndarray, t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the derivatives of σ by parameters, (samples, parameters), and by what it needs, (samples, needs)."""
        n = len(t)
        found = self._slopes(np.repeat(p[:, None], n, axis=1), observed.T.reshape(-1, n), t[None, :])
        by_all = np.array(found.full()).reshape(len(p) + len(self.needs), n).T
        return by_all[:, : len(p)], by_all[:, len(p) :]

    @cached_property
    def _slopes(self) -> ca.Function:
        assert self.function is not None
        p, y, t = (ca.SX.sym(n, *self.function.size_in(k)) for k, n in enumerate("pyt"))
        moved = ca.vertcat(p, y)
        slopes = ca.jacobian(self.function(p, y, t), moved)
        return ca.Function("sigma_slopes", [p, y, t], [ca.densify(slopes.T)])


def noise_levels(model: FlatModel, outputs: Sequence[str]) -> dict[str, NoiseLevel]:
    """The noise of each measured output."""
    return {name: model.kept(("noise", name), partial(_level, model, name)) for name in outputs}


def moving_levels(levels: Mapping[str, NoiseLevel], unknowns: Sequence[Unknown]) -> set[str]:
    """Outputs whose noise is a formula of what is predicted or estimated, so that it follows the estimates."""
    estimated = {u.target for u in unknowns if u.kind == "parameter"}
    return {n for n, level in levels.items() if level.known and (level.needs or estimated & set(level.parameters))}


def refuse_noise_alone(levels: Mapping[str, NoiseLevel], unknowns: Sequence[Unknown], structure: Structure) -> None:
    """Refuse unknowns that stand in a formula of noise and nowhere else.

    Least squares renews the formulas until they stay and cannot estimate what moves no prediction.
    """
    for unknown in unknowns:
        inside = [n for n, level in levels.items() if unknown.target in level.parameters]
        if unknown.kind == "parameter" and inside and not _is_felt(structure, unknown.target):
            raise EstimationError(
                f"'{unknown.target}' stands in the noise of output '{inside[0]}' and in nothing that is predicted, so "
                f"least squares cannot estimate it. Leave the noise open (noise=None), which estimates one level for "
                f"all samples and reports it as noise({inside[0]}), fix '{unknown.target}', or use "
                f"method=gr.KalmanML(), whose likelihood contains the noise."
            )


def _is_felt(structure: Structure, name: str) -> bool:
    """Whether equations, starts or outputs contain a parameter, through formulas of other parameters too."""
    flat, system = structure.model, structure.system
    alike = {n for n, p in flat.parameters.items() if p.value is not None and name in parameters_in(flat, p.value)}
    places = [k for k, n in enumerate(flat.parameters) if n == name or n in alike]
    starts = declared_starts(flat, structure.equations.parameters).formulas
    formulas = (system.rhs, system.residual, system.constraints, system.switches, system.observed, starts)
    return any(ca.depends_on(ca.vertcat(*map(ca.vec, formulas)), system.p[k]) for k in places)


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
