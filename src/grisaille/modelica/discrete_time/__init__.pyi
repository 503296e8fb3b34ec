"""The names that `grisaille.modelica.discrete_time` exports."""

from grisaille.modelica.discrete_time.clocks import without_clocks as without_clocks
