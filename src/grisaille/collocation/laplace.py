"""The marginal likelihood of the data by Laplace's method, one formula for both bases.

    −log L ≈ J* + ½ log|H| − ½ log|G| + ½ Σ log|2π R_k|

J* is the least criterion over trajectories at given unknowns, H its curvature there and G that of the disturbances
alone, the normaliser of the path's density: for a state with constant drift Π (2π Q Δt)^{-1/2} over its increments.
Exact for linear models on fine meshes. A basis gives the determinants and how they move with θ, at a given trajectory
and along the best one (elements: ``direct.marginal``).

References: J. Heald, J. Stark, Physical Review Letters 84 (2000) 2366; M. Onsager, S. Machlup, Physical Review 91
(1953) 1505.

Of splines, here, H is Gauss–Newton's curvature of J by β, a band; with G there belongs the term ½ ∫ div f dt of
symmetric discretisations. The gradient follows the trajectory by the implicit function theorem; derivatives of
log-determinants need only the entries of H⁻¹ and G⁻¹ that lie in their bands.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from grisaille.collocation import banded
from grisaille.collocation.array_types import Floats, Mask
from grisaille.collocation.banded import BandedFactor, NotPositiveDefinite
from grisaille.collocation.normal_equations import CollocationPoints, ResidualBlock
from grisaille.collocation.spline_program import LinearisedProgram, SplineProgram
from grisaille.collocation.trial_record import RecordValues


@dataclass(frozen=True, eq=False)
class Marginal:
    """−log L, its gradient by θ, and what levels' information rests on: the slope of the determinants alone."""

    value: float
    slope: Floats
    freedom: Floats


def minus_log_likelihood(least: float, curvature: float, prior: float, spread: float) -> float:
    """Return minus the log-likelihood from J*, log|H|, log|G| and ½ Σ log|2πR|."""
    return least + 0.5 * (curvature - prior) + spread


def marginal(
    program: SplineProgram, lin: LinearisedProgram, given: RecordValues, fixed: Mask, *, sensitive: bool = True
) -> Marginal:
    """Return the marginal likelihood at a trajectory that minimises J; ``lin`` is Gauss–Newton's linearisation there.

    fixed : coefficients that do not move with θ of themselves, as they are starts or lie on a state's bound. Bounds do
        not enter the determinants, which would jump as coefficients come to lie on them.
    """
    held = program.held(given)
    H = BandedFactor(lin.band, held)
    G = BandedFactor(program.prior_band(lin, given), held)
    missing = ~np.isfinite(program.record.y[program.seen])
    diagonal = np.diagonal(lin.data.root, axis1=1, axis2=2)[~missing]
    spread = float(0.5 * len(diagonal) * np.log(2 * np.pi) - np.log(diagonal).sum())
    value = minus_log_likelihood(lin.objective, H.log_determinant, G.log_determinant, spread)
    if not sensitive:
        return Marginal(value, *np.zeros((2, len(given.dq))))
    return Marginal(value, *_slope(program, lin, given, fixed, H, G))


def _slope(
    program: SplineProgram, lin: LinearisedProgram, given: RecordValues, fixed: Mask, H: BandedFactor, G: BandedFactor
) -> tuple[Floats, Floats]:
    cells, samples, dq = program.cells, program.samples, given.dq[:, list(program.formulas.moved)]
    held = program.held(given)
    inside = banded.mask_held(H.inverse_band, held), banded.mask_held(G.inverse_band, held)
    every = banded.gather_blocks(inside[0], cells.local.index[:: cells.group])
    every = every - banded.gather_blocks(inside[1], cells.local.index[:: cells.group])
    difference = np.repeat(every, cells.group, axis=0)
    at_samples = banded.gather_blocks(inside[0], samples.local.index)
    by_beta, by_q = np.zeros(program.mesh.count), np.zeros(len(program.formulas.moved))
    for what, points, part, sigma in (
        ("drift", cells, lin.model, difference), ("measured", samples, lin.data, at_samples),
    ):  # fmt: skip
        K = -np.swapaxes(part.root, 1, 2) @ part.by_beta @ sigma @ np.swapaxes(points.local.phi, 1, 2)
        found = program.formulas.bend(what, points.t, part.X, points.u, given.q, K.reshape(len(points.t), -1))
        pulled = np.swapaxes(points.local.phi, 1, 2) @ found[:, : program.n, None]
        by_beta += np.bincount(points.local.index.ravel(), pulled.ravel(), program.mesh.count)
        by_q += found[:, program.n :].sum(axis=0)
    exact = program.linearised(lin.beta, given, exact=True)
    v = _adjoint(exact, lin, fixed, np.where(fixed, 0.0, by_beta))
    freedom = dq @ (by_q + _levels(program, given, lin, difference, at_samples, None))
    direct = dq @ (by_q + _levels(program, given, lin, difference, at_samples, v))
    known = np.isfinite(given.start)
    moved = given.dstart[:, known] @ by_beta[program.mesh.first[known]]
    if len(program.start_states()):
        moved = moved + _start_slope(program, lin, given, inside, v)
    return lin.slope + direct + moved - exact.border.T @ v, freedom


def _start_slope(
    program: SplineProgram, lin: LinearisedProgram, given: RecordValues, inside: tuple[Floats, Floats], v: Floats
) -> Floats:
    """Return the slope through the stationary covariance P of disturbances at the first instant: d(P⁻¹) = −P⁻¹ dP
    P⁻¹.
    """
    places = program.mesh.first[program.start_states()]
    H, G = (banded.gather_blocks(band, places[None])[0] for band in inside)
    x, adjoint, inverse = lin.beta[places], v[places], np.linalg.inv(program.stationary(given))
    middle = -0.5 * (np.outer(x, x) + H - G) + np.outer(adjoint, x)
    return np.asarray(np.einsum("pij,ij->p", program.stationary_slopes(given), inverse @ middle @ inverse))


def _adjoint(exact: LinearisedProgram, lin: LinearisedProgram, held: Mask, right: Floats) -> Floats:
    for part in (exact, lin):
        try:
            return BandedFactor(part.band, held).solve(right)
        except NotPositiveDefinite:
            continue
    raise NotPositiveDefinite


def _levels(
    program: SplineProgram,
    given: RecordValues,
    lin: LinearisedProgram,
    difference: Floats,
    at_samples: Floats,
    v: Floats | None,
) -> Floats:
    """Return derivatives by q through W and R: of the determinants alone (v None), or of everything."""
    formulas = program.formulas
    with np.errstate(divide="ignore"):
        inverse = np.where(program.weights > 0, 1 / program.weights, 0.0)[:, None, None]
    W = inverse * _sandwich(lin.model, lin.model.root, _middle(program.cells, lin.model, difference, v))
    V = lin.data.root / program.record.weights[program.seen][:, None, :]
    R = _sandwich(lin.data, V, _middle(program.samples, lin.data, at_samples, v)) + 0.5 * np.swapaxes(V, 1, 2) @ V
    total = np.zeros(len(formulas.moved))
    for what, points, Z in (("drift", program.cells, W), ("measured", program.samples, R)):
        Z, X = ((Z + np.swapaxes(Z, 1, 2)) / 2).reshape(len(points.t), -1), program.covariance_states(what)
        total += formulas.covariance_slope(what, points.t, X, points.u, given.q, Z).sum(axis=0)
    return total


def _middle(points: CollocationPoints, part: ResidualBlock, sigma: Floats, v: Floats | None) -> Floats:
    """Return −½ (B Σ Bᵀ), and with an adjoint −½ ρρᵀ + (B v) ρᵀ too."""
    middle = -0.5 * part.by_beta @ sigma @ np.swapaxes(part.by_beta, 1, 2)
    if v is not None:
        rho = part.residuals[:, :, None]
        moved = part.by_beta @ v[points.local.index][:, :, None]
        middle = middle + (moved - 0.5 * rho) @ np.swapaxes(rho, 1, 2)
    return np.asarray(middle)


def _sandwich(part: ResidualBlock, U: Floats, middle: Floats) -> Floats:
    return np.asarray(np.swapaxes(U, 1, 2) @ middle @ U)
