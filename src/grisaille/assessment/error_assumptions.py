"""Which assumptions of a fit's standard errors its own residuals refute, and by how much.

    correlation   residuals (of filters: innovations) are independent from sample to sample, unless errors are robust
    size          residuals are as large as the declared noise, or as in simulated records
    outliers      none sticks out, unless the loss is robust
    outputs       residuals of different outputs are independent of each other, unless errors are robust

The tests are those of ``fit.diagnose()``, at one level for all series together (Bonferroni). Autocorrelations are first
compared with their law for long records, which is cheap; only what this finds suspicious is tested as short records
want it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from grisaille.assessment import residual_tests as tests
from grisaille.assessment.diagnosis import (
    MAX_NAMED,
    SCREENING_FACTOR,
    TESTS_PER_PAIR,
    ResidualVerdict,
    compared_outputs,
    screened_verdicts,
    size_of,
    taken_by,
)
from grisaille.estimation.experiment_terms import ExperimentTerm
from grisaille.estimation.fitted import Fitted
from grisaille.estimation.measurements.law_properties import (
    has_declared_size,
    heavier,
    laws_of,
    leaves_residuals,
    scatter_beside,
)
from grisaille.estimation.residuals.explanation import UNEXPLAINED_NOTES, WRONG_START_NOTE
from grisaille.estimation.residuals.robust_weights import weigh_robustly
from grisaille.laws import Law

LEVEL, RARE = 0.01, 0.001
"""Probability of a sentence on residuals of a right model: on correlation, and on size; on outputs, and on outliers."""
TINY, ROUNDING = 0.1, 1e-9
"""Residuals in units of declared noise, and errors relative to measurements, below which nothing depends on them."""
NOTABLE_RATIO = 1.2
"""Ratio of sizes that is worth a sentence."""
NOTABLE_CORRELATION = 0.1
"""Correlation of two outputs that is: it changes standard errors by a twentieth."""


@dataclass(frozen=True, eq=False)
class _Series:
    case: ExperimentTerm
    output: str
    r: np.ndarray
    q: np.ndarray
    known: bool
    """Whether the level of noise was declared."""
    relative: float
    """Largest error, of the largest measurement."""

    times: np.ndarray
    robust: np.ndarray | None = None
    """The residuals themselves where ``r`` is as large as a robust loss counts them."""
    law: Law | None = None
    """Of which they are quantile residuals; None where they are errors over noise."""

    @property
    def where(self) -> str:
        return f"{self.output} in '{self.case.name}'"

    @property
    def counts(self) -> bool:
        """Return whether errors come from these residuals: not from rounding, nor from a declared noise far above
        them.
        """
        size = float(np.sqrt(np.mean(self.r**2)))
        return size > (TINY if self.known else 0.0) and self.relative > ROUNDING

    @property
    def left(self) -> float:
        """Degrees of freedom that unknowns leave to this series."""
        return len(self.r) - float(np.sum(self.q**2))


@dataclass(frozen=True)
class _Correlated:
    where: str
    correlation: float
    lag: int
    p: float


def refuted_assumptions(fit: Fitted) -> tuple[str, ...]:
    """Return sentences for the head of a fit's notes."""
    if fit.method.residual_tests == "none" or not fit.estimate.cases or not len(fit.names):
        return ()
    said_before = [n for n in fit.estimate.notes if n.startswith(UNEXPLAINED_NOTES)]
    if any(n.startswith(UNEXPLAINED_NOTES[0]) for n in said_before):
        return ()  # the estimates themselves mean nothing
    if fit.method.residual_tests == "size" or fit.estimate.ensemble is not None:
        return tuple(_unlike_simulated(fit))
    series = [s for s in _series(fit) if len(s.r) >= tests.MIN_SAMPLES and s.left > 3 and np.ptp(s.r) > 0 and s.counts]
    found = [] if fit.estimate.student is not None else list(_correlated(series))
    said = [_correlation_sentence(fit, found, len(series))] if found else []
    return (*said, *_shared(fit), *_outlying(fit, series), *(() if said_before else _unlike_declared(series)))


def residual_verdict(fit: Fitted) -> str:
    """Return in words how many residual tests are unhealthy, and which; empty where residuals are not tested.

    The level holds for all tests together.
    """
    if fit.method.residual_tests != "all" or fit.estimate.ensemble is not None or not fit.estimate.cases:
        return ""
    found = screened_verdicts(fit, LEVEL)
    bad = [v for v in found if not v.healthy]
    if not found:
        return ""
    if not bad:
        return "the one test is healthy" if len(found) == 1 else f"all {len(found)} tests are healthy"
    several = len(fit.estimate.cases) > 1
    named = ", ".join(dict.fromkeys(_named(v, several) for v in bad[:MAX_NAMED]))
    more = ", …" if len(bad) > MAX_NAMED else ""
    verb = "is" if len(bad) == 1 else "are"
    return f"{len(bad)} of {len(found)} tests {verb} unhealthy: {named}{more}; fit.diagnose() says more"


def _named(verdict: ResidualVerdict, several: bool) -> str:
    where = f" in '{verdict.experiment}'" if several else ""
    return f"{verdict.test} of {verdict.output}{where}".replace("between outputs of", "correlation between")


def _series(fit: Fitted) -> Iterator[_Series]:
    e, at = fit.estimate, 0
    q, laws = taken_by(e), laws_of(e)
    for case in e.cases:
        for samples in case.samples:
            part = slice(at, at + len(samples.values))
            at = part.stop
            known = has_declared_size(e, case, samples.output)
            largest = float(np.abs(samples.values).max(initial=0.0))
            relative = float(np.abs(e.evaluation.errors[part]).max(initial=0.0)) / max(largest, 1e-300)
            r, score = e.evaluation.residuals[part], fit.method.score
            yield _Series(
                case, samples.output, r if score is None else weigh_robustly(r, score), q[part], known, relative,
                case.grid[samples.rows], None if score is None else r, laws.get(samples.output),
            )  # fmt: skip


def _correlated(series: list[_Series]) -> Iterator[_Correlated]:
    for s in series:
        if tests.quick_ljung_box(s.r, s.q).p * len(series) > SCREENING_FACTOR * LEVEL:
            continue
        p = tests.ljung_box(s.r, s.q).p
        if p * len(series) < LEVEL:
            rho = tests.autocorrelation(s.r, tests.lag_count(len(s.r)))
            k = int(np.argmax(np.abs(rho)))
            yield _Correlated(s.where, float(rho[k]), k + 1, p)


def _correlation_sentence(fit: Fitted, found: list[_Correlated], among: int) -> str:
    worst = max(found, key=lambda c: abs(c.correlation))
    others = f" (and {len(found) - 1} more of {among} series)" if len(found) > 1 else ""
    what = "residuals" if leaves_residuals(fit.estimate) else "innovations"
    p = "p < 0.001" if worst.p < 0.001 else f"p = {worst.p:.3f}"
    return (
        f"{what} of {worst.where}{others} are not white: correlation {worst.correlation:+.2f} at lag {worst.lag}, {p}. "
        f"Standard errors, intervals, AIC and BIC assume that they are. "
        f"{fit.method.advice.about_correlation(fit.estimate)}"
    )


def _shared(fit: Fitted) -> Iterator[str]:
    """Yield outputs whose residuals are correlated with each other."""
    if fit.estimate.student is not None:
        return
    compared = compared_outputs(fit)
    found = [b for b in compared if b.p * len(compared) < RARE and abs(b.worst.correlation) > NOTABLE_CORRELATION]
    if not found:
        return
    worst = max(found, key=lambda b: abs(b.worst.correlation))
    pairs = [pair for b in found for pair in b.pairs if pair.p * TESTS_PER_PAIR * len(b.pairs) * len(compared) < RARE]
    total = sum(len(b.pairs) for b in compared)
    others = f" (as {len(pairs)} of {total} pairs)" if len(pairs) > 1 else ""
    what = "residuals" if leaves_residuals(fit.estimate) else "innovations"
    p = "p < 0.001" if worst.p < 0.001 else f"p = {worst.p:.3f}"
    yield (
        f"{what} of different outputs are correlated: {worst.worst.words} in '{worst.case.name}', {p}{others}, as of a "
        f"reference or supply that sensors share. Standard errors, intervals, AIC and BIC take outputs as independent. "
        f"{fit.method.advice.about_shared_noise(fit.estimate, worst.worst.first, worst.worst.second)}"
    )


def _outlying(fit: Fitted, series: list[_Series]) -> Iterator[str]:
    """Yield outlying samples, which bias a criterion without a robust loss."""
    if any(n.startswith(WRONG_START_NOTE) for n in fit.estimate.notes):
        return  # first samples stick out because of it
    way, by_law = fit.method.advice.against_outliers, bool(laws_of(fit.estimate))
    what = "residual" if leaves_residuals(fit.estimate) else "innovation"
    for s in series if way else ():
        own = s.r * np.sqrt(s.left / max(float(s.r @ s.r), 1e-300))
        found, where = tests.outliers(own, s.q, max(round(s.left), 2), RARE / len(series))
        if not found.p * len(series) < RARE or not len(where):
            continue
        times = s.times[where]
        at = ", ".join(f"{t:g}" for t in times[:MAX_NAMED]) + (", …" if len(times) > MAX_NAMED else "")
        rows = "row" if s.case.experiment.is_static else "t ="
        count = f"{len(times)} {what}s of {s.where} stick" if len(times) > 1 else f"1 {what} of {s.where} sticks"
        yield (
            f"{count} out, at {rows} {at}: the largest is {found.statistic:.2g} standard deviations of the others. "
            f"Estimates, levels of noise and standard errors follow such samples. Look at the raw data there, or use "
            f"{heavier(s.law) if by_law else way}."
        )


def _unlike_declared(series: list[_Series]) -> Iterator[str]:
    """Yield declared noise that is not the one found."""
    known = [s for s in series if s.known]
    for s in known:
        found, ratio = size_of(s.r if s.robust is None else s.robust, s.q, s.robust is not None)
        if found.p * len(known) < LEVEL and ratio > NOTABLE_RATIO:
            yield _declared_sentence(s, ratio) if s.law is None else _law_sentence(s, s.law, ratio)


def _declared_sentence(series: _Series, ratio: float) -> str:
    return (
        f"residuals of {series.where} are {ratio:.2g} times the declared noise: standard errors, which take it as "
        f"declared, are too small if the model is right. Leave the noise open (noise=None), or look for what the model "
        f"lacks: fit.diagnose()."
    )


def _law_sentence(series: _Series, law: Law, ratio: float) -> str:
    return (
        f"{series.where} is {scatter_beside(law, ratio)}. Standard errors, which take the law as declared, are too "
        f"small if the model is right; fit.diagnose() looks for what it lacks."
    )


def _unlike_simulated(fit: Fitted) -> Iterator[str]:
    """Yield errors of a predicted mean that are not as large as those of simulated records."""
    ensemble = fit.estimate.ensemble
    places = [(s.output, c.name) for c in fit.estimate.cases for s in c.samples]
    for output, name in places:
        size = None if ensemble is None else ensemble.size_of(output, name)
        if size is not None and size.p * len(places) < LEVEL and not 1 / NOTABLE_RATIO < size.ratio < NOTABLE_RATIO:
            yield (
                f"errors of {output} in '{name}' are {size.ratio:.2g} times as large as in simulated records: standard "
                f"errors, which take disturbances and noise as declared, are too "
                f"{'small' if size.ratio > 1 else 'large'} "
                f"if the model is right. Estimate the levels by gr.KalmanML(), or look for what the model lacks."
            )
