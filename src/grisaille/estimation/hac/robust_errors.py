"""Standard errors that hold under residuals with correlation over time and between outputs, and unequal variances.

    C = B (Jᵀ Σ J + prior) B        B = (JᵀJ)⁻¹        Σ: covariance of a process with the residuals' correlation

A short record tells this correlation badly. How badly is found by drawing records from the process, fitting a process
to what the same fit would leave of each, and comparing the variance that follows, V*, with the true one, V: limits that
are q √V̂ away hold for a share E[2 Φ(q √(V*/V)) − 1] of such records. The q of 95 % is told as the degrees of freedom
of
Student's t that has this quantile, one number for each unknown. Where squared innovations are larger where an unknown
is told than elsewhere (by more than chance), its variance is larger by as much.

Nothing can be right where the residuals are correlated over more than the record: errors are then infinite; too few
independent stretches are noted. References: W. K. Newey, K. D. West, Econometrica 55 (1987) 703;
H. White, Econometrica 48 (1980) 817; N. M. Kiefer, T. J. Vogelsang, Econometric Theory 21 (2005) 1130, for quantiles
that know how badly a variance is known.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from grisaille.estimation.experiment_terms import ExperimentTerm
from grisaille.estimation.hac.autoregressive_process import (
    AutoregressiveProcess,
    ResidualMoments,
    spectral_size,
    yule_walker,
)
from grisaille.estimation.hac.series import Floats, grid_of

INTERVAL_LEVEL = 0.95
"""Of the intervals whose quantile decides the degrees of freedom."""
DRAWN, MAX_DRAWS, MIN_DRAWS = 60_000, 150, 24
"""Numbers drawn, and how many records that may be."""
MIN_UNEQUAL_DEVIATIONS = 2.33
"""Standard deviations from which on squared innovations are not equal."""
MIN_INDEPENDENT_STRETCHES = 6.0
"""Independent stretches below which intervals are said to be rough."""
MAX_STUDENT_QUANTILE = 12.7
"""Quantile of Student's t with one degree of freedom, above which nothing is known."""
RANDOM_WALKS = 60
"""Random walks that residuals are compared with."""
MAX_WALK_SHARE = 0.2
"""Share of random walks that leave no more correlation than there is, from which on it may be one."""
TOO_FEW = 8
"""Instants for each coefficient of the shortest process."""


@dataclass(frozen=True)
class RobustErrors:
    """Standard errors that hold under correlated residuals, and how accurate they are: the part that an estimate
    stores.
    """

    degrees_of_freedom: Mapping[str, float]
    """Of Student's t, by the name of the unknown."""
    independent: Mapping[str, float]
    """For how many samples those of each output count, where their mean square is asked for."""
    stretch: float
    """Samples that residuals are correlated for; 1 of white ones, infinite where no process is."""


@dataclass(frozen=True, eq=False)
class RobustCovariance:
    """The covariance of the unknowns, and how well it is known itself."""

    covariance: Floats
    degrees_of_freedom: Floats
    """Of Student's t, for each unknown; infinite where a normal quantile will do."""
    independent: dict[str, float]
    """For how many samples those of each output count, where their mean square is asked for."""
    stretch: float
    """Samples that residuals are correlated for; 1 of white ones, infinite where no process is."""
    notes: tuple[str, ...]

    def known(self, names: Sequence[str]) -> RobustErrors:
        """Return what an estimate keeps, by the names of its unknowns."""
        freedom = dict(zip(names, map(float, self.degrees_of_freedom), strict=True))
        return RobustErrors(freedom, {n: float(v) for n, v in self.independent.items()}, float(self.stretch))


@dataclass(frozen=True, eq=False)
class ScoreSeries:
    """What enters: the weighted Jacobian (data, then priors), the series that the scores are made of, and a root of B.

    taken : the share of a unit of error that residuals follow (1; of robust losses the mean slope of ψ)
    """

    jacobian: Floats
    series: Floats
    root: Floats
    taken: float = 1.0


def robust_errors(
    cases: Sequence[ExperimentTerm], scores: ScoreSeries, names: Sequence[str], *, calibrated: bool = True
) -> RobustCovariance:
    """Return the sandwich of a fit's residuals.

    calibrated : whether degrees of freedom are sought, too, which takes longer
    """
    J, r, prior = scores.jacobian[: len(scores.series)], scores.series, scores.jacobian[len(scores.series) :]
    counted = (np.abs(J).max(axis=1, initial=0.0) > 0) | (r != 0)
    grid = grid_of(cases, counted)
    bread = scores.root @ scores.root.T
    A, U = J[counted] @ bread, np.sqrt(max(scores.taken, 0.0)) * (J[counted] @ scores.root)
    moments = ResidualMoments(grid, U)
    beliefs = bread @ (prior.T @ prior) @ bread
    n = len(names)
    if not moments.lags:
        nothing = np.where(np.diag(bread) > 0, np.inf, 0.0)
        return RobustCovariance(np.diag(nothing), np.full(n, np.inf), {}, np.inf, (_too_few(moments),))
    c = moments.observed(r[counted, None])[0]
    process, is_settled = moments.process_of(c)
    gamma = moments.gamma(process)
    independent = _independent(moments, gamma)
    stretches, longest = _stretches(moments, gamma)
    reach = _reach(grid.outputs[longest], moments, stretches, cases)
    if stretches < 1:
        nothing = np.where(np.diag(bread) > 0, np.inf, 0.0)
        return RobustCovariance(np.diag(nothing), np.full(n, np.inf), independent, np.inf, (_no_process(reach),))
    meat = A.T @ moments.applied(gamma, A)
    variance = np.diag(meat).copy()
    quantile = _quantiles(moments, process, c, A, variance) if calibrated else np.zeros(n)
    larger = _unequal(moments, process, r[counted], A)
    found = meat * np.sqrt(np.outer(larger, larger)) + beliefs
    lost = quantile > MAX_STUDENT_QUANTILE
    is_clear = is_settled and (
        stretches < MIN_INDEPENDENT_STRETCHES or not _may_wander(moments, c, process.order, longest)
    )
    notes = list(_told(reach, stretches, process.order, is_clear))
    if lost.any():
        found[lost], found[:, lost] = 0.0, 0.0
        found[lost, lost] = np.inf
        which = ", ".join(name for name, is_lost in zip(names, lost, strict=True) if is_lost)
        notes.append(f"robust errors: the record is too short to show how far {which} may be off; {reach}.")
    if (larger > 1).any():
        which = ", ".join(f"{name} ({np.sqrt(f):.2g})" for name, f in zip(names, larger, strict=True) if f > 1)
        notes.append(
            f"robust errors: residuals are larger where they determine {which}; errors are larger by this factor."
        )
    return RobustCovariance(found, _degrees(quantile), independent, grid.instants / stretches, tuple(notes))


def _independent(moments: ResidualMoments, gamma: Floats) -> dict[str, float]:
    """Return n / Σ ρ²: what mean squares of n correlated values are worth."""
    found = {}
    for k, name in enumerate(moments.grid.outputs):
        rho = gamma[:, k, k] / gamma[0, k, k]
        n = float(np.sum(moments.grid.output == k))
        found[name] = n / float(1 + 2 * np.sum(rho[1:] ** 2))
    return found


def _stretches(moments: ResidualMoments, gamma: Floats) -> tuple[float, int]:
    """Return how many independent values the records are worth, at the output with the fewest; and which that is."""
    cells = _lasting(np.einsum("kaa->ak", gamma))
    longest = int(np.argmax(cells))
    return moments.grid.instants / float(cells[longest]), longest


def _lasting(gamma: Floats) -> Floats:
    """Return over how many samples values are correlated, (…) of covariances (…, lags): Σρ, or 2 Σρ² − 1 where they
    oscillate.

    Both are 1 of white noise, and nearly the same where correlations fall off slowly without a change of sign.
    """
    rho = gamma[..., 1:] / gamma[..., :1]
    return np.asarray(np.maximum(1 + 2 * rho.sum(axis=-1), 1 + 4 * np.sum(rho**2, axis=-1)))


def _reach(output: str, moments: ResidualMoments, stretches: float, cases: Sequence[ExperimentTerm]) -> str:
    """Describe in words over how long residuals are correlated."""
    count, unit = moments.grid.instants, cases[0].experiment.clock.unit
    span = count * moments.grid.interval
    if cases[0].experiment.is_static:
        what = f"over {count / stretches:.3g} rows of {count}"
    else:
        what = f"over about {span / stretches:.3g} {unit} of the {span:.4g} {unit} recorded"
    return f"residuals of {output} are correlated {what}".replace("  ", " ")


def _no_process(reach: str) -> str:
    return (
        f"robust errors: NONE, {reach}, as long as the record is: no errors can be had from it. Record for longer, or "
        f"model what disturbs (gr.Disturbance) and fit by gr.KalmanML()."
    )


def _may_wander(moments: ResidualMoments, c: Floats, order: int, output: int) -> bool:
    """Return whether a considerable part of the records of a random walk would leave residuals that are no longer
    correlated.
    """
    walks = np.zeros((*moments.grid.shape, RANDOM_WALKS))
    steps = np.random.default_rng(1).standard_normal((*moments.grid.shape[:2], RANDOM_WALKS))
    walks[:, :, output] = np.cumsum(steps, axis=1)
    drawn = moments.grid.gathered(walks)
    seen = moments.observed(drawn - moments.U @ (moments.U.T @ drawn))
    own = slice(output, output + 1)
    sums = np.concatenate([c[None], seen])[:, :, own, own] / moments.whole[output, output]
    found, exists = yule_walker(sums, order)
    reach = min(moments.grid.shape[1], 64 * moments.lags)
    gamma = found.covariances(reach, 1 << int(np.ceil(np.log2(8 * reach))))[..., 0, 0]
    lasting = _lasting(gamma)
    return bool(np.mean(lasting[1:][exists[1:]] <= lasting[0]) > MAX_WALK_SHARE)


def _told(reach: str, stretches: float, order: int, is_clear: bool) -> list[str]:
    if not order:
        return []
    if stretches >= MIN_INDEPENDENT_STRETCHES and is_clear:
        return [f"robust errors: {reach}; this is in the standard errors and intervals."]
    return [
        f"robust errors: ROUGH, {reach}, some {max(stretches, 1.0):.2g} independent stretches: intervals of 95 % hold "
        f"in some 80 to 95 % of such records. Record for longer, or model what disturbs and fit by gr.KalmanML()."
    ]


def _too_few(moments: ResidualMoments) -> str:
    n, m = moments.grid.instants, moments.grid.shape[2]
    return (
        f"robust errors: NONE, {n} instants of {m} output{'' if m == 1 else 's'} are too few to estimate the "
        f"correlation "
        f"of residuals; at least {TOO_FEW * m} are needed."
    )


def _quantiles(
    moments: ResidualMoments, process: AutoregressiveProcess, c: Floats, A: Floats, variance: Floats
) -> Floats:
    """Return, in units of √V, how wide limits must be for their level, given how uncertain V is from such records."""
    from scipy.optimize import brentq
    from scipy.stats import norm

    count = int(np.clip(DRAWN // len(A), MIN_DRAWS, MAX_DRAWS))
    drawn = moments.draw(process, count)
    left = drawn - moments.U @ (moments.U.T @ drawn)
    reach = len(moments.gamma(process))
    size, kernel = spectral_size(process, 2 * reach), moments.weights(A, reach)
    seen, exists = moments.first(moments.observed(left), process.order)
    own, _ = moments.first(c, process.order)
    V = np.full((count, A.shape[1]), np.nan)
    V[exists] = np.einsum("dlab,klab->dk", seen.covariances(reach, size)[exists], kernel)
    mine = np.einsum("lab,klab->k", own.covariances(reach, size), kernel)
    found = np.zeros(A.shape[1])
    for k in range(A.shape[1]):
        if not variance[k] > 0:
            continue
        ratio = np.sqrt(np.maximum(V[exists, k], 0.0) / variance[k])

        def short(q: float, ratio: Floats = ratio) -> float:
            return float(np.mean(2 * norm.cdf(q * ratio) - 1)) - INTERVAL_LEVEL

        widest = 1e3
        q = brentq(short, 1e-3, widest) if len(ratio) and short(widest) > 0 else np.inf
        found[k] = q * np.sqrt(max(mine[k], 0.0) / variance[k])
    return found


def _unequal(moments: ResidualMoments, process: AutoregressiveProcess, r: Floats, A: Floats) -> Floats:
    """Return factors of variances: Σ (gᵀε)² / Σ gᵀSg where this is above one by more than chance, g = LᵀA, e = Lε."""
    grid, p = moments.grid, process.order
    cells, whole = grid.shape[1], np.asarray(grid.spread(np.ones(len(r))).all(axis=-1))
    e, fits = grid.spread(r), whole.copy()
    innovation = e.copy()
    for j in range(1, p + 1):
        innovation[:, j:] -= np.einsum("ab,etb->eta", process.phi[j - 1], e[:, :-j])
        fits[:, j:] &= whole[:, :-j]
        fits[:, : min(j, cells)] = False
    size = 1 << int(np.ceil(np.log2(cells + min(process.memory, 4 * cells))))
    H = process.transfer(size)
    back = np.einsum("fba,efbk->efak", np.conj(H), np.fft.rfft(grid.spread(A), size, axis=1))
    g = np.fft.irfft(back, size, axis=1)[:, :cells]
    squared = np.einsum("etak,eta->etk", g, innovation)[fits] ** 2
    usual = np.einsum("etak,ab,etbk->etk", g, process.noise, g)[fits]
    total, spread = usual.sum(axis=0), np.sqrt(2 * np.sum(usual**2, axis=0))
    with np.errstate(divide="ignore", invalid="ignore"):
        excess, ratio = (squared.sum(axis=0) - total) / spread, squared.sum(axis=0) / total
    return np.asarray(np.where((excess > MIN_UNEQUAL_DEVIATIONS) & np.isfinite(ratio), ratio, 1.0))


def _degrees(quantile: Floats) -> Floats:
    """Return ν with this quantile of Student's t; infinite where it is below the normal one."""
    from scipy.optimize import brentq
    from scipy.stats import norm, t

    normal = float(norm.ppf(0.5 + INTERVAL_LEVEL / 2))
    return np.array(
        [
            np.inf
            if q <= 1.0001 * normal or q > MAX_STUDENT_QUANTILE
            else float(brentq(lambda v, q=q: t.ppf(0.5 + INTERVAL_LEVEL / 2, v) - q, 1.0, 1e7))
            if q < float(t.ppf(0.5 + INTERVAL_LEVEL / 2, 1.0))
            else 1.0
            for q in quantile
        ]
    )
