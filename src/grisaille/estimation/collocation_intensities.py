"""Scales of disturbances found from known measurement noise, one output each (``collocation.intensity``)."""

from __future__ import annotations

from functools import partial
from typing import Any

import casadi as ca
import numpy as np

from grisaille.collocation.intensity import HIGHEST, LOWEST, STRIDE, first_root, misfit_ratios
from grisaille.disturbance.stochastic_model import StochasticModel
from grisaille.errors import EstimationError
from grisaille.estimation.collocation_joint import Progress, settled
from grisaille.estimation.collocation_problem import CollocationProblem

SWEEPS = 12
"""Rounds over all scales."""
COARSE, FINE = 2e-2, 1e-3
"""Accuracy of the logarithm of a scale in the first round and in later ones."""
NEXT = 0.1
"""Step of the bracketing in later rounds."""

REACH = 2.1
"""How far from the guess, in the logarithm, the first round looks: a factor of eight."""


def find_intensities(
    method: Any, problem: CollocationProblem, progress: Progress | None
) -> tuple[np.ndarray, list[str]]:
    """Scales at which every paired output's misfit is what its noise says."""
    pairs = pair_outputs(problem)
    theta, notes = problem.guess.copy(), []
    sizes = {k: theta[k] for k in pairs}
    x = dict.fromkeys(pairs, 0.0)
    current = theta

    def ratio(k: int, value: float) -> float:
        nonlocal current
        trial = current.copy()
        trial[k] = sizes[k] * np.exp(value)
        found = settled(method, problem, trial, progress)
        current = found.quadratic.theta
        return float(np.log(misfit_ratios(found.quadratic, problem.outputs)[pairs[k]]))

    for sweep in range(SWEEPS):
        before = dict(x)
        for k in pairs:
            # an output's misfit may stay too large for as long as another scale is too small: do not climb at first
            first = sweep == 0 and len(pairs) > 1
            x[k], met = first_root(
                partial(ratio, k), x[k] if sweep else x[k] - REACH, FINE if sweep else COARSE,
                NEXT if sweep else STRIDE, x[k] + REACH if first else HIGHEST,
            )  # fmt: skip
            current = current.copy()
            current[k] = sizes[k] * np.exp(x[k])
            if not met and not first and x[k] > LOWEST:
                raise EstimationError(_no_root(problem, k, pairs[k]))
        if sweep and (len(pairs) == 1 or max(abs(x[k] - before[k]) for k in pairs) < 3 * FINE):
            break
    for k in pairs:
        if x[k] <= -9.9:
            notes.append(
                f"zero: {problem.unknowns[k].name} is below a ten-thousandth of its guess: the misfit of "
                f"{problem.outputs[pairs[k]]} leaves no room for a disturbance."
            )
    notes.append("the intervals of the other unknowns hold for the intensities found, as if they were known.")
    return current, notes


def pair_outputs(problem: CollocationProblem) -> dict[int, int]:
    """Scale → the output whose misfit decides it: one that sees the disturbed state most directly."""
    model = problem.programs[0].record.stochastic
    scales = [k for k, u in enumerate(problem.unknowns) if u.kind == "scale"]
    if len(scales) > len(problem.outputs):
        raise EstimationError(
            f"{len(scales)} intensities ({', '.join(problem.unknowns[k].name for k in scales)}) cannot be found from "
            f"the misfit of {len(problem.outputs)} outputs: give {len(scales) - len(problem.outputs)} of them (name "
            f"the others in estimate=), or use criterion='laplace'."
        )
    from scipy.optimize import linear_sum_assignment

    cost = np.array(
        [[_distance(model, problem.unknowns[k].target, o) for o in problem.outputs] for k in scales], dtype=float
    )
    rows, columns = linear_sum_assignment(cost)
    return {scales[i]: int(j) for i, j in zip(rows, columns, strict=True)}


def _distance(model: StochasticModel, disturbance: str, output: str) -> float:
    """How many integrations lie between a disturbance's noise and an output."""
    level = model.q[model.quantities.index(f"scale({disturbance})")]
    driven = {
        i
        for i in range(model.n)
        if ca.depends_on(ca.densify(ca.vertcat(ca.vec(model.noise[i, :]), model.drift[i])), level)
    }
    reach = np.array(ca.DM(ca.jacobian_sparsity(model.drift, model.X)).full()) != 0
    seen = set(ca.jacobian_sparsity(model.measured[model.outputs.index(output)], model.X).get_col())
    for steps in range(model.n + 1):
        if driven & seen:
            return float(steps)
        driven |= {i for i in range(model.n) if any(reach[i, j] for j in driven)}
    return 100.0


def _no_root(problem: CollocationProblem, k: int, output: int) -> str:
    name, o = problem.unknowns[k].name, problem.outputs[output]
    return (
        f"No intensity makes the misfit of '{o}' as small as its noise says, up to {name} = "
        f"{problem.unknowns[k].guess * np.exp(10):.3g}: the model cannot follow these data, or noise={o} is too small."
    )
