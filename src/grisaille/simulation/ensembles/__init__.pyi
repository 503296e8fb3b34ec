"""The names that `grisaille.simulation.ensembles` exports."""

from grisaille.simulation.ensembles.ensemble import run_ensemble as run_ensemble
from grisaille.simulation.ensembles.ensemble_options import EnsembleOptions as EnsembleOptions
from grisaille.simulation.ensembles.ensemble_runner import EnsembleRunner as EnsembleRunner
from grisaille.simulation.ensembles.ensemble_starts import onto_constraints as onto_constraints
from grisaille.simulation.ensembles.grid import make_grid as make_grid
from grisaille.simulation.ensembles.hermite import mixing as mixing, piece_polynomials as piece_polynomials
from grisaille.simulation.ensembles.past_weights import delayed_weights as delayed_weights
from grisaille.simulation.ensembles.reducers import (
    Mean as Mean,
    Quantiles as Quantiles,
    RealizationBlock as RealizationBlock,
    Statistic as Statistic,
    Variance as Variance,
    make_reducers as make_reducers,
)
from grisaille.simulation.ensembles.white_pilot import (
    ComparisonScale as ComparisonScale,
    choose_halvings as choose_halvings,
    compare as compare,
)
