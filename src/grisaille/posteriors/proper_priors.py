"""Which prior each unknown has in a posterior, and the refusal of unknowns that have none.

One rule: a prior is the distribution that it names, whatever scale its unknown is searched on, and whatever a fit
maximises it per unit of (``laws.law``). Two finite bounds without a prior are the uniform distribution between them,
per unit of the unknown, also of one that is searched by its logarithm. A prior and bounds together are the prior cut
off at the bounds.

A level of measurement noise that has neither gets

    noise(y) ~ HalfCauchy(s),      s the standard deviation of what was measured of y

whose median is s: noise larger than the data are improbable, none is excluded, and the density is finite at zero
(A. Gelman, Bayesian Analysis 1, 2006). For everything else no such scale is known, and a posterior without a proper
prior need not exist: it is refused.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from grisaille.bound_experiment.unknown import Unknown
from grisaille.errors import EstimationError
from grisaille.estimation.density.log_density import LogDensity
from grisaille.laws import HalfCauchy, JointLaw, Law, MultivariateNormal, Prior

Priors = Mapping[str, Prior | None] | Sequence[MultivariateNormal] | MultivariateNormal | None
"""As users give them."""
MAX_LISTED = 6
"""Unknowns that a refusal names."""


def level_priors(density: LogDensity, given: Mapping[str, Law]) -> dict[str, Law]:
    """Return the priors of noise levels that the density itself does not contain; refuse unknowns without a prior.

    given : of noise levels that the method does not count among its own unknowns, by name
    """
    found = dict(given)
    improper = []
    for unknown, limits in zip(density.unknowns, density.ranges, strict=True):
        if unknown.name in found or is_proper(unknown, limits):
            continue
        if unknown.kind == "noise":
            found[unknown.name] = HalfCauchy(_spread_of_data(density, unknown))
        else:
            improper.append(unknown)
    if improper:
        raise EstimationError(improper_refusal(improper))
    return found


def split_level_priors(
    priors: Priors, estimate: Sequence[object] | str | None
) -> tuple[Priors, dict[str, Prior | None]]:
    """Return priors without those of noise levels that are not named among the unknowns, and these.

    Whether an estimator counts open levels among its unknowns is its own affair; a posterior always does.
    """
    if not isinstance(priors, Mapping):
        return priors, {}
    named = {str(getattr(e, "path", e)) for e in estimate} if isinstance(estimate, Sequence) else set()
    levels = {n: p for n, p in priors.items() if str(n).startswith("noise(") and n not in named}
    return {n: p for n, p in priors.items() if n not in levels}, levels


def is_proper(unknown: Unknown, limits: tuple[float, float]) -> bool:
    """Return whether an unknown has a prior that can be normalised, or two finite bounds."""
    if np.isfinite(limits).all():
        return True
    if isinstance(unknown.prior, JointLaw):
        matrix, _ = unknown.prior.residual_rows()
        return bool(matrix.shape[0] >= matrix.shape[1])
    return unknown.prior is not None and not bool(unknown.prior.is_flat)


def describe_prior(unknown: Unknown, limits: tuple[float, float], level: Law | None) -> str:
    """Return the prior of an unknown in words, as in ``Normal(mean=1, std=0.5), above 0``."""
    low, high = limits
    prior = level if level is not None else unknown.prior
    if prior is None or (isinstance(prior, Law) and prior.is_flat):
        return f"uniform between {low:g} and {high:g}"
    support = prior.support if isinstance(prior, Law) else (-np.inf, np.inf)
    # a support is searched without its very end, where the density vanishes
    lower = f", above {low:g}" if np.isfinite(low) and low > support[0] + 1e-6 * abs(unknown.guess) else ""
    upper = f", below {high:g}" if np.isfinite(high) and high < support[1] - 1e-6 * abs(unknown.guess) else ""
    return f"{prior!r}{lower}{upper}"


def improper_refusal(unknowns: Sequence[Unknown]) -> str:
    """Say which unknowns have neither a prior nor two finite bounds, and what to give."""
    names = [u.name for u in unknowns]
    listed = ", ".join(f"'{n}'" for n in names[:MAX_LISTED])
    listed += f" and {len(names) - MAX_LISTED} others" if len(names) > MAX_LISTED else ""
    flat = [u.name for u in unknowns if isinstance(u.prior, JointLaw)]
    why = f" (the prior of '{flat[0]}' leaves level and slope free)" if flat else ""
    first = unknowns[0]
    size = abs(first.guess) if np.isfinite(first.guess) and first.guess != 0 else 1.0
    positive = first.kind == "scale" or first.lower >= 0
    law = f"gr.HalfCauchy({size:.3g})" if positive else f"gr.Normal({first.guess:.3g}, {size:.3g})"
    verb = "has" if len(names) == 1 else "have"
    return (
        f"A posterior of {listed} need not exist: {'it' if len(names) == 1 else 'they'} {verb} neither a prior nor two "
        f"finite bounds, so that the prior is improper{why}. Say what is known before the data: priors={{"
        f"'{first.name}': {law}}}, with numbers of your own, or bounds={{'{first.name}': (low, high)}}, which counts "
        f"as uniform between them."
    )


def _spread_of_data(density: LogDensity, unknown: Unknown) -> float:
    values = np.concatenate([s.values for c in density.problem.cases for s in c.samples if s.output == unknown.target])
    spread = float(np.std(values))
    if not spread > 0:
        raise EstimationError(
            f"'{unknown.name}' has no prior, and one from the spread of the data is impossible: every measurement of "
            f"'{unknown.target}' is {float(values[0]):g}. Give one: priors={{'{unknown.name}': gr.HalfCauchy(1.0)}}."
        )
    return spread
