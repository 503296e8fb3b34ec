"""The names that `grisaille.estimation.effort` exports."""

from grisaille.estimation.effort.cost import Cost as Cost
