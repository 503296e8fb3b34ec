"""Variable projection: unknowns that enter the outputs linearly are solved for, not searched.

Where ŷ = b(η) + A(η) λ, the best λ for given η is a linear least-squares problem; the optimizer sees only η and the
projected residuals (I − A A⁺)(y − b). Which unknowns are linear is decided symbolically: they occur in no equation,
constraint or start, and the outputs are affine in them: no second derivatives, no relations of them. The Jacobian by η
is Kaufman's, (I − A A⁺) ∂r/∂η at the projected point.

Reference: G. Golub, V. Pereyra, Inverse Problems 19 (2003) R1.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import casadi as ca
import numpy as np

from grisaille.bound_experiment.unknown import Unknown
from grisaille.estimation.experiment_terms import ExperimentTerm
from grisaille.estimation.problem import EstimationProblem, Evaluation
from grisaille.optimization.search import Search
from grisaille.structure.reduction import Structure
from grisaille.structure.starts.declared_start_values import declared_starts
from grisaille.structure.switching_pieces import is_affine


def linear_unknowns(problem: EstimationProblem) -> np.ndarray:
    """Return True for unbounded unknowns without a prior that enter every measured output linearly, jointly."""
    linear = np.array([_may_be_linear(u) for u in problem.unknowns])
    for case in problem.cases if linear.any() else ():
        linear &= _linear_in(case, problem.unknowns, linear)
    return linear


def _may_be_linear(unknown: Unknown) -> bool:
    bounded = np.isfinite(unknown.lower) or np.isfinite(unknown.upper)
    return unknown.kind == "parameter" and not bounded and unknown.prior is None and not unknown.logarithmic


def _linear_in(case: ExperimentTerm, unknowns: tuple[Unknown, ...], candidates: np.ndarray) -> np.ndarray:
    structure = case.trial.structure
    system = structure.system
    formulas = case.trial.formulas
    names = list(formulas.names)
    tied = _tied_parameters(structure, [unknowns[k].target for k in np.flatnonzero(candidates)])
    elsewhere = ca.vertcat(
        system.rhs, system.residual, system.constraints, system.switches,
        declared_starts(structure.model, structure.equations.parameters).formulas,
    )  # fmt: skip
    outputs = ca.vertcat(*(system.observed[system.observed_names.index(s.output)] for s in case.samples))
    answer = candidates.copy()
    chosen = [k for k in np.flatnonzero(candidates) if unknowns[k].target not in tied]
    answer[[k for k in np.flatnonzero(candidates) if unknowns[k].target in tied]] = False
    kept: list[int] = []
    for k in map(int, chosen):
        symbol = system.p[names.index(unknowns[k].target)]
        targets = dict.fromkeys(unknowns[j].target for j in (*kept, k))  # one symbol, however many runs have their own
        joint = ca.vertcat(*(system.p[names.index(target)] for target in targets))
        is_linear = not ca.depends_on(elsewhere, symbol) and is_affine(outputs, joint)
        answer[k] = is_linear
        if is_linear:
            kept.append(k)
    return answer


def _tied_parameters(structure: Structure, names: list[str]) -> set[str]:
    """Return parameters that another parameter's formula or a noise level contains."""
    from grisaille.model.expression import Name, postorder

    formulas = [p.value for p in structure.model.parameters.values() if p.value is not None]
    formulas += [o.noise for o in structure.model.outputs.values() if o.noise is not None]
    inside = {node.path for node in postorder(formulas) if isinstance(node, Name)}
    return {n for n in names if n in inside}


@dataclass
class ProjectedSearch(Search[Evaluation]):
    """A search over the nonlinear unknowns only; the linear ones follow."""

    linear: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=bool))
    values: np.ndarray = field(default_factory=lambda: np.zeros(0))

    @property
    def start(self) -> np.ndarray:
        self.values = self.guess[self.linear] if not self.values.size else self.values
        return np.asarray(super().start[~self.linear])

    def where(self, evaluation: Evaluation) -> np.ndarray:
        return np.asarray(super().where(evaluation)[~self.linear])

    def belongs_to(self, evaluation: Evaluation, xi: np.ndarray) -> bool:
        return np.array_equal(evaluation.theta[~self.linear], self._whole(xi)[~self.linear])

    def _whole(self, xi: np.ndarray) -> np.ndarray:
        full = self.inner(self.guess)
        full[~self.linear] = xi
        return self.outer(full)

    def _at(self, xi: np.ndarray, sensitive: bool) -> Evaluation:
        theta = self._whole(xi)
        theta[self.linear] = self.values
        evaluation = self.evaluate(theta)
        if evaluation.completed:
            step = np.linalg.lstsq(evaluation.jacobian[:, self.linear], -evaluation.residuals, rcond=1e-13)[0]
            if np.isfinite(step).all() and step.any():
                theta = theta.copy()
                theta[self.linear] += step
                projected = self.evaluate(theta)
                if projected.completed:
                    evaluation, self.values = projected, theta[self.linear]
        return evaluation

    def jacobian(self, evaluation: Evaluation) -> np.ndarray:
        """Return (I − QQᵀ) ∂r/∂η, scaled to ξ."""
        q, _ = np.linalg.qr(evaluation.jacobian[:, self.linear])
        J = evaluation.jacobian[:, ~self.linear] * self.slopes(evaluation.theta)[~self.linear]
        return np.asarray(J - q @ (q.T @ J))

    def inner_bounds(self) -> tuple[np.ndarray, np.ndarray]:
        lower, upper = super().inner_bounds()
        return lower[~self.linear], upper[~self.linear]
