"""``fit.diagnose()``: tests of the residuals, per experiment and output, with a verdict in words.

Residuals of a right model are white, normal, and have nothing to do with the inputs nor with those of other outputs.
Each test has a verdict and, where it fails, a sentence on what that usually means. The tests themselves are in
``residual_tests.py`` and ``between_outputs.py``. Errors of a predicted mean hold the disturbances and are none of that;
only their size is compared, with that of the realizations.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from grisaille.assessment import residual_tests as tests
from grisaille.assessment.between_outputs import MAX_LAGS, OutputCorrelations, between_outputs
from grisaille.assessment.deviances import check_level
from grisaille.bound_experiment.data_matrix import OutputSamples
from grisaille.calling import checked_methods
from grisaille.estimation.estimator import SIMULATION
from grisaille.estimation.experiment_terms import ExperimentTerm
from grisaille.estimation.fitted import Fitted
from grisaille.estimation.measurements.law_properties import (
    has_declared_size,
    heavier,
    laws_of,
    name_of,
    scatter_beside,
)
from grisaille.estimation.measurements.reseeding import with_new_seed
from grisaille.estimation.predictions.horizons import horizon_text
from grisaille.estimation.residuals.robust_weights import weigh_robustly
from grisaille.experiment.experiment_summary import unrecorded_inputs
from grisaille.experiment.sampled_signals import evaluate
from grisaille.experiment.times.clock import Clock
from grisaille.experiment.times.dating import clock_of
from grisaille.laws import Law

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from grisaille.drawing import Canvas
    from grisaille.estimation.estimate import Estimate

MAX_NAMED = 5
BETWEEN_OUTPUTS = "between outputs"
TESTS_PER_PAIR = 2 * MAX_LAGS + 1
"""Tests of one pair of outputs."""
SCREENING_FACTOR = 10
"""Times the level: p values of a cheap test below which the right one is made."""
TRAJECTORIES_FOLLOW_DATA = (
    "not tested: trajectories that follow the data leave residuals that are correlated and smaller than the noise, "
    "even of a right model"
)
SMOOTHED_TRAJECTORIES = f"{TRAJECTORIES_FOLLOW_DATA}; gr.KalmanML leaves innovations, which can be tested."
SMOOTHED_BY_LAW = (
    f"{TRAJECTORIES_FOLLOW_DATA}; gr.monte_carlo(fit.model, fit.experiments, …) shows what such "
    "records look like if the model holds."
)


OUTLIER_PROBABILITY = 0.01
"""Probability at which some of normal residuals stick out of the middle of them."""
NOT_NORMAL = "not tested: a robust loss does not take residuals to be normal."


@dataclass(frozen=True)
class ResidualVerdict:
    """One test of one series of residuals."""

    experiment: str
    output: str
    test: str
    statistic: float
    degrees_of_freedom: float
    p: float
    healthy: bool
    sentence: str
    """What an unhealthy one suggests; what was found, otherwise."""


@dataclass(frozen=True)
class ResidualSeries:
    """The residuals of one output in one experiment, and what is drawn of them."""

    experiment: str
    output: str
    times: np.ndarray
    residuals: np.ndarray
    """Standardized."""
    is_static: bool
    autocorrelation: np.ndarray
    periodogram: tests.Periodogram
    inputs: dict[str, np.ndarray]
    """Correlation with each input at lags 0, 1, … (or powers 1, 2, 3)."""
    outliers: np.ndarray
    clock: Clock | None = None
    """Of the times; None where rows are numbered."""
    by_law: bool = False
    """Whether they are randomised quantile residuals of a law."""


@dataclass(frozen=True)
@checked_methods
class Diagnosis:
    """The verdicts of all residual tests; true when every one is healthy."""

    verdicts: tuple[ResidualVerdict, ...]
    series: tuple[ResidualSeries, ...]
    level: float

    def __bool__(self) -> bool:
        return all(v.healthy for v in self.verdicts)

    @property
    def tested(self) -> tuple[ResidualVerdict, ...]:
        """Return the verdicts that have a p value."""
        return tuple(v for v in self.verdicts if np.isfinite(v.p))

    @property
    def unhealthy_together(self) -> tuple[ResidualVerdict, ...]:
        """Return the tests that are unhealthy at ``level`` for all tests together (Bonferroni), as ``print(fit)``
        counts.
        """
        return _unhealthy_together(self.tested, self.level)

    @property
    def together(self) -> str:
        """Return how many tests are unhealthy at ``level`` for all tests together, in words."""
        bad, made = len(self.unhealthy_together), len(self.tested)
        if not made:
            return "nothing was tested"
        at = f"at the level {self.level:g} for all tests together"
        if made == 1:
            return f"the one test is {'unhealthy' if bad else 'healthy'} at the level {self.level:g}"
        if not bad:
            return f"all {made} tests are healthy {at}"
        return f"{bad} of {made} tests {'is' if bad == 1 else 'are'} unhealthy {at}"

    @property
    def table(self) -> pd.DataFrame:
        """Return one row per test."""
        import pandas as pd

        return pd.DataFrame([vars(v) for v in self.verdicts])

    def plot(self, *, ax: Canvas | None = None) -> Figure:
        """Plot a row per series: residuals, autocorrelation, cumulated periodogram, normal quantiles.

        ax : axes to draw on instead of a new figure, four per series
        """
        from grisaille.assessment.plotting import draw_diagnosis

        return draw_diagnosis(self, ax)

    def __str__(self) -> str:
        lines = []
        for s in self.series:
            mine = [v for v in self.verdicts if (v.experiment, v.output) == (s.experiment, s.output)]
            lines.append(
                f"residuals of {s.output} in {s.experiment} ({len(s.residuals)} sample{'s' * (len(s.residuals) != 1)})"
            )
            lines += [_line(v) for v in mine]
        for v in self.verdicts:
            if v.test == BETWEEN_OUTPUTS:
                lines += [f"residuals of {v.output} in {v.experiment}, compared with each other", _line(v)]
        bad = sum(not v.healthy for v in self.verdicts)
        if all(np.isnan(v.p) for v in self.verdicts):
            return "\n".join([*lines, "Nothing was tested."])
        every = "The one test is" if len(self.verdicts) == 1 else f"All {len(self.verdicts)} tests are"
        lines.append(
            f"{bad} of {len(self.verdicts)} tests are unhealthy at the level {self.level:g}, "
            f"{len(self.unhealthy_together)} of them at {self.level:g} for all tests together."
            if bad
            else f"{every} healthy at the level {self.level:g}."
        )
        return "\n".join(lines)

    __repr__ = __str__


def diagnose(fit: Fitted, level: float = 0.01, seed: int = 0) -> Diagnosis:
    """Test the residuals of every output and experiment, each test at this level.

    seed : of what is random in the residuals of counts and of values at limits
    """
    check_level(level)
    estimate = with_new_seed(fit.estimate, seed)
    fit = fit if estimate is fit.estimate else Fitted(fit.initial_model, fit.experiments, fit.method, estimate, fit.why)
    parts = list(_parts(fit, level))
    verdicts = [v for part in parts for v in part.verdicts()]
    return Diagnosis((*verdicts, *_between(fit, level)), tuple(part.series() for part in parts), level)


def screened_verdicts(fit: Fitted, level: float) -> tuple[ResidualVerdict, ...]:
    """Return the same verdicts at one level for all tests together (Bonferroni).

    What takes long, laws of short records by drawing, is computed for suspicious series only.
    """
    found = [v for part in _parts(fit, level) for v in part.verdicts(screened=SCREENING_FACTOR * level)]
    found = [v for v in (*found, *_between(fit, level)) if np.isfinite(v.p)]
    bad = {id(v) for v in _unhealthy_together(found, level)}
    return tuple(replace(v, healthy=id(v) not in bad) for v in found)


def _unhealthy_together(tested: Sequence[ResidualVerdict], level: float) -> tuple[ResidualVerdict, ...]:
    """Return the tests whose p value, times the number of tests, is below the level (Bonferroni)."""
    return tuple(v for v in tested if v.p * len(tested) < level)


def _parts(fit: Fitted, level: float) -> Iterator[_TestedSeries]:
    estimate, at = fit.estimate, 0
    q, laws = taken_by(estimate), laws_of(estimate)
    for case in estimate.cases:
        for samples in case.samples:
            part = slice(at, at + len(samples.values))
            at = part.stop
            known = has_declared_size(estimate, case, samples.output)
            r = estimate.evaluation.residuals[part]
            score = fit.method.score
            shown = r if score is None else weigh_robustly(r, score)
            made = _TestedSeries(case, samples, shown, q[part], known and score is None, estimate, level)
            made.smoothed = fit.method.states is not None and fit.method.states.follow_data
            made.robust = None if score is None else r
            made.is_declared = known
            made.law = laws.get(samples.output)
            yield made


def _between(fit: Fitted, level: float) -> Iterator[ResidualVerdict]:
    """Yield one for each experiment with several outputs that were measured at the same instants."""
    for found in compared_outputs(fit):
        healthy, worst = not found.p < level, found.worst
        paired = {name for pair in found.pairs for name in (pair.first, pair.second)}
        names = [s.output for s in found.case.samples if s.output in paired]
        listed = " and ".join(names) if len(names) == 2 else f"{', '.join(names[:-1])} and {names[-1]}"
        alike = sum(pair.p * TESTS_PER_PAIR * len(found.pairs) < level for pair in found.pairs)
        others = f" (and {alike - 1} of {len(found.pairs) - 1} other pairs)" if alike > 1 else ""
        yield ResidualVerdict(
            found.case.name, listed, BETWEEN_OUTPUTS, abs(worst.correlation), np.nan, found.p, healthy,
            "outputs are not correlated." if healthy else f"{worst.words}{others}: noise that sensors share, or a "
            f"disturbance that is missing; standard errors are too small.",
        )  # fmt: skip


def compared_outputs(fit: Fitted) -> list[OutputCorrelations]:
    """Return the outputs of each experiment against each other, compared once; none where residuals need not be
    white.
    """
    known: list[OutputCorrelations] | None = vars(fit).get("_compared_outputs")
    if known is None:
        known = vars(fit)["_compared_outputs"] = _compared_outputs(fit)
    return known


def _compared_outputs(fit: Fitted) -> list[OutputCorrelations]:
    estimate = fit.estimate
    if (
        fit.method.residual_tests != "all"
        or estimate.ensemble is not None
        or fit.method.predictions_are not in (SIMULATION, horizon_text(1))
        or len(estimate.evaluation.residuals) < estimate.count
        or not any(len(case.samples) > 1 for case in estimate.cases)
    ):
        return []
    return list(between_outputs(fit, taken_by(estimate)))


def taken_by(estimate: Estimate) -> np.ndarray:
    """Return the directions that the unknowns took from the residuals, for a likelihood by its whole information."""
    J, information = estimate.evaluation.jacobian, estimate.evaluation.information
    if not estimate.free.any() or not len(J):  # an ensemble without derivatives
        return np.zeros((len(estimate.evaluation.residuals), 0))
    if estimate.evaluation.is_least_squares or not information.size or not np.isfinite(information).all():
        return tests.orthonormal(J[:, estimate.free])
    return tests.taken_directions(J[:, estimate.free], information[np.ix_(estimate.free, estimate.free)])


class _TestedSeries:
    """One series under test."""

    screened = 1.0
    smoothed = False
    """Whether the trajectories followed the data that they are compared with."""
    robust: np.ndarray | None = None
    """The residuals themselves where those tested are as large as a robust loss counts them."""
    is_declared = False
    """Whether their noise was."""
    law: Law | None = None
    """Of which they are quantile residuals; None where they are errors over noise."""

    def __init__(
        self,
        case: ExperimentTerm,
        samples: OutputSamples,
        r: np.ndarray,
        q: np.ndarray,
        known: bool,
        estimate: Estimate,
        level: float,
    ) -> None:
        self.case, self.output, self.r, self.q, self.known, self.level = case, samples.output, r, q, known, level
        self.times = case.grid[samples.rows]
        self.is_static = bool(case.experiment.is_static)
        self.disturbed: tests.ResidualTest | None = None
        if estimate.ensemble is not None:
            size = estimate.ensemble.size_of(samples.output, case.name)
            self.disturbed = tests.ResidualTest(size.ratio, size.p)
        self.enough = len(r) >= tests.MIN_SAMPLES and float(np.sum(q**2)) < len(r) - 3 and bool(np.ptp(r) > 0)
        self.degrees_of_freedom = max(len(r) - round(float(np.sum(q**2))), 2)
        # the scale of an unknown level comes from all residuals of the output; here each series answers for itself
        self.own = r * np.sqrt(max(len(r) - float(np.sum(q**2)), 0.0) / max(float(r @ r), 1e-300))
        self.scaled = r if known else self.own

    def verdicts(self, screened: float = 1.0) -> Iterator[ResidualVerdict]:
        """Yield one for each test; p values above ``screened`` need not be those of short records."""
        self.screened = screened
        if self.disturbed is not None:
            yield self._spread(self.disturbed)
            return
        if self.smoothed:
            why = SMOOTHED_TRAJECTORIES if self.law is None else SMOOTHED_BY_LAW
            yield self._verdict("smoothed", tests.ResidualTest(len(self.r), np.nan), why, "")
            return
        if not self.enough:
            yield self._verdict(
                "too short", tests.ResidualTest(len(self.r), np.nan), "too few samples left to test.", ""
            )
            return
        yield self._whiteness()
        yield self._spectrum()
        yield from self._inputs()
        yield self._normality()
        yield self._outliers()
        if self.is_declared:
            yield self._size()

    def series(self) -> ResidualSeries:
        lags = tests.lag_count(len(self.r))
        found = self._sticking_out()[1] if self.enough else np.zeros(0)
        empty = tests.Periodogram(np.zeros(0), np.zeros(0), 0.0, np.nan)
        return ResidualSeries(
            self.case.name, self.output, self.times, self.r if self.robust is None else self.robust, self.is_static,
            tests.autocorrelation(self.r, lags) if self.enough else np.zeros(0),
            tests.cumulated_periodogram(self.r, self.q) if self.enough else empty,
            {n: tests.cross_correlation(self.r, u) for n, u in self._regressors() if self.enough},
            np.asarray(found, dtype=int), clock_of(self.case.experiment), self.law is not None,
        )  # fmt: skip

    def _verdict(self, test: str, found: tests.ResidualTest, good: str, bad: str) -> ResidualVerdict:
        healthy = not found.p < self.level
        return ResidualVerdict(
            self.case.name, self.output, test, found.statistic, found.degrees_of_freedom, found.p, healthy,
            good if healthy else bad,
        )  # fmt: skip

    def _whiteness(self) -> ResidualVerdict:
        found = tests.quick_ljung_box(self.r, self.q) if self.screened < 1 else None
        if found is None or not found.p > self.screened:
            found = tests.ljung_box(self.r, self.q)
        rho = tests.autocorrelation(self.r, tests.lag_count(len(self.r)))
        k = int(np.argmax(np.abs(rho)))
        order = " in the order of the rows" if self.is_static else ""
        return self._verdict(
            "autocorrelation", found, f"no residual can be predicted from earlier ones{order}.",
            f"correlation {rho[k]:+.2f} at lag {k + 1}{order}: dynamics or a disturbance are missing, and standard "
            f"errors are too small.",
        )  # fmt: skip

    def _spectrum(self) -> ResidualVerdict:
        found = tests.cumulated_periodogram(self.r, self.q, quick=self.screened < 1)
        if self.screened < 1 and not found.p > self.screened:
            found = tests.cumulated_periodogram(self.r, self.q)
        frequency, sign = found.excess
        where = f"every {1 / frequency:.3g} samples" if frequency > 0 else "at no frequency"
        bad = (
            f"too much power slower than one period {where}: a drift or a slow part of the model is missing."
            if sign > 0
            else f"too much power faster than one period {where}: a fast oscillation is missing, or signs alternate."
        )
        return self._verdict("periodogram", tests.ResidualTest(found.distance, found.p), "the spectrum is flat.", bad)

    def _inputs(self) -> Iterator[ResidualVerdict]:
        for name, u in self._regressors():
            found = tests.input_dependence(self.scaled, self.q, u, known=self.known)
            if not found.degrees_of_freedom > 0:
                continue
            c = tests.cross_correlation(self.r, u)
            k = int(np.argmax(np.abs(c)))
            bad = (
                f"they still contain {name}{'' if k == 0 else f' to the power {k + 1}'}: the formula bends differently."
                if self.is_static
                else f"they still contain {name} of {k} samples ago: what leads from {name} to {self.output} lacks "
                f"dynamics, a delay or a nonlinearity."
            )
            yield self._verdict(f"input {name}", found, f"nothing of {name} is left in them.", bad)

    def _normality(self) -> ResidualVerdict:
        if self.robust is not None:
            return self._verdict("normality", tests.ResidualTest(np.nan, np.nan), NOT_NORMAL, "")
        if self.law is not None:
            return self._law_itself(self.law)
        tails = float(np.mean(((self.r - self.r.mean()) / self.r.std()) ** 4))
        bad = (
            "heavier tails than a normal distribution: outliers, or noise that varies; try a robust loss."
            if tails > 3
            else "not normal: clipping, rounding or a jump in the data; standard errors hold only approximately."
        )
        return self._verdict("normality", tests.normality(self.r), "they scatter like a normal distribution.", bad)

    def _law_itself(self, law: Law) -> ResidualVerdict:
        """Test quantile residuals, which are normal if the law holds."""
        name, spread = name_of(law), (self.r - self.r.mean()) / self.r.std()
        bad = (
            f"heavier tails than the law {name} has: outliers, or another law: {heavier(law)}."
            if float(np.mean(spread**4)) > 3
            else f"they do not scatter as the law {name} says: another law, or a jump in the data; standard errors "
            f"hold only approximately."
        )
        return self._verdict("normality", tests.normality(self.r), f"they scatter as the law {name} says.", bad)

    def _outliers(self) -> ResidualVerdict:
        found, where = self._sticking_out()
        what = "row" if self.is_static else "t ="
        named = ", ".join(f"{self.times[k]:g}" for k in where[:MAX_NAMED]) + (", …" if len(where) > MAX_NAMED else "")
        verb = "sticks" if len(where) == 1 else "stick"
        if self.robust is not None and len(where):
            less = "it" if len(where) == 1 else "them"
            return self._verdict(
                "outliers",
                found,
                f"{len(where)} {verb} out, at {what} {named}: the robust loss counts {less} less.",
                "",
            )
        way = "use a robust loss" if self.law is None else f"take another law: {heavier(self.law)}"
        look = f"look at the raw data there, or {way}."
        blind = self._unrecorded(self.times[where])
        if blind:
            look = (
                f"what {blind} did before is not recorded. Cut there, split(time=…, restart=True), or say it by fill=."
            )
        bad = f"{len(where)} {verb} out, at {what} {named}: {look}"
        return self._verdict("outliers", found, "none sticks out.", bad)

    def _sticking_out(self) -> tuple[tests.ResidualTest, np.ndarray]:
        if self.robust is None:
            return tests.outliers(self.own, self.q, self.degrees_of_freedom, self.level)
        largest, where = tests.sticking_out(self.robust, self.level)
        return tests.ResidualTest(largest, np.nan), where

    def _unrecorded(self, times: np.ndarray) -> str:
        """Return inputs that nobody recorded for long just before one of these times."""
        gaps = unrecorded_inputs(self.case.experiment)
        first = {name: [self.times[self.times >= end][:1] for _, end in found] for name, found in gaps.items()}
        return ", ".join(name for name, after in first.items() if np.isin(np.concatenate(after), times).any())

    def _spread(self, found: tests.ResidualTest) -> ResidualVerdict:
        """Return errors of a mean against the realizations it is the mean of."""
        known = "they hold the disturbances, so they need be neither white nor normal"
        if np.isnan(found.p):
            return self._verdict(
                "disturbances", found, f"{known}; with open or fitted levels their size says nothing.", ""
            )
        return self._verdict(
            "size", found, f"{known}; they are as large as in simulated records.",
            f"they are {ratio_text(found.statistic)} times as large as in simulated records: disturbances or noise are "
            f"{'larger' if found.statistic > 1 else 'smaller'} than declared, or the model is wrong.",
        )  # fmt: skip

    def _size(self) -> ResidualVerdict:
        found, ratio = size_of(self.r if self.robust is None else self.robust, self.q, self.robust is not None)
        if self.law is not None:
            return self._verdict(
                "size", found, f"they scatter as widely as the law {name_of(self.law)}.",
                f"{scatter_beside(self.law, ratio)}, or the model is wrong.",
            )  # fmt: skip
        bad = (
            f"they are {ratio_text(ratio)} times the declared noise: the noise is larger than declared, or the "
            f"model is wrong."
            if ratio > 1
            else f"they are {ratio:.2g} times the declared noise: noise and standard errors are smaller than declared."
        )
        return self._verdict("size", found, "they are as large as the declared noise.", bad)

    def _regressors(self) -> Iterator[tuple[str, np.ndarray]]:
        experiment = self.case.experiment
        for name, signal in experiment.inputs.items():
            u = evaluate(signal, "zoh" if self.is_static else experiment.hold[name], self.times)
            columns = tests.regressors(u, len(u), is_static=self.is_static)
            if columns.shape[1] and np.isfinite(columns).all():
                yield name, columns


def size_of(r: np.ndarray, q: np.ndarray, is_robust: bool) -> tuple[tests.ResidualTest, float]:
    """Return whether residuals are as large as the declared noise, and how large they are in units of it.

    is_robust : whether a robust loss counts those less that stick out, so that the middle of the others is what counts
    """
    if is_robust and len(tests.sticking_out(r, OUTLIER_PROBABILITY)[1]):
        return tests.middle_size(r, q)
    found = tests.size(r, q)
    return found, float(np.sqrt(found.statistic / max(found.degrees_of_freedom, 1e-12)))


def _line(verdict: ResidualVerdict) -> str:
    return f"  {_mark(verdict)} {verdict.test:<18}{_p(verdict.p):<12}{verdict.sentence}"


def _mark(verdict: ResidualVerdict) -> str:
    """Return the mark of a verdict; what was not tested is neither good nor bad."""
    return "–" if np.isnan(verdict.p) and verdict.healthy else "✓" if verdict.healthy else "✗"


def _p(p: float) -> str:
    return "" if np.isnan(p) else f"p = {p:.3f}" if p >= 0.001 else "p < 0.001"


def ratio_text(ratio: float) -> str:
    """Return two digits; whole numbers in full up to a million."""
    return f"{ratio:.2g}" if ratio < 99.5 or ratio >= 1e6 else f"{ratio:.0f}"
