"""Measurement noise of the outputs: a known standard deviation, a formula, or unknown.

A formula may contain parameters, inputs, time and variables; it is evaluated along the predicted trajectory. Where it
contains variables or estimated parameters it follows the estimates, by one rule for both (``problem.py``). Unknown
noise (``noise=None``) is equal for all samples of an output and estimated from its residuals.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import casadi as ca
import numpy as np

from grisaille.bound_experiment.unknown import Unknown
from grisaille.errors import EstimationError
from grisaille.estimation.measurements.sample_formulas import SampleFormula, parameters_in
from grisaille.model.flat import FlatModel
from grisaille.structure.reduction import Structure
from grisaille.structure.starts.declared_start_values import declared_starts


@dataclass(frozen=True)
class NoiseLevel:
    """The standard deviation of one output.

    formula : None where it is unknown
    """

    output: str
    formula: SampleFormula | None = None

    @property
    def known(self) -> bool:
        """Return whether it is declared."""
        return self.formula is not None

    @property
    def needs(self) -> tuple[str, ...]:
        """Observed names in the formula."""
        return () if self.formula is None else self.formula.needs

    @property
    def parameters(self) -> tuple[str, ...]:
        """Parameters in the formula, through formulas of other parameters too."""
        return () if self.formula is None else self.formula.parameters

    def at(self, p: np.ndarray, observed: np.ndarray, t: np.ndarray) -> np.ndarray:
        """Return one value per sample; ``observed`` is (samples, needs)."""
        if self.formula is None:
            return np.full(len(t), np.nan)
        sigma = self.formula.values(p, observed, t)
        if not (np.isfinite(sigma).all() and (sigma > 0).all()):
            k = int(np.flatnonzero(~((sigma > 0) & np.isfinite(sigma)))[0])
            raise EstimationError(
                f"The noise of output '{self.output}' is {sigma[k]:g} at t = {t[k]:g}; it must be positive."
            )
        return sigma

    def slopes(self, p: np.ndarray, observed: np.ndarray, t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the derivatives of σ by parameters, (samples, parameters), and by what it needs, (samples, needs)."""
        assert self.formula is not None
        return self.formula.slopes(p, observed, t)


def noise_levels(model: FlatModel, outputs: Sequence[str]) -> dict[str, NoiseLevel]:
    """Return the noise of each measured output."""
    return {name: model.cached_value(("noise", name), partial(_level, model, name)) for name in outputs}


def moving_levels(levels: Mapping[str, NoiseLevel], unknowns: Sequence[Unknown]) -> set[str]:
    """Return outputs whose noise is a formula of what is predicted or estimated, so that it follows the estimates."""
    estimated = {u.target for u in unknowns if u.kind == "parameter"}
    return {n for n, level in levels.items() if level.known and (level.needs or estimated & set(level.parameters))}


def refuse_noise_alone(levels: Mapping[str, NoiseLevel], unknowns: Sequence[Unknown], structure: Structure) -> None:
    """Refuse unknowns that appear in a formula of noise and nowhere else.

    Least squares renews the formulas until they stay and cannot estimate what moves no prediction.
    """
    for name, output in noise_alone(levels, [u.target for u in unknowns if u.kind == "parameter"], structure):
        raise EstimationError(
            f"'{name}' stands in the noise of output '{output}' and in nothing that is predicted, so least squares "
            f"cannot estimate it. Leave the noise open (noise=None), which estimates one level for all samples and "
            f"reports it as noise({output}), fix '{name}', or use a likelihood, which contains the noise: "
            f"gr.KalmanML(), or without disturbances gr.OutputError() without loss, shooting and errors."
        )


def noise_alone(
    levels: Mapping[str, NoiseLevel], parameters: Sequence[str], structure: Structure
) -> list[tuple[str, str]]:
    """Return those of some parameters that appear in the noise of an output, with it, and in nothing predicted."""
    inside = [(p, next((n for n, level in levels.items() if p in level.parameters), "")) for p in parameters]
    return [(p, output) for p, output in inside if output and not _is_felt(structure, p)]


def _is_felt(structure: Structure, name: str) -> bool:
    """Return whether equations, starts or outputs contain a parameter, through formulas of other parameters too."""
    flat, system = structure.model, structure.system
    alike = {n for n, p in flat.parameters.items() if p.value is not None and name in parameters_in(flat, p.value)}
    places = [k for k, n in enumerate(flat.parameters) if n == name or n in alike]
    starts = declared_starts(flat, structure.equations.parameters).formulas
    formulas = (system.rhs, system.residual, system.constraints, system.switches, system.observed, starts)
    return any(ca.depends_on(ca.vertcat(*map(ca.vec, formulas)), system.p[k]) for k in places)


def _level(model: FlatModel, output: str) -> NoiseLevel:
    formula = model.outputs[output].noise
    return NoiseLevel(output, None if formula is None else SampleFormula.of(model, formula))
