"""What an estimator hands on: numbers only, no methods for users (that is ``Fit``)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from grisaille.bound_experiment.unknown import Unknown
from grisaille.errors import EstimationError
from grisaille.estimation.approximation import ApproximationCheck
from grisaille.estimation.determination.degrees_of_freedom import DegreesOfFreedom
from grisaille.estimation.determination.prior_information import data_information
from grisaille.estimation.experiment_terms import ExperimentTerm
from grisaille.estimation.findings.ensemble import EnsembleResult
from grisaille.estimation.findings.mesh import MeshResult
from grisaille.estimation.hac.robust_errors import RobustErrors
from grisaille.estimation.measurements.sample_formulas import parameters_in
from grisaille.estimation.problem import EstimationProblem, Evaluation
from grisaille.laws import Law
from grisaille.model.measurement.noise_covariances import shared_covariances


@dataclass(frozen=True)
class Estimate:
    """The result of one estimation."""

    unknowns: tuple[Unknown, ...]
    theta: np.ndarray
    covariance: np.ndarray
    """In the unknowns themselves; zero rows where a bound decided."""
    free: np.ndarray
    """False where a bound decided."""
    noise: dict[str, float]
    """Estimated standard deviation of each output whose noise was unknown."""
    log_likelihood: float
    is_likelihood: bool
    """False for criteria that are not likelihoods (robust losses): no AIC, BIC or likelihood ratio from them."""
    count: int
    """Number of measurements."""
    objective: float
    evaluation: Evaluation
    cases: tuple[ExperimentTerm, ...]
    converged: bool
    status: str
    notes: tuple[str, ...]
    trace: tuple[dict[str, float], ...]
    evaluations: int
    failures: tuple[str, ...]
    seconds: float
    offset: float = 0.0
    """How far from the minimum, in standard errors."""
    caution: str = ""
    """Why standard errors and intervals are not to be taken at their word; empty where they are."""
    approximation: ApproximationCheck | None = None
    """How far another approximation of the likelihood would move it; None where nothing is approximated."""
    limits: Mapping[str, float] = field(default_factory=dict)
    """Upper 95 % limits of levels of noise whose estimate is zero, by the name of the unknown."""
    robust: RobustErrors | None = None
    """How well standard errors are known that take correlated residuals into account; None where they do not."""
    ensemble: EnsembleResult | None = None
    """Of methods that predict by the mean of simulated ensembles."""
    mesh: MeshResult | None = None
    """Of methods that solve for trajectories on one."""
    transcription: str = ""
    """How trajectories are represented, and why so, of methods that solve for them."""
    compared: float | None = None
    """By which minima of the same data are compared, where it is neither the objective nor the likelihood."""
    penalty: float = 0.0
    """What keeps unknowns inside their bounds adds to the objective."""
    explained_exactly: bool = False
    """Whether the data are explained exactly while levels of noise are estimated, which have no estimate then."""
    moved_by_start: float = 0.0
    """Standard errors by which an unknown moves, at most, if a start is estimated that its record contradicts."""
    details: Mapping[str, float] = field(default_factory=dict)
    """Numbers of a method from outside the package, by name: they are saved and printed, and never read."""

    @classmethod
    def at(cls, problem: EstimationProblem, evaluation: Evaluation, covariance: np.ndarray, **known: Any) -> Estimate:
        """Return an estimate with all fields that a problem and its evaluation give; ``known`` replaces or adds
        fields.
        """
        if "extra" in known:
            raise EstimationError(
                "An estimate has no extra= any more: give numbers of your own as details={name: number}, which are "
                "saved and printed; what the package itself reads has fields, such as limits= and compared=."
            )
        n = len(problem.unknowns)
        usual: dict[str, Any] = {
            "unknowns": problem.unknowns, "theta": evaluation.theta, "covariance": covariance,
            "free": np.ones(n, dtype=bool), "noise": {k: float(v) for k, v in problem.sigma.items()},
            "log_likelihood": np.nan, "is_likelihood": False, "count": problem.count,
            "objective": evaluation.objective, "evaluation": evaluation,
            "converged": True, "status": "converged", "notes": (), "trace": (), "evaluations": 0, "failures": (),
            "seconds": 0.0,
        }  # fmt: skip
        if "cases" not in known:
            usual["cases"] = problem.discretised_problem.cases
        return cls(**{**usual, **known})

    @property
    def student(self) -> np.ndarray | None:
        """Degrees of freedom of each unknown's t, where errors know how well they are known themselves."""
        if self.robust is None or not self.unknowns:
            return None
        return np.array([self.robust.degrees_of_freedom[u.name] for u in self.unknowns])

    @property
    def at_kink(self) -> np.ndarray:
        """Return which unknowns are held where their prior has a kink, which leaves a range on both sides."""
        values = zip(self.unknowns, self.theta.tolist(), strict=True)
        has_kink = [isinstance(u.prior, Law) and u.lower < v < u.upper and v in u.prior.kinks for u, v in values]
        return np.asarray(np.array(has_kink, dtype=bool) & ~self.free)

    @cached_property
    def freedom(self) -> DegreesOfFreedom:
        """Return what the residuals of least squares leave, with the noise at its estimates."""
        names = [s.output for c in self.cases for s in c.samples for _ in s.values]
        told = self.free & np.isfinite(np.diag(self.covariance))
        J = self.evaluation.curved
        J = J if len(J) == len(self.evaluation.residuals) else np.zeros((len(names), len(told)))
        return DegreesOfFreedom(J, np.array(names, dtype=object), tuple(self.noise), told)

    @property
    def degrees_of_freedom(self) -> float:
        """N − n_eff: measurements, less the unknowns that they determined; what priors determine is not counted."""
        found = data_information(self.unknowns, self.theta, self.evaluation.information, self.free)
        return self.count - (float(self.free.sum()) if found is None else found.unknowns)

    @property
    def has_open_noise(self) -> bool:
        """Return whether a level of noise was estimated, under its own name or as a parameter in a formula of one."""
        if self.noise or any(u.kind in ("scale", "noise") for u in self.unknowns):
            return True
        if self.evaluation.is_least_squares or not self.cases:
            return False
        flat, outputs = self.cases[0].trial.flat, {s.output for c in self.cases for s in c.samples}
        formulas = [o.noise for n, o in flat.outputs.items() if n in outputs]
        formulas += [d.scale for d in flat.disturbances.values()]
        formulas += shared_covariances(flat, outputs).values()
        inside = {n for f in formulas if f is not None for n in parameters_in(flat, f)}
        return any(u.kind == "parameter" and u.target in inside for u in self.unknowns)
