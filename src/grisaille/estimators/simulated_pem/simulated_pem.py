"""Simulation-based prediction errors: the model is compared with the data through the mean of many simulations.

For each θ the outputs are simulated with M realizations of the disturbances, the same random numbers every time, and
their mean is the prediction (``criterion``); with ``match="mean-variance"`` their covariances are compared too.
Minimised by Gauss–Newton with averaged sensitivities, on a grid, by stochastic approximation with unbiased gradients,
or without derivatives. The covariance is a sandwich whose middle comes from the ensemble itself
(``sandwich``).

Reference: M. Abdalmoaty, O. Eriksson, R. Bereza, D. Broman, H. Hjalmarsson, Identification of non-linear
differential-algebraic equation models with process disturbances (2021).
"""

from __future__ import annotations

import copy
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from grisaille.compilation.cuda.device import DEVICES
from grisaille.errors import INDEPENDENT_OF_VALUES, EstimationError, GrisailleError
from grisaille.estimation.cost import Cost, interpreted, usual_cost
from grisaille.estimation.estimate import Estimate
from grisaille.estimation.estimator import Estimator, Verdict
from grisaille.estimation.problem import Problem
from grisaille.estimation.question import Question
from grisaille.estimation.subject import STATIC, Subject
from grisaille.estimators.simulated_pem.approach import approach
from grisaille.estimators.simulated_pem.checkpoint import Checkpoint
from grisaille.estimators.simulated_pem.criterion import MeanCriterion
from grisaille.estimators.simulated_pem.ensemble_size import FIRST, MOST, describe_choice, describe_size, enough
from grisaille.estimators.simulated_pem.identifiability import refuse_unmoved_means
from grisaille.estimators.simulated_pem.misfit import SUSPECT, SUSPECT_ACROSS_JUMPS, largest_errors
from grisaille.estimators.simulated_pem.problem import (
    Matching,
    MeanProblem,
    difference_across_jumps,
    open_noise,
    pose_mean_problem,
)
from grisaille.estimators.simulated_pem.report import (
    Finding,
    assess,
    conclude,
    conclude_interrupted,
    without_spent_levels,
)
from grisaille.estimators.simulated_pem.restarts import look_elsewhere
from grisaille.estimators.simulated_pem.search import Ending, MeanSearch, Reached, gauss_newton, grid, nelder_mead
from grisaille.estimators.simulated_pem.settling import ROUGH, settle
from grisaille.estimators.simulated_pem.stochastic_approximation import stochastic_approximation
from grisaille.optimization.journal import Journal, Progress
from grisaille.optimization.search import LIMIT
from grisaille.simulation.ensembles.ensemble import EnsembleOptions
from grisaille.structure.reduction import Structure
from grisaille.trial.unknown import describe_start

if TYPE_CHECKING:
    import xarray as xr

    from grisaille.estimation.fitted import Fitted
    from grisaille.estimation.predictions.band_kinds import Bands
    from grisaille.estimation.predictions.horizons import Horizon

SEARCHES, MATCHES = ("gauss-newton", "grid", "stochastic", "nelder-mead"), ("mean", "mean-variance")
SCATTER = 1e-3
"""Gain at which a search by differences ends: a thirtieth of a standard error."""
ENSEMBLES = 50
"""For each of ``max_iterations``, over all searches."""
FEW = 50
"""Realizations that are enough for a first look."""
ENOUGH_ACROSS_JUMPS = 1e-3
"""Relative error of a path that crosses jumps of the equations: its mean over an ensemble is known less well, and each
digit more costs ten times as many steps."""
REFINEMENTS = 5
"""Searches, each with the steps that the end of the one before needs."""


@dataclass(frozen=True)
class SimulatedPEM(Estimator):
    """Options of the simulation-based prediction error method.

    realizations, seed : size of the ensemble (``"auto"``: doubled until more would change nothing), and which random
        numbers
    search : ``"gauss-newton"``; ``"grid"`` for one bounded unknown; ``"stochastic"``, batches of fresh realizations
        with unbiased gradients, for long records; ``"nelder-mead"``, without derivatives
    match : ``"mean"``, or ``"mean-variance"`` for disturbance parameters that do not move the mean
    correction : remove the bias that a finite number of realizations gives to the criterion
    weighting : of several outputs: None, estimated from the errors with their correlations; ``"diagonal"``, without
        them; or a matrix, in the order of the outputs
    points : of the grid, between the bounds
    batch, band, polish : of the stochastic search: realizations per step; half width of the confidence band at which it
        stops, in standard errors; and whether Gauss–Newton with common random numbers follows (the band may then be
        three times as wide)
    step : grid of the disturbances; chosen from their spectra when not given
    antithetic, between, rtol, compiled, threads, device : as in ``gr.simulate``; the notes of a fit say where it ran
    tolerance, max_iterations : when to stop
    checkpoint : a file that keeps where the search stands, so that the same fit goes on from there

    Examples
    --------
    With the data of ``help(gr.fit)`` and a tank that is disturbed:

    >>> class Disturbed(gr.Model):
    ...     k = gr.Parameter(0.3, bounds=(0.01, 5.0))
    ...     h = gr.Variable(0.5)
    ...     w = gr.Disturbance(gr.spectra.lowpass(1.0), scale=0.02)
    ...     y = gr.Output(h, noise=0.01)
    ...     equations = [gr.der(h) == 2.0 + w - k * h]
    >>> gr.fit(Disturbed(), data, ["k"], gr.SimulatedPEM(realizations=50))["k"]
    0.4999 ± 0.0021
    """

    realizations: int | Literal["auto"] = 500
    seed: int = 1
    search: Literal["gauss-newton", "grid", "stochastic", "nelder-mead"] = "gauss-newton"
    match: Literal["mean", "mean-variance"] = "mean"
    correction: bool = True
    weighting: Any = None
    points: int = 81
    batch: int = 16
    band: float = 0.1
    polish: bool = True
    step: float | None = None
    antithetic: bool = False
    between: str = "linear"
    tolerance: float = 1e-8
    max_iterations: int = 60
    rtol: float = 1e-6
    compiled: bool | None = None
    threads: int | None = None
    checkpoint: str | None = field(default=None, metadata={"path": True})
    device: Literal["cpu", "cuda", "cuda-single", "auto"] = "cpu"

    def __post_init__(self) -> None:
        choices = (("search", self.search, SEARCHES), ("match", self.match, MATCHES), ("device", self.device, DEVICES))
        for name, value, allowed in choices:
            if value not in allowed:
                raise EstimationError(f"{name} is {value!r}; it must be one of {', '.join(map(repr, allowed))}.")
        for name, number in (("realizations", self.realizations), ("batch", self.batch)):
            if name == "realizations" and number == "auto":
                continue
            if isinstance(number, bool) or not isinstance(number, int) or number < 2:
                extra = ", or 'auto'" if name == "realizations" else ""
                raise EstimationError(f"{name} is {number!r}; give a whole number from 2{extra}.")
        if isinstance(self.weighting, str) and self.weighting != "diagonal":
            raise EstimationError(f"weighting is {self.weighting!r}; give None, 'diagonal' or a matrix.")
        if self.weighting is not None and not isinstance(self.weighting, str):
            rows = np.atleast_2d(np.asarray(self.weighting, dtype=float)).tolist()
            object.__setattr__(self, "weighting", tuple(map(tuple, rows)))
        if self.search == "stochastic" and self.match != "mean":
            raise EstimationError(
                "search='stochastic' is for match='mean': variances enter the other criterion through logarithms and "
                "inverses, of which small batches give no unbiased estimate. Use search='gauss-newton'."
            )
        if self.search == "stochastic" and not self.correction:
            raise EstimationError(
                "search='stochastic' without correction= would not be unbiased: leave it switched on."
            )

    def further_unknowns(self, structure: Structure, data: Sequence[Any], wanted: Sequence[str]) -> list[str]:
        """Noise levels that the model leaves open are unknown where variances are matched."""
        if self.match == "mean":
            return list(wanted)
        said = {name.partition("@")[0] for name in wanted}
        return [*wanted, *(n for n in open_noise(structure.model, data) if n not in said)]

    @property
    def levels_told(self) -> dict[Literal["scale", "noise"], str]:
        if self.match == "mean-variance":
            return {"scale": "yes", "noise": "yes"}
        return {"scale": "where the mean moves with it", "noise": "no"}

    @property
    def residual_tests(self) -> Literal["all", "size", "none"]:
        return "size"

    @property
    def no_profiles(self) -> str:
        return (
            f"Profiles and confidence regions need a likelihood, and the criterion of {type(self).__name__} is not "
            "one: its differences have no known distribution. fit.intervals() uses the covariance from the ensemble."
        )

    @property
    def seeded(self) -> str:
        return str(self.seed)

    @classmethod
    def verdict(cls, subject: Subject) -> Verdict:
        if subject.is_static:
            return Verdict(False, STATIC)
        if not subject.disturbances:
            name = subject.flat.name
            return Verdict(False, f"refused: {name} has no disturbances, so every simulation is the same")
        if subject.hidden:
            return Verdict(True, f"chosen: it simulates {subject.hidden}, whatever the way it enters")
        if subject.flat.whens:
            return Verdict(True, "chosen: it simulates events, which a filter does not follow")
        if subject.unfiltered:
            return Verdict(True, "chosen: it simulates the model with its disturbances, which filters refuse")
        better = "the likelihood uses what the data say about each disturbance"
        return Verdict(False, f"refused: it compares means only, and {better}", may_serve=True)

    @classmethod
    def for_subject(cls, subject: Subject) -> SimulatedPEM:
        """Match variances too, where levels are asked for that no mean moves with."""
        told_by_variances = [n for n in subject.levels if n.startswith("noise(") or not subject.hidden]
        return cls(match="mean-variance") if told_by_variances else cls()

    def pose(self, question: Question) -> MeanProblem:
        """The problem of a model and its data."""
        count = FIRST if self.realizations == "auto" else self.realizations
        options = EnsembleOptions(
            count, self.seed, antithetic=self.antithetic, between=self.between, step=self.step, rtol=self.rtol,
            enough_across_jumps=ENOUGH_ACROSS_JUMPS, compiled=self.compiled, threads=self.threads, device=self.device,
        )  # fmt: skip
        matching = Matching(self.match == "mean-variance", self.correction, self.weighting)
        return pose_mean_problem(question, options, matching)

    def cost(self, problem: Problem) -> Cost:
        """Gauss–Newton takes a dozen ensembles, and as many for the errors."""
        causes, faster = interpreted(self.compiled, "SimulatedPEM")
        causes.append(f"{FIRST if self.realizations == 'auto' else self.realizations} realizations")
        if self.realizations != "auto" and self.realizations > FEW:
            faster.append(f"fewer realizations for a first look, gr.SimulatedPEM(realizations={FEW})")
        usual = {"grid": self.points, "gauss-newton": 25}.get(self.search, 25 * len(problem.unknowns))
        return usual_cost(problem, usual, causes, faster)

    def simulated(self, estimate: Estimate, experiment: str) -> dict[str, Any]:
        """How ``gr.simulate`` gives what this method predicts: the mean of an ensemble."""
        pairs = zip(estimate.unknowns, estimate.theta.tolist(), strict=True)
        scales = {f"scale({u.target})": v for u, v in pairs if u.kind == "scale" and u.applies_to(experiment)}
        ensemble = estimate.ensemble
        assert ensemble is not None
        return {
            "realizations": ensemble.realizations, "seed": self.seed, "reduce": "mean",
            "antithetic": self.antithetic, "between": self.between, "step": self.step, "rtol": self.rtol,
            "parameters": scales, "compiled": self.compiled, "device": self.device,
        }  # fmt: skip

    def predict_with_bands(
        self, fit: Fitted, experiment: Any, horizon: Horizon | None, bands: Bands = "all"
    ) -> xr.Dataset:
        raise EstimationError(
            f"bands={bands!r} is not available for gr.SimulatedPEM, whose predictions are means of an ensemble: "
            "fit.simulate(times, inputs, realizations=1000) shows what disturbances do, gr.bootstrap(fit) what the "
            "uncertainty of the estimates does."
        )

    def estimate(self, problem: Problem, progress: Progress | None = None) -> Estimate:
        """Solve a problem."""
        begin, problem = time.perf_counter(), problem.of(MeanProblem)
        checkpoint = Checkpoint(self.checkpoint, problem, self._identity()) if self.checkpoint else None
        criterion = MeanCriterion(problem, journal=Journal.of(progress))
        search = MeanSearch(
            criterion, criterion.journal, ENSEMBLES * self.max_iterations, iterations=self.max_iterations,
            keep=checkpoint.write if checkpoint else None,
        )  # fmt: skip
        start = checkpoint.read() if checkpoint else None
        found = self._estimate(search, problem.guess if start is None else start)
        if checkpoint and found.ending.is_minimum:
            checkpoint.remove()
        if start is not None:
            found.notes.append(f"the search went on from the checkpoint {self.checkpoint}.")
        return conclude(search, found, time.perf_counter() - begin)

    def interrupted(self, problem: Problem, journal: Journal) -> Estimate | None:
        return conclude_interrupted(journal.kept) if isinstance(journal.kept, Reached) else None

    def _identity(self) -> str:
        """Options that a checkpoint must agree in."""
        return repr(
            sorted((k, v) for k, v in asdict(self).items() if k not in ("checkpoint", "threads", "compiled", "device"))
        )

    def _estimate(self, search: MeanSearch, start: np.ndarray) -> Finding:
        criterion = search.criterion
        notes, search_as = self._accept(criterion, start)
        notes += refuse_unmoved_means(criterion, start)
        if criterion.with_variance and search_as == "gauss-newton":
            start = approach(search, criterion.at(start))
        found = self._solve(search, start, search_as)
        if search_as != "grid":
            found = self._solve_elsewhere(search, found, start, search_as)
        tried = [criterion.realizations]
        while self.realizations == "auto" and not enough(found.sandwich, tried[-1]) and 2 * tried[-1] <= MOST:
            if search.is_spent:
                break
            before = search.criterion
            try:
                search.renew(before.with_runners(2 * tried[-1]))
                found = self._solve(search, found.ending.value.theta, search_as)
            except GrisailleError as error:
                search.renew(before)
                found.notes.append(_unconfirmed(f"{2 * tried[-1]} realizations", error))
                break
            tried.append(2 * tried[-1])
        names = [u.name for u in criterion.problem.unknowns]
        if self.realizations == "auto":
            notes.append(describe_choice(found.sandwich, tried))
        elif found.spread is None:
            notes += describe_size(found.sandwich, tried[-1], names, self.correction)
        found.notes.extend(notes)
        found.notes.extend(self._places(found))
        return found

    def _solve_elsewhere(self, search: MeanSearch, found: Finding, guess: np.ndarray, search_as: str) -> Finding:
        """Search again from elsewhere where errors are large and the criterion is lower there; give the better one."""
        here, criterion = found.ending.value, search.criterion
        jumps = any(runner.differences is not None for runner in criterion.runners)
        if search.is_spent or largest_errors(criterion, here) < (SUSPECT_ACROSS_JUMPS if jumps else SUSPECT):
            return found
        start = look_elsewhere(search, here, guess, descend=search_as != "nelder-mead")
        if start is None:
            return found
        kept, before = copy.copy(criterion), criterion.comparable(here)
        search.renew(criterion)
        search.iterations = self.max_iterations
        try:
            again = self._solve(search, start.theta, search_as)
        except GrisailleError as error:
            search.renew(kept)
            found.notes.append(_unconfirmed("a search from elsewhere", error))
            return found
        after = search.criterion.comparable(again.ending.value)
        if not after < before:
            search.renew(kept)
            return found
        names = [u.name for u in criterion.problem.unknowns]
        left = ", ".join(f"{n} = {v:.4g}" for n, v in zip(names, here.theta, strict=True))
        again.notes.append(
            f"another minimum: the search first ended at {left}, where the criterion is {before:.4g}; one of "
            f"{start.points} other starts led here, where it is {after:.4g}. gr.multistart(…) tries more of them."
        )
        return again

    def _places(self, found: Finding) -> list[str]:
        """Where ensembles were simulated, if not on the processor as a matter of course."""
        if self.device == "cpu":
            return []
        told = dict.fromkeys(p.device for p in found.ending.value.predictions)
        return [f"ensembles were simulated on {place}." for place in told if place]

    def _accept(self, criterion: MeanCriterion, start: np.ndarray) -> tuple[list[str], str]:
        """Whether there are derivatives at the guess; how to search, and what is to be said about it."""
        difference_across_jumps(criterion.problem, criterion.runners)
        first = criterion.at(start)
        if first.completed:
            criterion.update_levels(first)
            return [], self.search
        plain = criterion.at(start, sensitive=False)
        if not plain.completed:
            there = describe_start([u.begun_at(v) for u, v in zip(criterion.unknowns, start, strict=True)])
            raise EstimationError(f"The model cannot be simulated at {there}: {plain.failure} Give another by guess=.")
        criterion.journal.failures.clear()
        criterion.update_levels(plain)
        for case, runner in zip(criterion.problem.cases, criterion.runners, strict=True):
            sizes = [criterion.problem.unknowns[k].size for k in case.unknowns]
            runner.differences = np.array(sizes)
        note = f"searched without derivatives (Nelder–Mead), because there are none: {first.failure}"
        return [note], "grid" if self.search == "grid" else "nelder-mead"

    def _solve(self, search: MeanSearch, start: np.ndarray, search_as: str) -> Finding:
        """Minimise until Λ, noise formulas and steps stay as they are, and assess the minimum."""
        settled = None
        for _ in range(REFINEMENTS):
            try:
                ending, spread = self._settle(search, start, search_as)
            except GrisailleError as error:
                if settled is None:
                    raise
                (ending, spread), search.criterion = settled
                ending = replace(ending, is_minimum=False, reason=f"on finer steps the search failed: {error}")
                break
            settled = (ending, spread), copy.copy(search.criterion)
            try:
                changed = search.criterion.refine(ending.value.theta)
            except INDEPENDENT_OF_VALUES:
                raise  # no other values of the unknowns would help
            except GrisailleError as error:
                ending = replace(ending, is_minimum=False, reason=f"no steps are short enough there: {error}")
                break
            if not changed:
                break
            if search.is_spent:
                ending = replace(ending, is_minimum=False, reason=LIMIT)
                break
            start = ending.value.theta
            search.renew(search.criterion)
        else:
            reason = (
                f"steps that were short enough where a search began were too long where it ended, {REFINEMENTS} times"
            )
            ending = Ending(search.criterion.at(ending.value.theta), False, reason)
        ending, zero = without_spent_levels(search.criterion, ending)
        return assess(search, ending, zero, spread)

    def _settle(self, search: MeanSearch, start: np.ndarray, search_as: str) -> tuple[Ending, np.ndarray | None]:
        """The minimum for Λ and noise formulas that belong to it."""
        criterion, problem = search.criterion, search.criterion.problem
        has_priors = bool(problem.prior(start).residuals.size)
        alone = len(problem.outputs) == 1 and not has_priors and not criterion.with_variance
        rough = max(self.tolerance, ROUGH)
        is_final = alone or criterion.is_fixed or search_as in ("grid", "nelder-mead")
        ending, spread = self._minimize(search, start, search_as, self.tolerance if is_final else rough)
        if alone or search_as == "grid" or spread is not None:
            criterion.update_levels(ending.value)
            return replace(ending, value=criterion.renew(ending.value)), spread
        if search_as == "nelder-mead":
            return settle(
                search, ending, lambda theta: self._minimize(search, theta, search_as, self.tolerance)[0]
            ), None
        settled = settle(search, ending, lambda theta: self._newton(search, theta, rough))
        if is_final or not settled.is_minimum:
            return settled, None
        search.renew(criterion)
        return self._newton(search, settled.value.theta, self.tolerance), None

    def _newton(self, search: MeanSearch, start: np.ndarray, tolerance: float) -> Ending:
        if any(runner.differences is not None for runner in search.criterion.runners):
            # differences scatter: the last digits of a minimum are not there to be found
            tolerance = max(tolerance, SCATTER)
        return gauss_newton(search, start, tolerance=tolerance)

    def _minimize(
        self, search: MeanSearch, start: np.ndarray, search_as: str, tolerance: float
    ) -> tuple[Ending, np.ndarray | None]:
        """The end of a search, and the covariance that a stochastic one leaves."""
        if search_as == "grid":
            return grid(search, self.points), None
        if search_as == "nelder-mead":
            return nelder_mead(search, start, tolerance=tolerance), None
        if search_as == "stochastic":
            # a polish needs a start, not the last digit
            band = 3 * self.band if self.polish else self.band
            found = stochastic_approximation(search, start, batch=self.batch, tolerance=band)
            if not self.polish:
                value = search.criterion.at(found.theta)
                return Ending(value, found.has_settled and value.completed, found.reason), found.covariance
            start = found.theta
            search.renew(search.criterion)
        return self._newton(search, start, tolerance), None


def _unconfirmed(what: str, error: GrisailleError) -> str:
    """The note on a stage that failed after there was an answer."""
    return f"not confirmed: {what} failed ({str(error).rstrip('.')}); the estimates are those before it."
