"""What simulated prediction error estimation minimises, with exact derivatives.

With the measured outputs of one instant side by side, ȳ and V their mean and covariance over M realizations, e = y − ȳ:

    mean            J(θ) = ½ Σ_k [ eᵀΛ⁻¹e − tr(Λ⁻¹V)/M ]                      (eqs. (2)–(3), corrected for finite M)
    mean-variance   J(θ) = ½ Σ_k [ eᵀS⁻¹e − tr(S⁻¹V)/M + log det S ],         S = V + R

Λ is a weighting matrix, given or estimated from the errors; R holds the variances of measurement noise. Weights
multiply e, and divide the standard deviation of noise. Without the correction the mean criterion is biased by the
covariance of ȳ itself, V/M, which moves the minimum where V depends on θ; with it, the gradient is the product of error
and sensitivity over different realizations,

    ∂J/∂θ = −Σ_k 1/(M(M−1)) Σ_{i≠j} ∂ŷ_jᵀ Λ⁻¹ (y − ŷ_i),

which is unbiased for any M. (In the second criterion S itself is estimated, which leaves a bias of order 1/M.) The
Gauss–Newton matrix leaves out second derivatives of ȳ and V. Reference: M. Abdalmoaty, O. Eriksson, R. Bereza,
D. Broman, H. Hjalmarsson, Identification of non-linear differential-algebraic equation models with process disturbances
(2021).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from grisaille.bound_experiment.unknown import Unknown
from grisaille.estimation.experiment_terms import ExperimentTerm
from grisaille.estimators.simulated_pem.measurement_patterns import MeasurementPattern, find_patterns
from grisaille.estimators.simulated_pem.output_weighting import given_weighting, positive_definite
from grisaille.optimization.journal import SearchJournal
from grisaille.simulation.ensembles.ensemble_discretisation import EnsembleGrid
from grisaille.simulation.ensembles.ensemble_runner import EnsemblePrediction, EnsembleRunner

if TYPE_CHECKING:
    from grisaille.estimators.simulated_pem.mean_problem import MeanProblem


@dataclass(frozen=True)
class PatternTerm:
    """The quantities of one pattern at one point, weights applied; n is the number of unknowns."""

    pattern: MeasurementPattern
    e: np.ndarray
    """(T, q)"""
    psi: np.ndarray
    """(T, q, n)"""
    V: np.ndarray
    dV: np.ndarray
    """(T, q, q, n)"""
    dS: np.ndarray
    """Likewise; dV where variances are not matched."""
    W: np.ndarray
    """(T, q, q): Λ⁻¹ or S⁻¹"""
    R: np.ndarray
    """(T, q): variance of the measurement noise; nan where it is not known"""
    factor: np.ndarray
    """(T, q): by what errors were multiplied"""

    @property
    def We(self) -> np.ndarray:
        return np.asarray(np.einsum("tij,tj->ti", self.W, self.e))


@dataclass(frozen=True)
class MeanValue:
    """The criterion at one point."""

    theta: np.ndarray
    objective: float
    gradient: np.ndarray
    curvature: np.ndarray
    """The Gauss–Newton matrix."""
    residuals: np.ndarray
    """Whitened errors, in the order of the samples."""
    jacobian: np.ndarray
    errors: np.ndarray
    """y − ȳ"""
    spread: np.ndarray
    """Variance of every sample over the realizations."""
    predictions: tuple[EnsemblePrediction, ...]
    parts: tuple[PatternTerm, ...] = ()
    failure: str = ""

    cost: ClassVar[int] = 1
    steps: ClassVar[int] = 0

    @property
    def completed(self) -> bool:
        return not self.failure

    @property
    def information(self) -> np.ndarray:
        return self.curvature

    @property
    def level(self) -> float:
        """Mean square of the whitened errors: one, unless a weighting is given."""
        return float(self.residuals @ self.residuals) / max(len(self.residuals), 1)


class MeanCriterion:
    """The criterion of a problem whose cases are predicted by ensembles."""

    def __init__(
        self,
        problem: MeanProblem,
        runners: Sequence[EnsembleRunner] | None = None,
        journal: SearchJournal | None = None,
    ) -> None:
        self.problem, self.journal = problem.discretised_problem, journal or SearchJournal()
        self.runners = tuple(runners or map(_on_its_grid, self.problem.cases))
        self.with_variance, self.corrected = problem.matching.with_variance, problem.matching.corrected
        self.patterns = find_patterns(problem.cases)
        self.given = given_weighting(problem.matching.weighting, problem.outputs)
        q = len(problem.outputs)
        self.level = np.linalg.inv(self.given) if self.given is not None else np.eye(q)
        """Λ"""
        self._last: tuple[tuple[object, ...], tuple[EnsemblePrediction, ...]] | None = None
        self._ahead: dict[tuple[object, ...], list[EnsemblePrediction]] = {}

    @property
    def realizations(self) -> int:
        return int(self.runners[0].options.realizations)

    @property
    def is_fixed(self) -> bool:
        """Return whether nothing in it is estimated from errors: the weighting is given."""
        return self.given is not None and not self.with_variance

    @property
    def unknowns(self) -> tuple[Unknown, ...]:
        return self.problem.unknowns

    def gain_scale(self, value: MeanValue) -> float:
        """Return what gains are compared with: a weighting that was given may be in any unit."""
        return value.level if self.given is not None else max(1.0, value.level)

    def evaluate(self, theta: np.ndarray, *, sensitive: bool = True) -> MeanValue:
        return self.at(theta, sensitive=sensitive)

    def gradient(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
        found = self.at(theta)
        return found.objective, found.gradient

    def with_runners(self, realizations: int, first: int = 0) -> MeanCriterion:
        """Return the same criterion with other realizations; Λ is taken over."""
        other = MeanCriterion(self.problem, [r.renewed(realizations, first) for r in self.runners], self.journal)
        other.level = self.level
        return other

    def of_means(self, unknowns: tuple[Unknown, ...]) -> MeanCriterion:
        """Return the mean alone, of the same realizations, with one weight for all instants."""
        matching = replace(self.problem.matching, with_variance=False, weighting=None)
        other = MeanCriterion(self.problem.replace(unknowns=unknowns, matching=matching), self.runners, self.journal)
        other._last = self._last
        return other

    def refine(self, theta: np.ndarray) -> bool:
        """Take more steps where those that were chosen at the guess are too few at θ; whether there are any.

        Raises ``GrisailleError`` where no steps are short enough.
        """
        pairs = list(zip(self.problem.cases, self.runners, strict=True))
        runners = tuple(runner.refined(case.own(theta)) for case, runner in pairs)
        if all(now is before for now, before in zip(runners, self.runners, strict=True)):
            return False
        self.problem, self.runners = self._posed_on(runners), runners
        return True

    def on_shorter_steps(self, parts: int) -> MeanCriterion | None:
        """Return the same criterion with steps so many times shorter, Λ taken over; None where integrators take their
        own.
        """
        runners = tuple(runner.on(runner.grid.cut(parts)) for runner in self.runners)
        if all(now.grid == before.grid for now, before in zip(runners, self.runners, strict=True)):
            return None
        other = MeanCriterion(self._posed_on(runners), runners, self.journal)
        other.level = self.level
        return other

    def shorten(self, parts: int) -> bool:
        """Go on with steps so many times shorter; False where integrators take their own."""
        finer = self.on_shorter_steps(parts)
        if finer is not None:
            self.problem, self.runners = self._posed_on(finer.runners), finer.runners
        return finer is not None

    def without_slopes(self, theta: np.ndarray) -> MeanValue:
        """Return value at θ for which a failure is expected: it is not among those of the search."""
        known = len(self.journal.failures)
        value = self.at(theta, sensitive=False)
        del self.journal.failures[known:]
        return value

    def _posed_on(self, runners: Sequence[EnsembleRunner]) -> MeanProblem:
        cases = (replace(c, discretisation=r.grid) for c, r in zip(self.problem.cases, runners, strict=True))
        return self.problem.replace(cases=tuple(cases))

    def at(self, theta: np.ndarray, *, sensitive: bool = True) -> MeanValue:
        """Return value and derivatives at θ."""
        if self._last is not None and self._last[0] == self._key(theta, sensitive):
            return self._compared(theta, self._last[1], sensitive)
        self.journal.add()
        predictions, known = [], self._ahead.get(self._key(theta, sensitive))
        for k, (case, runner) in enumerate(zip(self.problem.cases, self.runners, strict=True)):
            p = known[k] if known else runner.predict(case.own(theta), sensitive=sensitive)
            predictions.append(p)
            if not p.completed:
                self.journal.failures.append(f"{case.name}: {p.failure}")
                return _failed(theta, p.failure)
        named = {c.name: p for c, p in zip(self.problem.cases, predictions, strict=True)}
        self.problem = self.problem.freeze(named, theta)
        self._last = self._key(theta, sensitive), tuple(predictions)
        return self._compared(theta, tuple(predictions), sensitive)

    def at_each(self, thetas: Sequence[np.ndarray]) -> Iterator[MeanValue]:
        """Yield values without derivatives at several points; together where a graphics processor simulates them."""
        if any(runner.options.device != "cpu" for runner in self.runners):
            predictions = [
                runner.predict_each([case.own(theta) for theta in thetas])
                for case, runner in zip(self.problem.cases, self.runners, strict=True)
            ]
            self._ahead = {self._key(theta, False): each for theta, *each in zip(thetas, *predictions, strict=True)}
        for theta in thetas:
            yield self.at(theta, sensitive=False)
        self._ahead = {}

    def _key(self, theta: np.ndarray, sensitive: bool) -> tuple[object, ...]:
        """Return what predictions depend on; options change with refined steps."""
        return theta.tobytes(), sensitive, *((r.options, r.differences is None) for r in self.runners)

    def renew(self, value: MeanValue) -> MeanValue:
        """Return the same point after Λ has changed; nothing is simulated."""
        return self._compared(value.theta, value.predictions, any(p.mean_slopes.size for p in value.predictions))

    def _compared(self, theta: np.ndarray, predictions: tuple[EnsemblePrediction, ...], sensitive: bool) -> MeanValue:
        try:
            parts = [self._part(p, predictions[p.case], theta, sensitive) for p in self.patterns]
            return self._value(theta, parts, predictions, sensitive)
        except np.linalg.LinAlgError:
            return _failed(theta, "an output has neither noise nor disturbances at some instant.")

    def _part(
        self, pattern: MeasurementPattern, p: EnsemblePrediction, theta: np.ndarray, sensitive: bool
    ) -> PatternTerm:
        problem, case = self.problem, self.problem.cases[pattern.case]
        n, rows, mine = len(theta), pattern.rows, list(case.unknowns)
        y, w = _measured(problem)[pattern.samples], problem.weights[pattern.samples]
        e = y - p.mean[np.ix_(rows, pattern.columns)]
        block = np.ix_(rows, pattern.paired, pattern.paired)
        V = p.covariance[block]
        psi, dV = np.zeros((*e.shape, n)), np.zeros((*V.shape, n))
        if sensitive:
            psi[..., mine] = p.mean_slopes[np.ix_(rows, pattern.columns)]
            dV[..., mine] = p.covariance_slopes[block]
        R, dR = self._noise(pattern, case, p, theta)
        R, dR = R / w**2, dR / w[..., None] ** 2
        if self.with_variance:
            at = np.arange(e.shape[1])
            S, dS = V.copy(), dV.copy()
            S[:, at, at] += R
            dS[:, at, at] += dR
            return PatternTerm(pattern, e, psi, V, dV, dS, np.linalg.inv(S), R, np.ones_like(w))
        index = [problem.outputs.index(o) for o in pattern.outputs]
        W = np.broadcast_to(np.linalg.inv(self.level[np.ix_(index, index)]), V.shape)
        pairs = w[:, :, None] * w[:, None, :]
        dV = pairs[..., None] * dV
        return PatternTerm(pattern, w * e, w[..., None] * psi, pairs * V, dV, dV, W, R, w)

    def _noise(
        self, pattern: MeasurementPattern, case: ExperimentTerm, p: EnsemblePrediction, theta: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return variances of the measurement noise (nan where unknown), and their derivatives."""
        problem = self.problem
        R, dR = np.full(pattern.samples.shape, np.nan), np.zeros((*pattern.samples.shape, len(theta)))
        for j, output in enumerate(pattern.outputs):
            k = problem.noise_unknown(case, output)
            if k is not None:
                R[:, j], dR[:, j, k] = theta[k] ** 2, 2 * theta[k]
            elif problem.noise[output].known:
                samples = next(s for s in case.samples if s.output == output)
                sigma = problem.deviations(case, output, samples.rows, p, theta)
                R[:, j] = sigma[np.searchsorted(samples.rows, pattern.rows)] ** 2
        return R, dR

    def _value(
        self, theta: np.ndarray, parts: list[PatternTerm], predictions: tuple[EnsemblePrediction, ...], sensitive: bool
    ) -> MeanValue:
        n, N = len(theta), self.problem.count
        share = 1.0 / self.realizations if self.corrected else 0.0
        objective, gradient, curvature = 0.0, np.zeros(n), np.zeros((n, n))
        residuals, errors, spread, jacobian = np.zeros(N), np.zeros(N), np.zeros(N), np.zeros((N, n))
        for part in parts:
            objective += _objective(part, share, self.with_variance)
            if sensitive:
                gradient += _gradient(part, share, self.with_variance)
                curvature += _curvature(part, self.with_variance)
            root = np.linalg.cholesky(part.W)
            at = part.pattern.samples
            residuals[at] = np.einsum("tji,tj->ti", root, part.e)
            jacobian[at] = -np.einsum("tji,tjn->tin", root, part.psi)
            errors[at] = part.e / part.factor
            spread[at] = np.diagonal(part.V, axis1=1, axis2=2) / part.factor**2
        prior = self.problem.prior(theta)
        return MeanValue(
            theta, objective + prior.value, gradient + prior.gradient, curvature + prior.search_curvature,
            residuals, jacobian if sensitive else jacobian[:0], errors, spread, predictions, tuple(parts),
        )  # fmt: skip

    def update_levels(self, value: MeanValue) -> float:
        """Update Λ from the errors at a point, with the covariances between outputs; return the largest relative
        change.
        """
        moved = self._refreeze(value)
        if self.given is not None or self.with_variance:
            return moved
        q = len(self.problem.outputs)
        total, count = np.zeros((q, q)), np.zeros((q, q))
        for part in value.parts:
            index = [self.problem.outputs.index(o) for o in part.pattern.outputs]
            total[np.ix_(index, index)] += part.e.T @ part.e
            count[np.ix_(index, index)] += len(part.e)
        diagonal = self.problem.matching.weighting == "diagonal"
        level = positive_definite(total / np.maximum(count, 1), count, diagonal)
        size = np.sqrt(np.outer(np.diag(self.level), np.diag(self.level)))
        moved = max(moved, float(np.abs((level - self.level) / size).max()))
        self.level = level
        return moved

    def _refreeze(self, value: MeanValue) -> float:
        """Return noise formulas at the predictions of a point."""
        if not self.with_variance:
            return 0.0
        self.problem, moved = self.problem.refrozen(value.predictions, value.theta)
        return moved

    def comparable(self, value: MeanValue) -> float:
        """Return a number by which minima of the same data are compared: Λ is taken at its own minimum for each."""
        if self.with_variance or self.given is not None:
            return value.objective
        logs = 0.0
        for part in value.parts:
            logs -= 0.5 * float(np.sum(np.linalg.slogdet(part.W)[1]))
        return value.objective + logs


def _objective(part: PatternTerm, share: float, with_variance: bool) -> float:
    value = float(np.sum(part.e * part.We)) - share * float(np.sum(part.W * part.V))
    if with_variance:
        value -= float(np.sum(np.linalg.slogdet(part.W)[1]))
    return 0.5 * value


def _gradient(part: PatternTerm, share: float, with_variance: bool) -> np.ndarray:
    We, W, dS = part.We, part.W, part.dS
    gradient = -np.einsum("tin,ti->n", part.psi, We) - 0.5 * share * np.einsum("tij,tijn->n", W, part.dV)
    if with_variance:
        K = W - We[:, :, None] * We[:, None, :] + share * W @ part.V @ W
        gradient += 0.5 * np.einsum("tij,tijn->n", K, dS)
    return np.asarray(gradient)


def _curvature(part: PatternTerm, with_variance: bool) -> np.ndarray:
    H = _summed("tin,tij,tjm->nm", part.psi, part.W, part.psi)
    if with_variance:
        G = np.einsum("tij,tjkn->tikn", part.W, part.dS)
        H = H + 0.5 * _summed("tikn,tkim->nm", G, G)
    return np.asarray(H)


def _summed(subscripts: str, *arrays: np.ndarray) -> np.ndarray:
    """Return a product of several arrays in the order that needs the least work, which is found once for all of a
    shape.
    """
    order = _order(subscripts, *(a.shape for a in arrays))
    return np.asarray(np.einsum(subscripts, *arrays, optimize=order))


@lru_cache
def _order(subscripts: str, *shapes: tuple[int, ...]) -> list[Any]:
    return list(np.einsum_path(subscripts, *(np.broadcast_to(0.0, s) for s in shapes), optimize=True)[0])


def _on_its_grid(case: ExperimentTerm[EnsembleRunner]) -> EnsembleRunner:
    """Return a runner of one's own."""
    runner, grid = case.runner, case.discretisation
    return runner.on(grid if isinstance(grid, EnsembleGrid) else runner.grid)


def _measured(problem: MeanProblem) -> np.ndarray:
    return np.concatenate([s.values for c in problem.cases for s in c.samples])


def _failed(theta: np.ndarray, reason: str) -> MeanValue:
    n, empty = len(theta), np.zeros(0)
    return MeanValue(theta, np.inf, np.zeros(n), np.eye(n), empty, np.zeros((0, n)), empty, empty, (), (), reason)
