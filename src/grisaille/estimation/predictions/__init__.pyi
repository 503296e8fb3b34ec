"""The names that `grisaille.estimation.predictions` exports."""

from grisaille.estimation.predictions.horizons import last_used as last_used
from grisaille.estimation.predictions.law_bands import mixture_quantile as mixture_quantile
from grisaille.estimation.predictions.over_unknowns import spread_over_unknowns as spread_over_unknowns
from grisaille.estimation.predictions.simulated_bands import BAND_REALIZATIONS as BAND_REALIZATIONS
