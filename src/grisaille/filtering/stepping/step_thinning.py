"""Fewer steps where fewer are as good: most cells of a record are easy, few are hard.

With steps m_k in cell k the filter's errors are e_k(m_k), in standard deviations of the prediction (``local_errors``).
Errors of cells have signs of their own, so what they move together, log L and estimates in standard errors, is of the
size of √Σ e_k². Steps are the fewest with

    e_k(m_k) ≤ λ √m_k        where λ makes √Σ e_k² as small as the change of log L that ends the search for steps,

and λ falls until log L itself is that of the steps which every cell has. (A step more in cell k takes about e_k²/m_k
from the sum, the same everywhere when all steps are well spent.) A trajectory moves with the unknowns: beside cells
with many steps there are at least a quarter as many.
"""

from __future__ import annotations

import numpy as np

from grisaille.disturbance.duals import Floats
from grisaille.filtering.kalman import Whole
from grisaille.filtering.stepping.local_errors import LocalErrors
from grisaille.filtering.stepping.step_passes import StepPasses

MAX_KEPT_SHARE = 0.6
"""Part of the steps that must be enough, or all are taken."""
MIN_RELATIVE_DEVIATION = 1e-4
"""Part of a state's range that stands for its standard deviation where that is smaller."""
MAX_REDUCTIONS = 5
"""How often λ falls."""
LIKELIHOOD_SHARE = {"moments": 0.04, "square-root": 0.04, "linearize": 0.6}
"""Of the change of log L that ends the search for steps: what is given away here. Steps of fourth order are a fifteenth
of it off when the search ends, and stay so accurate."""
MAX_ERROR_NORM = 0.05
"""The largest √Σ e_k², a twentieth of a standard error, however far from its maximum log L is."""
MAX_NEIGHBOUR_RATIO = 4
LEAST, MOST = float(np.exp(-40.0)), float(np.exp(20.0))
"""Between which λ is looked for."""


def thin_steps(passes: StepPasses, value: float, tolerance: float) -> None:
    """Take steps away, on a filter of one's own, as long as log L stays what it is.

    value : log L with the steps that the filter has
    tolerance : change of log L that ends the search for steps
    """
    filter = passes.filter
    steps = filter.steps(passes.q)
    most = int(steps.max(initial=1))
    if most < 4:
        return
    errors = LocalErrors(passes, MIN_RELATIVE_DEVIATION)
    counts = [2**k for k in range(most.bit_length()) if 2**k < most]
    table = np.array([errors.of(np.minimum(steps, m)) for m in counts])
    kept, budget = (filter.substeps, filter.finer), min(tolerance, MAX_ERROR_NORM)
    for _ in range(MAX_REDUCTIONS):
        chosen = _fewest(steps, counts, table, budget)
        if chosen.sum() > MAX_KEPT_SHARE * steps.sum():
            break
        filter.substeps = int(np.gcd.reduce(chosen))
        filter.finer = chosen // filter.substeps if (chosen != filter.substeps).any() else None
        if abs(passes.value() - value) < LIKELIHOOD_SHARE[filter.kind.propagation] * tolerance:
            return
        budget /= 4
    filter.substeps, filter.finer = kept


def _fewest(steps: Whole, counts: list[int], table: Floats, budget: float) -> Whole:
    """Return steps with √Σ e² ≤ budget, by bisection of λ between the values at which some cell is given fewer."""
    m = np.array(counts)[:, None]
    limits = (table / np.sqrt(m))[(m < steps) & (table > LEAST * np.sqrt(m)) & (table < MOST * np.sqrt(m))]
    edges = np.concatenate([[LEAST], np.unique(limits), [MOST]])
    sizes = np.sqrt(edges[:-1] * edges[1:])
    low, high = 0, len(sizes)
    while high - low > 1:
        middle = (low + high) // 2
        _, total = _with(steps, counts, table, sizes[middle])
        low, high = (middle, high) if total <= budget else (low, middle)
    return _beside(_with(steps, counts, table, sizes[low])[0], steps)


def _with(steps: Whole, counts: list[int], table: Floats, size: float) -> tuple[Whole, float]:
    chosen, left = steps.copy(), np.zeros(len(steps))
    for m, errors in zip(reversed(counts), table[::-1], strict=True):
        is_enough = (m < steps) & (errors <= size * np.sqrt(m)) & (chosen == np.minimum(2 * m, steps))
        chosen, left = np.where(is_enough, m, chosen), np.where(is_enough, errors, left)
    return chosen, float(np.sqrt(np.sum(left**2)))


def _beside(chosen: Whole, steps: Whole) -> Whole:
    """Return steps with at least a quarter of those of the cells before and after."""
    padded = np.concatenate([chosen[:1], chosen, chosen[-1:]]) // MAX_NEIGHBOUR_RATIO
    return np.asarray(np.minimum(np.maximum(chosen, np.maximum(padded[:-2], padded[2:])), steps))
