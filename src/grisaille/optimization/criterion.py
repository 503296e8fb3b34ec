"""The criterion that a search minimises: a function of bounded unknowns, with derivatives where they are asked for."""

from __future__ import annotations

from typing import Protocol, TypeVar

import numpy as np

from grisaille.bound_experiment.unknown import Unknown


class Evaluated(Protocol):
    """A criterion at one point; empty arrays and a reason where it has no value there."""

    @property
    def theta(self) -> np.ndarray: ...

    @property
    def objective(self) -> float: ...

    @property
    def gradient(self) -> np.ndarray:
        """Return the gradient of the objective by θ."""
        ...

    @property
    def information(self) -> np.ndarray:
        """Return the approximation of its Hessian; empty where derivatives were not asked for."""
        ...

    @property
    def residuals(self) -> np.ndarray: ...

    @property
    def jacobian(self) -> np.ndarray:
        """∂ residuals / ∂θ; empty where derivatives were not asked for."""
        ...

    @property
    def completed(self) -> bool: ...

    @property
    def failure(self) -> str: ...

    @property
    def cost(self) -> int:
        """Evaluations it took: more than one where derivatives are differences."""
        ...

    @property
    def steps(self) -> int:
        """Return the number of steps that integrators took for it; 0 where none are counted."""
        ...


E = TypeVar("E", bound=Evaluated)
E_co = TypeVar("E_co", bound=Evaluated, covariant=True)


class Criterion(Protocol[E_co]):
    """A function of unknowns."""

    @property
    def unknowns(self) -> tuple[Unknown, ...]: ...

    def evaluate(self, theta: np.ndarray, *, sensitive: bool = True) -> E_co:
        """Return the criterion at θ, with derivatives where ``sensitive``."""
        ...

    def gradient(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the objective and its gradient alone, infinite where it has no value: often cheaper."""
        ...
