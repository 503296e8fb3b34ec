"""The names that `grisaille.results` exports."""

from grisaille.estimation.effort.cost import format_duration as format_duration
from grisaille.results.bootstrap import Bootstrap as Bootstrap
from grisaille.results.comparison import Comparison as Comparison
from grisaille.results.log_density import DensityFunction as DensityFunction, UnboundedDensity as UnboundedDensity
from grisaille.results.monte_carlo import MonteCarlo as MonteCarlo
from grisaille.results.multistart import Multistart as Multistart
from grisaille.results.progress import (
    ProgressLine as ProgressLine,
    is_read as is_read,
    progress_reporter as progress_reporter,
)
from grisaille.results.sampled import Posterior as Posterior
from grisaille.results.validation import Validation as Validation
