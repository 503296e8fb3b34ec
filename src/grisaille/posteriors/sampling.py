"""From a fit to its posterior: which unknowns with which priors, the metric, the chains, the draws."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from grisaille.bound_experiment.unknown import Unknown
from grisaille.errors import EstimationError
from grisaille.estimation.curves.vectors import spread_over_elements
from grisaille.estimation.density.criterion_kinds import why_no_posterior
from grisaille.estimation.fitted import Fitted
from grisaille.estimation.unknowns import prior_table, refuse_strangers
from grisaille.laws import JointLaw, Law
from grisaille.laws.law_content import refuse_no_prior
from grisaille.memory import require_memory
from grisaille.posteriors.chain import Chain, SamplingOptions
from grisaille.posteriors.chain_runs import joined, make_workers, run_chains, seconds_of
from grisaille.posteriors.chain_store import ChainStore, header_of
from grisaille.posteriors.chain_worker import ChainAnswer
from grisaille.posteriors.laplace import metric_of_curvature
from grisaille.posteriors.metric import Metric
from grisaille.posteriors.posterior import SampledPosterior
from grisaille.posteriors.posterior_draws import PosteriorDraws
from grisaille.posteriors.proper_priors import Priors, describe_prior
from grisaille.posteriors.sampling_progress import progress_of
from grisaille.posteriors.target import PosteriorTarget, PosteriorTask, unknowns_inside
from grisaille.structure.structure_cache import structure_of

MAX_FAILURES_LOOKED_AT = 20
BYTES_OF_DRAW = 40
"""Of an unknown, in all places where a draw is kept."""


def sample_posterior(
    fit: Fitted,
    options: SamplingOptions,
    chains: int,
    seed: int,
    *,
    priors: Priors,
    bounds: Mapping[str, tuple[float, float]] | None,
    store: str | Path | None,
    executor: Executor | int | str | None,
    progress: bool | None,
) -> SampledPosterior:
    """Return the posterior of what a fit estimated."""
    begin = time.perf_counter()
    task = posterior_task(fit, priors, bounds)
    target = task.target()
    total, unknowns = options.tune + options.draws, len(target.names)
    require_memory(
        chains * total * BYTES_OF_DRAW * (unknowns + 8),
        f"{chains} chains of {total} transitions",
        lambda available: f"{available // (chains * BYTES_OF_DRAW * (unknowns + 8))} would fit: ask for fewer draws.",
    )
    metric = find_metric(fit, target)
    answers = _chains(task, target, metric, options, chains, seed, store, executor, progress)
    blocks = [joined(answers[k], total) for k in range(chains)]
    theta = np.array([target.theta(b.xi[options.tune :]) for b in blocks])
    drawn = PosteriorDraws.of(blocks, [answers[k][-1].chain for k in range(chains)], theta, options)
    looked = drawn.divergences[:MAX_FAILURES_LOOKED_AT]
    failures = Counter(reason for xi in looked if (reason := target.failure(xi)))
    density = target.unbounded.density
    defaults = {
        u.name: describe_prior(u, limits, target.levels[u.name])
        for u, limits in zip(density.unknowns, density.ranges, strict=True)
        if u.name in target.levels and u.name not in task.levels
    }
    return SampledPosterior(
        fit, target.names, target.describe_priors(), drawn, seed, defaults=defaults, failures=failures,
        seconds=time.perf_counter() - begin,
    )  # fmt: skip


def _chains(
    task: PosteriorTask,
    target: PosteriorTarget,
    metric: Metric,
    options: SamplingOptions,
    chains: int,
    seed: int,
    store: str | Path | None,
    executor: Executor | int | str | None,
    progress: bool | None,
) -> dict[int, list[ChainAnswer]]:
    """Return the blocks of every chain, those in the store first."""
    total = options.tune + options.draws
    with ExitStack() as stack:
        shelf = None
        if store is not None:
            shelf = ChainStore(store, header_of(task, target, options, seed), len(target.names))
            stack.callback(shelf.close)
        answers = {k: list[ChainAnswer]() for k in range(chains)} | (shelf.read(chains) if shelf else {})
        begun: list[Chain | None] = [answers[k][-1].chain if answers[k] else None for k in range(chains)]
        show = stack.enter_context(progress_of(task, chains, options, progress))
        for known in answers.values():
            show(known)

        def keep(found: list[ChainAnswer]) -> None:
            if shelf:
                shelf.write(found)
            for answer in found:
                answers[answer.chain.number].append(answer)
            show(found)

        left = sum(max(total - (0 if c is None else c.done), 0) for c in begun)
        try:
            if left:
                crew = make_workers(executor, task, target, chains, left, seconds_of(target, metric))
                run_chains(crew, metric, seed, options, begun, keep)
        except KeyboardInterrupt as stop:
            done = sum(len(a.block.energy) for known in answers.values() for a in known)
            kept = (
                f"are in '{shelf.path}'; the same call continues from there"
                if shelf
                else "are lost; with store='posterior.db' the same call would continue from there"
            )
            stop.add_note(f"{done} of {chains * total} transitions {kept}.")
            raise
    return answers


def posterior_task(
    fit: Fitted, priors: Priors = None, bounds: Mapping[str, tuple[float, float]] | None = None
) -> PosteriorTask:
    """Return the posterior of a fit as data; refuse criteria that are no likelihoods.

    priors, bounds : instead of those of the fit, by name
    """
    refuse_no_posterior(fit)
    flat = structure_of(fit.initial_model).model
    believed = {} if priors is None else spread_over_elements(flat, prior_table(priors), "priors")
    ranges = {} if bounds is None else spread_over_elements(flat, bounds, "bounds")
    named, levels = {u.name for u in fit.estimate.unknowns}, {}
    for output in fit.estimate.noise:
        name = f"noise({output})"
        if name not in named and isinstance(law := believed.get(name), Law):
            refuse_no_prior(f"'{name}'", law)
            levels[name] = law
    believed = {n: p for n, p in believed.items() if n not in levels}
    refuse_strangers(fit.estimate.unknowns, believed, "priors")
    refuse_strangers(fit.estimate.unknowns, ranges, "bounds")
    changed = [_changed(u, believed, ranges) for u in fit.estimate.unknowns]
    _refuse_torn_priors(changed)
    inside = unknowns_inside(changed, fit.estimate.theta.tolist(), fit.estimate.limits)
    return PosteriorTask(fit.initial_model, fit.experiments, fit.method, inside, levels, fit)


def refuse_no_posterior(fit: Fitted) -> None:
    """Refuse a fit whose criterion is no likelihood of the data."""
    refused = why_no_posterior(fit.method)
    if refused:
        raise EstimationError(refused)
    if not fit.estimate.is_likelihood:
        raise EstimationError("A posterior needs a likelihood, and the criterion of this fit is not one.")


def _changed(unknown: Unknown, priors: Mapping[str, Any], bounds: Mapping[str, tuple[float, float]]) -> Unknown:
    """Return an unknown with another prior or other bounds, where its name or the one it is local of has some."""
    base = unknown.name.partition("@")[0]
    for name in (unknown.name, base):
        if name in priors:
            prior = priors[name]
            if prior is not None:
                refuse_no_prior(f"'{name}'", prior)
            unknown = replace(unknown, prior=prior)
            break
    for name in (unknown.name, base):
        if name in bounds:
            try:
                low, high = bounds[name]
                lower = -np.inf if low is None else float(low)
                upper = np.inf if high is None else float(high)
            except (TypeError, ValueError):
                raise EstimationError(f"The bounds of '{name}' are {bounds[name]!r}; give (low, high).") from None
            if not lower < upper:
                raise EstimationError(
                    f"The bounds of '{name}' are ({lower:g}, {upper:g}): the first must be below the second."
                )
            positive = unknown.kind in ("scale", "noise")
            unknown = replace(unknown, lower=max(lower, 0.0) if positive else lower, upper=upper)
            break
    return unknown


def _refuse_torn_priors(unknowns: Sequence[Unknown]) -> None:
    """Refuse to replace a joint prior for some of its unknowns alone."""
    own = {u.name: u.prior for u in unknowns}
    for law in own.values():
        torn = [n for n in law.names if own.get(n) is not law] if isinstance(law, JointLaw) else []
        if torn:
            raise EstimationError(
                f"priors= replaces that of '{torn[0]}', which is part of a joint prior of {', '.join(law.names)}: give "
                f"new ones to all of them."
            )


def find_metric(fit: Fitted, target: PosteriorTarget) -> Metric:
    """Return the metric that the fit gives, from its estimates and their standard errors."""
    transforms, density = target.unbounded.transforms, target.unbounded.density
    start = density.start
    errors = {n: float(e) for n, e in zip(fit.names, fit.std_errors, strict=True)}
    errors |= {f"noise({o})": fit._noise_error(o) for o in fit.estimate.noise}
    xi = transforms.inner(start)
    slopes = transforms.jacobian(xi)[0]
    scales = np.array([errors.get(n, np.nan) for n in density.names]) / slopes
    free = dict(zip(fit.names, fit.estimate.free, strict=True))
    estimates = dict(zip(fit.names, fit.estimate.theta, strict=True))
    held = np.array(
        [not free.get(n, True) or estimates.get(n, v) != v for n, v in zip(density.names, start, strict=True)]
    )
    return metric_of_curvature(target, xi, scales, held)
