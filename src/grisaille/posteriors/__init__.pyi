"""The names that `grisaille.posteriors` exports."""

from grisaille.posteriors.chain import (
    Block as Block,
    Chain as Chain,
    SamplingOptions as SamplingOptions,
    advance as advance,
    begin_chain as begin_chain,
)
from grisaille.posteriors.convergence import (
    convergence_of as convergence_of,
    effective_size as effective_size,
    mcse_of_mean as mcse_of_mean,
)
from grisaille.posteriors.judgement import trajectory_notes as trajectory_notes
from grisaille.posteriors.kernel import Point as Point
from grisaille.posteriors.laplace import metric_of_curvature as metric_of_curvature
from grisaille.posteriors.metric import Metric as Metric
from grisaille.posteriors.nuts import transition as transition
from grisaille.posteriors.posterior_draws import PosteriorDraws as PosteriorDraws
from grisaille.posteriors.prior_predictive import PriorPredictive as PriorPredictive
from grisaille.posteriors.sampling import find_metric as find_metric, posterior_task as posterior_task
from grisaille.posteriors.target import PosteriorTarget as PosteriorTarget
from grisaille.posteriors.warm_up import learned_covariance as learned_covariance, window_ends as window_ends
