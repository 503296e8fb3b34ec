"""A law as that of measurements: evaluated for many samples at once, each with arguments of its own.

``law.arguments`` names what can be filled in, ``law.filled({path: array})`` does so, and the result is evaluated for
all samples: log-densities, their derivatives by arguments, the information that a sample has about them, and
distribution functions, whose jumps are atoms of probability. Everything is computed from ``formula`` and ``support``
unless a law knows better.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import Field
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from grisaille.laws import law_arguments as paths
from grisaille.laws.expected_information import expected_information
from grisaille.laws.intervals import averages as interval_averages
from grisaille.laws.law_derivatives import Derivatives, assemble_derivatives, differentiate_by
from grisaille.laws.law_moments import deviation_of, mean_of

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from grisaille.laws.values import ByPair, Values


Partials = tuple[dict[str, Any], dict[tuple[str, str], Any]]
"""First and second derivatives of a log-density that are not zero, by the names of arguments."""


class Measured:
    """What laws of measurements are asked for."""

    is_discrete: ClassVar[bool] = False
    """Whether values are whole numbers."""
    has_steps: ClassVar[bool] = False
    """Whether the formula of a discrete law jumps between whole numbers."""
    has_atoms: ClassVar[bool] = False
    """Whether single values of a continuous law have a probability, as at limits of detection."""
    location: ClassVar[str] = ""
    is_smooth: ClassVar[bool] = True
    """Whether log-densities have a slope by the location everywhere; a class attribute, or a property of wrappers."""

    if TYPE_CHECKING:
        __dataclass_fields__: ClassVar[dict[str, Field[Any]]]
        support: Any
        log_density: Any
        distribution: Any
        formula: Any
        log_formula: Any
        refuse_open: Any
        quantile: Any
        parameters: Any
        mean: Any
        """(N,) of the law, computed where it has no field of that name."""

    else:

        def __getattr__(self, name: str) -> Any:
            """Compute the mean of a law without a field of that name; a property would become that field's default."""
            if name != "mean":
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
            return mean_of(self)

    @property
    def arguments(self) -> dict[str, Any]:
        """Every argument by its path, those of laws inside it as ``of.mean``."""
        return paths.arguments_of(self)

    @property
    def location_path(self) -> str:
        """Return the path of the argument that predictions fill in; empty where there is none."""
        return self.location

    @property
    def held_arguments(self) -> tuple[str, ...]:
        """Paths of arguments that unknowns must not move: the density has no derivative by them."""
        return ()

    def filled(self, values: Mapping[str, Any]) -> Self:
        """Return a copy with numbers or arrays (N,) in place of arguments; they are not checked."""
        found: Self = paths.fill_arguments(self, values)
        return found

    def by_arguments(self, value: ArrayLike, names: Sequence[str]) -> Derivatives:
        """Return log p (N,), its gradient (N, k) and its Hessian (N, k, k) by arguments named by their paths.

        Where there is no density, the log-density is −∞ and its derivatives are zero.
        """
        names = tuple(names)
        paths.refuse_unknown(self, names)
        paths.refuse_held(self, names)
        x = np.asarray(value, dtype=float)
        found = self.by_arguments_between(x, names)
        has_density = np.isfinite(found.value)
        if has_density.all():
            return found
        return Derivatives(
            names,
            found.value,
            np.where(has_density[..., None], found.gradient, 0.0),
            np.where(has_density[..., None, None], found.hessian, 0.0),
        )

    def information(self, names: Sequence[str]) -> np.ndarray:
        """Return E[s sᵀ] (N, k, k) of one sample, with s = ∂ log p/∂ arguments named by their paths."""
        names = tuple(names)
        paths.refuse_unknown(self, names)
        paths.refuse_held(self, names)
        with np.errstate(all="ignore"):
            known = self._information(names)
        if known is None:
            return expected_information(self, names)
        shape = paths.shape_of(self)
        return assemble_derivatives(
            names, np.zeros(shape), {}, {k: np.broadcast_to(v, shape) for k, v in known.items()}
        ).hessian

    def smoothed(self, width: float) -> Any:
        """Return a law without kinks, that differs within ``width`` times the law's size of a kink; itself if smooth.

        It is what a search for the largest likelihood follows, with ever smaller widths.
        """
        return self

    def search_information(self, value: ArrayLike, names: Sequence[str]) -> np.ndarray:
        """Return what stands for the curvature of −log p in a search (N, k, k): of smooth laws, the information."""
        return self.information(names)

    def log_interval(self, low: Values, high: Values, half: Values | None = None) -> np.ndarray:
        """Return log P(low ≤ Y ≤ high) (N,), of any interval, as unlikely as it may be.

        half : half the widths, where they are known better than from the ends
        """
        return interval_averages.log_mass(self, *paths.for_each(self, low, high, half))

    def interval_by_arguments(
        self, low: Values, high: Values, names: Sequence[str], half: Values | None = None
    ) -> Derivatives:
        """Return log P(low ≤ Y ≤ high) (N,) with its gradient and Hessian by arguments."""
        low, high, half = paths.for_each(self, low, high, half)
        return interval_averages.mass_by_arguments(self, low, high, tuple(names), half)

    def information_within(self, low: Values, high: Values, names: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """Return log P(low ≤ Y ≤ high) (N,), and E[s sᵀ] (N, k, k) of the values that lie there."""
        low, high, _ = paths.for_each(self, low, high)
        return interval_averages.squared_scores(self, low, high, tuple(names))

    def moments_within(self, low: Values, high: Values) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return log P(low ≤ Y ≤ high) (N,), and E y and E y² of the values that lie there."""
        low, high, _ = paths.for_each(self, low, high)
        return interval_averages.moments(self, low, high)

    def after(self, limit: Values) -> Values:
        """Return the smallest value above a limit: the next count, or the limit itself of a continuous law."""
        return np.floor(limit) + 1.0 if self.is_discrete else limit

    def before(self, limit: Values) -> Values:
        """Return the largest value below a limit."""
        return np.ceil(limit) - 1.0 if self.is_discrete else limit

    def distribution_below(self, value: ArrayLike) -> np.ndarray:
        """Return P(Y < y), which is P(Y ≤ y) without the atom at y."""
        if not self.is_discrete:
            return np.asarray(self.distribution(value))
        return np.asarray(self.distribution(self.before(np.asarray(value, dtype=float))))

    @property
    def peak(self) -> Values | None:
        """Return where the density per unit of value is largest (N,); None where a law does not declare it."""
        return None

    @property
    def deviation(self) -> Values:
        """Return the standard deviation (N,); infinite where there is none."""
        return deviation_of(self)

    def refused_values(self, value: ArrayLike) -> tuple[int, str] | None:
        """Return the index of the first value that cannot be one of this law, with the reason; None without any."""
        x = np.asarray(value, dtype=float)
        low, high = self.support
        is_outside = (x < low) | (x > high)
        if is_outside.any():
            at = int(np.argmax(is_outside))
            ends = (float(np.broadcast_to(e, x.shape).flat[at]) for e in (low, high))
            return at, f"is {x.flat[at]:g}; {self._says_values(*ends)}"
        is_broken = np.isfinite(x) & (x != np.round(x)) if self.is_discrete else np.zeros(x.shape, dtype=bool)
        if is_broken.any():
            at = int(np.argmax(is_broken))
            return at, f"is {x.flat[at]:.10g}; counts are whole numbers"
        return None

    def refused_arguments(self) -> tuple[int, str] | None:
        """Return the index of the first sample whose limits, step or number of trials make no law, with the reason."""
        return None

    def _says_values(self, low: float, high: float) -> str:
        """Return what values can be, in words."""
        values = "counts are whole numbers" if self.is_discrete else f"values of {type(self).__name__} lie"
        if np.isfinite(high):
            return f"{values} from {low:g} to {high:g}" if np.isfinite(low) else f"{values} up to {high:g}"
        return f"{values} from {low:g} up"

    def by_arguments_between(self, value: np.ndarray, names: tuple[str, ...]) -> Derivatives:
        """Return the derivatives of the formula, of counts also between whole numbers; nothing is checked."""
        with np.errstate(all="ignore"):
            density, known = self.log_density(value), self._partials(value, names)
            if known is not None:
                return assemble_derivatives(names, density, *known)
            first, second = differentiate_by(self, value, names)
        return Derivatives(names, np.broadcast_to(density, first.shape[:-1]), first, second)

    def _partials(self, value: np.ndarray, names: tuple[str, ...]) -> Partials | None:
        """Return closed forms of the derivatives; None where there are none."""
        return None

    def _information(self, names: tuple[str, ...]) -> ByPair | None:
        """Return closed forms of the information, what is zero left out; None where there are none."""
        return None
