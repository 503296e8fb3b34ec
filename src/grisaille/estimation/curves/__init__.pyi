"""The names that `grisaille.estimation.curves` exports."""

from grisaille.estimation.curves.curve_smoothness import bending_rows as bending_rows, surface_rows as surface_rows
