"""The simplex method of Nelder and Mead (SciPy): no derivatives, few unknowns, patience.

Reference: J. A. Nelder, R. Mead, Computer Journal 7 (1965) 308.
"""

from __future__ import annotations

import numpy as np

from grisaille.optimization.criterion import E
from grisaille.optimization.search import Outcome, Search


def minimize(search: Search[E], *, max_evaluations: int, tolerance: float) -> Outcome[E]:
    """Minimise ½|r|² from the problem's guess."""
    from scipy.optimize import minimize as scipy_minimize

    first = search.first()
    lower, upper = search.inner_bounds()
    wall = 1e6 * (1 + first.objective)

    def objective(xi: np.ndarray) -> float:
        evaluation = search.at(xi, sensitive=False)
        return evaluation.objective if evaluation.completed else wall

    bounds = [(a if np.isfinite(a) else None, b if np.isfinite(b) else None) for a, b in zip(lower, upper, strict=True)]
    options = {
        "maxfev": max(max_evaluations, 1),
        "xatol": max(tolerance, 1e-10),
        "fatol": 1e-14 * (1 + first.objective),
        "adaptive": True,
    }
    found = scipy_minimize(objective, search.start, method="Nelder-Mead", bounds=bounds, options=options)
    return search.finish(bool(found.success), "the simplex has shrunk" if found.success else "the limit was reached")
