"""The base of all laws: a log-density, from which all else can be computed, and closed forms where there are some.

A law is a frozen dataclass whose fields are its parameters. It has to give

    formula(value)      log p(value) inside its support, of + - * / ** and NumPy's functions (``formulas``)
    support             (low, high), the whole line unless it says otherwise

and may give ``distribution``, ``quantile`` and ``mode``, which are computed from the formula otherwise.

**As a prior** (of one unknown θ) a law counts with its density in a measure,

    measure = "value"   per unit of θ:        ℓ(θ) = log p(θ)
    measure = "log"     per unit of log θ:    ℓ(θ) = log p(θ) + log θ

and a fit maximises log L(θ) + ℓ(θ). Every law counts per unit of θ but ``LogNormal``, whose most likely value is
thereby its median, and what is truncated, which counts as what it is made of. The scale that an unknown is searched on
has no part in it: estimates do not depend on ``transform=``.

**With its location left open** (None) a law is that of measurements around predictions: ``law.at(location)`` fills it
in, and ``derivatives(value, mean=predictions)`` takes arrays.
"""

from __future__ import annotations

import inspect
from dataclasses import fields
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np

from grisaille.errors import ModelError
from grisaille.laws.law_arguments import has_arrays
from grisaille.laws.law_derivatives import Derivatives, differentiate, replace_fields
from grisaille.laws.measured import Measured
from grisaille.laws.numerical import distribution_of, mode_of, quantile_of
from grisaille.laws.probabilities import distributions_of, quantiles_of
from grisaille.laws.random import uniforms

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from grisaille.laws.values import Formula, Values


UNDER_LAWS = ("Binomial", "Laplace", "NegativeBinomial", "Poisson", "Student")
"""Laws with a location that are ``gr.laws.Name``; the others are ``gr.Name``."""
TAIL_PROBABILITY = 0.022750131948179195
"""Probability beyond two standard deviations of a normal law, on one side."""


class LawType(type):
    """Leaves the location open where a law is made without: ``Normal(std=0.1)`` is ``Normal(None, 0.1)``."""

    if not TYPE_CHECKING:

        def __call__(cls, *given: Any, **fields: Any) -> Any:
            if cls.location and not given:
                fields = {cls.location: None, **fields}
            return super().__call__(*given, **fields)

        @property
        def __signature__(cls) -> inspect.Signature:
            made = inspect.signature(cls.__init__)
            return made.replace(parameters=list(made.parameters.values())[1:])


class Law(Measured, metaclass=LawType):
    """A law of one number: derive a frozen dataclass from it."""

    measure: ClassVar[Literal["value", "log"]] = "value"
    """In which a prior counts; see above."""
    location: ClassVar[str] = ""
    """The field that says where the law lies, and may be left open; empty where there is none."""
    known: ClassVar[dict[str, type[Law]]] = {}
    """Every law that has been defined, by its name: what files may name."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        taken = Law.known.get(cls.__name__)
        if taken is not None and is_ours(taken) and not is_ours(cls):
            raise ModelError(f"There is a law called {cls.__name__}, gr.laws.{cls.__name__}: give yours another name.")
        if not cls.__name__.startswith("_"):
            Law.known[cls.__name__] = cls

    def formula(self, value: Formula) -> Formula:
        """Return log p(value) inside the support, of arrays or symbols."""
        raise NotImplementedError(f"{type(self).__name__} has no formula(value) for its log-density.")

    @property
    def support(self) -> tuple[float, float]:
        """Return the interval in which the density is not zero."""
        return -np.inf, np.inf

    @property
    def mode(self) -> float:
        """Return the most likely value, in the law's measure."""
        return mode_of(self)

    @property
    def central(self) -> tuple[float, float]:
        """Return the interval without the outer 2.3 % on each side, from which searches from many points begin."""
        low, high = self.quantile(np.array([TAIL_PROBABILITY, 1 - TAIL_PROBABILITY])).tolist()
        return low, high

    @property
    def kinks(self) -> tuple[float, ...]:
        """Return the points inside the support at which the slope of the log-density jumps."""
        return ()

    @property
    def is_flat(self) -> bool:
        """Return whether the density is the same everywhere in the support."""
        return False

    def standardised(self, value: Formula) -> Formula:
        """Return r with ½ r² = const − ℓ(value), of numbers or symbols, where r is normal; None for all other laws."""
        return None

    def residual(self, value: float) -> tuple[float, float] | None:
        """Return r and dr/dvalue where there is a ``standardised`` value; None for all other laws."""
        return None

    @property
    def parameters(self) -> dict[str, Formula]:
        """Return the fields by name."""
        described: Any = self
        return {f.name: getattr(self, f.name) for f in fields(described)}

    @property
    def is_open(self) -> bool:
        """Return whether the location is left open."""
        return bool(self.location) and getattr(self, self.location) is None

    def at(self, location: Values | None) -> Self:
        """Return the same law at a location, which may be an array."""
        if not self.location:
            raise ModelError(f"{type(self).__name__} has no location that could be left open.")
        return self if location is None else replace_fields(self, **{self.location: location})

    def log_density(self, value: ArrayLike) -> np.ndarray:
        """Return log p, −∞ outside the support and where the arguments make no law; of counts, log P."""
        found = self.log_formula(value)
        if not self.is_discrete:
            return found
        x = np.asarray(value, dtype=float)
        return np.where((x == np.floor(x)) | np.isnan(x), found, -np.inf)

    def log_formula(self, value: ArrayLike) -> np.ndarray:
        """Return the formula inside the support, of counts also between whole numbers; −∞ outside."""
        self.refuse_open()
        x, (low, high) = np.asarray(value, dtype=float), self.support
        with np.errstate(all="ignore"):
            inside = np.asarray(self._numbers(x), dtype=float) + 0.0 * x
        if np.isnan(inside).any():
            inside = np.where(np.isnan(inside), -np.inf, inside)
        return np.where(np.isnan(x), np.nan, np.where((x >= low) & (x <= high), inside, -np.inf))

    def _numbers(self, value: np.ndarray) -> Formula:
        """Return the formula of numbers, which may be written without cancellation."""
        return self.formula(value)

    def derivatives(self, value: ArrayLike, **parameters: Any) -> Derivatives:
        """Return log p with first and second derivatives by (value, *parameters), inside the support.

        parameters : arrays in place of the law's own, broadcast against the values
        """
        given = {**self.parameters, **parameters}
        unknown = [n for n in parameters if n not in self.parameters]
        if unknown:
            raise ModelError(f"{type(self).__name__} has no parameter '{unknown[0]}': {', '.join(self.parameters)}.")
        if self.location and given[self.location] is None:
            self.refuse_open()
        return differentiate(self, value, given)

    def distribution(self, value: ArrayLike) -> np.ndarray:
        """Return the probability of what is not larger."""
        if self.is_discrete or has_arrays(self):
            return distributions_of(self, value)
        return distribution_of(self, value)

    def quantile(self, probability: ArrayLike) -> np.ndarray:
        """Return the values below which so much of the probability lies."""
        if self.is_discrete or has_arrays(self):
            return quantiles_of(self, probability)
        return quantile_of(self, probability)

    def draw(self, count: int, seed: int = 0, name: str = "", *, first: int = 0) -> np.ndarray:
        """Return draws number ``first`` to ``first + count − 1`` of a seed under a name, the same in any order."""
        return np.asarray(self.quantile(uniforms(count, seed, name, first)))

    def refuse_open(self) -> None:
        """Refuse a law without a location where one is needed."""
        if self.is_open:
            kind = type(self).__name__
            raise ModelError(
                f"{self!r} has no {self.location}: it is a law of measurements around predictions. Give the "
                f"{self.location} first: gr.{'laws.' if kind in UNDER_LAWS else ''}{kind}"
                f"({', '.join(self.parameters)})."
            )


def is_ours(kind: type) -> bool:
    """Return whether a law comes with the package."""
    return kind.__module__.startswith("grisaille.")
