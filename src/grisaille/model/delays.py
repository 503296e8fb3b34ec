"""Dead time: what a formula was a while ago.

::

    delay(x, tau)(t)  =  x(t − tau)      for t ≥ t₀ + tau
                         before          for t < t₀ + tau;   x(t₀) where nothing is said
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from grisaille.errors import ModelError
from grisaille.model.expression import Call, Constant, Expression, as_expression, postorder
from grisaille.model.symbol_arrays import elementwise

if TYPE_CHECKING:
    from grisaille.model.expression import FormulaLike


def delay(x: FormulaLike, tau: FormulaLike, before: FormulaLike | None = None) -> Any:
    """Return x as it was tau ago.

    x : a formula with something in it that moves, or an array of them
    tau : above zero, in the unit of time: a number, a parameter or a formula of parameters; it can be estimated
        between bounds, gr.Parameter(bounds=(shortest, longest))
    before : what it was before the start, a number or a formula of parameters; the value at the start if not given
    """
    if any(isinstance(a, np.ndarray | list | tuple) for a in (x, before)) or isinstance(tau, np.ndarray | list):
        given = (_array(x), _array(tau), _array(before))
        return elementwise(delay, *given)
    argument, dead = as_expression(x), as_expression(tau)
    if not _moves(argument):
        raise ModelError(
            f"delay({argument}, {dead}) is the delay of a constant: nothing in {argument} moves; remove the delay."
        )
    if _moves(dead):
        raise ModelError(
            f"delay({argument}, {dead}): the dead time {dead} moves; give a number, a parameter or a formula of "
            f"parameters. For a transport with changing speed, make compartments, or delay by the mean."
        )
    if isinstance(dead, Constant) and not dead.value > 0:
        ahead = "what lies ahead cannot be known (an advanced equation)"
        raise ModelError(
            f"delay({argument}, {dead}): the dead time must be above zero; "
            f"{ahead if dead.value < 0 else 'remove the delay'}."
        )
    if before is None:
        return Call("delay", (argument, dead))
    past = as_expression(before)
    if _moves(past):
        raise ModelError(
            f"delay({argument}, {dead}, before={past}): what held before the start must be a number or a formula of "
            f"parameters."
        )
    return Call("delay", (argument, dead, past))


def _array(value: FormulaLike | None) -> Any:
    return np.array(value, dtype=object) if isinstance(value, list | tuple) else value


def _moves(formula: Expression) -> bool:
    return any(leaf.varies for leaf in postorder((formula,)) if not isinstance(leaf, Call))
