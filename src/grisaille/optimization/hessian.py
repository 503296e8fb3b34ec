"""The Hessian of a likelihood by central differences of exact gradients, and its inverse over what the data see.

    H_k = (∇f(ξ + h_k e_k) − ∇f(ξ − h_k e_k)) / 2h_k,        h_k = 1e-3 standard errors of ξ_k alone

Steps begin with the expected information. Beside values at which a filter fails f may bend a thousand times more than
that says. There steps are shortened until both ends have a value, and once there is a Hessian another is formed by
steps along its axes, each as long as its curvature allows.
"""

from __future__ import annotations

import numpy as np

from grisaille.numerics.flat_directions import pseudo_inverse
from grisaille.numerics.quadratic import MIN_OBJECTIVE_CHANGE
from grisaille.optimization.criterion import E
from grisaille.optimization.search import CurvatureAtPoint, Search

DIFFERENCE_STEP = 1e-3
"""Steps of the differences, in standard errors, and at most relative to 1 + |ξ|."""
MIN_RELATIVE_STEP = 1e-11
"""Of steps relative to |ξ|: shorter ones are lost in rounding."""
MAX_CURVATURE_RATIO = 100.0
"""Curvature over the expected one from which on steps are too long."""
MAX_SHORTENINGS = 4
"""How often steps are shortened."""
MIN_POSITIVE_CURVATURE = -1e-6
"""Least eigenvalue of the Hessian with unit diagonal: below it the point is no minimum."""


def hessian_at(search: Search[E], evaluation: E, free: np.ndarray) -> CurvatureAtPoint:
    """Return ∂²f/∂ξ² of the free unknowns; zero elsewhere. The expected information where differences cannot be formed.

    Kept in the search: its end and the polish ask for the same one.
    """
    key = (evaluation.theta.tobytes(), free.tobytes(), *((u.logarithmic, u.logit) for u in search.unknowns))
    if key not in search.curvatures:
        edges: list[np.ndarray] = []
        search.curvatures[key] = CurvatureAtPoint(_differences(search, evaluation, free, edges), tuple(edges))
    return search.curvatures[key]


def inverse(hessian: np.ndarray, free: np.ndarray, expected: np.ndarray) -> tuple[np.ndarray, bool, np.ndarray]:
    """Return the pseudo-inverse over the determined directions, whether it is positive definite there, and what is
    open.

    expected : the expected information in ξ, which tells what no output sees (``flat_directions``)
    """
    found, lost, least = pseudo_inverse(hessian, free & (np.abs(np.diag(hessian)) > MIN_OBJECTIVE_CHANGE), expected)
    return found, least > MIN_POSITIVE_CURVATURE, free & lost


def _differences(search: Search[E], evaluation: E, free: np.ndarray, edges: list[np.ndarray]) -> np.ndarray:
    """Return the Hessian by differences along each unknown and, where f is steep, once more along its main axes."""
    xi = search.where(evaluation)
    _, H = search.model(evaluation)
    if not free.any():
        return np.zeros_like(H)
    longest = 1 + np.abs(xi)
    errors = 1 / np.sqrt(np.maximum(np.diag(H), 1e-300))
    steps = np.clip(DIFFERENCE_STEP * errors, MIN_RELATIVE_STEP * np.abs(xi), DIFFERENCE_STEP * longest)
    hessian, is_steep = _along(search, xi, np.diag(steps)[free], edges)
    if hessian is not None and is_steep:
        axes, _ = _along(search, xi, _main_axes(hessian, H, free), edges)
        hessian = hessian if axes is None else axes
    if hessian is None:
        return H
    hessian[~free] = hessian[:, ~free] = 0.0
    return hessian


def _along(
    search: Search[E], xi: np.ndarray, directions: np.ndarray, edges: list[np.ndarray]
) -> tuple[np.ndarray | None, bool]:
    """Return H from its products with the rows of a matrix, steps of one unit; and whether these were too long
    somewhere.
    """
    products, is_steep = [], False
    for d in directions:
        product, shortened = _product(search, xi, d, edges)
        if product is None:
            return None, True
        products.append(product)
        is_steep |= shortened
    scale = np.max(np.abs(directions), axis=0)
    scale[scale == 0] = 1.0
    back = np.linalg.pinv(directions / scale) / scale[:, None]
    quadratic = directions @ np.transpose(products)
    return np.asarray(back @ ((quadratic + quadratic.T) / 2) @ back.T), is_steep


def _main_axes(hessian: np.ndarray, expected: np.ndarray, free: np.ndarray) -> np.ndarray:
    """Return rows of steps along the eigenvectors, as long as the curvature found first allows."""
    part = hessian[np.ix_(free, free)]
    size = np.sqrt(np.maximum(np.diag(expected)[free], MIN_OBJECTIVE_CHANGE))
    values, vectors = np.linalg.eigh(part / np.outer(size, size))
    rows = np.zeros((len(values), len(free)))
    rows[:, free] = DIFFERENCE_STEP * (vectors / np.sqrt(np.maximum(np.abs(values), 1.0))).T / size
    return rows


def _product(
    search: Search[E], xi: np.ndarray, step: np.ndarray, edges: list[np.ndarray]
) -> tuple[np.ndarray | None, bool]:
    """Return H times a step, and whether it had to be shortened; None where f has no value beside ξ however close."""
    share, product = 1.0, None
    longest = float(np.max(np.abs(step) / np.maximum(np.abs(xi), 1e-300)))
    least = min(1.0, MIN_RELATIVE_STEP / max(longest, MIN_RELATIVE_STEP))
    for _ in range(1 + MAX_SHORTENINGS):
        if share < least:
            break
        # not through the bounds: an unknown may sit close to one
        ends = [search.slope_at(search.unclipped(xi + side * share * step)) for side in (1, -1)]
        if ends[0] is None or ends[1] is None:
            edges.append(share * step)
            share /= 10
            continue
        product = np.asarray((ends[0] - ends[1]) / (2 * share))
        bend = abs(float(product @ step))
        if bend * share**2 <= MAX_CURVATURE_RATIO * DIFFERENCE_STEP**2:
            break
        share = DIFFERENCE_STEP / np.sqrt(bend)
    return product, share < 1
