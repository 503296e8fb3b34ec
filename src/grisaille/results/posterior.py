"""``gr.posterior``: from a model and data to draws of its unknowns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Executor
from pathlib import Path

from grisaille.calling import checked
from grisaille.estimation.estimator import Estimator
from grisaille.estimation.fitted import Fitted
from grisaille.experiment.experiment import Experiment
from grisaille.laws import MultivariateNormal, Prior
from grisaille.model.classes import Model
from grisaille.posteriors.proper_priors import split_level_priors
from grisaille.results.fitting import fit
from grisaille.results.sampled import Posterior


@checked
def posterior(
    model: Model,
    experiments: Experiment | Sequence[Experiment],
    estimate: Iterable[object] | None = None,
    method: Estimator | str = "auto",
    guess: Mapping[str, float] | Fitted | None = None,
    bounds: Mapping[str, tuple[float, float]] | None = None,
    priors: Mapping[str, Prior | None] | Sequence[MultivariateNormal] | MultivariateNormal | None = None,
    local: Iterable[str] = (),
    *,
    draws: int = 1000,
    chains: int = 4,
    seed: int = 0,
    tune: int = 500,
    acceptance: float = 0.8,
    store: str | Path | None = None,
    executor: Executor | int | str | None = None,
    progress: bool | None = None,
) -> Posterior:
    """Fit, and sample the posterior of what is estimated, levels of noise included.

    The fit, ``posterior.fit``, gives the metric and the point around which chains begin.

    Parameters
    ----------
    model, experiments, estimate, method, guess, bounds, priors, local : as in ``gr.fit``. Criteria that are no
        likelihoods (``gr.SimulatedPEM(…)``, robust losses, collocation by ``"amle"``) are refused
    draws, chains, seed, tune, acceptance, store, executor, progress : as in ``fit.posterior``

    Returns
    -------
    The draws: ``table`` has a row per unknown, ``draws`` all of them, ``notes`` what is to be known about them,
    ``to_arviz()``, ``plot()``, ``predict()``, ``save(path)``.

    Examples
    --------
    With the tank and the data of ``help(gr.fit)``:

    >>> found = gr.posterior(Tank(), data, ["k", "q"], draws=200, tune=100, chains=2)
    >>> found["k"]
    0.5007 ± 0.0016
    """
    listed = list(estimate) if estimate is not None and not isinstance(estimate, str) else estimate
    believed, levels = split_level_priors(priors, listed)
    fitted = fit(model, experiments, listed, method, guess, bounds, believed, local, progress)
    return fitted.posterior(
        draws, chains, seed, tune=tune, acceptance=acceptance, priors=levels or None, store=store, executor=executor,
        progress=progress,
    )  # fmt: skip
