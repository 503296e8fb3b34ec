"""Data that a model explains exactly: levels of noise go to zero with the innovations, and have no most likely value.

Simulations without noise, and sensors that hang, are such data. The smaller the levels, the shorter the steps that a
nonlinear filter needs to follow them: a search for them would not end.
"""

from __future__ import annotations

import numpy as np

from grisaille.estimation.likelihood import LikelihoodEvaluation, LikelihoodProblem

EXACT = 1e-7
"""Root mean square of innovations, relative to the largest measured value, from which on nothing is left to explain."""
EXPLAINED = "explained_exactly"
"""What an estimate keeps of it."""


def explained_exactly(problem: LikelihoodProblem, evaluation: LikelihoodEvaluation) -> str:
    """What is said where all innovations of an output vanish while levels are estimated; empty where none do."""
    levels = [u for u in problem.unknowns if u.kind in ("scale", "noise")]
    if not levels or not evaluation.completed:
        return ""
    values = np.concatenate([s.values for c in problem.cases for s in c.samples])
    for k, name in enumerate(problem.outputs):
        mine = problem.output_of == k
        size = float(np.abs(values[mine]).max(initial=0.0))
        left = float(np.sqrt(np.mean(evaluation.errors[mine] ** 2))) if mine.any() else np.inf
        if left <= EXACT * size:
            which = ", ".join(u.name for u in levels if u.kind == "scale" or u.target == name)
            if which:
                return (
                    f"the data of {name} are explained exactly, to {left / size:.1g} of their size, so that {which} "
                    f"cannot be estimated: their likelihood grows without end towards zero. Declare them "
                    f"(gr.Output(…, noise=…), scale=…), or use gr.OutputError()"
                )
    return ""
