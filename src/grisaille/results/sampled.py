"""``Posterior``: draws of the unknowns of a fit, and everything that can be asked of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from grisaille.calling import checked_methods
from grisaille.posteriors.posterior import SampledPosterior

if TYPE_CHECKING:
    from grisaille.estimation.predictions.horizons import Horizon
    from grisaille.experiment.experiment import Experiment
    from grisaille.results.trajectories import Trajectories


@checked_methods
class Posterior(SampledPosterior):
    """Draws from the posterior of a fit's unknowns: ``print(posterior)`` shows the table and what is to be known.

    ``posterior["k"]`` is one mean with its standard deviation; ``posterior.fit`` the fit. It can be saved, loaded and
    pickled by its content.
    """

    def predict(
        self,
        experiment: Experiment | str | None = None,
        horizon: Horizon | None = None,
        *,
        draws: int = 200,
        level: float = 0.95,
    ) -> Trajectories:
        """Return what would be measured, over the draws of the unknowns: the posterior predictive distribution.

        Parameters
        ----------
        experiment : its name, or an experiment, which may be a new one; the first by default
        horizon : as in ``fit.predict``: None simulates from the start
        draws : how many draws of the unknowns, spread evenly over the chains
        level : of the two-sided band

        Returns
        -------
        Every variable, quantity and output over ``time`` with the dimension ``statistic``: "mean", "std", "lower" and
        "upper". Outputs are as they would be measured, with noise or by their law. ``.plot()`` draws it.
        """
        from grisaille.posteriors.predictive import posterior_predictive
        from grisaille.results.trajectories import as_trajectories

        return as_trajectories(posterior_predictive(self, experiment, horizon, draws, level))
