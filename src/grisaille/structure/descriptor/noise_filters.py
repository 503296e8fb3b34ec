"""The disturbances of a flat model as filters of white noise in numbers, and the correlation of those noises."""

from __future__ import annotations

import numpy as np

from grisaille.model.flat import FlatDisturbance, FlatModel
from grisaille.model.lowering.lowering import evaluate
from grisaille.structure.descriptor.finite_variance import NoiseFilter, white_filter
from grisaille.structure.descriptor.pencil import Matrix
from grisaille.structure.parameters import ParameterValues


def noise_filters(model: FlatModel, values: ParameterValues) -> tuple[NoiseFilter, ...]:
    """Return one filter per disturbance, in order; a scale of zero counts as one, since it may be estimated."""
    known = dict(zip(values.names, values.values.tolist(), strict=True))
    return tuple(_filter(d, known) for d in model.disturbances.values())


def noise_correlation(model: FlatModel, values: ParameterValues) -> Matrix | None:
    """Return the correlation matrix of the white noises; None when they are independent."""
    names = list(model.disturbances)
    known = dict(zip(values.names, values.values.tolist(), strict=True))
    matrix = np.eye(len(names))
    for name, disturbance in model.disturbances.items():
        for other, entry in disturbance.correlation or ():
            i, j = names.index(name), names.index(other)
            matrix[i, j] = matrix[j, i] = evaluate([entry], known)[0] if i != j else 1.0
    return None if np.array_equal(matrix, np.eye(len(names))) else matrix


def _filter(disturbance: FlatDisturbance, known: dict[str, float]) -> NoiseFilter:
    scale = evaluate([disturbance.scale], known)[0] if disturbance.scale is not None else 1.0
    scale = scale or 1.0
    if disturbance.spectrum.is_white:
        return white_filter(scale)
    A, B, C = (np.array([evaluate(row, known) for row in m]) for m in disturbance.spectrum.state_space())
    return NoiseFilter(A, B, scale * C)
