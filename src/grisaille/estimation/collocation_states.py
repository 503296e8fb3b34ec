"""``fit.states()`` of collocation fits: the estimated trajectories at the sample times, with bands.

The covariance of the states at an instant comes from the curvature of the whole criterion, unknowns included,

    P = φ (A⁻¹ + A⁻¹B S⁻¹ BᵀA⁻¹) φᵀ,

of which only entries inside the band of A⁻¹ are needed. Paths of direct collocation bring theirs along.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from grisaille.collocation import banded
from grisaille.collocation.descent import Quadratic
from grisaille.errors import EstimationError
from grisaille.estimation.collocation_problem import CollocationEvaluation, CollocationProblem
from grisaille.estimation.fit import Fit
from grisaille.estimation.fitting import build_problem
from grisaille.estimation.quantities import STATISTICS, Quantities

if TYPE_CHECKING:
    import xarray as xr


def trajectory_states(fit: Fit, experiment: Any, names: Any, level: float) -> xr.Dataset:
    """Smoothed values of the quantities of one experiment; arguments and dimensions as in ``fit.states``."""
    import xarray as xr
    from scipy.stats import norm

    if not 0 < level < 1:
        raise EstimationError(f"level is {level!r}; give a number between 0 and 1, such as 0.95.")
    width = float(norm.ppf(0.5 + level / 2))
    k = _place(fit, experiment)
    case = fit.estimate.cases[k]
    solution = getattr(fit.estimate.evaluation, "solution", None) or _direct_solution(fit)
    if solution is not None:
        chosen, block = _path_statistics(solution.paths[k], len(case.grid), names, width)
    else:
        quadratic = _solved(fit)
        program, given = quadratic.task.programs[k], quadratic.given[k]
        quantities = Quantities(program.record.stochastic, names)
        X, P = moments(quadratic, k, case.grid)
        table = program.record.signals(given.q[: program.record.structure.system.np])
        u = np.array([table.at(float(t)) for t in case.grid]).reshape(len(case.grid), -1)
        nothing = np.zeros((len(case.grid), 0))
        chosen, block = list(quantities.rows), quantities.statistics(case.grid, X, P, nothing, u, given.q, width)
    coordinates = {"given": ["smoothed"], "statistic": list(STATISTICS), "time": case.grid}
    data = {name: (("given", "statistic", "time"), block[None, :, :, i]) for i, name in enumerate(chosen)}
    return xr.Dataset(data, coordinates, {"experiment": case.name, "level": level})


def _place(fit: Fit, experiment: Any) -> int:
    names = [c.name for c in fit.estimate.cases]
    wanted = names[0] if experiment is None else getattr(experiment, "name", experiment)
    if wanted not in names:
        raise EstimationError(f"No experiment of this fit is called '{wanted}'; there are {', '.join(names)}.")
    return names.index(wanted)


def moments(quadratic: Quadratic, k: int, times: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Means (T, n) and covariances (T, n, n) of the states of experiment k."""
    program, part, given = quadratic.task.programs[k], quadratic.parts[k], quadratic.given[k]
    factors = quadratic.factors()
    S, _, carried, _ = quadratic.reduced(factors)
    held = quadratic.held[k]
    band = banded.without(factors[k].inverse_band, held)
    band[0, held] = 0.0
    local = program.mesh.at(times)
    P = local.phi @ banded.gathered(band, local.index) @ np.swapaxes(local.phi, 1, 2)
    free = quadratic.free(np.ones(len(S), dtype=bool))
    moved, mine = -carried[k], np.array(quadratic.task.moved[k], dtype=int)
    known = np.isfinite(given.start)
    slopes = quadratic.task.slopes(quadratic.theta)[mine]
    moved[np.ix_(program.mesh.first[known], mine)] += given.dstart[:, known].T * slopes
    along = (local.phi @ moved[local.index])[:, :, free]
    inverse = np.linalg.pinv(S[np.ix_(free, free)], hermitian=True)
    return local.values(part.beta), np.asarray(P + along @ inverse @ np.swapaxes(along, 1, 2))


def _solved(fit: Fit) -> Quadratic:
    """The trajectories of the fit, solved for again where a file did not keep them."""
    evaluation = fit.estimate.evaluation
    if isinstance(evaluation, CollocationEvaluation) and evaluation.quadratic is not None:
        return evaluation.quadratic
    problem = _posed(fit)
    assert isinstance(problem, CollocationProblem)
    found = problem.solved(fit.estimate.theta)
    if isinstance(found, str):
        raise EstimationError(f"The trajectories of the loaded fit could not be solved for again: {found}")
    return found


def _direct_solution(fit: Fit) -> Any:
    """Paths of a loaded fit by direct collocation; None for splines."""
    if isinstance(fit.estimate.evaluation, CollocationEvaluation):
        return None
    problem: Any = _posed(fit)
    if isinstance(problem, CollocationProblem):
        return None
    return problem.program.solve(fit.estimate.theta)


def _posed(fit: Fit) -> Any:
    guess = {u.name: float(v) for u, v in zip(fit.estimate.unknowns, fit.estimate.theta, strict=True)}
    return build_problem(fit.initial_model, fit.experiments, list(guess), fit.method, guess=guess)


def _path_statistics(
    path: Any, samples: int, names: Iterable[str] | None, width: float
) -> tuple[list[str], np.ndarray]:
    at = np.empty(samples, dtype=int)
    there = path.sample_at >= 0
    at[path.sample_at[there]] = np.flatnonzero(there)
    chosen = [*path.observed_names] if names is None else [names] if isinstance(names, str) else list(names)
    for name in chosen:
        if name not in path.observed_names and name not in path.state_names:
            raise EstimationError(f"The path has no quantity '{name}'; it has {', '.join(path.observed_names)}.")
    mean = np.column_stack([path[name][at] for name in chosen])
    std = np.full_like(mean, np.nan)
    for i, name in enumerate(chosen):
        std[:, i] = path.deviation(name)[at]
    return chosen, np.stack([mean, std, mean - width * std, mean + width * std])
