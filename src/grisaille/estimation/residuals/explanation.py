"""Whether a fit explains its data: residuals against the noise that was declared.

A search may end, and truly converge, in a minimum far from every explanation: small standard errors there are those of
a model that is known to be wrong. Where the noise of an output is declared, the root mean square of its standardized
residuals says so; where it is estimated, nothing does. Residuals that hold disturbances are compared with those of
records simulated from the fitted model, as far as the estimator has done so.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from grisaille.estimation.estimate import Estimate
from grisaille.estimation.estimator import Estimator
from grisaille.estimation.measurements.law_properties import has_declared_size, laws_of, name_of, scatter_beside
from grisaille.estimation.measurements.recorded import errors_beside_recorded
from grisaille.estimation.residuals.robust_weights import Score, middle_level, weigh_robustly

UNEXPLAINED_NOTES = ("not an explanation:", "large residuals:")
"""How the notes begin that say so."""
WRONG_START_NOTE = "start:"
"""How the note begins that a record does not begin where it was declared to."""
LARGE, FAR = 3.0, 10.0
"""Root mean squares, in units of the declared noise, from which on a note says so, and the status too."""
WORSE, WORSE_SAMPLES = 0.02, 10.0
"""Least −R², and times the number of samples, from which on a prediction is worse than the mean not by chance."""
SQUARES_ROUNDING = 1e-12
"""Of a sum of squares: outputs that vary less do not vary."""
MAX_SIZE_RATIO = 2.5
"""The same over the median of simulated records, where none of these has errors as large."""


def with_explanation(estimate: Estimate, method: Estimator, *, disturbed: bool) -> Estimate:
    """Return the estimate with a first note, and another status, where its residuals are far larger than the noise.

    disturbed : whether the model is, which decides what may help
    """
    disturbed_sizes, is_robust = _sizes_among_simulated(estimate), method.score is not None
    worst = disturbed_sizes or residual_sizes(estimate, is_robust=is_robust)
    far = MAX_SIZE_RATIO if disturbed_sizes else FAR
    if not worst or max(worst.values()) <= (MAX_SIZE_RATIO if disturbed_sizes else LARGE):
        return _beside_the_mean(estimate, method, worst, disturbed=disturbed)
    output = max(worst, key=lambda n: worst[n])
    law = laws_of(estimate).get(output)
    way = "leave the noise open (noise=None)" if law is None else "another law, whose size is estimated"
    if disturbed_sizes:
        told = (
            f"the errors of {output} are {worst[output]:.3g} times as large (root mean square) as in records simulated "
            f"from the fitted model, and larger than in any of them"
        )
        small = "disturbances or a noise that are declared too small"
    else:
        how = "in the middle of them" if is_robust else "root mean square"
        beside = "the declared noise" if law is None else f"what the law {name_of(law)} leaves"
        told = f"the residuals of {output} are {worst[output]:.3g} times {beside} ({how})"
        small = "a noise that is declared too small" if law is None else "a law that is too narrow"
    if worst[output] <= far:
        wide = "the noise is larger than declared" if law is None else scatter_beside(law, worst[output])
        note = f"large residuals: {told}: {wide}, or the model is not complete."
        return _beside_the_mean(replace(estimate, notes=(note, *estimate.notes)), method, worst, disturbed=disturbed)
    return _unexplained(
        estimate,
        f"not an explanation: {told}: a local minimum far from the data, a wrong model, or {small}; estimates and "
        f"standard errors mean nothing then. Try {_ways(method, disturbed)}, or {way}.",
    )


def _ways(method: Estimator, disturbed: bool) -> str:
    return ", ".join(["gr.multistart(…)", "another guess=", *method.advice.ways_out(disturbed)])


def _unexplained(estimate: Estimate, note: str) -> Estimate:
    """Return the estimate with a first note and, where it converged, a status that says that the data are not
    explained.
    """
    status = estimate.status
    if estimate.converged:
        status = status.replace("converged:", "converged, but NOT to an explanation of the data:", 1)
    return replace(estimate, status=status, notes=(note, *estimate.notes))


def _beside_the_mean(estimate: Estimate, method: Estimator, sizes: dict[str, float], *, disturbed: bool) -> Estimate:
    """Return the same, and another status where an output is predicted worse than by one number, the mean of its
    samples.

    Not where declared noise explains what is left, nor of means that disturbances carry off, as they do with slow ones
    and short records.
    """
    follows_data = method.states is not None and method.states.follow_data
    if follows_data or estimate.ensemble is not None or (disturbed and method.ahead is None):
        return estimate
    found = {
        name: r2
        for name, (r2, samples) in _shares_explained(estimate, method.score).items()
        if r2 < -max(WORSE, WORSE_SAMPLES / samples) and sizes.get(name, np.inf) > LARGE
    }
    if not found:
        return estimate
    worst = min(found, key=lambda n: found[n])
    return _unexplained(
        estimate,
        f"not an explanation: {worst} is predicted worse than by the mean of its samples (R² = {found[worst]:.2g}): a "
        f"local minimum far from the data, or a wrong model; estimates and standard errors mean nothing then. Try "
        f"{_ways(method, disturbed)}.",
    )


def _shares_explained(estimate: Estimate, score: Score | None) -> dict[str, tuple[float, int]]:
    """Return R² and the number of samples of each output, over all experiments, as a robust loss counts errors."""
    found, at, errors = {}, 0, errors_beside_recorded(estimate)
    parts: dict[str, list[tuple[np.ndarray, np.ndarray]]] = {}
    for case in estimate.cases:
        for s in case.samples:
            parts.setdefault(s.output, []).append((s.values, errors[at : at + len(s.values)]))
            at += len(s.values)
    for name, pairs in parts.items():
        y, e = (np.concatenate([pair[k] for pair in pairs]) for k in (0, 1))
        if score is not None:
            e, y = weigh_robustly(e, score), y - e + weigh_robustly(e, score)
        spread, left = float(np.sum((y - y.mean()) ** 2)), float(e @ e)
        if spread > SQUARES_ROUNDING * float(y @ y):
            found[name] = 1 - left / spread, len(y)
    return found


def _sizes_among_simulated(estimate: Estimate) -> dict[str, float]:
    """Return root mean square of the errors of each output over that in simulated records, where it is above all of
    them.
    """
    return {} if estimate.ensemble is None else {u.output: u.times for u in estimate.ensemble.unexplained}


def residual_sizes(estimate: Estimate, *, is_robust: bool = False) -> dict[str, float]:
    """Return root mean square of the standardized residuals of each output whose noise was declared; for robust fits
    from the middle of them.
    """
    if estimate.ensemble is not None:
        return {}
    names = [s.output for c in estimate.cases for s in c.samples for _ in s.values]
    r = np.asarray(estimate.evaluation.residuals[: len(names)], dtype=float)
    if len(r) < len(names):
        return {}
    of = np.array(names)
    known = [n for n in dict.fromkeys(names) if n not in estimate.noise]
    if laws_of(estimate):
        measured = [(s.output, c) for c in estimate.cases for s in c.samples]
        known = [n for n in known if all(has_declared_size(estimate, c, n) for o, c in measured if o == n)]
    if is_robust:
        return {n: middle_level(r[of == n]) for n in known}
    return {n: float(np.sqrt(np.mean(r[of == n] ** 2))) for n in known}
