"""The names that `grisaille.model.lowering` exports."""

from grisaille.model.lowering.lowering import evaluate as evaluate, lower as lower
from grisaille.model.lowering.table_lowering import lower_table as lower_table
