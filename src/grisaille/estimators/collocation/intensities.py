"""Scales of disturbances as roots: the misfit of each one's output is as large as its noise predicts.

Each is paired with the output that sees the disturbed state most directly or, where only trials tell, with the one
whose misfit it moves most. See ``collocation.intensity`` for the conditions and for why they have to be roots.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from grisaille.collocation.intensity import (
    BRACKETING_STRIDE,
    HIGHEST,
    OutputMisfit,
    errors_of_roots,
    first_root,
    joint_root,
)
from grisaille.errors import EstimationError
from grisaille.estimators.collocation.collocation_problem import CollocationProblem
from grisaille.estimators.collocation.trajectory_basis import UNSEEN_DISTANCE
from grisaille.optimization.journal import SearchJournal

MAX_SWEEPS = 12
"""Rounds over all scales."""
COARSE, FINE = 2e-2, 1e-3
"""Accuracy of the logarithm of a scale in the first round and in later ones."""
LATER_STRIDE = 0.1
"""Step of the bracketing in later rounds."""
FIRST_REACH = 2.1
"""How far from the guess, in the logarithm, the first round looks: a factor of eight."""
PROBE, TRIAL = 0.1, 0.2
"""Steps of the logarithm of a scale: of differences by which errors of roots are found, and outputs paired."""
MIN_MISFIT_FALL = 1e-6
"""Fall of log σ̂² below which an output does not see a disturbance."""


class IntensityConditions:
    """log σ̂²/σ² of the paired outputs as functions of the logarithms of the scales, relative to their guesses.

    Trajectories, and the unknowns that are not levels, are at their joint minimum.
    """

    def __init__(self, problem: CollocationProblem, journal: SearchJournal) -> None:
        self.problem, self.journal = problem, journal
        self.scales, self.current = find_scales(problem), problem.guess.copy()
        self.sizes = self.current[self.scales]
        distances = problem.trajectories.distances(problem, self.scales)
        cost, unseen = self._tried() if distances is None else (distances, distances >= UNSEEN_DISTANCE)
        pairs = assign_scales(problem, self.scales, cost, unseen)
        self.scales, self.columns = list(pairs), list(pairs.values())
        self.sizes = problem.guess[self.scales]

    def misfit(self, theta: np.ndarray) -> tuple[OutputMisfit, np.ndarray]:
        """Return the misfit of all outputs with the scales of θ, and θ with the other unknowns at their best."""
        problem = self.problem
        found = problem.trajectories.minimize(problem, theta, ~problem.levels, self.journal)
        if not found.converged and problem.trajectories.distances(problem, self.scales) is None:
            raise EstimationError(
                f"The path did not converge after {found.iterations} iterations: {found.reason}, while "
                f"intensities were looked for: give another guess=, or bounds, or use criterion='laplace'."
            )
        return found.misfit(problem.cases, problem.outputs), found.theta

    def _tried(self) -> tuple[np.ndarray, np.ndarray]:
        """Return what each output's misfit falls by as each scale grows."""
        here, falls = np.log(self.misfit(self.current)[0].ratios), []
        for k in self.scales:
            trial = self.current.copy()
            trial[k] *= np.exp(TRIAL)
            falls.append(here - np.log(self.misfit(trial)[0].ratios))
        fall = np.array(falls).reshape(len(self.scales), len(self.problem.outputs))
        return -fall, np.abs(fall) < MIN_MISFIT_FALL

    def at(self, x: np.ndarray) -> OutputMisfit:
        """Return the misfit with the scales of x."""
        trial = self.current.copy()
        trial[self.scales] = self.sizes * np.exp(x)
        found, self.current = self.misfit(trial)
        return found

    def __call__(self, x: np.ndarray) -> np.ndarray:
        return np.asarray(np.log(self.at(x).ratios[self.columns]))

    def alone(self, x: np.ndarray, k: int, value: float) -> float:
        """Return condition k by its own scale."""
        moved = x.copy()
        moved[k] = value
        return float(self(moved)[k])

    def names(self, k: int) -> tuple[str, str]:
        """Return a scale and its output."""
        return self.problem.unknowns[self.scales[k]].name, self.problem.outputs[self.columns[k]]


@dataclass(frozen=True)
class Intensities:
    """θ with scales at which the misfit of every paired output is as large as its noise predicts."""

    theta: np.ndarray
    errors: dict[int, float]
    """Standard errors of the unknowns that are scales; not of those that are as good as zero."""
    notes: list[str]

    def store_errors(self, covariance: np.ndarray) -> None:
        """Store the variances of scales in place of those that are there; those of a likelihood may not be smaller."""
        for k, error in self.errors.items():
            covariance[k, k] = max(covariance[k, k], error**2)


def find_intensities(problem: CollocationProblem, journal: SearchJournal) -> Intensities:
    """Return the roots, with the accuracy to which the misfit determines them."""
    g = IntensityConditions(problem, journal)
    x, zero = np.zeros(len(g.scales)), np.zeros(len(g.scales), dtype=bool)
    for sweep in range(MAX_SWEEPS):
        before = x.copy()
        for k in range(len(x)):
            if not zero[k] or g(x)[k] > 0:
                x[k], zero[k] = _bracketed(g, x, k, sweep)
        moved = np.abs(x - before)[~zero].max(initial=0.0)
        if len(x) == 1 or (sweep and moved < 3 * FINE):
            break
        if not zero.any():
            found, met = joint_root(g, x, FINE)
            if met:
                x = found
                break
    g.current[g.scales] = g.sizes * np.exp(x)
    notes = [
        f"zero: {g.names(k)[0]} is below {np.exp(x[k]):.1g} of its guess: the misfit of {g.names(k)[1]} leaves no room "
        f"for a disturbance."
        for k in np.flatnonzero(zero).tolist()
    ]
    errors = _errors(g, x, zero)
    told = ", ".join(f"{g.names(list(g.scales).index(k))[0]} to ± {e / g.current[k]:.0%}" for k, e in errors.items())
    notes.append(
        "the intervals of the other unknowns hold for the intensities found, as if they were known"
        + (f"; misfits tell {told}, a likelihood (criterion='laplace') tells more." if told else ".")
    )
    return Intensities(g.current, errors, notes)


def _errors(g: IntensityConditions, x: np.ndarray, zero: np.ndarray) -> dict[int, float]:
    """Return standard errors by differences of the explained variances of predictions; θ stays as it was found."""
    free, found = np.flatnonzero(~zero).tolist(), g.current.copy()
    here, moved = g.at(x), x.copy()
    slopes = np.zeros((len(here.count), len(free)))
    for place, k in enumerate(free):
        moved[k] = x[k] + PROBE
        slopes[:, place] = (g.at(moved).explained - here.explained) / PROBE
        moved[k] = x[k]
    g.current = found
    relative = errors_of_roots(here, slopes, [g.columns[k] for k in free])
    return {g.scales[k]: float(found[g.scales[k]] * e) for k, e in zip(free, relative, strict=True)}


def _bracketed(g: IntensityConditions, x: np.ndarray, k: int, sweep: int) -> tuple[float, bool]:
    """Return the root of one condition by its own scale, or where that is as good as zero."""
    # an output's misfit may stay too large for as long as another scale is too small: do not climb at first
    first = sweep == 0 and len(x) > 1
    coarse = sweep == 0
    start = x[k] - FIRST_REACH if coarse else x[k]
    found, met = first_root(
        partial(g.alone, x, k), start, COARSE if first else FINE, BRACKETING_STRIDE if coarse else LATER_STRIDE,
        x[k] + FIRST_REACH if first else HIGHEST,
    )  # fmt: skip
    if met or first:
        return found, False
    if found >= start:
        name, output = g.names(k)
        raise EstimationError(
            f"No intensity makes the misfit of '{output}' as small as its noise says, up to {name} = "
            f"{g.sizes[k] * np.exp(HIGHEST):.3g}: the model cannot follow these data, or noise({output}) is too small."
        )
    return found, True


def find_scales(problem: CollocationProblem) -> list[int]:
    """Return the unknowns that are scales; refused where there are too many, or where something is known of them."""
    scales = [k for k, u in enumerate(problem.unknowns) if u.kind == "scale"]
    known = [k for k in scales if problem.unknowns[k].prior is not None]
    if known:
        raise EstimationError(
            f"What is known of {list_scales(problem, known)} has no place in criterion='amle', which takes scales "
            "from the "
            f"misfit of the data alone: use criterion='laplace', or leave out that prior."
        )
    if len(scales) > len(problem.outputs):
        given = len(scales) - len(problem.outputs)
        raise EstimationError(
            f"{len(scales)} intensities ({list_scales(problem, scales)}) cannot be found from the misfit of "
            f"{len(problem.outputs)} output{'s' * (len(problem.outputs) > 1)}: give {given} of them (name the others "
            f"in estimate=), or use criterion='laplace'."
        )
    return scales


def assign_scales(
    problem: CollocationProblem, scales: Sequence[int], cost: np.ndarray, unseen: np.ndarray
) -> dict[int, int]:
    """Scale → output, the cheapest way; refused where only an output is left that does not see the disturbance."""
    from scipy.optimize import linear_sum_assignment

    rows, columns = linear_sum_assignment(cost)
    blind = [scales[i] for i, j in zip(rows, columns, strict=True) if unseen[i, j]]
    if blind:
        raise EstimationError(
            f"{list_scales(problem, blind)} cannot be found from the misfit of an output: every output that sees the "
            f"disturbance decides another one's scale, or none does. Give it (name the others in estimate=), or use "
            f"criterion='laplace'."
        )
    return {scales[i]: int(j) for i, j in zip(rows, columns, strict=True)}


def list_scales(problem: CollocationProblem, which: Sequence[int]) -> str:
    return ", ".join(problem.unknowns[k].name for k in which)
