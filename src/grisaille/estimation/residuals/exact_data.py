"""Data that a model explains exactly: levels of noise go to zero with the residuals, and have no most likely value.

Simulations without noise, and sensors that hang, are such data. The smaller the levels, the shorter the steps that a
nonlinear filter needs to follow them, and the worse the problem that collocation solves: a search for them would not
end. It is ended where residuals are far below the digits of the data while the criterion f still falls with log σ:

    rms(e) ≤ c max|y|,     ∂f/∂log σ > STEEP

A level whose maximum is at zero is no such level: there f does not depend on σ any more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from grisaille.estimation.likelihood import LikelihoodEvaluation
from grisaille.estimation.problem import EstimationProblem
from grisaille.model.expression import Constant, Expression, Name, postorder

EXACT_RESIDUAL = 1e-7
"""Root mean square of innovations, relative to the largest measured value, from which on nothing is left to explain."""
EXACT_FOLLOWED_RESIDUAL = 1e-9
"""The same of trajectories that follow the data: what they leave is smaller than the noise."""
MIN_ENDLESS_SLOPE = 0.25
"""Of −log L by the logarithm of a level: one sample in four that is met exactly."""


@dataclass(frozen=True)
class ExactLevels:
    """What makes the noise of one output large or small, by name of the unknowns."""

    noise: frozenset[str]
    """Its own level: ``noise(y)``, or parameters in its formula that stand in no equation."""
    scales: frozenset[str]
    is_zero: bool
    """Whether its noise is declared to be zero."""

    @property
    def names(self) -> frozenset[str]:
        return self.noise | self.scales

    @property
    def may_vanish(self) -> bool:
        """Return whether no declared noise keeps the likelihood finite."""
        return bool(self.noise) or (self.is_zero and bool(self.scales))


def explained_exactly(problem: EstimationProblem, evaluation: LikelihoodEvaluation) -> str:
    """Say that all residuals of an output vanish while its levels are estimated; empty where none do."""
    return _exact_note(problem, evaluation, EXACT_RESIDUAL, None)


def find_unbounded_likelihood(
    problem: EstimationProblem, evaluation: LikelihoodEvaluation, *, smooths: bool = False
) -> str:
    """Say that residuals vanish and that the criterion still falls as levels become smaller; empty where not.

    smooths : whether predictions follow the data, which leaves less of them
    """
    return _exact_note(
        problem, evaluation, EXACT_FOLLOWED_RESIDUAL if smooths else EXACT_RESIDUAL, _falling_with(problem, evaluation)
    )


def _exact_note(
    problem: EstimationProblem, evaluation: LikelihoodEvaluation, limit: float, falling: set[str] | None
) -> str:
    """falling : levels of which one must be among those of the output; None where small residuals are enough."""
    if not evaluation.completed or falling == set():
        return ""
    for name, left in _left(problem, evaluation).items():
        if left > limit:
            continue
        levels = _levels(problem, name)
        if levels.may_vanish and (falling is None or falling & levels.names):
            which = ", ".join(u.name for u in problem.unknowns if u.name in levels.names)
            return (
                f"the data of {name} are explained exactly, to {left:.1g} of their size, so that {which} "
                f"cannot be estimated: their likelihood grows without end towards zero. Declare them "
                f"(gr.Output(…, noise=…), scale=…), or use gr.OutputError()"
            )
    return ""


def _left(problem: EstimationProblem, evaluation: LikelihoodEvaluation) -> dict[str, float]:
    """Return root mean square of the residuals of each output, relative to its largest measured value."""
    values = np.concatenate([s.values for c in problem.cases for s in c.samples])
    found = {}
    for k, name in enumerate(problem.outputs):
        mine = problem.output_of == k
        size = float(np.abs(values[mine]).max(initial=0.0))
        if size > 0:
            found[name] = float(np.sqrt(np.mean(evaluation.errors[mine] ** 2))) / size
    return found


def _levels(problem: EstimationProblem, output: str) -> ExactLevels:
    flat = problem.cases[0].trial.flat
    formula = flat.outputs[output].noise
    parameters = {u.target: u.name for u in problem.unknowns if u.kind == "parameter"}
    inside = _names([formula] if formula is not None else [])
    spread = _names([d.scale for d in flat.disturbances.values() if d.scale is not None])
    elsewhere = _names([side for e in flat.equations for side in (e.left, e.right)])
    elsewhere |= _names([o.definition for o in flat.outputs.values()])
    own = {u.name for u in problem.unknowns if u.kind == "noise" and u.target == output}
    scales = {u.name for u in problem.unknowns if u.kind == "scale"}
    return ExactLevels(
        frozenset(own | {parameters[n] for n in (inside - elsewhere) & set(parameters)}),
        frozenset(scales | {parameters[n] for n in (spread - elsewhere) & set(parameters)}),
        isinstance(formula, Constant) and formula.value == 0,
    )


def _names(formulas: Sequence[Expression]) -> set[str]:
    return {node.path for node in postorder(formulas) if isinstance(node, Name)}


def _falling_with(problem: EstimationProblem, evaluation: LikelihoodEvaluation) -> set[str]:
    """Return unknowns that the criterion falls with as they become smaller, by their logarithm."""
    if len(evaluation.slope) != len(problem.unknowns):
        return set()
    by_logarithm = evaluation.slope * evaluation.theta
    return {u.name for u, slope in zip(problem.unknowns, by_logarithm, strict=True) if slope > MIN_ENDLESS_SLOPE}
