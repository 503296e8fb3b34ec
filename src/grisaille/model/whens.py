"""Events of a model: ``when(condition, …)``, new values for states and discrete variables, clocks.

A ``when`` fires where its condition *becomes* true. Its actions are ``reinit(x, formula)``, which sets a state, and
``n == formula``, which gives a discrete variable the value that it holds until the next event. In the formulas
``pre(n)`` is the value just before; a discrete variable without ``pre`` has its new value.

``when(…).otherwise(condition, …)`` fires where the conditions before it do not become true at the same instant.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from grisaille.errors import ModelError
from grisaille.model.expression import (
    Call,
    Condition,
    Constant,
    Equation,
    Expression,
    Name,
    as_condition,
    as_expression,
    as_number,
)
from grisaille.model.recording import register
from grisaille.model.symbol_arrays import elementwise

if TYPE_CHECKING:
    from grisaille.model.expression import Formulas
    from grisaille.model.given import Action

OF_EVENTS = frozenset({"pre", "clock", "edge", "change", "initial", "terminal", "whenever"})
"""Operations that have a meaning at events only."""


class Reset:
    """``reinit(x, formula)``; becomes part of a model inside ``gr.when``."""

    __slots__ = ("target", "value")

    def __init__(self, target: Expression, value: Expression) -> None:
        self.target, self.value = target, value

    def __repr__(self) -> str:
        return f"reinit({self.target}, {self.value})"


class Clause:
    """A condition and what is done where it becomes true."""

    __slots__ = ("actions", "condition")

    def __init__(self, condition: Condition, actions: tuple[Equation | Reset, ...]) -> None:
        self.condition, self.actions = condition, actions

    def __repr__(self) -> str:
        return ", ".join(map(str, (self.condition, *self.actions)))


class When:
    """``when(…)``; becomes part of a model when it is listed in ``equations``. Of its clauses the first one fires."""

    __slots__ = ("clauses", "source")

    def __init__(self, clauses: tuple[Clause, ...], source: str = "") -> None:
        self.clauses = clauses
        self.source = source or register(self)

    def otherwise(self, condition: Condition, *actions: Action) -> When:
        """Return further actions, where this condition becomes true and none of those before it does at the same
        instant.

        condition : as of ``gr.when``
        actions : as of ``gr.when``
        """
        clause = _clause(condition, actions)
        self.clauses = (*self.clauses, clause)
        return self

    @property
    def equations(self) -> tuple[Equation, ...]:
        """Return those actions that are equations."""
        return tuple(a for c in self.clauses for a in c.actions if isinstance(a, Equation))

    def __bool__(self) -> NoReturn:
        raise ModelError(f"`{self}` has no truth value: list it in `equations`.")

    def __repr__(self) -> str:
        first, *others = self.clauses
        return f"when({first})" + "".join(f".otherwise({c})" for c in others)


def when(condition: Condition, *actions: Action) -> When:
    """Return what is done at the instant at which a condition becomes true; listed among a model's equations.

    A condition that holds at the start fires nothing, until it has been false. Each clause is decided after those that
    set what it needs at the same instant; then ``pre`` is what holds, and all is repeated until nothing changes.

    condition : with ``<``, ``<=``, ``>`` or ``>=``, joined by ``&``, ``|`` and ``~``; or ``gr.clock(period)``
    actions : ``gr.reinit(x, formula)`` for states, ``n == formula`` for discrete variables; lists of them

    Examples
    --------
    >>> import numpy as np
    >>> import grisaille as gr
    >>> class Ball(gr.Model):
    ...     h, v = gr.Variable(1.0), gr.Variable(0.0)
    ...     bounces = gr.Discrete(0)
    ...     equations = [
    ...         gr.der(h) == v,
    ...         gr.der(v) == -9.81,
    ...         gr.when(h < 0, gr.reinit(v, -0.8 * gr.pre(v)), bounces == gr.pre(bounces) + 1),
    ...     ]
    >>> gr.simulate(Ball(), np.array([0.0, 1.0, 2.0])).bounces.values
    array([0., 1., 3.])
    """
    return When((_clause(condition, actions),))


def reinit(variable: Any, value: Any) -> Any:
    """Return the state ``variable`` gets a new value, inside ``gr.when``.

    States that algebraic equations tie to it follow; all others go on from where they are.

    variable : a variable that the equations differentiate, or an array of them
    value : a formula or a number, of the states just before the event and of new discrete variables
    """
    if isinstance(variable, np.ndarray):
        return elementwise(reinit, variable, value)
    if isinstance(variable, Call | Constant) or not isinstance(variable, Expression):
        raise ModelError(f"gr.reinit({variable}, …): its first argument is a variable, not a formula or a number.")
    if getattr(variable, "kind", "variable") == "discrete":
        raise ModelError(f"gr.reinit({variable}, …): {variable} is a gr.Discrete; write `{variable} == {value}`.")
    if getattr(variable, "kind", "variable") not in ("variable", "output"):
        raise ModelError(f"gr.reinit({variable}, …): {variable} is a {getattr(variable, 'kind', 'name')}, not a state.")
    return Reset(variable, as_expression(value))


def pre(variable: Expression | np.ndarray) -> Formulas:
    """Return the value just before an event: of a discrete variable anywhere, of any other one inside ``gr.when``.

    variable : a declared member, or an array of them
    """
    if isinstance(variable, np.ndarray):
        return elementwise(pre, variable)
    if isinstance(variable, Call | Constant) or not isinstance(variable, Expression):
        raise ModelError(f"gr.pre({variable}): pre is taken of a declared variable, not of a formula or a number.")
    return Call("pre", (variable,))


def clock(period: Any, start: Any = 0.0) -> Condition:
    """Return a condition that becomes true at ``start``, ``start + period``, ``start + 2 period``, …

    period : above zero, in the unit of time; a number or a formula of parameters
    start : the first tick; a number or a formula of parameters
    """
    for name, value in (("period", period), ("start", start)):
        if isinstance(value, np.ndarray | list | tuple):
            raise ModelError(f"gr.clock: {name} must be a single number or a formula of parameters, got {value!r}.")
    if not isinstance(period, Expression) and not as_number(period) > 0:
        raise ModelError(f"gr.clock: the period must be above zero, got {period!r}.")
    return Condition("clock", (as_expression(period), as_expression(start)))


def edge(condition: Condition) -> Condition:
    """True in the moment in which a condition becomes true."""
    return Condition("edge", (as_condition(condition),))


def change(variable: Expression) -> Condition:
    """True in the moment in which a discrete variable gets another value."""
    return Condition("change", (as_expression(variable),))


def whenever(condition: Condition | bool) -> Condition:
    """As the whole condition of a ``when``: it fires in every pass of an event in which the condition holds, not only
    where it becomes true; its actions must make it false in the end. For generated models."""
    return Condition("whenever", (as_condition(condition),))


def initial() -> Condition:
    """True at the start of a run and never again."""
    return Condition("initial", ())


def terminal() -> Condition:
    """Return the end of a run, at which nothing is done: never true."""
    return Condition("terminal", ())


def always(value: bool) -> Condition:
    """Return a condition that never changes, for generated models."""
    return Condition("le" if value else "lt", (Name("time"), Name("time")))


def _clause(condition: Any, actions: tuple[Any, ...]) -> Clause:
    if isinstance(condition, Equation):
        raise ModelError(f"gr.when needs a condition with <, <=, > or >=; `{condition}` is an equation.")
    checked = as_condition(condition)
    listed = tuple(_listed(actions))
    if not listed:
        raise ModelError(
            f"gr.when({condition}) does nothing: give it actions, gr.reinit(x, formula) or `n == formula` for a "
            "gr.Discrete n."
        )
    return Clause(checked, listed)


def _listed(items: Iterable[Action]) -> list[Equation | Reset]:
    found: list[Equation | Reset] = []
    for item in items:
        if isinstance(item, Equation | Reset):
            found.append(item)
        elif isinstance(item, list | tuple):
            found += _listed(item)
        elif isinstance(item, np.ndarray):
            found += _listed(item.flat)
        elif isinstance(item, When):
            raise ModelError(f"`{item}` stands inside another gr.when; join their conditions with & instead.")
        else:
            raise ModelError(
                f"gr.when takes actions, gr.reinit(x, formula) or `n == formula` for a gr.Discrete n, not {item!r}."
            )
    return found
