"""The names that `grisaille.compilation.sparse` exports."""

from grisaille.compilation.sparse.pattern import (
    Elimination as Elimination,
    SparsityPattern as SparsityPattern,
    eliminate as eliminate,
)
from grisaille.compilation.sparse.source import is_worth_it as is_worth_it
