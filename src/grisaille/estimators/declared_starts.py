"""Whether records begin where their starts were declared to.

A start that is not estimated counts as known, and a wrong one drives a fit away: parameters and levels of noise bend
until the first samples are explained. Two steps tell it:

1. Score. At the estimates θ̂, with every known start s freed for one evaluation of the criterion,

       g = ∂f/∂s − F_sθ F_θθ⁻¹ ∂f/∂θ,   V = F_ss − F_sθ F_θθ⁻¹ F_θs,   z² = g²/V ~ χ²(1)

   (Rao) for each start alone. Nothing more is done unless some p is below ``SUSPICIOUS``, all starts together.
2. A fit with the most suspicious start of each such record estimated and the most conspicuous of its first instants
   left out, so that a single outlier is not taken for a start. The record does not begin where it was declared to if
   what the other samples say is off by more than noise explains, at ``LEVEL`` for all starts together (Wald).

z is divided by how much larger residuals project on directions like that of the start elsewhere in the record, and
standard errors of least squares are those that know of correlation (``estimation/hac``): where residuals are
correlated, or larger than declared, early ones prove less. A right model is accused with a probability of at
most ``LEVEL``. Reference: C. R. Rao, Proc. Camb. Phil. Soc. 44 (1948) 50.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from grisaille import interrupts
from grisaille.bound_experiment.unknown import Unknown
from grisaille.errors import GrisailleError
from grisaille.estimation.estimate import Estimate
from grisaille.estimation.estimator import Estimator
from grisaille.estimation.experiment_terms import ExperimentTerm
from grisaille.estimation.fit_request import FitRequest
from grisaille.estimation.problem import EstimationProblem, Evaluation
from grisaille.estimation.residuals.explanation import LARGE, WRONG_START_NOTE, residual_sizes
from grisaille.estimation.unknowns import resolve_unknowns
from grisaille.experiment.experiment import Experiment
from grisaille.model.classes import Model
from grisaille.simulation.posing import unmet_starts
from grisaille.structure.reduction import Structure
from grisaille.structure.starts.description import NOTABLE_DEVIATION

LEVEL, SUSPICIOUS = 0.001, 0.01
"""Probability of accusing a right model, and of looking closer at one."""
MAX_STARTS = 200
"""Starts that are tested: each is a direction of one evaluation. Of more it is said that they were not."""
UNTESTED_NOTE = (
    "starts: it was not tested whether the records begin where they were declared to, which is done for up to "
    f"{MAX_STARTS} starts: fit fewer records, or estimate starts, to see."
)
EARLY_INSTANTS = 5
"""First instants among which one may be an outlier."""
MAX_FREED_STARTS = 3
"""Starts of one record that are freed one after the other."""
MIN_EXPLAINED_SHARE = 0.25
"""Share of a record's sum of squares that its starts explain from which on a closer look is worth its time."""
COMPARED_SHIFTS = 200
"""Places along a record where the direction of a start is compared with residuals."""
START_ROUNDING = 1e-9
"""Of a start: what is left of zero after consistent values were solved for."""
MIN_EVALUATIONS, EVALUATIONS_OF_FIT = 100, 3
"""Of a fit with starts that are estimated: so many, or so many times those of the fit that is tested."""
MIN_START_INFORMATION = 1e-8
"""Of the information about a start, what is left beside the other unknowns and is taken for rounding."""


@dataclass(frozen=True)
class ContradictedStart:
    """A start that the data contradict."""

    unknown: Unknown
    declared: float
    found: float
    error: float
    begins: float
    """Where the record begins in the fit: elsewhere than declared where the equations do not allow that."""


def unmet_start_notes(problem: EstimationProblem, theta: np.ndarray) -> list[str]:
    """Say which declared starts the equations do not allow, once for all records that miss the same ones."""
    said: dict[str, list[str]] = {}
    for case in problem.cases:
        if not case.experiment.is_static:
            said.setdefault(_unmet(case, theta), []).append(case.name)
    said.pop("", None)
    where = {text: "" if len(names) == len(problem.cases) else f"{', '.join(names)}: " for text, names in said.items()}
    return [f"starts: {where[text]}{text}" for text in said]


def _unmet(case: ExperimentTerm, theta: np.ndarray) -> str:
    try:
        return unmet_starts(case.trial.at(case.own(theta)))
    except GrisailleError:
        return ""  # the status says that nothing can be simulated there


def with_tested_starts(model: Model, problem: EstimationProblem, method: Estimator, found: Estimate) -> Estimate:
    """Return the estimate with a first note where a record does not begin where it was declared to."""
    if not method.tests_starts or not len(found.theta) or problem.differences is not None:
        return found
    try:
        tested = _Tested.of(model, problem, method)
        if tested is not None and len(tested.starts) > MAX_STARTS:
            return replace(found, notes=(*found.notes, UNTESTED_NOTE))
        accused, freed = tested.contradicted(found) if tested is not None else ([], None)
    except (GrisailleError, np.linalg.LinAlgError, ArithmeticError):
        return found  # a fit is not lost by a test of it
    except KeyboardInterrupt:
        interrupts.acknowledge()
        return replace(found, notes=(*found.notes, "INTERRUPTED before the declared starts were tested."))
    if not accused or freed is None:
        return found
    shift, moved = _largest_move(found, freed)
    note = _sentence(accused, len(problem.cases) > 1, moved)
    kept = tuple(n for n in found.notes if not n.startswith("at bound:"))
    return replace(found, notes=(note, *kept), moved_by_start=shift)


@dataclass(frozen=True, eq=False)
class _Score:
    """z² of the starts of one record, each alone and all together."""

    unknowns: tuple[Unknown, ...]
    alone: np.ndarray
    together: float


@dataclass(frozen=True, eq=False)
class _Tested:
    model: Model
    problem: EstimationProblem
    method: Estimator
    starts: tuple[Unknown, ...]
    """Those that count as known."""

    @classmethod
    def of(cls, model: Model, problem: EstimationProblem, method: Estimator) -> _Tested | None:
        data = [c.experiment for c in problem.cases]
        structure = problem.cases[0].trial.structure
        estimated = {(u.target, u.experiment) for u in problem.unknowns if u.kind == "start"}
        starts: list[Unknown] = []
        for e in data:
            if e.is_static:
                continue
            name = f"start(*)@{e.name}" if len(data) > 1 else "start(*)"
            found = resolve_unknowns(structure, data, [name])
            starts += [u for u in found if not {(u.target, u.experiment), (u.target, None)} & estimated]
        return cls(model, problem, method, tuple(starts)) if starts else None

    @property
    def structure(self) -> Structure:
        structure: Structure = self.problem.cases[0].trial.structure
        return structure

    def posed(
        self, data: Sequence[Experiment], unknowns: Sequence[Unknown], cases: Sequence[ExperimentTerm] = ()
    ) -> EstimationProblem:  # fmt: skip
        """Return a problem with other unknowns, starts where they were declared; on the steps of cases of the same
        data.
        """
        is_same = len(cases) == len(data) and all(c.experiment is e for c, e in zip(cases, data, strict=True))
        steps = tuple(c.discretisation for c in cases) if is_same else ()
        return self.method.pose(
            FitRequest(self.model, self.structure, data, tuple(unknowns), steps=steps).with_starts()
        )

    def contradicted(self, found: Estimate) -> tuple[list[ContradictedStart], Estimate | None]:
        """Return the starts that the data contradict, and the fit that shows it."""
        data = [c.experiment for c in self.problem.cases]
        scores = self._scores(found, data, self.starts)
        suspects = self._strongest(scores, SUSPICIOUS)
        if not suspects:
            return [], None
        left = [self._without_conspicuous(found, e, suspects) for e in data]
        freed: list[Unknown] = []
        again: Estimate | None = None
        for _ in range(MAX_FREED_STARTS):
            freed += suspects
            again = self._fitted(found, left, freed)
            if again is None or not again.converged:
                return [], None
            others = [u for u in self.starts if u.name not in {f.name for f in freed}]
            mine = [u for u in others if u.experiment in {f.experiment for f in freed}]
            suspects = self._strongest(self._scores(again, left, mine), LEVEL) if mine else []
            if not suspects:
                break
        assert again is not None
        if max(residual_sizes(again).values(), default=0.0) > LARGE:
            return [], None  # not what is wrong with the model
        return self._contradicted(again, freed, left), again

    def _scores(self, found: Estimate, data: Sequence[Experiment], starts: Sequence[Unknown]) -> list[_Score]:
        """Return what the data say against the starts of each record."""
        known = [replace(u, guess=float(v)) for u, v in zip(found.unknowns, found.theta, strict=True)]
        problem = self._at_levels(self.posed(data, [*known, *starts], found.cases), found)
        theta = np.array([*found.theta, *(u.guess for u in problem.unknowns[len(known) :])])
        at = problem.with_tested_residuals(problem.evaluate(theta))
        if not at.completed or not np.isfinite(at.information).all():
            return []
        free, F, g = np.flatnonzero(found.free), at.information, at.gradient
        inverse = _inverse(F[np.ix_(free, free)])
        scores = []
        for name in dict.fromkeys(u.experiment for u in starts):
            mine = [k for k, u in enumerate(starts, len(known)) if u.experiment == name and F[k, k] > 0]
            left = np.diag(F)[mine] - np.einsum("ki,kl,li->i", F[free][:, mine], inverse, F[free][:, mine])
            # what the data do not tell beside the other unknowns, and what a flat prior leaves open, is no test
            which = np.array(mine, dtype=int)[left > MIN_START_INFORMATION * np.diag(F)[mine]]
            if not len(which):
                continue
            along = inverse @ F[np.ix_(free, which)]
            V, slope = F[np.ix_(which, which)] - F[np.ix_(which, free)] @ along, g[which] - along.T @ g[free]
            directions = at.jacobian[:, which] - at.jacobian[:, free] @ along
            spread = self._inflations(problem, at, directions[: found.count])
            gain = float(slope @ _inverse(V) @ slope)
            if gain > MIN_EXPLAINED_SHARE * _squares_of(problem, at, name):
                spread = np.ones(len(which))  # what is left after one step from far away says little
            alone = _studentized(slope**2 / np.diag(V) / spread, found)
            together = _studentized(np.array([gain]) / spread.max(), found)
            scores.append(_Score(tuple(starts[k - len(known)] for k in which), alone, float(together[0])))
        return scores

    @property
    def _follows_data(self) -> bool:
        return self.method.states is not None and self.method.states.follow_data

    def _inflations(self, problem: EstimationProblem, at: Evaluation, directions: np.ndarray) -> np.ndarray:
        """Return the inflation of each direction, after all of them together have been removed from the residuals."""
        if self._follows_data:
            return np.ones(directions.shape[1])
        r = at.residuals[: len(directions)]
        r = r - directions @ np.linalg.lstsq(directions, r, rcond=1e-10)[0]
        return np.array([_inflation(problem.cases, r, d) for d in directions.T])

    @staticmethod
    def _at_levels(problem: EstimationProblem, found: Estimate) -> EstimationProblem:
        """Return the problem with the levels of noise that were found."""
        return problem.replace(sigma=dict(found.noise)) if problem.sigma else problem

    def _strongest(self, scores: Sequence[_Score], level: float) -> list[Unknown]:
        """Return, for each record, the start that its data contradict most, where they do."""
        from scipy.stats import chi2

        each = level / (len(self.starts) + len(self.problem.cases))
        return [
            s.unknowns[int(np.argmax(s.alone))]
            for s in scores
            if s.alone.max() > chi2.isf(each, 1) or s.together > chi2.isf(each, len(s.unknowns))
        ]

    def _without_conspicuous(self, found: Estimate, record: Experiment, suspects: Sequence[Unknown]) -> Experiment:
        """Return a record under suspicion without the first instant whose residuals are largest."""
        if all(u.experiment not in (None, record.name) for u in suspects):
            return record
        at, times, sizes = 0, [], []
        for case in found.cases:
            for s in case.samples:
                r = found.evaluation.residuals[at : at + len(s.values)]
                at += len(s.values)
                if case.name == record.name:
                    times.append(case.grid[s.rows][:EARLY_INSTANTS])
                    sizes.append(np.abs(r)[:EARLY_INSTANTS])
        early = np.unique(np.concatenate(times))[:EARLY_INSTANTS]
        largest = [max(s[t == e].max(initial=0.0) for t, s in zip(times, sizes, strict=True)) for e in early]
        worst = float(early[int(np.argmax(largest))])
        outputs = {
            n: (y.times, np.where(np.isclose(y.times, worst, rtol=1e-12, atol=0.0), np.nan, y.values))
            for n, y in record.outputs.items()
        }
        return record.replace(outputs=outputs)

    def _fitted(self, found: Estimate, data: Sequence[Experiment], freed: Sequence[Unknown]) -> Estimate | None:
        """Fit with some starts estimated: from the first guesses, which no wrong start has biased yet, and from the
        estimates where that ends in something worse.
        """
        bent = [replace(u, guess=float(v)) for u, v in zip(found.unknowns, found.theta, strict=True)]
        problem = self._at_levels(self.posed(data, [*bent, *freed]), found)
        before = problem.evaluate(np.array([u.guess for u in problem.unknowns]), sensitive=False).objective
        method = self._bounded(found)
        for unknowns in (self.problem.unknowns, bent):
            try:
                again = method.estimate(self.posed(data, [*unknowns, *freed]))
            except GrisailleError:
                continue
            if again.converged and problem.evaluate(again.theta, sensitive=False).objective <= before:
                return again
        return None

    def _bounded(self, found: Estimate) -> Estimator:
        """Return the method with a limit of evaluations that keeps a test cheaper than what is tested, several
        times.
        """
        method: Any = self.method
        most = self.method.options.get("max_evaluations")
        limit = max(MIN_EVALUATIONS, EVALUATIONS_OF_FIT * found.evaluations)
        return replace(method, max_evaluations=min(most, limit)) if isinstance(most, int) else self.method

    def _contradicted(
        self, again: Estimate, freed: Sequence[Unknown], data: Sequence[Experiment]
    ) -> list[ContradictedStart]:
        from scipy.stats import t as student

        names = [u.name for u in again.unknowns]
        declared = {u.name: u.guess for u in self.posed(data, [*self.problem.unknowns, *freed]).unknowns}
        errors, freedom = self._errors(again)
        accused = []
        for u in freed:
            k = names.index(u.name)
            value, error = float(again.theta[k]), float(errors[k])
            if not (again.free[k] and np.isfinite(error) and error > 0):
                continue
            if len(again.evaluation.jacobian) >= again.count and not self._follows_data:
                direction = _projected(again.evaluation.jacobian[: again.count], again.free, k)
                error *= float(np.sqrt(_inflation(again.cases, again.evaluation.residuals[: again.count], direction)))
            if 2 * student.sf(abs(value - declared[u.name]) / error, freedom[k]) * len(self.starts) < LEVEL:
                begin = declared[u.name] if abs(declared[u.name]) > START_ROUNDING * (abs(value) + error) else 0.0
                accused.append(ContradictedStart(u, self._wished(u, begin, again.theta), value, error, begin))
        return accused

    def _wished(self, start: Unknown, begin: float, theta: np.ndarray) -> float:
        """Return what the model declares for a start, where its equations make the record begin elsewhere."""
        case = next(c for c in self.problem.cases if start.experiment in (None, c.name))
        return case.trial.at(case.own(theta[: len(self.problem.unknowns)])).start.guesses_missed.get(
            start.target, (begin, begin)
        )[0]

    def _errors(self, again: Estimate) -> tuple[np.ndarray, np.ndarray]:
        """Return standard errors and their degrees of freedom; for least squares those for correlated residuals, where
        they are larger.
        """
        plain = np.sqrt(np.clip(np.diag(again.covariance), 0.0, None))
        freedom = np.full(len(plain), float(max(again.degrees_of_freedom, 1)) if again.noise else np.inf)
        if self.method.other_errors is None or not again.evaluation.is_least_squares:
            return plain, freedom
        robust = self.method.other_errors.by(again, "robust").estimate
        wide = np.sqrt(np.clip(np.diag(robust.covariance), 0.0, None))
        return np.maximum(plain, wide), np.minimum(freedom, freedom if robust.student is None else robust.student)


def _squares_of(problem: EstimationProblem, at: Evaluation, name: str | None) -> float:
    """Return sum of squares of the residuals of one record; of all where there is one only."""
    total, first = 0.0, 0
    for case in problem.cases:
        for s in case.samples:
            r = at.residuals[first : first + len(s.values)]
            first += len(s.values)
            total += float(r @ r) if name in (None, case.name) else 0.0
    return total


def _inverse(information: np.ndarray) -> np.ndarray:
    """Return the inverse of a matrix with rows of different units, without directions that are lost to rounding."""
    size = np.sqrt(np.clip(np.diag(information), 0.0, None))
    size = np.where(size > 0, size, 1.0)
    return np.asarray(
        np.linalg.pinv(information / np.outer(size, size), rcond=1e-10, hermitian=True) / np.outer(size, size)
    )


def _projected(jacobian: np.ndarray, free: np.ndarray, k: int) -> np.ndarray:
    """Return one column without what the other free unknowns can do."""
    others = jacobian[:, [j for j in np.flatnonzero(free) if j != k]]
    column = jacobian[:, k]
    return np.asarray(column - others @ np.linalg.lstsq(others, column, rcond=None)[0]) if others.size else column


def _inflation(cases: Sequence[ExperimentTerm], r: np.ndarray, direction: np.ndarray) -> float:
    """Return mean square of residuals along a direction that is shifted along the record, one for white ones; at least
    one.
    """
    size = float(direction @ direction)
    if not size > 0:
        return 1.0
    lengths = [len(s.values) for case in cases for s in case.samples]
    parts, first = [], 0
    for n in lengths:
        at = slice(first, first + n)
        parts.append((n, direction[at], np.concatenate([r[at], r[at]])))  # shifted ones are parts of two turns
        first += n
    shifts = np.unique(np.linspace(1, max(max(lengths) - 1, 1), COMPARED_SHIFTS).astype(int)).tolist()
    found = [sum(float(d @ turns[n - k % n :][:n]) for n, d, turns in parts) ** 2 for k in shifts]
    return max(1.0, float(np.mean(found)) / size)


def _studentized(z2: np.ndarray, found: Estimate) -> np.ndarray:
    """Return scores studentized by a noise level that was estimated from residuals which hold the effect of the
    start.
    """
    if not found.noise:
        return z2
    freedom = max(found.degrees_of_freedom - 1, 1)
    return np.asarray(z2 * freedom / np.maximum(freedom + 1 - z2, 1e-3 * freedom))


def _largest_move(found: Estimate, freed: Estimate) -> tuple[float, str]:
    """Return by how many standard errors of the better fit an estimate moves at most, and which one, in words."""
    errors = np.sqrt(np.clip(np.diag(freed.covariance), 0.0, None))
    new = {u.name: (float(v), float(e)) for u, v, e in zip(freed.unknowns, freed.theta, errors, strict=True)}
    worst, words = 0.0, ""
    for u, v in zip(found.unknowns, found.theta.tolist(), strict=True):
        value, error = new.get(u.name, (v, 0.0))
        if error > 0 and np.isfinite(error) and abs(v - value) / error > worst:
            worst, words = abs(v - value) / error, f"{u.name} is {value:.3g} then, not {v:.3g}"
    return worst, words


def _sentence(accused: Sequence[ContradictedStart], several: bool, moved: str) -> str:
    first = max(accused, key=lambda a: abs(a.found - a.begins) / a.error)
    away = abs(first.found - first.begins) / first.error
    records = list(dict.fromkeys(a.unknown.experiment or "" for a in accused))
    which = "the record" if not several else "records " + ", ".join(f"'{n}'" for n in records[:4])
    which = f"record '{records[0]}'" if several and len(records) == 1 else which
    which += ", …" if several and len(records) > 4 else ""
    names = list(dict.fromkeys(a.unknown.target for a in accused))
    verb = "do" if which.startswith("records") else "does"
    wanted = " and ".join(f'"start({n})"' for n in names)
    where = f" in '{first.unknown.experiment}'" if several else ""
    follow = f"; {moved}" if moved else ""
    missed = abs(first.declared - first.begins) > NOTABLE_DEVIATION * max(abs(first.declared), abs(first.begins))
    declared = (
        f"{first.declared:.4g} was declared and the equations make it {first.begins:.4g}, {_digits(away)} standard "
        f"errors away"
        if missed
        else f"{first.declared:.4g} was declared, {_digits(away)} standard errors away"
    )
    return (
        f"{WRONG_START_NOTE} {which} {verb} not begin where {' and '.join(names)} "
        f"{'was' if len(names) == 1 else 'were'} "
        f"declared to: the samples after it say {first.unknown.target} = {first.found:.4g} ± {first.error:.2g}{where}, "
        f"{declared}. Estimates and levels follow the wrong start. Estimate it: put {wanted} into estimate=[…]{follow}."
    )


def _digits(value: float) -> str:
    """Return two digits; whole numbers in full up to a million."""
    return f"{value:.0f}" if 100 <= value < 1e6 else f"{value:.2g}"
