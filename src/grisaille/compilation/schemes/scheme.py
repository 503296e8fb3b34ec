"""What is known of an integrator, in one place: everything else asks a ``Scheme`` and never its name."""

from __future__ import annotations

from dataclasses import dataclass

from grisaille.compilation.schemes.tableau import Tableau
from grisaille.errors import CompilationError


@dataclass(frozen=True)
class Scheme:
    """An integrator of initial value problems.

    ``header`` names the file of ``kernels/`` and what that file defines: a function that takes a task a slice further,
    and ``…_work``, which says how many doubles of scratch memory it needs.
    """

    name: str
    """As options and files name it."""
    header: str
    is_implicit: bool
    """Whether it suits stiff problems and damps what is fast."""
    is_adaptive: bool
    """Whether its steps are under error control; those of others are fixed."""
    has_adjoint: bool = False
    """Whether gradients can be taken backwards through its steps (gr_adjoint.h)."""
    tableaux: tuple[Tableau, ...] = ()
    """Of explicit Runge–Kutta pairs, see ``explicit_scheme``."""
    frozen: Scheme | None = None
    """What takes steps of fixed length in the place of this one."""
    tolerance_share: float = 1.0
    """Part of the tolerance that a single step may use."""
    is_quick_to_build: bool = False
    """Whether it is not worth to be built once for runs and fits."""
    title: str = ""
    """In sentences, where that is not its name."""

    def __str__(self) -> str:
        return self.title or self.name

    @property
    def program(self) -> tuple[str, tuple[Tableau, ...]]:
        """Return what two schemes that are one C file have in common."""
        return self.header, self.tableaux

    def taking(self, fixed_step: float) -> Scheme:
        """Return the scheme for steps of this length: itself, or its counterpart for fixed steps."""
        if not self.is_adaptive or not fixed_step > 0.0:
            return self
        if self.frozen is None:
            raise CompilationError(
                f"The steps of method={self.name!r} are under error control, and it has none of fixed length: use "
                f"method='frozen'."
            )
        return self.frozen


def explicit_scheme(name: str, *tableaux: Tableau, title: str = "") -> Scheme:
    """Return an explicit scheme under error control from its tableau, or from two, the second of higher order: that one
    is taken where tolerances are tight.
    """
    orders = [tableau.order for tableau in tableaux]
    if len(orders) not in (1, 2) or orders != sorted(set(orders)):
        raise CompilationError(
            f"The scheme {name!r} has tableaux of the orders {orders}; give one, or two of which the second is of "
            f"higher order."
        )
    return Scheme(
        name, "gr_explicit", is_implicit=False, is_adaptive=True, tableaux=tableaux,
        tolerance_share=EXPLICIT_SHARE, title=title,
    )  # fmt: skip


EXPLICIT_SHARE = 0.1
"""Part of the tolerance that a single explicit step may use: errors of non-stiff problems add up over the run, those of
stiff ones are damped. Costs a third more steps at order eight and gains a digit."""
