"""Equations that index reduction has replaced, asked again at the start and at the end of a run: do they hold as they
were written?

The factors of a combination are found at random points. Should they be wrong where the model lives, the combination is
another equation, and the run one of another model. What was replaced follows from what replaced it, so that its
residual at a consistent point is rounding, or the combination is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import casadi as ca
import numpy as np

from grisaille.errors import StructureError
from grisaille.structure.equations import EquationRow, Equations
from grisaille.structure.system import System

EQUATION_TOLERANCE = 1e-5
"""Of the sum of an equation's terms; starts are solved to 1e-9 of nominal values."""
AFTER_RUN_MESSAGE = 1e-3
"""The same where states carry the errors of integration."""

Closing = Callable[[Sequence[ca.SX]], list[ca.SX]]


class WrittenCheck:
    """The replaced equations as formulas of (t, x, z, u, p), with the sizes of their terms."""

    def __init__(self, system: System, rows: Sequence[EquationRow], residuals: ca.SX, sizes: ca.SX) -> None:
        self._system, self._rows, self._formulas = system, tuple(rows), [residuals, sizes]
        arguments = [system.t, ca.vertcat(system.x, system.z), system.u, system.p]
        self._function = ca.Function("written", arguments, [residuals, sizes]) if rows else None

    def formulas(self, system: System) -> list[ca.SX]:
        """Return the formulas that a system must satisfy."""
        return self._formulas if self._rows and system is self._system else []

    def require(
        self, system: System, t: float, w: np.ndarray, u: np.ndarray, p: np.ndarray, *, is_start: bool = True
    ) -> None:
        """Refuse a point at which one of them does not hold; a system with other signals is not asked."""
        if self._function is None or system is not self._system:
            return
        residual, size = (np.array(part.full()).ravel() for part in self._function(t, w, u, p))
        with np.errstate(invalid="ignore"):
            wrong = np.flatnonzero(np.abs(residual) > (EQUATION_TOLERANCE if is_start else AFTER_RUN_MESSAGE) * size)
        if wrong.size:
            k, where = int(wrong[0]), "the start" if is_start else f"t = {t:.6g}"
            raise StructureError(
                f"The equation '{self._rows[k].text}' was replaced by a combination with others, and does not hold at "
                f"{where} as it is written: it is off by {residual[k]:.3g}, where its terms sum up to {size[k]:.3g}. "
                f"The derivatives that were taken to cancel do not. Write the equations without sums of one another, "
                f"or in units in which their terms are of one size (nominal= gives the sizes of variables)."
            )


def check_of(written: Equations, reduced: Equations, system: System, close: Closing) -> WrittenCheck:
    """Return a check of the rows in which ``reduced`` differs; those with derivatives that it does not give are left
    out.
    """
    known = {s.element_hash() for v in (system.t, system.x, system.z, system.u, system.p) for s in ca.symvar(v)}
    rows, residuals, sizes = [], [], []
    for before, after in zip(written.rows, reduced.rows, strict=True):
        if before is after:
            continue
        symbols = ca.vertcat(*ca.symvar(before.residual))
        terms = ca.mtimes(ca.fabs(ca.jacobian(before.residual, symbols)), ca.fabs(symbols))
        residual, size = close([before.residual, terms])
        if all(s.element_hash() in known for s in ca.symvar(ca.vertcat(residual, size))):
            rows.append(before)
            residuals.append(residual)
            sizes.append(size)
    return WrittenCheck(system, rows, ca.vertcat(*residuals), ca.vertcat(*sizes))
