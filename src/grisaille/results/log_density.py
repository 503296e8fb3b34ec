"""``gr.log_density``: the log-density of unknowns given data, as a function that optimizers and samplers take."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from grisaille.calling import checked
from grisaille.errors import ArgumentError
from grisaille.estimation.density.criterion_kinds import log_density_of
from grisaille.estimation.density.density_value import DensityPart, DensityValue
from grisaille.estimation.density.log_density import LogDensity
from grisaille.estimation.density.transforms import Transforms
from grisaille.estimation.density.unbounded import Unbounded
from grisaille.estimation.estimator import Estimator
from grisaille.estimation.fitted import Fitted
from grisaille.estimation.problem import EstimationProblem
from grisaille.estimators.choice import find_candidates
from grisaille.estimators.fitting import build_problem, checked_experiments, pose_first
from grisaille.experiment.experiment import Experiment
from grisaille.laws import MultivariateNormal, Prior
from grisaille.model.classes import Model
from grisaille.model.names import suggestion

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

Theta = Mapping[str, float] | Sequence[float] | np.ndarray
"""Values of the unknowns: by name, or in the order of ``names``."""


@dataclass(frozen=True, eq=False, repr=False)
class DensityFunction:
    """The log-density of unknowns given data: call it with θ; −∞ where there is none, and ``failure(θ)`` says why.

    θ is a dict by name, or an array in the order of ``names``. It may be called from several threads at once, and is
    pickled by content.
    """

    method: Estimator
    """The estimator whose likelihood it is."""
    _model: Model
    _experiments: tuple[Experiment, ...]
    _estimate: list[str] | str | None
    _options: Mapping[str, Any]
    _made: dict[str, LogDensity] = field(default_factory=dict)

    def __call__(self, theta: Theta) -> float:
        """Return log p(data | θ) + log p(θ)."""
        return self._value(theta, False).log_density

    def gradient(self, theta: Theta) -> np.ndarray:
        """Return the derivatives by θ in the order of ``names``; NaN where there is no density.

        theta : by name or in order
        """
        return self.value_and_gradient(theta)[1]

    def value_and_gradient(self, theta: Theta) -> tuple[float, np.ndarray]:
        """Return the log-density and its gradient.

        theta : by name or in order
        """
        found = self._value(theta, True)
        missing = np.full(len(self.names), np.nan)
        return found.log_density, missing if found.gradient is None else found.gradient

    def parts(self, theta: Theta) -> tuple[DensityPart, ...]:
        """Return the terms that add up to the log-density: one for each experiment, the prior, a penalty of bounds.

        theta : by name or in order
        """
        return self._value(theta, True).parts

    def failure(self, theta: Theta) -> str:
        """Say why there is no density at θ; empty where there is one.

        theta : by name or in order
        """
        return self._value(theta, False).failure

    @property
    def names(self) -> tuple[str, ...]:
        """Return the unknowns in their order; open noise levels are among them."""
        return self._density.names

    @property
    def start(self) -> np.ndarray:
        """Return the guess, in the order of ``names``."""
        return self._density.start

    @property
    def bounds(self) -> tuple[tuple[float, float], ...]:
        """Lowest and highest value of each unknown, as ``scipy.optimize.minimize`` takes them."""
        return self._density.ranges

    @property
    def measure(self) -> dict[str, str]:
        """Per unit of what the density counts, by name: ``"k"``, or ``"log k"`` where a LogNormal prior counts so.

        Fits maximise this density. One for sampling counts per unit of ``unbounded``'s coordinates throughout.
        """
        marked = zip(self.names, self._density.counts_by_logarithm, strict=True)
        return {name: f"log {name}" if is_log else name for name, is_log in marked}

    def to_unbounded(self, theta: Theta) -> np.ndarray:
        """Return coordinates ξ on the whole line: logarithms and logits of unknowns with bounds; infinite on a bound.

        theta : by name or in order
        """
        return self._transforms.inner(self._array(theta, "to_unbounded"))

    def from_unbounded(self, xi: Sequence[float] | np.ndarray) -> np.ndarray:
        """Return θ, inside the bounds.

        xi : as ``to_unbounded`` gives it
        """
        return self._transforms.outer(self._xi(xi))

    def slopes(self, xi: Sequence[float] | np.ndarray) -> np.ndarray:
        """Return dθ/dξ of each unknown: by the chain rule, the gradient by ξ of what has a gradient by θ.

        xi : as ``to_unbounded`` gives it
        """
        return self._transforms.jacobian(self._xi(xi))[0]

    @cached_property
    def unbounded(self) -> UnboundedDensity:
        """Return the log-density per unit of ξ, log-Jacobian included: what a sampler takes."""
        return UnboundedDensity(self)

    def __repr__(self) -> str:
        names = ", ".join(self.names)
        return f"log-density of {names} by {type(self.method).__name__}; {len(self.names)} unknowns"

    def __getstate__(self) -> dict[str, Any]:
        kept = {k: v for k, v in vars(self).items() if k not in ("_unbounded", "unbounded")}
        return {**kept, "_made": {}}

    @property
    def _density(self) -> LogDensity:
        if "own" not in self._made:
            problem = build_problem(self._model, list(self._experiments), self._estimate, self.method, **self._options)
            self._made.setdefault("own", _made(self.method, problem, self._options["guess"]))
        return self._made["own"]

    @cached_property
    def _unbounded(self) -> Unbounded:
        return Unbounded(self._density)

    @property
    def _transforms(self) -> Transforms:
        return self._unbounded.transforms

    def _value(self, theta: Theta, derivatives: bool) -> DensityValue:
        return self._density.value(self._array(theta, "log_density"), derivatives)

    def _array(self, theta: Mapping[str, float] | Sequence[float] | np.ndarray, who: str) -> np.ndarray:
        """Return θ in order; refuse names and lengths that are others."""
        names = self.names
        if isinstance(theta, Mapping):
            strange = [n for n in theta if n not in names]
            if strange:
                raise ArgumentError(
                    f"{who}: theta names '{strange[0]}', which is no unknown; give {', '.join(names)}. "
                    f"{suggestion(str(strange[0]), names)}"
                )
            missing = [n for n in names if n not in theta]
            if missing:
                raise ArgumentError(f"{who}: theta lacks a value for '{missing[0]}'; give {', '.join(names)}.")
            return self._numbers([theta[n] for n in names], f"{who}: theta")
        return self._numbers(theta, f"{who}: theta")

    def _xi(self, xi: ArrayLike) -> np.ndarray:
        return self._numbers(xi, "from_unbounded: xi")

    def _numbers(self, given: ArrayLike, what: str) -> np.ndarray:
        names = self.names
        try:
            values = np.asarray(given, dtype=float)
        except (TypeError, ValueError):
            values = np.zeros((0, 0))
        if values.shape != (len(names),):
            shape = f"an array of shape {values.shape}" if values.size or values.ndim == 1 else repr(given)
            raise ArgumentError(
                f"{what} is {shape}; give {len(names)} number{'' if len(names) == 1 else 's'}, of {', '.join(names)}, "
                f"in this order."
            )
        return values


@dataclass(frozen=True, eq=False, repr=False)
class UnboundedDensity:
    """A log-density per unit of unbounded coordinates ξ: log p(θ(ξ)) + log |dθ/dξ|.

    Unknowns whose prior counts per unit of its logarithm are brought to their own unit, so that this is the logarithm
    of likelihood × prior densities per unit of ξ.
    """

    of: DensityFunction

    def __call__(self, xi: Sequence[float] | np.ndarray) -> float:
        """Return the log-density at ξ; −∞ where there is none."""
        return self._at(xi, False)[0]

    def gradient(self, xi: Sequence[float] | np.ndarray) -> np.ndarray:
        """Return its derivatives by ξ; NaN where there is no density.

        xi : in the order of ``names``
        """
        return self._at(xi, True)[1]

    def value_and_gradient(self, xi: Sequence[float] | np.ndarray) -> tuple[float, np.ndarray]:
        """Return both.

        xi : in the order of ``names``
        """
        return self._at(xi, True)

    @property
    def names(self) -> tuple[str, ...]:
        """Return the unknowns in their order."""
        return self.of.names

    @property
    def start(self) -> np.ndarray:
        """Return the guess."""
        return self.of.to_unbounded(self.of.start)

    def __repr__(self) -> str:
        return f"{self.of!r}, per unit of unbounded coordinates"

    def _at(self, xi: Sequence[float] | np.ndarray, derivatives: bool) -> tuple[float, np.ndarray]:
        found = self.of._unbounded.at(self.of._xi(xi), derivatives)
        return found.log_density, found.gradient


@checked
def log_density(
    model: Model,
    experiments: Experiment | Sequence[Experiment],
    estimate: Iterable[object] | None = None,
    method: Estimator | str = "auto",
    guess: Mapping[str, float] | Fitted | None = None,
    bounds: Mapping[str, tuple[float, float]] | None = None,
    priors: Mapping[str, Prior | None] | Sequence[MultivariateNormal] | MultivariateNormal | None = None,
    local: Iterable[str] = (),
) -> DensityFunction:
    """Return the log-density of the unknowns given the data, a function for optimizers and samplers.

    Its value at θ is log L(θ) + the log-densities of the priors, constants included, and its maximum is where a fit
    ends. Noise levels that the model leaves open are among its unknowns.

    Parameters
    ----------
    model, experiments, estimate, guess, bounds, priors, local : as in ``gr.fit``
    method : ``gr.OutputError(…)``, ``gr.KalmanML(…)``, ``gr.Collocation(…)`` or ``"auto"``. Criteria that are no
        likelihoods (``gr.SimulatedPEM(…)``, robust losses, collocation by ``"amle"``) are refused

    Returns
    -------
    A function of θ, by name or as an array, that gives a float: −∞ where there is no density, ``failure(θ)`` says why.
    ``gradient``, ``value_and_gradient`` and ``parts`` of θ; ``names``, ``start``, ``bounds``, ``measure``;
    ``to_unbounded``, ``from_unbounded``, ``slopes`` and ``unbounded``, the density per unit of unbounded coordinates.

    Examples
    --------
    With the tank and the data of ``help(gr.fit)``:

    >>> density = gr.log_density(Tank(), data, ["k", "q"])
    >>> density.names
    ('k', 'q', 'noise(y)')
    >>> density({"k": 0.5, "q": 2.0, "noise(y)": 0.01}) > density(density.start)
    True
    """
    estimate = list(estimate) if estimate is not None and not isinstance(estimate, str) else estimate
    data = checked_experiments(model, experiments)
    options: dict[str, Any] = {
        "guess": guess, "bounds": bounds, "priors": priors,
        "local": local if isinstance(local, str) else tuple(local),
    }  # fmt: skip
    candidates = find_candidates(method, model, data, estimate)
    problem, chosen, _ = pose_first(candidates, model, data, estimate, **options)
    names: Any = [str(getattr(e, "path", e)) for e in estimate] if isinstance(estimate, list) else estimate
    density = _made(chosen, problem, guess)
    return DensityFunction(chosen, model, tuple(data), names, options, {"own": density})


def _made(method: Estimator, problem: EstimationProblem, guess: Any) -> LogDensity:
    return log_density_of(method, problem, guess if isinstance(guess, Fitted) else None)
