"""The flat model: what ``model`` hands to ``structure``.

Every symbol has its full dotted name (``"legs[0].m"``), every formula has only :class:`Name` and :class:`Constant`
leaves, connections have become equations. Names in formulas are those of parameters, variables, inputs, disturbances
and ``"time"``: named formulas, driven inputs and outputs with a definition are already put in their places.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, TypeVar

from grisaille.cache import Cache
from grisaille.laws import Law
from grisaille.model.expression import Expression

T = TypeVar("T")
Kind = Literal["variable", "parameter", "input", "disturbance"]


@dataclass(frozen=True, eq=False)
class FlatParameter:
    name: str
    value: Expression | None
    """A number, or a formula of other parameters; None when the user must give it."""
    unit: str = ""
    description: str = ""
    bounds: tuple[float, float] | None = None
    prior: Any = None
    transform: str | None = "auto"


@dataclass(frozen=True, eq=False)
class FlatVariable:
    name: str
    start: Expression | None = None
    """A number or a formula of parameters (and of other variables' starts); None when not declared."""
    unit: str = ""
    description: str = ""
    fixed: bool = False
    """True makes ``start`` a demand; otherwise it is a wish."""
    nominal: float | None = None
    bounds: tuple[float, float] | None = None


@dataclass(frozen=True, eq=False)
class FlatDiscrete:
    name: str
    start: Expression
    """A number or a formula of parameters."""
    unit: str = ""
    description: str = ""


@dataclass(frozen=True, eq=False)
class FlatInput:
    name: str
    default: float | None = None
    unit: str = ""
    description: str = ""


@dataclass(frozen=True, eq=False)
class FlatDisturbance:
    name: str
    spectrum: Any = None
    scale: Expression | None = None
    correlation: tuple[tuple[str, Expression], ...] | None = None
    """Correlation of the driving noise with that of other disturbances: (name, coefficient) for each."""
    unit: str = ""
    description: str = ""


@dataclass(frozen=True, eq=False)
class FlatOutput:
    name: str
    definition: Expression
    """A formula; for an output that an equation determines, the variable of the same name."""
    noise: Expression | None = None
    unit: str = ""
    description: str = ""
    distribution: Law | None = None
    """In place of noise, the law of measurements around the definition; its arguments are formulas."""


@dataclass(frozen=True, eq=False)
class FlatEquation:
    left: Expression
    right: Expression
    text: str
    """As the user wrote it, with full names: ``"m*der(vx) == tension*x - k*abs(vx)*vx"``."""
    source: str = ""
    """Where it stands: file and line, or the connection that made it."""
    kind: Literal["equation", "connection", "flow"] = "equation"


@dataclass(frozen=True, eq=False)
class FlatAction:
    """``target`` gets the value ``value``: a state (``"reinit"``) or a discrete variable (``"assign"``)."""

    kind: Literal["reinit", "assign"]
    target: str
    value: Expression


@dataclass(frozen=True, eq=False)
class FlatClause:
    condition: Expression
    actions: tuple[FlatAction, ...]
    text: str
    """The condition as the user wrote it, with full names."""


@dataclass(frozen=True, eq=False)
class FlatWhen:
    """A group of clauses of which the first one fires whose condition becomes true."""

    clauses: tuple[FlatClause, ...]
    source: str = ""


@dataclass(frozen=True, eq=False)
class FlatModel:
    name: str
    description: str
    parameters: dict[str, FlatParameter]
    variables: dict[str, FlatVariable]
    inputs: dict[str, FlatInput]
    disturbances: dict[str, FlatDisturbance]
    outputs: dict[str, FlatOutput]
    quantities: dict[str, Expression]
    """Named formulas of the class bodies and driven inputs, in order of declaration; never unknowns."""
    equations: tuple[FlatEquation, ...]
    noise_covariance: dict[tuple[str, str], Expression] = field(default_factory=dict)
    """Of pairs of outputs; ``noise(y)`` in it is a name, the standard deviation of an output (``shared_noise``)."""
    discretes: dict[str, FlatDiscrete] = field(default_factory=dict)
    """They stand among the parameters, too: between events they are constant, at the first instant at their start."""
    whens: tuple[FlatWhen, ...] = ()
    hints: tuple[str, ...] = ()
    """Sentences for the error that names an underdetermined part (a subclass that forgot ``super()``)."""
    initial: tuple[FlatEquation, ...] = ()
    """What holds at the first instant only."""

    def cached_value(self, key: Hashable, make: Callable[[], T]) -> T:
        """Return a value that follows from the model and the key alone; it is computed once."""
        found: T = self._made.get(key, make)
        return found

    @cached_property
    def _made(self) -> Cache[Any]:
        return Cache(None)
