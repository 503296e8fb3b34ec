"""The same program for IPOPT, with exact sparse derivatives by CasADi: for bounds of states, and where ours fails."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields

import casadi as ca
import numpy as np

from grisaille.collocation.array_types import Better, Floats
from grisaille.collocation.direct.element_mesh import RADAU_POINTS
from grisaille.collocation.direct.path_newton import PathPoint, place
from grisaille.collocation.direct.state_bounds import Limits
from grisaille.collocation.direct.transcription import Transcription, TranscriptionPoint
from grisaille.collocation.nlp import Ipopt
from grisaille.collocation.trajectory_newton import SearchEnd


def solve_ipopt(
    program: Transcription, point: TranscriptionPoint, bounds: tuple[Floats, Floats], *, limits: Limits | None = None,
    tolerance: float = 1e-10, max_iterations: int = 500, better: Better = None,
) -> SearchEnd[PathPoint]:  # fmt: skip
    """Minimise from a point; ``better`` is called with θ of every iteration."""
    options = {"tol": tolerance, "max_iter": max_iterations, "bound_relax_factor": 0.0}
    return run_solver(program, build_solver(program, point, options, better), point, bounds, limits)


def build_solver(
    program: Transcription, point: TranscriptionPoint, options: Mapping[str, float | str], better: Better = None
) -> Ipopt:
    """Return the program with its derivatives; ``options`` of IPOPT, beside silence. Only sizes are taken from the
    point.
    """
    seen = None if better is None else lambda x: better(x[: len(point.theta)])
    return Ipopt(*_expressions(program, point), options, seen)


def run_solver(
    program: Transcription,
    solver: Ipopt,
    point: TranscriptionPoint,
    bounds: tuple[Floats, Floats],
    limits: Limits | None = None,
) -> SearchEnd[PathPoint]:
    """Minimise from a point with θ between bounds."""
    parts = [getattr(point, f.name) for f in fields(TranscriptionPoint)]
    found = solver.run(np.concatenate([p.ravel() for p in parts]), *_bounds(program, point, bounds, limits))
    ends = np.split(found.x, np.cumsum([p.size for p in parts])[:-1])
    end = TranscriptionPoint(*(e.reshape(p.shape) for e, p in zip(ends, parts, strict=True)))
    lam = np.split(found.multipliers, [point.first.shape[0] * program.functions.start.sizes.inner])
    multipliers = (lam[0].reshape(len(point.first), -1), lam[1].reshape(len(point.inner), -1))
    return SearchEnd(
        place(program, end, multipliers),
        found.converged,
        found.message,
        found.iterations,
        kept_limits=limits is not None,
    )


def _expressions(program: Transcription, point: TranscriptionPoint) -> tuple[ca.MX, ca.MX, ca.MX]:
    R, E, n = len(point.first), len(point.inner), program.model.n
    shapes = [getattr(point, f).shape for f in ("first", "zeta", "inner", "noise")]
    sizes = [len(point.theta), *(a * b for a, b in shapes)]
    x = ca.MX.sym("x", sum(sizes))
    parts = ca.vertsplit(x, [0, *np.cumsum(sizes).tolist()])
    theta = parts[0]
    first, zeta, inner, noise = (ca.reshape(p, b, a) for p, (a, b) in zip(parts[1:], shapes, strict=True))
    slots = _slot_values(program, theta)
    nz = program.model.nz
    ends = inner[inner.shape[0] - n - nz : inner.shape[0] - nz, :]
    previous = []
    for r in range(R):
        a, b = program.span(r)
        previous += [first[:n, r], ends[:, a : b - 1]]
    f = program.functions
    spread = ca.horzcat(*(ca.repmat(slots[:, r], 1, program.span(r)[1] - program.span(r)[0]) for r in range(R)))
    a0 = ca.vertcat(first, zeta, slots)
    a = ca.vertcat(ca.horzcat(*previous), inner, noise, spread)
    cost0, c0 = f.start.function("values").map(R)(a0, ca.DM(program.start_data.T))
    cost, c = f.element.function("values").map(E)(a, ca.DM(program.element_data.T))
    total = ca.sum2(ca.sum1(cost0)) + ca.sum2(ca.sum1(cost))
    if program.information is not None:
        total += program.information(theta)[0]
    return x, total, ca.vertcat(ca.vec(c0), ca.vec(c))


def _slot_values(program: Transcription, theta: ca.MX) -> ca.MX:
    """Return (slots, records)"""
    slots, columns = program.slots, []
    for index, known in zip(slots.index, slots.known, strict=True):
        rows = [theta[int(i)] if i >= 0 else ca.MX(float(v)) for i, v in zip(index, known, strict=True)]
        columns.append(ca.vertcat(*rows) if rows else ca.MX(0, 1))
    return ca.horzcat(*columns)


def _bounds(
    program: Transcription, point: TranscriptionPoint, bounds: tuple[Floats, Floats], limits: Limits | None
) -> tuple[Floats, Floats]:
    """Return the bounds of all unknowns; limits of (X, Z) hold at every point."""
    free, after, n = np.full(program.model.n + program.model.nz, np.inf), program.functions.after, program.model.n
    sides = []
    for theta, wide, nothing in zip(bounds, limits or (-free, free), (-np.inf, np.inf), strict=True):
        first, inner = np.tile(wide, len(point.first)), np.concatenate([wide[n:][:after], np.tile(wide, RADAU_POINTS)])
        zeta, noise = np.full(point.zeta.size, nothing), np.full(point.noise.size, nothing)
        sides.append(np.concatenate([theta, first, zeta, np.tile(inner, len(point.inner)), noise]))
    return sides[0], sides[1]
