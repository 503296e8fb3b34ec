"""Derivatives of disturbances that are sampled before a run."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from grisaille.compilation.kalman.coloured_noise_numpy import ColouredNoiseStates
from grisaille.simulation.ensembles.engines import EnsembleSetup, layout_of
from grisaille.simulation.ensembles.hermite import piece_polynomials

Floats = NDArray[np.float64]


def moved_disturbances(s: EnsembleSetup, members: NDArray[np.int64]) -> Iterator[Floats]:
    """Yield the derivative of each driven signal in each direction: polynomials (realizations, cells, degree + 1)."""
    layout = layout_of(s)
    states = ColouredNoiseStates(s.disturbances.filters(s.values, s.grid.points, s.draw), layout, members, len(s.dp))
    rows = [states.dsignals]
    for k in range(s.grid.cells):
        states.advance(k)
        rows.append(states.dsignals)
    at = np.stack(rows, axis=1)
    lengths = np.diff(s.grid.points)
    for k in range(layout.nd):
        chain = next((c for c in layout.chains if k in c), (k,))
        for direction in range(len(s.dp)):
            values = at[:, :, direction][..., list(chain)]
            yield piece_polynomials(values[:, :-1], values[:, 1:], lengths, chain.index(k))
