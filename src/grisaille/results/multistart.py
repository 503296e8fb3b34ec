"""``gr.multistart``: the same fit from many starts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Executor
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from grisaille.calling import checked, checked_methods
from grisaille.estimation.curves.vectors import spread_over_elements
from grisaille.estimation.estimator import Estimator
from grisaille.estimators.choice import find_candidates
from grisaille.estimators.fitting import accepting_method, checked_experiments, find_unknowns
from grisaille.experiment.experiment import Experiment
from grisaille.laws import MultivariateNormal, Prior
from grisaille.model.classes import Model
from grisaille.results.fit import Fit
from grisaille.results.runs import Runs
from grisaille.structure.structure_cache import structure_of
from grisaille.study.engine import run_task
from grisaille.study.multistart_task import MultistartRuns
from grisaille.study.starting_points import make_starts
from grisaille.study.study_task import make_task

if TYPE_CHECKING:
    import pandas as pd


@checked_methods
class Multistart(Runs, MultistartRuns):
    """Fits of the same data from many starts: ``table``, ``basins`` (the minima), ``best``, ``plot()``."""

    @cached_property
    def best(self) -> Fit:
        """Return the converged fit with the lowest criterion (of all, when none converged)."""
        return self.repeat(self.best_run)


@checked
def multistart(
    model: Model,
    experiments: Experiment | Sequence[Experiment],
    estimate: Iterable[object] | None = None,
    method: Estimator | str = "auto",
    starts: int = 100,
    sampling: str | Mapping[str, Sequence[float]] | pd.DataFrame | np.ndarray = "sobol",
    seed: int = 0,
    *,
    bounds: Mapping[str, tuple[float, float]] | None = None,
    ranges: Mapping[str, tuple[float, float]] | None = None,
    priors: Mapping[str, Prior | None] | Sequence[MultivariateNormal] | MultivariateNormal | None = None,
    local: Iterable[str] = (),
    store: str | Path | None = None,
    executor: Executor | int | str | None = None,
    progress: bool = False,
) -> Multistart:
    """Fit from many starts; a start that fails is a row of the table, never the end of the study.

    Parameters
    ----------
    model, experiments, estimate, method, bounds, priors, local : as in ``gr.fit``
    starts : how many; a grid takes the nearest whole number per unknown
    sampling : ``"sobol"``, ``"latin"``, ``"grid"``; a dict of values by name, whose products are tried (unknowns not
        named begin as in ``gr.fit``); a DataFrame with columns by name; an array with one row per start
    seed : of the sampling
    ranges : where starts are drawn, by name; the bounds, or the central 95 % of priors, otherwise
    store : file that keeps finished starts; the same call with the same file continues where it stopped
    executor : None (a process per processor), a number of processes, ``"serial"``, or any ``concurrent.futures``
        executor, such as ``client.get_executor()`` of a Dask client
    progress : show a bar, with failures counted

    Returns
    -------
    The study: ``table`` has a row per start, ``basins`` one per minimum, ``best`` is the best fit, ``repeat(7)`` any
    other; ``plot()`` and ``report("study.html")`` show them.

    Examples
    --------
    With the tank and the data of ``help(gr.fit)``:

    >>> study = gr.multistart(Tank(), data, ["k", "q"], starts=4, executor="serial")
    >>> len(study.basins), study.best["k"]
    (1, 0.5007 ± 0.0015)
    """
    data = checked_experiments(model, experiments)
    listed = estimate if estimate is None or isinstance(estimate, str) else list(estimate)
    own = tuple(local)
    candidates = find_candidates(method, model, data, listed)
    chosen, _ = accepting_method(candidates, model, data, listed, bounds=bounds, priors=priors, local=own)
    unknowns = find_unknowns(model, data, listed, bounds=bounds, priors=priors, local=own, method=chosen)
    points = make_starts(
        unknowns, sampling, starts, seed, spread_over_elements(structure_of(model).model, ranges, "bounds")
    )
    first = {u.name: float(v) for u, v in zip(unknowns, points.points[0], strict=True) if np.isfinite(v)}
    task = make_task(
        "multistart", model, data, method, points, seed, estimate=listed, guess=first, bounds=bounds, priors=priors,
        local=own,
    )  # fmt: skip
    return Multistart(*run_task(task, len(points.points), store, executor, progress))
