"""What an estimator hands on: numbers only, no methods for users (that is ``Fit``)."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from grisaille.estimation.approximation import ApproximationCheck
from grisaille.estimation.cases import Case
from grisaille.estimation.determination.beliefs import data_information
from grisaille.estimation.determination.freedom import Freedom
from grisaille.estimation.noise import parameters_in
from grisaille.estimation.problem import Evaluation, Problem
from grisaille.trial.unknown import Unknown


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
    cases: tuple[Case, ...]
    converged: bool
    status: str
    notes: tuple[str, ...]
    trace: tuple[dict[str, float], ...]
    evaluations: int
    failures: tuple[str, ...]
    seconds: float
    offset: float = 0.0
    """How far from the minimum, in standard errors."""
    extra: dict[str, float] = field(default_factory=dict)
    caution: str = ""
    """Why standard errors and intervals are not to be taken at their word; empty where they are."""
    approximation: ApproximationCheck | None = None
    """How far another approximation of the likelihood would move it; None where nothing is approximated."""

    @classmethod
    def at(cls, problem: Problem, evaluation: Evaluation, covariance: np.ndarray, **known: Any) -> Estimate:
        """An estimate with everything that a problem and its evaluation tell; ``known`` replaces or adds fields."""
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
            usual["cases"] = problem.begun.cases
        return cls(**{**usual, **known})

    @property
    def student(self) -> np.ndarray | None:
        """Degrees of freedom of each unknown's t, where errors know how well they are known themselves."""
        keys = [f"student({u.name})" for u in self.unknowns]
        return np.array([self.extra[k] for k in keys]) if keys and keys[0] in self.extra else None

    @cached_property
    def freedom(self) -> Freedom:
        """What the residuals of least squares leave, with the noise at its estimates."""
        names = [s.output for c in self.cases for s in c.samples for _ in s.values]
        told = self.free & np.isfinite(np.diag(self.covariance))
        J = self.evaluation.curved
        J = J if len(J) == len(self.evaluation.residuals) else np.zeros((len(names), len(told)))
        return Freedom(J, np.array(names, dtype=object), tuple(self.noise), told)

    @property
    def degrees_of_freedom(self) -> float:
        """N − n_eff: measurements, less the unknowns that they determined; what priors determine is not counted."""
        found = data_information(self.unknowns, self.theta, self.evaluation.information, self.free)
        return self.count - (float(self.free.sum()) if found is None else found.unknowns)

    @property
    def has_open_noise(self) -> bool:
        """Whether a level of noise was estimated, under its own name or as a parameter in a formula of one."""
        if self.noise or any(u.kind in ("scale", "noise") for u in self.unknowns):
            return True
        if self.evaluation.is_least_squares or not self.cases:
            return False
        flat, outputs = self.cases[0].trial.flat, {s.output for c in self.cases for s in c.samples}
        formulas = [o.noise for n, o in flat.outputs.items() if n in outputs]
        formulas += [d.scale for d in flat.disturbances.values()]
        inside = {n for f in formulas if f is not None for n in parameters_in(flat, f)}
        return any(u.kind == "parameter" and u.target in inside for u in self.unknowns)
