"""Unknowns and experiments of an estimation by particle filters.

At one seed the criterion is a function of the unknowns, nearly smooth; at several it shows its Monte Carlo error.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import logsumexp

from grisaille import interrupts
from grisaille.bound_experiment.unknown import Unknown
from grisaille.compilation.batch_native import processors
from grisaille.estimation.experiment_terms import ExperimentTerm
from grisaille.estimation.likelihood import LikelihoodProblem, own_theta_and_steps
from grisaille.filtering.particles.particle_steps import ParticleSteps


@dataclass(frozen=True)
class RepeatedLikelihood:
    """Estimates of log L by independent random numbers."""

    values: np.ndarray

    @property
    def log_likelihood(self) -> float:
        """The logarithm of the mean likelihood."""
        return float(logsumexp(self.values) - np.log(len(self.values)))

    @property
    def spread(self) -> float:
        """Return the standard deviation of one estimate."""
        if not np.isfinite(self.values).all():
            return np.inf
        return float(np.std(self.values, ddof=1)) if len(self.values) > 1 else np.nan

    @property
    def error(self) -> float:
        """Return the standard error of ``log_likelihood``, by the jackknife."""
        n = len(self.values)
        if n < 2 or not np.isfinite(self.values).any():
            return np.nan
        left = np.array([logsumexp(np.delete(self.values, k)) - np.log(n - 1) for k in range(n)])
        if not np.isfinite(left).all():
            return np.inf
        return float(np.sqrt((n - 1) / n * np.sum((left - left.mean()) ** 2)))


class ParticleProblem(LikelihoodProblem):
    """A problem whose likelihood is estimated with random numbers."""

    def __init__(self, unknowns: Sequence[Unknown], cases: Sequence[ExperimentTerm], seed: int) -> None:
        super().__init__(unknowns, cases)
        self.seed = seed

    def parts_at(self, theta: np.ndarray, seed: int) -> tuple[np.ndarray, str]:
        """Return the estimate of log L of each experiment, and why there is none."""
        values = []
        for case in self.discretised_problem.cases:
            value, failure = case.runner.log_likelihood_at(*own_theta_and_steps(case, theta), seed)
            if failure:
                return np.full(len(self.cases), -np.inf), f"experiment '{case.name}': {failure}"
            values.append(value)
        return np.array(values), ""

    def log_posterior_at(self, theta: np.ndarray, seed: int) -> float:
        """Return log L̂ less the priors' share of the objective; −∞ where there is none."""
        prior = self.prior(theta)
        if prior.failure:
            return -np.inf
        return float(self.parts_at(theta, seed)[0].sum()) - prior.value

    def log_posteriors(self, thetas: np.ndarray, seeds: Sequence[int]) -> np.ndarray:
        """Return the same at many points, (m, n), each with random numbers of its own."""
        jobs = list(zip(thetas, seeds, strict=True))
        threads = min(processors(), len(jobs))
        if threads < 2:
            return np.array([self._one(*job) for job in jobs])
        with ThreadPoolExecutor(threads) as pool:
            try:
                return np.array(list(pool.map(lambda job: self._one(*job), jobs)))
            except BaseException:
                pool.shutdown(wait=True, cancel_futures=True)
                raise

    def _one(self, theta: np.ndarray, seed: int) -> float:
        interrupts.check()
        return self.log_posterior_at(theta, seed)

    def repeated(self, theta: np.ndarray, repetitions: int, first: int = 0) -> RepeatedLikelihood:
        """Return log L at one point by independent random numbers."""
        values = self.log_posteriors(np.repeat(theta[None], repetitions, axis=0), self.seeds(repetitions, first))
        return RepeatedLikelihood(values + self.prior(theta).value)

    def rediscretised(self, theta: np.ndarray) -> ParticleProblem | None:
        """Return the same with what suits these values, at least as fine as it was; None where that is what it has."""
        cases, is_new = [], False
        for case in self.discretised_problem.cases:
            own, old = own_theta_and_steps(case, theta)
            new = case.runner.discretise(own)
            assert isinstance(old, ParticleSteps) and isinstance(new, ParticleSteps)
            if len(old.substeps) == len(new.substeps):
                new = replace(new, substeps=tuple(map(max, zip(old.substeps, new.substeps, strict=True))))
            is_new |= new.substeps != old.substeps or new.guided != old.guided
            cases.append(replace(case, discretisation=new))
        return ParticleProblem(self.unknowns, cases, self.seed) if is_new else None

    def seeds(self, count: int, first: int = 0) -> list[int]:
        """Return seeds other than that of the criterion."""
        return [int(self.seed + 7919 * (first + k + 1)) for k in range(count)]

    def renewed(self, values: Sequence[np.ndarray] | None = None, guess: np.ndarray | None = None) -> ParticleProblem:
        cases = self.renewed_cases(values)
        if values is not None and guess is None:
            cases = [replace(c, discretisation=None).discretised(self.guess) for c in cases]
        problem = ParticleProblem(self.unknowns, cases, self.seed)
        if guess is not None:
            problem.with_guess(guess)
        return problem
