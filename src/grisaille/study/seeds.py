"""Seeds and uniform numbers of single runs: pure functions of the master seed and the run's number.

    seed(run) = Philox(counter = ("study", run), key = master seed), 64 bits

so any run can be repeated alone, in any process, whatever ran before it.
"""

from __future__ import annotations

import numpy as np

from grisaille.disturbance.standard_normals import odd_number
from grisaille.numerics.philox import Key, Purpose, philox, stream_key


def run_seed(master: int, run: int) -> int:
    """Return the 64-bit seed of one run."""
    low, high, *_ = philox((run & 0xFFFFFFFF, run >> 32, 0, 0), stream_key(master, Purpose.DATA, "study"))
    return int(low) | int(high) << 32


def experiment_seed(seed: int, position: int) -> int:
    """Return the seed of one experiment in a run; that of the first is the run's own."""
    return seed if position == 0 else run_seed(seed, position)


def uniforms(seed: int, name: str, rows: int, columns: int = 1) -> np.ndarray:
    """Return (rows, columns) numbers in (0, 1); a row does not depend on how many there are."""
    key: Key = stream_key(seed, Purpose.BOOTSTRAP, name)
    a, b, _, _ = philox((np.arange(rows)[:, None], 0, np.arange(columns)[None, :], 0), key)
    return np.asarray(odd_number(a, b).astype(float) * 2.0**-53)
