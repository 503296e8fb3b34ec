"""``gr.monte_carlo``: many data sets from a known truth, each fitted."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Executor
from pathlib import Path
from typing import Any

from grisaille.calling import checked, checked_methods
from grisaille.estimation.estimator import Estimator
from grisaille.estimation.fitted import Fitted
from grisaille.estimators.choice import find_candidates
from grisaille.estimators.fitting import checked_experiments, named_experiments, pose_first
from grisaille.experiment.experiment import Experiment
from grisaille.laws import MultivariateNormal, Prior
from grisaille.model.classes import Model
from grisaille.results.runs import Runs
from grisaille.study.engine import run_task
from grisaille.study.monte_carlo_task import MonteCarloRuns, true_values
from grisaille.study.simulated_data import Simulated, drawn_plan
from grisaille.study.study_task import make_task

SIMULATION_RTOL = 1e-7
"""Of simulations from which the measurements of a plan are drawn, where its outputs declare laws."""


@checked_methods
class MonteCarlo(Runs, MonteCarloRuns):
    """Fits of many data sets that share one truth: ``table``, ``summary()``, ``truth``, ``plot()``."""


@checked
def monte_carlo(
    model: Model,
    plan: Experiment | Sequence[Experiment],
    estimate: Iterable[object] | None = None,
    method: Estimator | str = "auto",
    runs: int = 100,
    seed: int = 0,
    *,
    noise: Mapping[str, float] | None = None,
    step: float | None = None,
    guess: Mapping[str, float] | Fitted | None = None,
    bounds: Mapping[str, tuple[float, float]] | None = None,
    priors: Mapping[str, Prior | None] | Sequence[MultivariateNormal] | MultivariateNormal | None = None,
    local: Iterable[str] = (),
    store: str | Path | None = None,
    executor: Executor | int | str | None = None,
    progress: bool = False,
) -> MonteCarlo:
    """Simulate data from a model again and again, and fit each data set.

    Parameters
    ----------
    model : the truth: its parameters, starts, disturbances and noise. Every data set begins at the declared start,
        also where ``method`` takes it to be uncertain (``gr.KalmanML(initial_covariance=…)``); ``gr.bootstrap(fit)``
        draws starts
    plan : experiments whose times, inputs, constants, starts, weights and gaps (NaN) are kept; their measured values do
        not matter, but for limits of samples (``"<0.1"``), which hold in every data set
    estimate, method, guess, bounds, priors, local : as in ``gr.fit``; the guess is the truth unless given
    runs, seed : how many data sets, and the seed from which each run's own is derived
    noise : standard deviations by output, for those whose noise the model leaves unknown; outputs with
        ``distribution=`` are drawn by their law
    step : largest cell of the grid on which disturbances are drawn, as in ``gr.simulate``
    store, executor, progress : as in ``gr.multistart``. With the same store, more runs may be asked for later.

    Returns
    -------
    The study: ``table`` has a row per run, ``summary()`` says where the estimates lie, how they spread and whether
    intervals cover; ``repeat(7)`` is any run again, ``plot()`` and ``report("study.html")`` show them.

    Examples
    --------
    With the fit of ``help(gr.fit)`` as the truth:

    >>> study = gr.monte_carlo(fit.model, data, ["k", "q"], runs=8, noise={"y": 0.01}, executor="serial")
    >>> study.counts["converged"], bool(abs(study.estimates["k"].mean() - fit["k"]) < 0.005)
    (8, True)
    """
    data = named_experiments(plan)
    options: dict[str, Any] = {
        "estimate": estimate if estimate is None or isinstance(estimate, str) else list(estimate),
        "bounds": bounds, "priors": priors, "local": tuple(local),
    }  # fmt: skip
    candidates = find_candidates(method, model, data, options["estimate"])
    data = drawn_plan(Simulated(model, dict(noise or {}), SIMULATION_RTOL, step), checked_experiments(model, data))
    posed, chosen, _ = pose_first(candidates, model, checked_experiments(model, data), **options)
    truth = true_values(model, posed.unknowns, posed.guess, dict(noise or {}))
    if isinstance(guess, Fitted):  # which may have estimated more than this study does
        known = guess.estimates
        guess = {u.name: known[u.name] for u in posed.unknowns if u.name in known}
    variation = Simulated(model, dict(noise or {}), min(chosen.rtol, 1e-6) / 10, step)
    variation.prepare(data)
    task = make_task("monte_carlo", model, data, method, variation, seed, guess=guess, **options)
    return MonteCarlo(*run_task(task, runs, store, executor, progress), truth)
