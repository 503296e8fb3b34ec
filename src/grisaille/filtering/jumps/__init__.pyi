"""The names that `grisaille.filtering.jumps` exports."""

from grisaille.filtering.jumps.averages import average as average, truncated_moments as truncated_moments
