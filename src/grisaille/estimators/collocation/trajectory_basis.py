"""The seam between criteria and the two bases of collocation: trajectories of all experiments on one mesh.

    Splines     coefficients of B-splines; disturbances are what the model leaves, ẋ − f, and nothing is constrained
    Elements    states at Radau points with the disturbances as variables, the model's equations as constraints

Criteria, intensities, refinement, states and profiles know these two classes only, and neither by name.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from grisaille.bound_experiment.discretisation import Discretisation
from grisaille.bound_experiment.unknown import Unknown
from grisaille.collocation.intensity import OutputMisfit
from grisaille.collocation.laplace import Marginal
from grisaille.collocation.trajectory_newton import SearchEnd
from grisaille.estimation.findings.mesh import MeshResult
from grisaille.optimization.journal import Progress
from grisaille.simulation.runner import Prediction

if TYPE_CHECKING:
    from grisaille.estimation.experiment_terms import ExperimentTerm
    from grisaille.estimation.fitted import Fitted
    from grisaille.estimators.collocation.collocation_problem import CollocationProblem

UNSEEN_DISTANCE = 100.0
"""Distance of an output that never sees a disturbance."""
SETTLED_ESTIMATES = 0.05
"""Standard errors: estimates that move less on a finer mesh have stopped moving."""
Statistics = tuple[str, np.ndarray, list[str], np.ndarray]
"""Of one experiment: its name, the times, the quantities, and (4, times, quantities)."""


@dataclass(frozen=True, eq=False)
class TrajectoryPredictions:
    """Predictions of samples by an experiment's trajectory, (times, outputs); NaN or zero where there is none."""

    outputs: tuple[str, ...]
    predictions: np.ndarray
    errors: np.ndarray
    residuals: np.ndarray
    """Standardised."""
    jacobian: np.ndarray
    """Of these, by all unknowns."""


@dataclass(frozen=True, eq=False)
class AllResiduals:
    """Residuals of trajectories, in the order of the samples."""

    residuals: np.ndarray
    errors: np.ndarray
    jacobian: np.ndarray
    predictions: tuple[Prediction, ...]


@dataclass(eq=False)
class Solution(SearchEnd[Any], ABC):
    """Trajectories that were solved for, with or without unknowns."""

    @classmethod
    def of(cls, found: SearchEnd[Any], **more: Any) -> Self:
        """Return the solution at which steps ended, with what belongs to the basis."""
        return cls(**vars(found), **more)

    @abstractmethod
    def free(self) -> np.ndarray:
        """Return which unknowns no bound decides."""

    @abstractmethod
    def least(self) -> tuple[np.ndarray, np.ndarray]:
        """Return slope and curvature by θ of the least criterion over trajectories, priors included."""

    @property
    def has_exact_priors(self) -> bool:
        """Return whether that curvature contains the exact one of priors, not the one that is searched with."""
        return False

    @abstractmethod
    def seen(self, k: int, implicit: bool) -> TrajectoryPredictions:
        """Return the predictions of samples; ``implicit``: with the exact response of trajectories to unknowns; raises
        where nothing determines them.
        """

    def residuals_by_laws(self) -> np.ndarray:
        """Return the information of samples on each unknown through numbers of their laws."""
        return np.zeros(len(self.theta))

    def along(self, k: int, names: Sequence[str]) -> np.ndarray:
        """Return what else laws of measurements depend on along the trajectory of experiment k, (times, names)."""
        return np.zeros((0, len(names)))

    @abstractmethod
    def explained(self, k: int) -> np.ndarray:
        """Return variances of predictions of experiment k in units of the noise, (times, outputs)."""

    @abstractmethod
    def marginal(self, sensitive: bool) -> Marginal:
        """Raise ``NotPositiveDefinite`` where there is no curvature to integrate with."""

    @abstractmethod
    def marginals(self, sensitive: bool) -> list[Marginal]:
        """Return the marginal likelihood of every experiment, without priors."""

    @abstractmethod
    def statistics(self, k: int, names: Sequence[str] | None, covariance: np.ndarray, width: float) -> Statistics:
        """Return quantities of experiment k along its trajectory, with bands; ``covariance`` of the unknowns."""

    @abstractmethod
    def arrays(self) -> dict[str, np.ndarray]:
        """Return the arrays that are saved in a file."""

    def held_states(self) -> list[str]:
        """Return the states that their declared bounds hold somewhere, so that they do not scatter there."""
        return []

    def told(self, cases: Sequence[ExperimentTerm], implicit: bool) -> AllResiduals:
        """Return the residuals of all experiments; ``implicit`` as in ``seen``."""
        every = [self.seen(k, implicit) for k in range(len(cases))]
        places = [
            (seen, (s.rows, seen.outputs.index(s.output)))
            for case, seen in zip(cases, every, strict=True)
            for s in case.samples
        ]
        residuals, errors, jacobian = (
            np.concatenate([getattr(seen, name)[at] for seen, at in places])
            for name in ("residuals", "errors", "jacobian")
        )
        nothing = np.zeros((0, 0, 0))
        predictions = []
        for k, (case, seen) in enumerate(zip(cases, every, strict=True)):
            further = [n for n in case.outputs if n not in seen.outputs]
            both = np.hstack([seen.predictions, self.along(k, further)]) if further else seen.predictions
            predictions.append(Prediction(both, nothing))
        return AllResiduals(residuals, errors, jacobian, tuple(predictions))

    def misfit(self, cases: Sequence[ExperimentTerm], outputs: Sequence[str]) -> OutputMisfit:
        """Return the misfit of every output."""
        found = OutputMisfit(*np.zeros((3, len(outputs))))
        for k, case in enumerate(cases):
            seen, explained = self.seen(k, False), self.explained(k)
            for s in case.samples:
                j, at = list(outputs).index(s.output), (s.rows, seen.outputs.index(s.output))
                found.squares[j] += float((seen.residuals[at] ** 2).sum())
                found.explained[j] += float(explained[at].sum())
                found.count[j] += len(s.rows)
        return found


@dataclass(frozen=True, eq=False)
class MeshJudgement:
    """Whether a mesh is fine enough for what was found on it.

    note, reason : what to say, and why the search has not converged, where no finer mesh is allowed; empty: nothing
    """

    is_enough: bool
    note: str = ""
    reason: str = ""


class TrajectoryBasis(ABC):
    """Trajectories of all experiments on one mesh; they store the last ones, from which a search continues."""

    is_biased: ClassVar[bool] = False
    """Whether the criterion over trajectories and unknowns together leans by any number of standard errors."""
    is_exact: ClassVar[bool]
    """Whether standard errors are those of the exact curvature, not of Gauss and Newton's."""

    @property
    @abstractmethod
    def text(self) -> str:
        """Return how trajectories are represented, and why so."""

    @property
    @abstractmethod
    def meshes(self) -> tuple[Discretisation, ...]:
        """Of every experiment."""

    @abstractmethod
    def inside_levels(self, unknowns: Sequence[Unknown]) -> np.ndarray:
        """Return unknowns that are parameters inside intensities, noise levels or spectra."""

    @abstractmethod
    def follow(self, problem: CollocationProblem, theta: np.ndarray) -> Solution | str:
        """Return trajectories for given unknowns, or why there are none."""

    @abstractmethod
    def minimize(
        self, problem: CollocationProblem, theta: np.ndarray, wanted: np.ndarray, progress: Progress | None = None,
        near: bool = False,
    ) -> Solution:  # fmt: skip
        """Return the least criterion over trajectories and the unknowns ``wanted``; ``near``: from the last
        trajectories.
        """

    @abstractmethod
    def keep(self, solution: Any, solved: bool) -> None:
        """Store the trajectories that the next search starts from."""

    @abstractmethod
    def rounds(self, refine: int | str) -> int:
        """Rounds of refinement, at most."""

    @abstractmethod
    def prepared(self, problem: CollocationProblem) -> TrajectoryBasis:
        """Return a mesh that can follow the model at the guess; on a coarser one a search would diverge."""

    @abstractmethod
    def with_tested_residuals(
        self, problem: CollocationProblem, solution: Any, covariance: np.ndarray, before: np.ndarray | None, most: int
    ) -> MeshJudgement:
        """Return whether the mesh is fine enough; ``before``: the estimates on the mesh before, ``most``: rounds
        allowed.
        """

    @abstractmethod
    def finer(self, solution: Any) -> TrajectoryBasis:
        """Return the trajectories on a finer mesh, from a solution."""

    def distances(self, problem: CollocationProblem, scales: Sequence[int]) -> np.ndarray | None:
        """Return how far each scale's disturbance is from each output, ``UNSEEN_DISTANCE`` at most; None where only
        trials show it.
        """
        return None

    @abstractmethod
    def renewed(self, cases: Sequence[ExperimentTerm]) -> TrajectoryBasis:
        """Return independent ones for other measurements."""

    @abstractmethod
    def restored(self, meshes: Sequence[Discretisation | None], fit: Fitted) -> TrajectoryBasis:
        """Restore the meshes of a file, starting from its trajectories; None in older files."""

    def notes(self, solution: Any) -> list[str]:
        """Return what is not as it should be along the trajectories."""
        return []

    @abstractmethod
    def mesh(self, solution: Any) -> MeshResult:
        """Return how large the mesh is."""
