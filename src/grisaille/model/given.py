"""Types of what users give to declarations, functions and changes of models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from grisaille.model.classes import Model
    from grisaille.model.connectors import Connection, Connector
    from grisaille.model.declarations import Declaration
    from grisaille.model.expression import Equation, Expression, FormulaLike
    from grisaille.model.views import View
    from grisaille.model.whens import Reset, When

Size: TypeAlias = "int | Sequence[int] | None"
"""None for a single member, n for a vector, (n, m) for a matrix of them."""
Bounds: TypeAlias = "Sequence[FormulaLike | None] | np.ndarray | None"
"""Low and high, or a pair for each element."""
Change: TypeAlias = "FormulaLike | Declaration | Model | Connector | Sequence[Change] | str | None"
"""What a member of a model can be replaced by."""
Changes: TypeAlias = "Mapping[str, Change]"
End: TypeAlias = "Connector | View | Expression | np.ndarray | Sequence[End]"
"""What can be connected: connectors, causal signals, and arrays of them."""
Action: TypeAlias = "Equation | Reset | np.ndarray | Sequence[Action]"
"""What happens at an event."""
Statement: TypeAlias = "Equation | When | Connection | np.ndarray | Sequence[Statement]"
"""What the equations of a model consist of."""
