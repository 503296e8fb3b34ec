"""``fit.states()`` of collocation fits: the estimated trajectories at the sample times, with bands.

The covariance of the states at an instant comes from the curvature A of the criterion by the trajectories, and from
the covariance C of the estimates,

    P = φ (A⁻¹ + A⁻¹B C BᵀA⁻¹) φᵀ,

of A⁻¹ only entries inside the band; a quantity that contains unknowns itself moves with them, too. Between knots a
spline is stiffer than the path of a disturbed state, and its band too narrow, by up to an eighth: where knots are
placed automatically, instants without a measurement get knots of their own before a band is drawn there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import casadi as ca
import numpy as np

from grisaille.collocation import banded, descent
from grisaille.collocation.descent import Quadratic
from grisaille.collocation.direct.model import DirectModel
from grisaille.collocation.direct.summary import curvature_at, seen
from grisaille.collocation.knots import folded_at
from grisaille.errors import EstimationError
from grisaille.estimation.estimate import Estimate
from grisaille.estimation.fitted import Fitted
from grisaille.estimation.likelihood import LikelihoodEvaluation
from grisaille.estimation.quantities import STATISTICS, Observed, Quantities, Uncertain
from grisaille.estimators.collocation.again import Trajectories, of_new_experiment, on_mesh, solved_again
from grisaille.estimators.collocation.direct.problem import DirectEvaluation
from grisaille.estimators.collocation.problem import INNER, CollocationEvaluation, state_bounds
from grisaille.structure.reduction import Structure

if TYPE_CHECKING:
    import xarray as xr

Statistics = tuple[str, np.ndarray, list[str], np.ndarray]
"""Of one experiment: its name, the times, the quantities, and (4, times, quantities)."""


def trajectory_states(fit: Fitted, experiment: Any, names: Any, level: float) -> xr.Dataset:
    """Smoothed values of the quantities of one experiment; arguments and dimensions as in ``fit.states``."""
    evaluation, k, covariance = _followed(fit, experiment)
    return states_along(fit.method, evaluation, k, covariance, names, level)


def states_along(
    method: Any, evaluation: Trajectories, k: int, covariance: np.ndarray, names: Any = None, level: float = 0.95
) -> xr.Dataset:
    """The same along trajectories that are solved for, of experiment k; ``covariance`` is that of the unknowns."""
    import xarray as xr
    from scipy.stats import norm

    if not 0 < level < 1:
        raise EstimationError(f"level is {level!r}; give a number between 0 and 1, such as 0.95.")
    width = float(norm.ppf(0.5 + level / 2))
    if isinstance(evaluation, DirectEvaluation):
        experiment, times, chosen, block = _of_path(evaluation, k, covariance, names, width)
    else:
        experiment, times, chosen, block = _of_splines(method, evaluation, k, covariance, names, width)
    coordinates = {"given": ["smoothed"], "statistic": list(STATISTICS), "time": times}
    data = {name: (("given", "statistic", "time"), block[None, :, :, i]) for i, name in enumerate(chosen)}
    return xr.Dataset(data, coordinates, {"experiment": experiment, "level": level})


def _of_splines(
    method: Any, evaluation: CollocationEvaluation, k: int, covariance: np.ndarray, names: Any, width: float
) -> Statistics:
    quadratic = _with_knots_at_samples(method, evaluation, k)
    program, given = quadratic.task.programs[k], quadratic.given[k]
    times = program.record.times
    quantities = Quantities(program.record.stochastic, names)
    X, P, unknowns = moments(quadratic, k, times, covariance)
    table = program.record.signals(given.q[: program.record.structure.system.np])
    u = np.array([table.at(float(t)) for t in times]).reshape(len(times), -1)
    block = quantities.statistics(times, X, P, np.zeros((len(times), 0)), u, given.q, width, unknowns=unknowns)
    chosen = list(quantities.rows)
    return program.record.name, times, chosen, _inside_bounds(block, chosen, program.record.structure)


def _inside_bounds(block: np.ndarray, chosen: Sequence[str], structure: Structure) -> np.ndarray:
    """Bands end at the bounds that a variable declares."""
    for i, name in enumerate(chosen):
        variable = structure.model.variables.get(name)
        if variable is None or variable.bounds is None:
            continue
        low, high = (np.nan if b is None else b for b in variable.bounds)
        mean = block[0, :, i]
        block[2, :, i] = np.minimum(np.fmax(block[2, :, i], low), mean)
        block[3, :, i] = np.maximum(np.fmin(block[3, :, i], high), mean)
    return block


def _of_path(evaluation: DirectEvaluation, k: int, covariance: np.ndarray, names: Any, width: float) -> Statistics:
    solution = evaluation.solution
    assert solution is not None
    program, result = solution.program, solution.result
    quantities = Quantities(_observed(program.model), names)
    curvature = curvature_at(program, result, np.diag(covariance) > 0)
    mean, std = seen(program, result, curvature, k, covariance, ca.vertcat(*quantities.rows.values()))
    record, there = program.records[k], program.meshes[k].sample_at >= 0
    mean, std = mean[there], std[there]
    chosen, block = list(quantities.rows), np.stack([mean, std, mean - width * std, mean + width * std])
    return record.name, record.times, chosen, _inside_bounds(block, chosen, program.model.structure)


def _observed(model: DirectModel) -> Observed:
    system = model.structure.system
    rows = set(ca.jacobian_sparsity(model.observed, model.v).row()) if model.nv else set()
    infinite = tuple(n for i, n in enumerate(system.observed_names) if i in rows)
    return Observed(
        model.structure, model.t, model.q, model.quantities, model.outputs, model.observed, system.observed_names,
        infinite,
    )  # fmt: skip


def _followed(fit: Fitted, experiment: Any) -> tuple[Trajectories, int, np.ndarray]:
    """The trajectories, the place of the experiment among them, and the covariance of the estimates that move them."""
    own = _without_undetermined(fit.estimate)
    names = [c.name for c in fit.estimate.cases]
    if experiment is None:
        return solved_again(fit), 0, own
    if isinstance(experiment, str):
        if experiment not in names:
            raise EstimationError(f"No experiment of this fit is called '{experiment}'; there are {', '.join(names)}.")
        return solved_again(fit), names.index(experiment), own
    if not hasattr(experiment, "fingerprint"):
        raise EstimationError(f"An experiment or the name of one is expected, not {type(experiment).__name__}.")
    for k, case in enumerate(fit.estimate.cases):
        if fit.find_experiment(experiment) is case.experiment:
            return solved_again(fit), k, own
    found, covariance = of_new_experiment(fit, experiment)
    return found, 0, covariance


def _without_undetermined(estimate: Estimate) -> np.ndarray:
    """The covariance of the estimates; where some are not determined, of the combinations of them that are."""
    if np.isfinite(estimate.covariance).all():
        return estimate.covariance
    assert isinstance(estimate.evaluation, LikelihoodEvaluation)
    information = np.where(np.outer(estimate.free, estimate.free), estimate.evaluation.curvature, 0.0)
    size = np.sqrt(np.maximum(np.diag(information), 1e-300))
    return np.asarray(
        np.linalg.pinv(information / np.outer(size, size), rcond=1e-10, hermitian=True) / np.outer(size, size)
    )


def _with_knots_at_samples(method: Any, evaluation: CollocationEvaluation, k: int) -> Quadratic:
    """The trajectories with knots at every instant of an experiment, where those of the fit were placed by itself."""
    found = evaluation.quadratic
    assert found is not None
    task, program, betas = found.task, found.task.programs[k], found.betas
    mesh = folded_at(program.mesh, program.record.times)
    if not isinstance(method.knots, str) or mesh is program.mesh:
        return found
    programs = list(task.programs)
    programs[k] = on_mesh(program, mesh, found.given[k], method.quadrature)
    programs[k].noise_states = program.noise_states
    betas[k] = program.mesh.moved_to(mesh, betas[k])
    limits = [tuple(limit) for limit in zip(*(state_bounds(p) for p in programs), strict=True)]
    floors, ceilings = limits if len(task.floors) else ((), ())
    finer = replace(task, programs=programs, floors=floors, ceilings=ceilings)
    nothing = np.zeros(len(found.xi), dtype=bool)
    again = descent.minimize(finer, found.xi, betas, wanted=nothing, near=True, tolerance=INNER)
    return again.quadratic if again.converged else found


def moments(
    quadratic: Quadratic, k: int, times: np.ndarray, covariance: np.ndarray
) -> tuple[np.ndarray, np.ndarray, Uncertain]:
    """Of the states of experiment k: means (T, n), covariances (T, n, n) at fixed unknowns, how these move them."""
    program, part, given = quadratic.task.programs[k], quadratic.parts[k], quadratic.given[k]
    factors = quadratic.factors()
    carried = quadratic.reduced(factors)[2]
    held = quadratic.held[k]
    band = banded.without(factors[k].inverse_band, held)
    band[0, held] = 0.0
    local = program.mesh.at(times)
    P = local.phi @ banded.gathered(band, local.index) @ np.swapaxes(local.phi, 1, 2)
    slopes, mine = quadratic.task.slopes(quadratic.theta), np.array(quadratic.task.moved[k], dtype=int)
    moved, known = -carried[k] / slopes, np.isfinite(given.start)
    moved[np.ix_(program.mesh.first[known], mine)] += given.dstart[:, known].T
    dq = np.zeros((len(slopes), given.dq.shape[1]))
    dq[mine] = given.dq
    return local.values(part.beta), P, Uncertain(local.phi @ moved[local.index], dq, covariance)
