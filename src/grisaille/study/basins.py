"""Minima that are the same: converged runs whose estimates agree within a tenth of their standard errors.

Runs are taken from the best criterion on; each joins the first basin whose best run it agrees with, or begins its own.
Where the data are exact, standard errors vanish and agreement to six digits counts.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

SAME_BASIN_SHARE = 0.1
SAME_CRITERION = 1e-6


def find_basins(estimates: np.ndarray, errors: np.ndarray, criterion: np.ndarray, converged: np.ndarray) -> np.ndarray:
    """Return the basin of each run, 0 the best; −1 for runs that did not converge.

    estimates, errors : (runs, unknowns); criterion, converged : (runs,)
    """
    basin = np.full(len(estimates), -1)
    heads: list[int] = []
    usable = np.flatnonzero(converged & np.isfinite(criterion))
    for run in usable[np.argsort(criterion[usable], kind="stable")]:
        home = _home(estimates, errors, heads, int(run))
        if home < 0:
            heads.append(int(run))
            home = len(heads) - 1
        basin[run] = home
    return basin


def _home(estimates: np.ndarray, errors: np.ndarray, heads: Sequence[int], run: int) -> int:
    for k, head in enumerate(heads):
        near = SAME_BASIN_SHARE * errors[head] + SAME_CRITERION * np.abs(estimates[head])
        if (np.abs(estimates[run] - estimates[head]) <= np.maximum(near, 1e-12)).all():
            return k
    return -1
