"""The names that `grisaille.optimization` exports."""

from grisaille.optimization.convergence import (
    OFFSET_TOLERANCE as OFFSET_TOLERANCE,
    ROUNDING_OFFSET as ROUNDING_OFFSET,
    polish as polish,
    relative_offset as relative_offset,
)
from grisaille.optimization.hessian import hessian_at as hessian_at
from grisaille.optimization.journal import SearchJournal as SearchJournal
from grisaille.optimization.scaled import Scaled as Scaled
from grisaille.optimization.search import Search as Search, SearchOutcome as SearchOutcome
