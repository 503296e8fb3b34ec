"""The names that `grisaille.structure.starts` exports."""

from grisaille.structure.starts.hierarchy import solve_levels as solve_levels
from grisaille.structure.starts.initialization import ConsistentStart as ConsistentStart, Initializer as Initializer
from grisaille.structure.starts.large_hierarchy import (
    least_squares as least_squares,
    solve_large_levels as solve_large_levels,
)
from grisaille.structure.starts.rounding import rounding_of as rounding_of
