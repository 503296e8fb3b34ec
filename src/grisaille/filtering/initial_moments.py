"""What is known about the states before the first sample: covariance, or directions with a flat prior.

    "first-sample"   the covariance that process noise builds up over the first sampling interval, from zero
    "stationary"     A P + P Aᵀ + W = 0 at the inputs of the first instant, on the constraints
    "diffuse"        a flat prior on the states of the plant
    {name: variance} or a matrix of the plant's states (or of all); an infinite variance is a flat prior on that state

Disturbances that start stationary have their stationary covariance in every case but the full matrix. Reference:
N. R. Kristensen, H. Madsen, S. B. Jørgensen, Automatica 40 (2004) 225, section 2.1.4.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grisaille.disturbance.constrained_stationarity import null_space, stationary
from grisaille.disturbance.duals import Floats, constant_dual
from grisaille.disturbance.stochastic_model import StochasticModel, plant_states
from grisaille.errors import EstimationError

START_KINDS = ("first-sample", "stationary", "diffuse")


@dataclass(frozen=True)
class CarriedStart:
    """What a filter knew of all states, disturbances included, where the record before ended."""

    mean: tuple[float, ...]
    covariance: tuple[tuple[float, ...], ...]
    left: tuple[tuple[float, ...], ...] = ()
    """Directions that nothing is known about, a row each."""

    @classmethod
    def of(cls, x: Floats, P: Floats, D: Floats) -> CarriedStart:
        kept = D[:, np.abs(D).max(axis=0, initial=0.0) > 0]
        return cls(tuple(x.tolist()), tuple(map(tuple, P.tolist())), tuple(map(tuple, kept.T.tolist())))

    def __repr__(self) -> str:
        return "what the record before tells"


def start_mean(model: StochasticModel, kind: str | np.ndarray, x0: Floats) -> Floats:
    """Return (1 + ns, n) means before the first sample; x0, (1 + ns, nx), of the plant where nothing was carried
    over.
    """
    mean = np.zeros((len(x0), model.n))
    mean[:, : model.nx] = x0
    if isinstance(kind, CarriedStart):
        mean[0], mean[1:] = kind.mean, 0.0
    return mean


def start_covariance(
    model: StochasticModel, kind: Any, A: Floats, W: Floats, first: Floats, C: Floats
) -> tuple[Floats, Floats]:
    """Return P₀ as a dual, and X₀.

    A, W, C : drift matrix, intensity and constraint Jacobian at the first instant, as duals
    first : the covariance built up over the first interval, as a dual
    """
    P = np.zeros_like(A)
    if isinstance(kind, CarriedStart):
        left = np.array(kind.left).reshape(-1, model.n).T
        return constant_dual(np.array(kind.covariance).reshape(model.n, model.n), len(A) - 1), left
    x, w = slice(0, model.nx), np.arange(model.nx, model.n)[[s == "stationary" for s in model.starts]]
    if len(w):
        inside = np.ix_(np.arange(len(A)), w, w)
        P[inside] = stationary(A[inside], W[inside], np.zeros((len(A), 0, len(w))), "The disturbance")
    X0 = np.zeros((model.n, 0))
    if isinstance(kind, str) and kind == "first-sample":
        P[:, x, x] = first[:, x, x]
    elif isinstance(kind, str) and kind == "stationary":
        if "zero" in model.starts:
            raise EstimationError(
                "initial_covariance='stationary' contradicts a disturbance that starts from zero: use 'first-sample'."
            )
        P = stationary(A, W, C, f"{model.structure.model.name} with its disturbances")
    elif isinstance(kind, str) and kind == "diffuse":
        X0 = _flat_directions(model, C)
    elif isinstance(kind, Mapping):
        given, flat = variances_by_name(model, kind)
        P[:, x, x] = constant_dual(given, len(A) - 1)
        X0 = np.eye(model.n)[:, : model.nx][:, flat]
    else:
        matrix = _checked_matrix(model, kind, C)
        P[:, : len(matrix), : len(matrix)] = constant_dual(matrix, len(A) - 1)
    return P, X0


def is_flat(kind: str | np.ndarray) -> bool:
    """Return whether some state has a flat prior."""
    if isinstance(kind, Mapping):
        return any(np.isinf(v) for v in kind.values())
    if isinstance(kind, CarriedStart):
        return bool(kind.left)
    return isinstance(kind, str) and kind == "diffuse"


def variances_by_name(model: StochasticModel, given: Mapping[str, float]) -> tuple[Floats, NDArray[np.bool_]]:
    """Return the covariance of the plant's states from variances by name, and which states have a flat prior."""
    if model.constraints.numel():
        raise EstimationError(
            "initial_covariance={…} needs states that can be chosen freely, but hidden constraints tie those of "
            f"{model.structure.model.name}: use 'first-sample', 'stationary', or a matrix that respects them."
        )
    places = plant_states(model)
    P, flat = np.zeros((model.nx, model.nx)), np.zeros(model.nx, dtype=bool)
    first: dict[int, str] = {}
    for name, variance in given.items():
        if name not in places:
            raise EstimationError(
                f"initial_covariance= names '{name}', which is not a state; there are {', '.join(places)}."
            )
        if not variance >= 0:
            raise EstimationError(f"The variance of '{name}' at the start is {variance!r}; give a number from zero up.")
        other = first.setdefault(places[name], name)
        if variance != given[other]:
            raise EstimationError(
                f"initial_covariance= gives '{other}' the variance {given[other]:g} and '{name}' {variance:g}, but the "
                f"equations make them the same state: give one of them, or both the same variance."
            )
        flat[places[name]] = np.isinf(variance)
        P[places[name], places[name]] = variance if np.isfinite(variance) else 0.0
    return P, flat


def _checked_matrix(model: StochasticModel, given: tuple[tuple[float, ...], ...], C: Floats) -> Floats:
    P = np.asarray(given, dtype=float)
    if P.shape not in ((model.nx, model.nx), (model.n, model.n)):
        raise EstimationError(
            f"initial_covariance has the shape {P.shape}; give {model.nx} × {model.nx} for "
            f"{', '.join(model.names[: model.nx])}, or one of {', '.join(START_KINDS)}."
        )
    size = np.abs(P).max(initial=0.0)
    if not _is_covariance(P.tobytes(), len(P)):
        raise EstimationError("initial_covariance is not symmetric and positive semidefinite.")
    if np.abs(C[0][:, : len(P)] @ P).max(initial=0.0) > 1e-8 * size * max(np.abs(C[0]).max(initial=0.0), 1.0):
        raise EstimationError("initial_covariance lets the states leave the hidden constraints; use 'first-sample'.")
    return P


@lru_cache(maxsize=64)
def _is_covariance(content: bytes, n: int) -> bool:
    P = np.frombuffer(content).reshape(n, n)
    size = np.abs(P).max(initial=0.0)
    is_symmetric = np.allclose(P, P.T, atol=1e-12 * size)
    return bool(is_symmetric and np.linalg.eigvalsh(P).min(initial=0.0) >= -1e-10 * size)


def _flat_directions(model: StochasticModel, C: Floats) -> Floats:
    if np.any(C[1:]):
        raise EstimationError(
            "initial_covariance='diffuse' needs constraints that do not depend on the estimated parameters; use "
            "'first-sample'."
        )
    X0 = np.zeros((model.n, model.nx))
    X0[: model.nx] = np.eye(model.nx)
    if not C.shape[1]:
        return X0
    return np.asarray(X0 @ null_space(C[0][:, : model.nx]))
