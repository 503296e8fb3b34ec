"""``gr.bootstrap``: refits of one fit's redrawn data."""

from __future__ import annotations

from concurrent.futures import Executor
from pathlib import Path
from typing import Literal

from grisaille.calling import checked
from grisaille.errors import EstimationError
from grisaille.estimation.fitted import Fitted
from grisaille.results.monte_carlo import MonteCarlo
from grisaille.study.bootstrap_task import BootstrapRuns, bootstrap_task
from grisaille.study.engine import run_task


class Bootstrap(MonteCarlo, BootstrapRuns):
    """Refits of one fit's redrawn data: ``intervals()``, ``covariance``, ``summary()``, ``truth`` (the fit itself)."""


@checked
def bootstrap(
    fit: Fitted,
    runs: int = 200,
    kind: Literal["parametric", "residual"] = "parametric",
    block: int | None = None,
    seed: int = 0,
    *,
    store: str | Path | None = None,
    executor: Executor | int | str | None = None,
    progress: bool = False,
) -> Bootstrap:
    """Refit data sets drawn from a fit: its predictions with new noise, or new starts and disturbances too.

    Fits by ``gr.OutputError`` get new measurement noise around their predictions; those by ``gr.KalmanML`` new starts,
    disturbances and noise, as the filter has them: starts are drawn from N(start, P₀), P₀ that of
    ``initial_covariance``, for ``"first-sample"`` what process noise builds up over the first interval. States that
    start diffuse have no law to be drawn from and begin where the smoother of the fit does. Others are refused.

    Parameters
    ----------
    fit : what to judge
    runs : how many data sets
    kind : ``"parametric"`` draws normal noise, or by the laws of outputs with ``distribution=``; ``"residual"`` draws
        the residuals of an output-error fit with normal noise, in blocks
    block : length of the blocks; the cube root of the number of samples unless given, 1 for independent residuals
    seed : from which each run's own is derived
    store, executor, progress : as in ``gr.multistart``. With the same store, more runs may be asked for later.

    Returns
    -------
    The study: ``intervals()`` and ``covariance`` of the refits, ``notes`` on where records begin, ``table`` with a row
    per run, ``repeat(7)`` any run again, ``plot()`` and ``report("study.html")``.

    Examples
    --------
    With the fit of ``help(gr.fit)``:

    >>> limits = gr.bootstrap(fit, runs=20, executor="serial").intervals()
    >>> bool(limits.loc["k", "lower"] < fit["k"] < limits.loc["k", "upper"])
    True
    """
    if not isinstance(fit, Fitted):
        raise EstimationError(f"gr.bootstrap takes a fit, as gr.fit gives it, not {type(fit).__name__}.")
    task = bootstrap_task(fit, kind, block, seed)
    return Bootstrap(*run_task(task, runs, store, executor, progress), fit.estimate.theta)
