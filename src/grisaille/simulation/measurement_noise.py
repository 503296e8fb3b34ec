"""Measurement noise on simulated outputs: y + σ z, with σ as the model declares it and z a function of its indices.

z is drawn under (seed, purpose "noise", name of the output; realization, position of the instant). Outputs that
``noise_covariance`` ties together are drawn together, under the name of the first, through the Cholesky factor of their
covariance. Outputs with another law are drawn by its quantiles at Φ(z) (``measurement_draws``). Formulas for σ may
contain anything that has a value on the trajectory.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from grisaille.disturbance import Purpose, Stream, factorize
from grisaille.errors import DataError
from grisaille.laws import Law
from grisaille.model.expression import Expression, Name, postorder
from grisaille.model.flat import FlatModel
from grisaille.model.lowering.lowering import lower
from grisaille.model.measurement.distributions import formulas_of, law_formulas
from grisaille.model.measurement.noise_covariances import covariance_formulas, groups_of
from grisaille.simulation.measurement_draws import draw_by_law

if TYPE_CHECKING:
    import xarray as xr

Floats = NDArray[np.float64]
BY_LAW = 12
"""Numbers for each point that a quantile of a law takes beside its arguments."""


def with_noise(
    trajectories: xr.Dataset, model: FlatModel, parameters: Mapping[str, float], seed: int, antithetic: bool = False
) -> xr.Dataset:
    """Return the trajectories with noise on every output."""
    unknown = [n for n, o in model.outputs.items() if o.noise is None and o.distribution is None]
    if unknown or not model.outputs:
        what = f"output {', '.join(unknown)} has no known noise" if unknown else f"{model.name} has no outputs"
        raise DataError(f"noise=True: {what}. Declare it, y = gr.Output(…, noise=0.1), or leave noise=False.")
    noisy = trajectories.copy()
    for group in _tied(model):
        if model.outputs[group[0]].distribution is not None:
            name = group[0]
            drawn = _draw_by_law(noisy, model, name, parameters, seed, antithetic)
            noisy[name] = noisy[name].copy(data=drawn)
            continue
        deviations = _draw(noisy, model, group, parameters, seed, antithetic)
        for k, name in enumerate(group):
            noisy[name] = noisy[name] + deviations[..., k]
            noisy[name].attrs.update(trajectories[name].attrs)
    return noisy


def bytes_of_noise(model: FlatModel) -> float:
    """Return bytes for each point of trajectories that ``with_noise`` takes: new outputs, and what the largest group
    draws.
    """
    groups = _tied(model)
    largest = max(map(len, groups), default=0)
    drawn = 2 * largest + (0 if _is_constant(model) else 6 * largest**2)
    by_law = max(
        (BY_LAW + len(law_formulas(o)) for o in model.outputs.values() if o.distribution is not None), default=0
    )
    return float(8 * (len(model.outputs) + max(drawn, by_law)))


def _is_constant(model: FlatModel) -> bool:
    """Return whether no formula of the noise contains a name that varies along a trajectory."""
    formulas = [o.noise for o in model.outputs.values() if o.noise is not None]
    names = {
        n.path
        for n in postorder([*formulas, *covariance_formulas(model, model.outputs).values()])
        if isinstance(n, Name)
    }
    return names <= set(model.parameters)


def _tied(model: FlatModel) -> list[list[str]]:
    """Return outputs in groups that share a covariance."""
    return groups_of(model.noise_covariance, list(model.outputs))


def standard_normals(seed: int, name: str, shape: tuple[int, ...], components: int, antithetic: bool) -> Floats:
    """Return z of every realization and instant, (*shape, components)."""
    paths = np.arange(shape[0])[:, None] if len(shape) == 2 else np.zeros(1, dtype=np.int64)
    stream = Stream.of(seed, Purpose.NOISE, name, antithetic)
    return stream.normals(paths, np.arange(shape[-1]), components).reshape(*shape, components)


def law_along(data: xr.Dataset, model: FlatModel, output: str, parameters: Mapping[str, float]) -> Law:
    """Return the law of an output with a number in place of every argument at every point of trajectories, in a row."""
    law = model.outputs[output].distribution
    assert law is not None
    arguments = {path: evaluate_along(data, e, parameters).ravel() for path, e in formulas_of(law).items()}
    return law.filled({law.location_path: data[output].values.ravel(), **arguments})


def _draw_by_law(
    data: xr.Dataset, model: FlatModel, name: str, parameters: Mapping[str, float], seed: int, antithetic: bool
) -> Floats:
    shape = data[name].shape
    z = standard_normals(seed, name, shape, 1, antithetic)[..., 0]
    return draw_by_law(law_along(data, model, name, parameters), z.ravel(), name, data["time"].values).reshape(shape)


def _draw(
    data: xr.Dataset, model: FlatModel, group: list[str], parameters: Mapping[str, float], seed: int, antithetic: bool
) -> Floats:
    shape, n = data[group[0]].shape, len(group)
    covariance = _covariance(data, model, group, parameters)
    finite = np.asarray(np.isfinite(covariance).all(axis=(-2, -1)))
    roots = factorize(np.where(finite[..., None, None], covariance, np.eye(n)))
    roots[~finite] = np.nan
    z = standard_normals(seed, group[0], shape, n, antithetic)
    return roots[..., 0] * z if n == 1 else np.asarray((roots @ z[..., None])[..., 0])


def _covariance(data: xr.Dataset, model: FlatModel, group: list[str], parameters: Mapping[str, float]) -> Floats:
    """Return (…, n, n) at every point of the trajectories, or (n, n) where it is the same at all of them."""
    n = len(group)
    entries: dict[tuple[int, int], Floats | float] = {}
    for i, name in enumerate(group):
        noise = model.outputs[name].noise
        assert noise is not None
        entries[i, i] = _evaluate(data, noise, parameters) ** 2
    for (a, b), formula in covariance_formulas(model, group).items():
        i, j = group.index(a), group.index(b)
        entries[i, j] = entries[j, i] = _evaluate(data, formula, parameters)
    covariance = np.zeros((*np.broadcast_shapes(*(np.shape(e) for e in entries.values())), n, n))
    for (i, j), entry in entries.items():
        covariance[..., i, j] = entry
    return covariance


def evaluate_along(data: xr.Dataset, formula: Expression, parameters: Mapping[str, float]) -> Floats:
    """Return a formula of names at every point of trajectories."""
    value = _evaluate(data, formula, parameters)
    return np.full(next(iter(data.data_vars.values())).shape, value) if isinstance(value, float) else value


def _evaluate(data: xr.Dataset, formula: Expression, parameters: Mapping[str, float]) -> Floats | float:
    """Return the same, as one number where no name in it varies."""
    symbols: dict[str, ca.SX] = {}

    def leaf(path: str) -> ca.SX:
        return (
            ca.SX(parameters[path]) if path in parameters else symbols.setdefault(path, ca.SX.sym(f"s{len(symbols)}"))
        )

    (value,) = lower([formula], leaf)
    names = list(symbols)
    shape = next(iter(data.data_vars.values())).shape
    points = [np.broadcast_to(data["time" if n == "time" else n].values, shape).ravel() for n in names]
    function = ca.Function("noise", [ca.vertcat(*symbols.values()) if names else ca.SX(0, 1)], [value])
    if not names:
        return float(function([]))
    return np.array(function(np.array(points)).full()).reshape(shape)
