"""``gr.prior_predictive``: what priors say about measurements, before data are used."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from grisaille.calling import checked
from grisaille.estimators.fitting import checked_experiments, find_unknowns
from grisaille.experiment.experiment import Experiment
from grisaille.laws import MultivariateNormal, Prior
from grisaille.model.classes import Model
from grisaille.posteriors.prior_predictive import PriorPredictive, draw_prior_predictive_of
from grisaille.posteriors.proper_priors import split_level_priors


@checked
def prior_predictive(
    model: Model,
    experiments: Experiment | Sequence[Experiment],
    estimate: Iterable[object] | None = None,
    *,
    draws: int = 200,
    seed: int = 0,
    bounds: Mapping[str, tuple[float, float]] | None = None,
    priors: Mapping[str, Prior | None] | Sequence[MultivariateNormal] | MultivariateNormal | None = None,
    local: Iterable[str] = (),
) -> PriorPredictive:
    """Draw unknowns from their priors, and simulate and measure the experiments with each.

    Priors count as in ``fit.posterior``: two finite bounds without a prior are the uniform distribution between them, a
    noise level without one has a half-Cauchy prior by the spread of its data, anything else without one is refused.
    Disturbances and measurement noise are drawn, too.

    Parameters
    ----------
    model, experiments, estimate, bounds, priors, local : as in ``gr.fit``
    draws : how many
    seed : of all that is drawn

    Returns
    -------
    The draws: ``print`` says where the data lie among them, ``parameters`` has a row per draw, ``trajectories`` the
    simulations by experiment, ``plot()`` shows them beside the data.

    Examples
    --------
    With the tank and the data of ``help(gr.fit)``:

    >>> drawn = gr.prior_predictive(Tank(), data, ["k", "q"], draws=100)
    >>> list(drawn.parameters.columns)
    ['k', 'q', 'noise(y)']
    """
    listed = list(estimate) if estimate is not None and not isinstance(estimate, str) else estimate
    data = checked_experiments(model, experiments)
    believed, levels = split_level_priors(priors, listed)
    unknowns = find_unknowns(model, data, listed, bounds=bounds, priors=believed, local=tuple(local))
    return draw_prior_predictive_of(model, data, unknowns, levels, draws, seed)
