"""Steps between samples for a filter that has values only: equal in all cells, halved until log L stays.

Enough for a comparison of slopes; fits choose theirs cell by cell (``substeps``).
"""

from __future__ import annotations

import numpy as np

from grisaille.disturbance.duals import Floats
from grisaille.filtering.filter_steps import FilterSteps
from grisaille.filtering.values.value_runner import ValueRunner

LOG_LIKELIHOOD_TOLERANCE = 1e-2
"""Change of log L by a doubling of the steps that ends the search."""
MAX_STEPS = 64
"""Steps between samples."""


def choose_steps_by_values(runner: ValueRunner, theta: Floats) -> FilterSteps | None:
    """Return steps from which on halving them hardly changes log L; None where there are none."""
    q, dq, start = runner.posed(theta, False)
    filter = runner.unscented
    assert filter is not None, "steps are chosen by values for the unscented filter only"
    lengths = filter.cells(q).lengths
    n, nx = filter.model.n, filter.model.nx
    x, z = np.zeros((1, n)), np.zeros((1, filter.packing.nz))
    x[:, :nx], z[:, : start.z.shape[1]] = start.x, start.z
    A = filter.first_slope(q, dq, x, z)
    size = float(np.abs(A).sum(axis=1).max(initial=0.0)) * float(lengths.max(initial=0.0))
    before, found = np.nan, None
    for count in (2**k for k in range(MAX_STEPS.bit_length())):
        doublings = 3 + int(np.clip(np.ceil(np.log2(max(size / count, 1.0))), 0, 12))
        steps = FilterSteps(count, doublings=doublings)
        run = runner.likelihood(theta, steps, sensitive=False)
        value = np.nan if run.failure or run.likelihood is None else run.likelihood.value
        if abs(value - before) < LOG_LIKELIHOOD_TOLERANCE:
            return steps
        before, found = value, steps if np.isfinite(value) else None
    return found
