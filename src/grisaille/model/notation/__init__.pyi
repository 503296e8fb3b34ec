"""The names that `grisaille.model.notation` exports."""

from grisaille.model.notation.mathml import (
    equation as equation,
    formula as formula,
    identifier as identifier,
    row as row,
    symbol as symbol,
)
