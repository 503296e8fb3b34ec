"""The names that `grisaille.estimation.printing` exports."""

from grisaille.estimation.printing.printed_value import with_error as with_error
