"""Statistics of a solved program: formulas along paths with bands, and the covariance of θ, both from its curvature.

Cov(θ) = (reduced Hessian of the criterion in θ)⁻¹,    Cov(X) = Cov(X | θ) + (dX/dθ) Cov(θ) (dX/dθ)ᵀ
"""

from __future__ import annotations

import casadi as ca
import numpy as np

from grisaille.collocation.array_types import Floats, Mask
from grisaille.collocation.direct.element_elimination import IndefiniteError, scatter, substitute
from grisaille.collocation.direct.path_newton import LinearizedPath, PathPoint, linearize
from grisaille.collocation.direct.transcription import Transcription
from grisaille.numerics.flat_directions import or_nan, pseudo_inverse

MIN_CRITERION_CHANGE = 1e-6
"""Of the criterion: unknowns that move it by less are not seen."""
BENT_DOWN = -1e-7
"""Least eigenvalue of a curvature with unit diagonal: below it there is no minimum."""


def curvature_at(
    at: PathPoint, inside: Mask | None = None, known: LinearizedPath | None = None
) -> LinearizedPath | None:
    """Return the eliminated quadratic model at the solution: exact, or Gauss–Newton's where that is not positive.

    known : the exact one, where it was formed before
    """
    for exact in (True, False):
        try:
            model = known if exact and known is not None else linearize(at, exact=exact)
        except (IndefiniteError, np.linalg.LinAlgError):
            continue
        own = determined_unknowns(model.curvature, at.theta, at.program.slots.sizes)
        own = own if inside is None else own & inside
        if pseudo_inverse(model.curvature, own)[2] > BENT_DOWN:
            return model
    return None


def determined_unknowns(curvature: Floats, theta: Floats, sizes: Floats) -> Mask:
    """Return entries of θ whose change by their own size changes the criterion; by any change where no size is
    known.
    """
    size, bend = np.maximum(np.abs(theta), sizes), np.abs(np.diag(curvature))
    return np.asarray(np.where(size > 0, bend * size**2 > MIN_CRITERION_CHANGE, bend > 0))


def inside_bounds(theta: Floats, bounds: tuple[Floats, Floats], sizes: Floats) -> Mask:
    """Return which entries no bound decided."""
    size = 1e-7 * np.maximum(1e-3 * sizes, np.abs(theta))
    return np.asarray((theta > bounds[0] + size) & (theta < bounds[1] - size))


def theta_covariance(at: PathPoint, inside: Mask) -> Floats:
    """Return (nθ, nθ), NaN for entries at a bound or not determined, and everywhere where there is no positive
    curvature.
    """
    model = curvature_at(at, inside)
    if model is None:
        return np.full((len(inside), len(inside)), np.nan)
    seen = determined_unknowns(model.curvature, at.theta, at.program.slots.sizes)
    return or_nan(*pseudo_inverse(model.curvature, inside & seen)[:2])


def output_slopes(at: PathPoint, model: LinearizedPath | None, r: int) -> tuple[Floats, Floats]:
    """Return, for one record, ŷ, (E + 1, ny), and dŷ/dθ along the optimal path, (E + 1, ny, nθ); zero without a
    curvature.
    """
    program = at.program
    y, by_w, by_slots = program.look("measured", at.point, r)
    total = np.zeros((*y.shape, len(at.theta)))
    if model is not None:
        path, own = point_slopes(program, model, r)
        with np.errstate(invalid="ignore"):  # outputs may be undefined where nothing was measured
            total[:, :, program.slots.index[r, own]] = by_w @ path + by_slots[:, :, own]
    return y, total


def point_slopes(program: Transcription, model: LinearizedPath, r: int) -> tuple[Floats, np.ndarray]:
    """Return d(X, Z)/d(slot) at the first instant and all ends, for the slots that depend on θ; and which these are."""
    index = program.slots.index[r]
    own = np.flatnonzero(index >= 0)
    head = np.zeros((1 + len(index), len(own)))
    head[1 + own, np.arange(len(own))] = 1.0
    steps = substitute(model.swept[r], head)
    width = program.model.n + program.model.nz
    ends = steps.elements[:, program.functions.element.sizes.parts[1]][:, program.seen_columns]
    return np.concatenate([steps.start[None, :width], ends]), own


def quantities_along(
    at: PathPoint, model: LinearizedPath | None, r: int, covariance: Floats, what: str | ca.SX
) -> tuple[Floats, Floats]:
    """Return formulas of the model along the path of a record and their standard deviations, NaN where there is no
    curvature.

    covariance : of θ; what : as in ``Transcription.look``
    """
    program = at.program
    values, by_w, by_slots = program.look(what, at.point, r)
    if model is None:
        return values, np.full_like(values, np.nan)
    path, own = point_slopes(program, model, r)
    index = program.slots.index[r][own]
    known = covariance[np.ix_(index, index)]
    with np.errstate(invalid="ignore"):
        moved = by_w @ path + by_slots[:, :, own]
    variances = np.einsum("eij,ejk,eik->ei", by_w, _covariances(program, model, r), by_w)
    variances += np.einsum("eij,jk,eik->ei", moved, known, moved)
    return values, np.sqrt(np.maximum(variances, 0.0))


def _covariances(program: Transcription, model: LinearizedPath, r: int) -> Floats:
    """Return the covariances of (X, Z) at fixed θ, (E + 1, n + nz, n + nz)."""
    swept, joint = model.swept[r], scatter(model.swept[r])[1]
    width, slots = program.model.n + program.model.nz, len(program.slots.names)
    sizes = program.functions.element.sizes
    rows = swept.elements.M[:, sizes.past + program.seen_columns, 1 + slots :]
    at_start = swept.start.M[0, :width, 1 + slots :]
    inner = rows @ np.stack(joint[1:]) @ rows.swapaxes(1, 2)
    return np.concatenate([(at_start @ joint[0] @ at_start.T)[None], inner])
