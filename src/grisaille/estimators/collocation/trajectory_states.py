"""Trajectories at the estimates of a fit: ``fit.states()`` at the sample times with bands, and what a file stores.

They are its own, those of a loaded fit solved for again (a file keeps meshes and coefficients, or the path, so that a
loaded fit has the trajectories it had), or those of a new experiment.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from grisaille.bound_experiment.unknown import Unknown
from grisaille.errors import EstimationError
from grisaille.estimation.abilities.states import States
from grisaille.estimation.estimate import Estimate
from grisaille.estimation.fit_request import FitRequest
from grisaille.estimation.fitted import Fitted
from grisaille.estimation.likelihood import LikelihoodEvaluation
from grisaille.estimation.predictions.band_kinds import Bands, with_kind
from grisaille.estimation.problem import EstimationProblem
from grisaille.estimation.quantities import STATISTICS, left_out, unit_and_description
from grisaille.estimators.collocation.collocation_problem import CollocationEvaluation, CollocationProblem
from grisaille.experiment.experiment import Experiment
from grisaille.structure.reduction import Structure
from grisaille.structure.structure_cache import structure_of

if TYPE_CHECKING:
    import xarray as xr


@dataclass(frozen=True)
class TrajectoryStates(States):
    """Smoothed trajectories, estimated from all data together."""

    follow_data: ClassVar[bool] = True

    def of(self, fit: Fitted, experiment: Any, names: Any, level: float, bands: Bands | None = None) -> xr.Dataset:
        return trajectory_states(fit, experiment, names, level, bands or "all")

    def at(self, problem: EstimationProblem, theta: np.ndarray) -> dict[str, xr.Dataset]:
        known, at = np.zeros((len(theta), len(theta))), problem.of(CollocationProblem).evaluate(theta)
        return {
            case.name: states_along(at, k, known, case.trial.structure, bands="noise")
            for k, case in enumerate(problem.cases)
        }

    def arrays_to_save(self, fit: Fitted) -> dict[str, np.ndarray]:
        return kept_arrays(fit)


def trajectory_states(
    fit: Fitted, experiment: Experiment | str, names: Sequence[str] | None, level: float, bands: Bands = "all"
) -> xr.Dataset:
    """Return smoothed values of the quantities of one experiment; arguments and dimensions as in ``fit.states``."""
    evaluation, k, covariance = _followed(fit, experiment)
    structure = fit.estimate.cases[k].trial.structure
    known = covariance if bands == "all" else np.zeros_like(covariance)
    return states_along(evaluation, k, known, structure, names, level, bands)


def states_along(
    evaluation: CollocationEvaluation, k: int, covariance: np.ndarray, structure: Structure,
    names: Sequence[str] | None = None,
    level: float = 0.95, bands: Bands = "all",
) -> xr.Dataset:  # fmt: skip
    """Return the same along trajectories that are solved for, of experiment k; ``covariance`` is that of the
    unknowns.
    """
    import xarray as xr
    from scipy.stats import norm

    if not 0 < level < 1:
        raise EstimationError(f"level is {level!r}; give a number between 0 and 1, such as 0.95.")
    if evaluation.solution is None:
        raise EstimationError(f"There are no trajectories: {evaluation.failure}")
    width = float(norm.ppf(0.5 + level / 2))
    experiment, times, chosen, block = evaluation.solution.statistics(k, names, covariance, width)
    block = _inside_bounds(block, chosen, structure)
    coordinates = {"given": ["smoothed"], "statistic": list(STATISTICS), "time": times}
    data = {
        name: (("given", "statistic", "time"), block[None, :, :, i], unit_and_description(structure, names, name))
        for i, name in enumerate(chosen)
    }
    about = {"experiment": experiment, "level": level, **left_out(structure, names, chosen)}
    return with_kind(xr.Dataset(data, coordinates, about), bands)


def _inside_bounds(block: np.ndarray, chosen: Sequence[str], structure: Structure) -> np.ndarray:
    """Return bands that end at the bounds that a variable declares."""
    for i, name in enumerate(chosen):
        variable = structure.model.variables.get(name)
        if variable is None or variable.bounds is None:
            continue
        low, high = (np.nan if b is None else b for b in variable.bounds)
        mean = block[0, :, i]
        block[2, :, i] = np.minimum(np.fmax(block[2, :, i], low), mean)
        block[3, :, i] = np.maximum(np.fmin(block[3, :, i], high), mean)
    return block


def _followed(fit: Fitted, experiment: Any) -> tuple[CollocationEvaluation, int, np.ndarray]:
    """Return the trajectories, the index of the experiment among them, and the covariance of the estimates that they
    depend on.
    """
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
    """Return the covariance of the estimates; where some are not determined, of the combinations of them that are."""
    if np.isfinite(estimate.covariance).all():
        return estimate.covariance
    assert isinstance(estimate.evaluation, LikelihoodEvaluation)
    information = np.where(np.outer(estimate.free, estimate.free), estimate.evaluation.curvature, 0.0)
    size = np.sqrt(np.maximum(np.diag(information), 1e-300))
    return np.asarray(
        np.linalg.pinv(information / np.outer(size, size), rcond=1e-10, hermitian=True) / np.outer(size, size)
    )


def solved_again(fit: Fitted) -> CollocationEvaluation:
    """Return the evaluation of the fit with its trajectories, solved for again after loading."""
    evaluation = fit.estimate.evaluation
    if isinstance(evaluation, CollocationEvaluation) and evaluation.solution is not None:
        return evaluation
    kept: dict[str, Any] = fit.__dict__.setdefault("_trajectories", {})
    if "own" not in kept:
        kept["own"] = _solved(fit, fit.experiments, fit.estimate.unknowns, fit.estimate.theta, bool(fit.kept))
    found: CollocationEvaluation = kept["own"]
    return found


def of_new_experiment(fit: Fitted, experiment: Any) -> tuple[CollocationEvaluation, np.ndarray]:
    """Return the trajectories of another experiment at the estimates, and the covariance of the unknowns that it
    depends on.
    """
    named = experiment if experiment.name else experiment.replace(name="new experiment")
    named.check(fit.initial_model)
    e = fit.estimate
    # starts belong to the experiments they were estimated for
    mine = [k for k, u in enumerate(e.unknowns) if u.experiment is None and u.kind != "start"]
    unknowns = [e.unknowns[k] for k in mine]
    found = _solved(fit, [named], unknowns, e.theta[mine], False)
    return found, np.where(np.isfinite(e.covariance), e.covariance, 0.0)[np.ix_(mine, mine)]


def kept_arrays(fit: Fitted) -> dict[str, np.ndarray]:
    """Return coefficients, or the path, as a file keeps them beside the meshes of the cases."""
    evaluation = fit.estimate.evaluation
    if not isinstance(evaluation, CollocationEvaluation) or evaluation.solution is None:
        return dict(fit.kept)
    return evaluation.solution.arrays()


def _solved(
    fit: Fitted, experiments: Sequence[Experiment], unknowns: Sequence[Unknown], theta: np.ndarray, from_file: bool
) -> CollocationEvaluation:
    structure = structure_of(fit.initial_model)
    guessed = [_guessed(u, float(v)) for u, v in zip(unknowns, theta, strict=True)]
    problem = fit.method.pose(FitRequest(fit.initial_model, structure, experiments, guessed))
    assert isinstance(problem, CollocationProblem)
    if from_file:
        problem = problem.on(problem.trajectories.restored([c.discretisation for c in fit.estimate.cases], fit))
    found = problem.trajectories.follow(problem, theta)
    if isinstance(found, str):
        raise EstimationError(f"The trajectories at the estimates could not be solved for: {found}")
    return problem.at(found)


def _guessed(unknown: Unknown, value: float) -> Unknown:
    """Return the unknown with its estimate as guess; a level that came out as zero keeps its guess, from which ranks
    are decided.
    """
    return unknown if value == 0 and unknown.kind in ("scale", "noise") else unknown.starting_from(value)
