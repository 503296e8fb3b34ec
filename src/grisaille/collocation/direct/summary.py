"""What a solved program says: paths with bands, and the covariance of θ, both from the inverse of its curvature.

Cov(θ) = (reduced Hessian of the criterion in θ)⁻¹,    Cov(X) = Cov(X | θ) + (dX/dθ) Cov(θ) (dX/dθ)ᵀ
"""

from __future__ import annotations

from dataclasses import dataclass

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from grisaille.collocation.direct.elimination import IndefiniteError, scatter, substitute
from grisaille.collocation.direct.mesh import Floats
from grisaille.collocation.direct.newton import Linearized, NewtonResult, linearize
from grisaille.collocation.direct.transcription import Transcription
from grisaille.collocation.flat_directions import or_nan, pseudo_inverse

DEAD = 1e-6
"""Of the criterion: unknowns that move it by less are not seen."""
BENT_DOWN = -1e-7
"""Least eigenvalue of a curvature with unit diagonal: below it there is no minimum."""


@dataclass(frozen=True, eq=False)
class DirectPath:
    """One record at its first instant and at the ends of elements."""

    name: str
    times: Floats
    sample_at: np.ndarray
    """The sample at each time, −1 for none."""
    states: Floats
    state_names: tuple[str, ...]
    deviations: Floats
    """Standard deviation of each state."""
    algebraic: Floats
    disturbances: Floats
    disturbance_names: tuple[str, ...]
    observed: Floats
    observed_names: tuple[str, ...]
    observed_deviations: Floats
    """Infinite for what contains white noise."""

    def deviation(self, name: str) -> Floats:
        """Standard deviation of a variable the user knows, along time."""
        if name in self.observed_names:
            return np.asarray(self.observed_deviations[:, self.observed_names.index(name)])
        return np.asarray(self.deviations[:, self.state_names.index(name)])

    def __getitem__(self, name: str) -> Floats:
        """A variable the user knows, along time."""
        if name in self.observed_names:
            return np.asarray(self.observed[:, self.observed_names.index(name)])
        if name in self.disturbance_names:
            return np.asarray(self.disturbances[:, self.disturbance_names.index(name)])
        return np.asarray(self.states[:, self.state_names.index(name)])


def curvature_at(
    program: Transcription, result: NewtonResult, inside: NDArray[np.bool_] | None = None
) -> Linearized | None:
    """The eliminated quadratic model at the solution: exact, or Gauss–Newton's where that is not positive."""
    for exact in (True, False):
        try:
            model = linearize(program, result.point, result.multipliers, exact=exact)
        except (IndefiniteError, np.linalg.LinAlgError):
            continue
        own = seen_unknowns(model.curvature, result.point.theta, program.slots.sizes)
        own = own if inside is None else own & inside
        if pseudo_inverse(model.curvature, own)[2] > BENT_DOWN:
            return model
    return None


def seen_unknowns(curvature: Floats, theta: Floats, sizes: Floats) -> NDArray[np.bool_]:
    """Entries of θ whose change by their own size moves the criterion; by any change where no size is known."""
    size, bend = np.maximum(np.abs(theta), sizes), np.abs(np.diag(curvature))
    return np.asarray(np.where(size > 0, bend * size**2 > DEAD, bend > 0))


def inside_bounds(theta: Floats, bounds: tuple[Floats, Floats], sizes: Floats) -> NDArray[np.bool_]:
    """Which entries no bound decided."""
    size = 1e-7 * np.maximum(1e-3 * sizes, np.abs(theta))
    return np.asarray((theta > bounds[0] + size) & (theta < bounds[1] - size))


def theta_covariance(program: Transcription, result: NewtonResult, inside: NDArray[np.bool_]) -> Floats:
    """(nθ, nθ), NaN for entries at a bound or not determined, and everywhere where there is no positive curvature."""
    model = curvature_at(program, result, inside)
    if model is None:
        return np.full((len(inside), len(inside)), np.nan)
    seen = seen_unknowns(model.curvature, result.point.theta, program.slots.sizes)
    return or_nan(*pseudo_inverse(model.curvature, inside & seen)[:2])


def paths_of(program: Transcription, result: NewtonResult, covariance: Floats) -> tuple[DirectPath, ...]:
    """The paths of all records."""
    curvature = curvature_at(program, result, np.isfinite(np.diag(covariance)))
    return tuple(_path(program, result, curvature, np.nan_to_num(covariance), r) for r in range(len(program.records)))


def _path(
    program: Transcription, result: NewtonResult, curvature: Linearized | None, covariance: Floats, r: int
) -> DirectPath:
    model, point = program.model, result.point
    mesh, points = program.meshes[r], program.seen_points(point, r)
    states, observed = _deviations(program, result, curvature, r, covariance)
    return DirectPath(
        name=program.records[r].name,
        times=mesh.bounds,
        sample_at=mesh.sample_at,
        states=points[:, : model.n],
        state_names=model.state_names,
        deviations=states,
        algebraic=points[:, model.n :],
        disturbances=program.observe(point, model.disturbances, r),
        disturbance_names=tuple(model.structure.model.disturbances),
        observed=program.observe(point, model.observed, r),
        observed_names=model.structure.system.observed_names,
        observed_deviations=observed,
    )


def output_slopes(
    program: Transcription, model: Linearized, result: NewtonResult, r: int
) -> tuple[Floats, Floats, Floats]:
    """Of one record: ŷ and σ, (E + 1, ny), and dŷ/dθ along the optimal path, (E + 1, ny, nθ)."""
    y, by_w, by_slots = program.look("measured", result.point, r)
    sigma = program.look("deviation", result.point, r)[0]
    path, own = point_slopes(program, model, r)
    total = np.zeros((*y.shape, len(result.point.theta)))
    for k, slot in enumerate(own):
        total[:, :, program.slots.index[r, slot]] += (by_w @ path[:, :, [k]])[:, :, 0] + by_slots[:, :, slot]
    return y, sigma, total


def point_slopes(program: Transcription, model: Linearized, r: int) -> tuple[Floats, np.ndarray]:
    """d(X, Z)/d(slot) at the first instant and all ends, for the slots that θ moves; and which these are."""
    index = program.slots.index[r]
    own = np.flatnonzero(index >= 0)
    head = np.zeros((1 + len(index), len(own)))
    head[1 + own, np.arange(len(own))] = 1.0
    steps = substitute(model.swept[r], model.start, r, model.elements, *program.span(r), head)
    width = program.model.n + program.model.nz
    ends = steps.elements[:, program.functions.element.sizes.parts[1]][:, program.seen_columns]
    return np.concatenate([steps.start[None, :width], ends]), own


def _deviations(
    program: Transcription, result: NewtonResult, model: Linearized | None, r: int, covariance: Floats
) -> tuple[Floats, Floats]:
    """Of the states and of everything observed, at the first instant and all ends."""
    states = seen(program, result, model, r, covariance, program.model.X)[1]
    observed = seen(program, result, model, r, covariance, "observed")[1]
    observed[:, _wild(program)] = np.inf
    return states, observed


def seen(
    program: Transcription, result: NewtonResult, model: Linearized | None, r: int, covariance: Floats,
    what: str | ca.SX,
) -> tuple[Floats, Floats]:  # fmt: skip
    """Formulas of the model along the path of a record and their standard deviations, NaN where there is no curvature.

    covariance : of θ; what : as in ``Transcription.look``
    """
    values, by_w, by_slots = program.look(what, result.point, r)
    if model is None:
        return values, np.full_like(values, np.nan)
    path, own = point_slopes(program, model, r)
    index = program.slots.index[r][own]
    known = covariance[np.ix_(index, index)]
    moved = by_w @ path + by_slots[:, :, own]
    variances = np.einsum("eij,ejk,eik->ei", by_w, _covariances(program, model, r), by_w)
    variances += np.einsum("eij,jk,eik->ei", moved, known, moved)
    return values, np.sqrt(np.maximum(variances, 0.0))


def _covariances(program: Transcription, model: Linearized, r: int) -> Floats:
    """Of (X, Z) at fixed θ, (E + 1, n + nz, n + nz)."""
    first, last = program.span(r)
    joint = scatter(model.swept[r], model.start, r, model.elements, first, last)[1]
    width, slots = program.model.n + program.model.nz, len(program.slots.names)
    sizes = program.functions.element.sizes
    rows = model.elements.M[first:last, sizes.past + program.seen_columns, 1 + slots :]
    at_start = model.start.M[r, :width, 1 + slots :]
    inner = rows @ np.stack(joint[1:]) @ rows.swapaxes(1, 2)
    return np.concatenate([(at_start @ joint[0] @ at_start.T)[None], inner])


def _wild(program: Transcription) -> list[int]:
    """What is observed and contains white noise."""
    model = program.model
    return sorted(set(ca.jacobian_sparsity(model.observed, model.v).row())) if model.nv else []
