"""The marginal likelihood of elements: determinants along time, with their gradient.

H is the exact reduced Hessian in (ζ, v), and G that of their prior, N(0, 1/(h b_j)) for v_j at a Radau point, which
makes increments of states exact: Var ∫v dt = h. For linear models this is the likelihood of the discretised model
itself.

The gradient is exact. With K = [[H, Jᵀ], [J, 0]] and det H_red = |det K| / det(J_y)²,

    d ½ log det H_red = ½⟨Σ, dH⟩ + ⟨Γ, dJ⟩ − ⟨J_y⁻ᵀ, dJ_y⟩,      Σ, Γ: blocks of K⁻¹ inside an element,

and how H and J move with θ through the optimal path costs one more solve with K.
"""

from __future__ import annotations

import numpy as np

from grisaille.collocation.array_types import Floats
from grisaille.collocation.direct.element import ElementDerivatives, ElementFunctions
from grisaille.collocation.direct.element_elimination import (
    CondensedWithDerivatives,
    IndefiniteError,
    condense,
    scatter,
    sweep,
)
from grisaille.collocation.direct.path_newton import LinearizedPath, PathPoint, linearize, solve_newton
from grisaille.collocation.direct.transcription import Transcription
from grisaille.collocation.laplace import Marginal, minus_log_likelihood


def marginal(start: PathPoint, tolerance: float) -> Marginal | None:
    """Return the marginal likelihood at θ of a point; None where no path was found or the curvature is not positive
    definite.
    """
    result = solve_newton(start, (start.theta, start.theta), tolerance=min(tolerance, 1e-10))
    model = exact_model(result.at) if result.converged else None
    return None if model is None else marginal_of(result.at, model)


def exact_model(at: PathPoint) -> LinearizedPath | None:
    """Return the eliminated quadratic model at a solution with exact curvature; None where that is not positive
    definite.
    """
    try:
        return linearize(at, exact=True)
    except (IndefiniteError, np.linalg.LinAlgError):
        return None


def marginal_of(at: PathPoint, model: LinearizedPath) -> Marginal:
    """Return the marginal likelihood at a path that has been solved for."""
    prior = float(np.log(at.program.noise_weights).sum())
    curvature = sum(s.log_determinant for s in model.swept)
    value = minus_log_likelihood(at.costs.objective, curvature, prior, at.costs.levels)
    moved = _determinant_gradient(at, model)
    return Marginal(value, model.gradient + moved, moved + _spread_slope(at))


def marginals_of(at: PathPoint, model: LinearizedPath) -> list[Marginal]:
    """Return the marginal likelihood of every record, without priors of θ: they add up to ``marginal_of`` without
    them.
    """
    program, found = at.program, []
    costs, moved, spread = program.costs_of_records(at.point), _determinant_gradients(at, model), _spread_slopes(at)
    for r, swept in enumerate(model.swept):
        first, last = program.span(r)
        prior = float(np.log(program.noise_weights[first:last]).sum())
        noise, residuals, levels = costs[r].tolist()
        value = minus_log_likelihood(noise + residuals, swept.log_determinant, prior, levels)
        slope = np.zeros(len(at.theta))
        program.slots.add_to(slope, r, swept.first[0, 1:])
        found.append(Marginal(value, slope + moved[r], moved[r] + spread[r]))
    return found


def _spread_slope(at: PathPoint) -> Floats:
    """Return ∂/∂θ of ½ log det 2πR at fixed states: the freedom that samples leave to levels of measurement noise."""
    return np.asarray(np.sum(_spread_slopes(at), axis=0))


def _spread_slopes(at: PathPoint) -> list[Floats]:
    """Return the same for every record."""
    program, found = at.program, []
    for r, record in enumerate(program.records):
        total = np.zeros(len(at.theta))
        sigma, _, by_slots = program.look("deviation", at.point, r)
        ends = program.meshes[r].ends_of_samples
        share = np.einsum("ij,ijk->k", np.where(record.measured, 1 / sigma[ends], 0.0), by_slots[ends])
        program.slots.add_to(total, r, share)
        found.append(total)
    return found


def told_by_laws(at: PathPoint) -> Floats:
    """Return the expected information of all samples on each unknown, through the numbers of their laws."""
    program, total = at.program, np.zeros(len(at.theta))
    for r, every in enumerate(program.samples_by_law):
        arguments, _, by_slots = program.look("arguments", at.point, r) if every else (np.zeros((0, 0)),) * 3
        for one in every:
            moving = [k for k in one.cost.moving if k > 0]
            if not moving:
                continue
            expected = one.law(arguments).information([one.cost.by.paths[k] for k in moving])
            slopes = by_slots[one.ends][:, [one.rows.start + k for k in moving]]
            program.slots.add_to(total, r, np.einsum("nks,nkl,nls->s", slopes, expected, slopes))
    return total


def _determinant_gradient(at: PathPoint, model: LinearizedPath) -> Floats:
    """Return d ½ log det H_red / dθ along the optimal path."""
    return np.asarray(np.sum(_determinant_gradients(at, model), axis=0))


def _determinant_gradients(at: PathPoint, model: LinearizedPath) -> list[Floats]:
    """Return the same for every record."""
    program, (a0, a) = at.program, at.program.arguments(at.point)
    joint0, joint, P0, P = _blocks(program, model)
    f, (of_start, of_elements) = program.functions, program.data(at.point, 3)
    given: list[tuple[ElementFunctions, Floats, Floats, Floats, CondensedWithDerivatives, Floats, Floats]] = [
        (f.start, a0, of_start, at.multipliers[0], model.start, joint0, P0),
        (f.element, a, of_elements, at.multipliers[1], model.elements, joint, P),
    ]
    slopes = [
        fn.traced(x, data, lam, *_inverse_blocks(c, j, p, program.model.nz)) for fn, x, data, lam, c, j, p in given
    ]
    moved = [
        _with_right_hand_side(c, slope, program) for slope, c in zip(slopes, (model.start, model.elements), strict=True)
    ]
    found = []
    own = [fn.sizes.parts[3] for fn in (f.start, f.element)]
    direct = [slopes[0][:, own[0]], slopes[1][:, own[1]]]
    for r in range(len(program.records)):
        first, last = program.span(r)
        through = sweep(moved[0].part(r, r + 1), moved[1].part(first, last)).first[0, 1:]
        total = np.zeros(len(at.theta))
        program.slots.add_to(total, r, direct[0][r] + direct[1][first:last].sum(axis=0) - through)
        found.append(total)
    return found


def _blocks(program: Transcription, model: LinearizedPath) -> tuple[Floats, Floats, Floats, Floats]:
    """Return covariances of (X_prev, v) and the costs to go at the ends, for first points and elements."""
    slots = len(program.slots.names)
    first_joint, joint, first_P, P = [], [], [], []
    for swept in model.swept:
        found = scatter(swept)[1]
        first_joint.append(found[0])
        joint += found[1:]
        first_P.append(swept.P[0][1 + slots :, 1 + slots :])
        P.append(swept.P[1:, 1 + slots :, 1 + slots :])
    return np.stack(first_joint), np.stack(joint), np.stack(first_P), np.concatenate(P)


def _inverse_blocks(c: CondensedWithDerivatives, joint: Floats, P: Floats, nz: int) -> tuple[Floats, Floats]:
    """Return Σ and Γ − (J_y⁻ᵀ in the inner columns), per element."""
    sizes, d = c.sizes, c.derivatives
    inner = sizes.parts[1]
    M, end = c.M[:, :, 1 + sizes.slots :], c.end[:, :, 1 + sizes.slots :]
    inverse = np.linalg.inv(d.jacobian[:, :, inner])
    response = np.zeros((len(d.c), sizes.total, sizes.inner))
    response[:, inner] = -inverse
    last, n = sizes.past + sizes.inner - (c.end.shape[1] + nz), c.end.shape[1]
    ends = response[:, last : last + n]
    cross = M.swapaxes(1, 2) @ (d.hessian @ response) + end.swapaxes(1, 2) @ (P @ ends)
    moved = response - M @ (joint @ cross)
    G = -moved.swapaxes(1, 2)
    G[:, :, inner] -= inverse.swapaxes(1, 2)
    return M @ joint @ M.swapaxes(1, 2), G


def _with_right_hand_side(
    c: CondensedWithDerivatives, slope: Floats, program: Transcription
) -> CondensedWithDerivatives:
    """Return the same matrices with gradient −∂/∂a and residual −∂/∂λ."""
    d, N = c.derivatives, c.sizes.total
    gradient = -slope[:, :N]
    gradient[:, c.sizes.parts[3]] = 0.0
    changed = ElementDerivatives(d.cost, -slope[:, N:], gradient, d.jacobian, d.hessian)
    return condense(changed, c.sizes, program.model.n, program.model.nz)
