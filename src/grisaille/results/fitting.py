"""``gr.fit``: from a model and data to a ``Fit``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from grisaille.calling import checked
from grisaille.estimation.estimator import Estimator
from grisaille.estimation.fitted import Fitted
from grisaille.estimators.choice import find_candidates
from grisaille.estimators.fitting import checked_experiments, fit_problem, pose_first
from grisaille.experiment.experiment import Experiment
from grisaille.laws import MultivariateNormal, Prior
from grisaille.model.classes import Model
from grisaille.optimization.journal import SearchJournal
from grisaille.results.fit import Fit
from grisaille.results.progress import is_read, progress_reporter, say_beforehand


@checked
def fit(
    model: Model,
    experiments: Experiment | Sequence[Experiment],
    estimate: Iterable[object] | None = None,
    method: Estimator | str = "auto",
    guess: Mapping[str, float] | Fitted | None = None,
    bounds: Mapping[str, tuple[float, float]] | None = None,
    priors: Mapping[str, Prior | None] | Sequence[MultivariateNormal] | MultivariateNormal | None = None,
    local: Iterable[str] = (),
    progress: bool | None = None,
) -> Fit:
    """Estimate parameters, starts and noise levels from data.

    Parameters
    ----------
    model : an instance of a ``gr.Model`` subclass
    experiments : a ``gr.Experiment`` or a list of them
    estimate : names (``"k"``, ``"legs[*].m"``, ``"start(x)"``, ``"scale(w)"``); None frees what declares
        bounds or a prior
    method : ``gr.OutputError(…)``, ``gr.KalmanML(…)``, ``gr.Collocation(…)``, ``gr.SimulatedPEM(…)``, an estimator of
        your own, or ``"auto"``, which chooses by the model and its data; ``fit.why`` says why
    guess : where to start, by name, or another fit; the model's values otherwise
    bounds : ``{name: (lowest, highest)}`` instead of those the model declares
    priors : by name, instead of those the model declares; None takes the declared one away. Joint ones as a list of
        ``gr.MultivariateNormal``
    local : parameters that each experiment has for itself
    progress : whether a line on the terminal tells how far the search is; None: on terminals, where it takes more than
        two seconds. A fit that will take long says so then, and what would be faster, in notebooks too; where the
        number of states alone makes it long, before it begins

    Returns
    -------
    The fit: ``print(fit)`` shows estimates with intervals, quality and a diagnosis in words; ``fit["k"]`` is one
    estimate with its standard error, ``fit.model`` the model with all of them. It predicts, tests its residuals, has
    profiles, plots, reports and saves itself: ``help(gr.Fit)``. What cannot be estimated is refused by a
    ``gr.EstimationError`` that says why.

    Examples
    --------
    A tank that fills and leaks, and 41 measurements of its level:

    >>> import numpy as np
    >>> import grisaille as gr
    >>> class Tank(gr.Model):
    ...     k = gr.Parameter(0.3, bounds=(0.01, 5.0))
    ...     q = gr.Parameter(1.5, bounds=(0.0, 9.0))
    ...     h = gr.Variable(0.5)
    ...     y = gr.Output(h)
    ...     equations = [gr.der(h) == q - k * h]
    >>> times = np.linspace(0.0, 12.0, 41)
    >>> level = 4.0 - 3.5 * np.exp(-0.5 * times) + 0.01 * np.random.default_rng(1).normal(size=41)
    >>> data = gr.Experiment(times, {}, {"y": level})
    >>> fit = gr.fit(Tank(), data, ["k", "q"])
    >>> fit["k"]
    0.5007 ± 0.0015
    >>> fit.converged
    True
    """
    estimate = list(estimate) if estimate is not None and not isinstance(estimate, str) else estimate
    data = checked_experiments(model, experiments)
    candidates = find_candidates(method, model, data, estimate)
    is_watched = is_read(progress)
    if is_watched:
        say_beforehand(candidates[0].method.effort.beforehand(model, data))
    options: dict[str, Any] = {
        "bounds": bounds,
        "priors": priors,
        "local": local if isinstance(local, str) else tuple(local),
    }
    problem, chosen, why = pose_first(candidates, model, data, estimate, guess, **options)
    if not is_watched:
        return fit_problem(model, problem, chosen, why, kind=Fit, tests_starts=True)
    watched = progress_reporter(lambda: chosen.effort.cost(problem), progress)
    watched.speak_early(lambda: chosen.effort.early_cost(problem))
    try:
        return fit_problem(
            model, problem, chosen, why, SearchJournal(watched, watched.counted), kind=Fit, tests_starts=True
        )
    finally:
        watched.finish()
