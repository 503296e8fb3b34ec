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

import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from grisaille.compilation.cuda.device import DEVICES
from grisaille.errors import EstimationError
from grisaille.estimation.density.criterion_kinds import Levels, NoLikelihood
from grisaille.estimation.estimate import Estimate
from grisaille.estimation.estimator import Estimator, Verdict
from grisaille.estimation.fit_request import FitRequest
from grisaille.estimation.model_and_data import STATIC_REFUSAL, ModelAndData
from grisaille.estimation.problem import EstimationProblem
from grisaille.estimators.simulated_pem.checkpoint import Checkpoint
from grisaille.estimators.simulated_pem.conclusion import (
    conclude,
    conclude_interrupted,
)
from grisaille.estimators.simulated_pem.ensemble_effort import EnsembleEffort
from grisaille.estimators.simulated_pem.ensemble_size import FIRST
from grisaille.estimators.simulated_pem.ensemble_stages import EnsembleStages
from grisaille.estimators.simulated_pem.mean_criterion import MeanCriterion
from grisaille.estimators.simulated_pem.mean_problem import (
    MeanProblem,
    OutputMatching,
    open_noise,
    pose_mean_problem,
)
from grisaille.estimators.simulated_pem.mean_search import BestPoint, MeanSearch
from grisaille.optimization.journal import Progress, SearchJournal
from grisaille.simulation.ensembles.devices import require_device
from grisaille.simulation.ensembles.ensemble_options import EnsembleOptions
from grisaille.structure.reduction import Structure

if TYPE_CHECKING:
    from grisaille.experiment.experiment import Experiment

    pass

SEARCHES, MATCHES = ("gauss-newton", "grid", "stochastic", "nelder-mead"), ("mean", "mean-variance")
ENSEMBLES_PER_ITERATION = 50
"""For each of ``max_iterations``, over all searches."""
ENOUGH_ACROSS_JUMPS = 1e-3
"""Relative error of a path that crosses jumps of the equations: its mean over an ensemble is known less well, and each
digit more costs ten times as many steps."""


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

    def further_unknowns(self, structure: Structure, data: Sequence[Experiment], wanted: Sequence[str]) -> list[str]:
        """Add noise levels that the model leaves open to the unknowns, where variances are matched."""
        if self.match == "mean":
            return list(wanted)
        said = {name.partition("@")[0] for name in wanted}
        return [*wanted, *(n for n in open_noise(structure.model, data) if n not in said)]

    @property
    def density(self) -> NoLikelihood:
        refused = (
            f"Profiles and confidence regions need a likelihood, and the criterion of {type(self).__name__} is not "
            "one: its differences have no known distribution. fit.intervals() uses the covariance from the ensemble."
        )
        levels = Levels() if self.match == "mean-variance" else Levels("where the mean depends on it", "no")
        return NoLikelihood(no_profiles=refused, levels=levels)

    @property
    def residual_tests(self) -> Literal["all", "size", "none"]:
        return "size"

    @property
    def effort(self) -> EnsembleEffort:
        return EnsembleEffort(self)

    @classmethod
    def verdict(cls, subject: ModelAndData) -> Verdict:
        if subject.is_static:
            return Verdict(False, STATIC_REFUSAL)
        if not subject.disturbances:
            name = subject.flat.name
            return Verdict(False, f"refused: {name} has no disturbances, so every simulation is the same")
        if subject.hidden:
            return Verdict(True, f"chosen: it simulates {subject.hidden}, whatever the way it enters")
        if subject.flat.whens:
            return Verdict(True, "chosen: it simulates events, which a filter does not follow")
        if subject.why_not_filtered:
            return Verdict(True, "chosen: it simulates the model with its disturbances, which filters refuse")
        better = "the likelihood uses what the data say about each disturbance"
        return Verdict(False, f"refused: it compares means only, and {better}", may_serve=True)

    @classmethod
    def for_subject(cls, subject: ModelAndData) -> SimulatedPEM:
        """Return the method with variances matched, where levels are estimated that no mean depends on."""
        told_by_variances = [n for n in subject.levels if n.startswith("noise(") or not subject.hidden]
        return cls(match="mean-variance") if told_by_variances else cls()

    def pose(self, question: FitRequest) -> MeanProblem:
        """Return the problem of a model and its data."""
        require_device(self.device)  # before anything is simulated: that there is none says nothing about the guess
        count = FIRST if self.realizations == "auto" else self.realizations
        options = EnsembleOptions(
            count, self.seed, antithetic=self.antithetic, between=self.between, step=self.step, rtol=self.rtol,
            enough_across_jumps=ENOUGH_ACROSS_JUMPS, threads=self.threads, device=self.device,
        )  # fmt: skip
        matching = OutputMatching(self.match == "mean-variance", self.correction, self.weighting)
        return pose_mean_problem(question, options, matching)

    def simulation_options(self, estimate: Estimate, experiment: str) -> dict[str, Any]:
        """Return how ``gr.simulate`` gives what this method predicts: the mean of an ensemble."""
        pairs = zip(estimate.unknowns, estimate.theta.tolist(), strict=True)
        scales = {f"scale({u.target})": v for u, v in pairs if u.kind == "scale" and u.applies_to(experiment)}
        ensemble = estimate.ensemble
        assert ensemble is not None
        return {
            "realizations": ensemble.realizations, "seed": self.seed, "reduce": "mean",
            "antithetic": self.antithetic, "between": self.between, "step": self.step, "rtol": self.rtol,
            "parameters": scales, "device": self.device,
        }  # fmt: skip

    def estimate(self, problem: EstimationProblem, progress: Progress | None = None) -> Estimate:
        """Solve a problem."""
        begin, problem = time.perf_counter(), problem.of(MeanProblem)
        checkpoint = Checkpoint(self.checkpoint, problem, self._identity()) if self.checkpoint else None
        criterion = MeanCriterion(problem, journal=SearchJournal.of(progress))
        search = MeanSearch(
            criterion, criterion.journal, ENSEMBLES_PER_ITERATION * self.max_iterations, iterations=self.max_iterations,
            keep=checkpoint.write if checkpoint else None,
        )  # fmt: skip
        start = checkpoint.read() if checkpoint else None
        found = EnsembleStages(self).run(search, problem.guess if start is None else start)
        if checkpoint and found.ending.is_minimum:
            checkpoint.remove()
        if start is not None:
            found.notes.append(f"the search went on from the checkpoint {self.checkpoint}.")
        return conclude(search, found, time.perf_counter() - begin)

    def interrupted(self, problem: EstimationProblem, journal: SearchJournal) -> Estimate | None:
        return conclude_interrupted(journal.kept) if isinstance(journal.kept, BestPoint) else None

    def _identity(self) -> str:
        """Return options that a checkpoint must agree in."""
        return repr(
            sorted((k, v) for k, v in asdict(self).items() if k not in ("checkpoint", "threads", "compiled", "device"))
        )
