"""Check the options of ``gr.KalmanML``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from grisaille.errors import EstimationError
from grisaille.experiment.times.clock import is_length
from grisaille.filtering.filter_methods import FilterMethod
from grisaille.filtering.initial_moments import START_KINDS, CarriedStart
from grisaille.filtering.moment_steps import STAGE_TABLES

if TYPE_CHECKING:
    pass

FILTER_CHOICES = ("auto", "linear", "extended", "iterated", "unscented")
PROPAGATION_CHOICES = ("linearize", "moments", "square-root")
SOLVER_CHOICES = tuple(STAGE_TABLES)
FIRST_OBSERVATION_CHOICES = ("include", "condition")
BOUND_CHOICES = ("optimizer", "transform")


def checked_filter(value: Any) -> Any:
    """Return one of the package's own by name, or the options of another one; files name these with their fields."""
    if isinstance(value, FilterMethod):
        return value
    if isinstance(value, list | tuple) and len(value) == 2 and isinstance(value[0], str):
        return FilterMethod.of(value)
    if not isinstance(value, str) or value not in FILTER_CHOICES:
        raise EstimationError(
            f"filter is {value!r}; it must be {', '.join(map(repr, FILTER_CHOICES[:-1]))} or "
            f"{FILTER_CHOICES[-1]!r}, or the options "
            f"of a filter of your own, a dataclass that derives from grisaille.filtering.FilterMethod."
        )
    return value


def refuse_beside_own(filter: FilterMethod, given: Mapping[str, object], plain: Mapping[str, object]) -> None:
    """Refuse options of the package's own filters beside another filter."""
    for name, value in plain.items():
        if given[name] != value:
            raise EstimationError(
                f"{name}={given[name]!r} goes with the package's own filters: {type(filter).__name__}(…) says itself "
                f"how it steps and weighs; leave {name} at {value!r}."
            )


def checked_choice(name: str, value: object, allowed: Sequence[str]) -> None:
    if not isinstance(value, str) or value not in allowed:
        said = f"{', '.join(map(repr, allowed[:-1]))} or {allowed[-1]!r}"
        raise EstimationError(f"{name} is {value!r}; it must be {said}.")


def checked_whole_number(name: str, value: object, otherwise: str = "") -> None:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
        raise EstimationError(f"{name} is {value!r}; give a whole number from 1{otherwise}.")


def checked_horizon(value: Any) -> int | str:
    """Return samples, or a duration, which is kept as text."""
    if is_length(value):
        return value if isinstance(value, str) else str(pd.Timedelta(value))
    checked_whole_number("horizon", value, ", or a duration such as '1 day'")
    return int(value)


def checked_positive(name: str, value: Any, zero: bool = False) -> None:
    is_number = isinstance(value, int | float | np.number) and not isinstance(value, bool) and np.isfinite(float(value))
    if not is_number or value < 0 or (value == 0 and not zero):
        raise EstimationError(f"{name} is {value!r}; give a number {'from' if zero else 'above'} zero.")


def checked_steps(filter: Any, propagation: str, solver: str, substeps: Any, start: Any) -> None:
    """Check that the options for steps between samples are compatible."""
    checked_choice("propagation", propagation, PROPAGATION_CHOICES)
    checked_choice("solver", solver, SOLVER_CHOICES)
    if substeps != "auto":
        checked_whole_number("substeps", substeps, ", or 'auto'")
    if propagation == "square-root" and filter != "unscented":
        raise EstimationError(
            "propagation='square-root' moves sigma points: use it with filter='unscented', or propagation='moments'."
        )
    if propagation == "square-root" and isinstance(start, str) and start != "stationary":
        raise EstimationError(
            f"propagation='square-root' divides by the square root of the covariance, which vanishes under "
            f"initial_covariance={start!r}: give variances, initial_covariance={{state: variance}}."
        )
    if STAGE_TABLES[solver].is_for_comparison and (propagation == "linearize" or substeps == "auto"):
        raise EstimationError(
            f"solver={solver!r} is for propagation='moments' or 'square-root' and a number of steps, substeps=n: its "
            "steps are too poor to be chosen automatically."
        )


def checked_sigma(sigma: Any) -> tuple[float, float, float]:
    """Return α, β, κ of sigma points; n + λ = α² (n + κ) must be positive for every n."""
    try:
        alpha, beta, kappa = (float(v) for v in sigma)
    except (TypeError, ValueError):
        alpha = beta = kappa = np.nan
    if not (np.isfinite([alpha, beta, kappa]).all() and alpha > 0 and kappa > -1):
        raise EstimationError(
            f"sigma is {sigma!r}; give (alpha, beta, kappa), alpha > 0, kappa > -1, such as (1, 0, 3)."
        )
    return alpha, beta, kappa


def checked_covariance(kind: Any) -> Any:
    """Return the option in a form that can be saved: a word, a dict of numbers or nested tuples."""
    if isinstance(kind, CarriedStart):
        return kind
    if isinstance(kind, str):
        if kind not in START_KINDS:
            raise EstimationError(
                f"initial_covariance is {kind!r}; it must be one of {', '.join(map(repr, START_KINDS))}, a dict "
                f"{{state: variance}} or a matrix."
            )
        return kind
    if isinstance(kind, Mapping):
        for name, variance in kind.items():
            if isinstance(variance, bool) or not isinstance(variance, int | float | np.number) or not variance >= 0:
                raise EstimationError(
                    f"The variance of '{name}' at the start is {variance!r}; give a number from zero up, or np.inf "
                    f"where nothing is known."
                )
        return {str(name): float(variance) for name, variance in kind.items()}
    try:
        matrix = np.asarray(kind, dtype=float)
    except (TypeError, ValueError):
        matrix = np.zeros(0)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not np.isfinite(matrix).all():
        raise EstimationError(
            f"initial_covariance is {kind!r}; give one of {', '.join(map(repr, START_KINDS))}, a dict {{state: "
            f"variance}} "
            f"or a square matrix."
        )
    return tuple(tuple(row) for row in matrix.tolist())


def checked_robust(robust: Any) -> Any:
    """Return a checked ``robust``: None, a threshold, or ``("smooth", threshold)``."""
    if robust is None:
        return None
    if isinstance(robust, list | tuple) and len(robust) == 2 and robust[0] in ("smooth", "huber"):
        _threshold(robust, robust[1])
        return float(robust[1]) if robust[0] == "huber" else ("smooth", float(robust[1]))
    _threshold(robust, robust)
    return float(robust)


def signed_threshold(robust: Any) -> float:
    """Return the threshold as filters read it: c of Huber's loss, −c of the smooth one, infinite for none."""
    if robust is None:
        return np.inf
    return -robust[1] if isinstance(robust, tuple) else float(robust)


def _threshold(given: object, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float | np.number) or not value > 0:
        raise EstimationError(
            f"robust is {given!r}; give a threshold in standard deviations, such as 3, ('smooth', 3) or None."
        )


def huber_score(robust: Any, innovations: np.ndarray) -> np.ndarray:
    """Return ψ of Huber's loss, or of the smooth one, in standard deviations."""
    if isinstance(robust, tuple):
        return np.asarray(innovations / np.sqrt(1 + (innovations / robust[1]) ** 2))
    return np.asarray(np.clip(innovations, -robust, robust))
