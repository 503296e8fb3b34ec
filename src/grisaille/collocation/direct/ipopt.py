"""The same program for IPOPT, with exact sparse derivatives by CasADi: for bounds of states, and where ours fails."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import casadi as ca
import numpy as np

from grisaille.collocation.direct.mesh import POINTS, Floats
from grisaille.collocation.direct.model import DirectModel
from grisaille.collocation.direct.newton import Better, Place, place
from grisaille.collocation.direct.transcription import Point, Transcription
from grisaille.collocation.newton import Ended
from grisaille.collocation.nlp import Ipopt
from grisaille.errors import EstimationError


def solve_ipopt(
    program: Transcription, point: Point, bounds: tuple[Floats, Floats], *,
    state_bounds: Mapping[str, tuple[float, float]] | None = None, tolerance: float = 1e-10, max_iterations: int = 500,
    better: Better = None,
) -> Ended[Place]:  # fmt: skip
    """Minimise from a point; ``better`` is called with θ of every iteration."""
    options = {"tol": tolerance, "max_iter": max_iterations, "bound_relax_factor": 0.0}
    solver = build_solver(program, point, options, better)
    return run_solver(program, solver, point, bounds, state_bounds or {})


def build_solver(program: Transcription, point: Point, options: Mapping[str, Any], better: Better = None) -> Ipopt:
    """The program with its derivatives; ``options`` of IPOPT, beside silence. Only sizes are taken from the point."""
    seen = None if better is None else lambda x: better(x[: len(point.theta)])
    return Ipopt(*_expressions(program, point), options, seen)


def run_solver(
    program: Transcription, solver: Ipopt, point: Point, bounds: tuple[Floats, Floats],
    state_bounds: Mapping[str, tuple[float, float]],
) -> Ended[Place]:  # fmt: skip
    """Minimise from a point with θ between bounds."""
    lower, upper = _limits(program, point, bounds, state_bounds)
    parts = [point.theta, *(getattr(point, n).ravel() for n in ("first", "zeta", "inner", "noise"))]
    found = solver.run(np.concatenate(parts), lower, upper)
    parts = np.split(found.x, np.cumsum([len(p) for p in parts])[:-1])
    end = Point(
        parts[0],
        *(
            p.reshape(getattr(point, n).shape)
            for p, n in zip(parts[1:], ("first", "zeta", "inner", "noise"), strict=True)
        ),
    )
    lam = np.split(found.multipliers, [point.first.shape[0] * program.functions.start.m])
    multipliers = (lam[0].reshape(len(point.first), -1), lam[1].reshape(len(point.inner), -1))
    return Ended(place(program, end, multipliers), found.converged, found.message, found.iterations)


def violates(program: Transcription, point: Point, state_bounds: Mapping[str, tuple[float, float]]) -> bool:
    """Whether a bound of a state is broken at some Radau point."""
    states = np.vstack([point.first, program.nodes(point.inner), *_after_jumps(program, point)])
    return any(
        bool(np.any((states[:, k] < low) | (states[:, k] > high)))
        for k, (low, high) in _places(program.model, state_bounds)
    )


def _after_jumps(program: Transcription, point: Point) -> list[Floats]:
    return [program.seen_points(point, r) for r in range(len(program.records))] if program.functions.after else []


def _places(
    model: DirectModel, state_bounds: Mapping[str, tuple[float, float]]
) -> list[tuple[int, tuple[float, float]]]:
    system = model.structure.system
    entries = {s.element_hash(): k for k, s in enumerate(ca.vertsplit(model.X))}
    entries |= {s.element_hash(): model.n + k for k, s in enumerate(ca.vertsplit(model.Z))} if model.nz else {}
    named = {
        n: entries.get(f.element_hash())
        for n, f in zip(system.observed_names, ca.vertsplit(model.observed), strict=True)
    }
    named |= {n: k for k, n in enumerate((*model.state_names, *system.implicit_names))}
    found = []
    for name, limits in state_bounds.items():
        place = named.get(name)
        if place is None:
            raise EstimationError(
                f"Bounds are given for '{name}', which is not a state of {model.structure.model.name} after index "
                f"reduction; there are {', '.join(n for n, k in named.items() if k is not None)}."
            )
        found.append((place, limits))
    return found


def _expressions(program: Transcription, point: Point) -> tuple[ca.MX, ca.MX, ca.MX]:
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
    cost0, c0 = f.start.evaluated.map(R)(a0, ca.DM(program.start_data.T))
    cost, c = f.element.evaluated.map(E)(a, ca.DM(program.element_data.T))
    total = ca.sum2(ca.sum1(cost0)) + ca.sum2(ca.sum1(cost))
    if program.information is not None:
        total += program.information(theta)[0]
    return x, total, ca.vertcat(ca.vec(c0), ca.vec(c))


def _slot_values(program: Transcription, theta: ca.MX) -> ca.MX:
    slots = program.slots
    columns = []
    for r in range(len(program.records)):
        rows = [
            theta[int(i)] if i >= 0 else ca.MX(float(v)) for i, v in zip(slots.index[r], slots.known[r], strict=True)
        ]
        columns.append(ca.vertcat(*rows) if rows else ca.MX(0, 1))
    return ca.horzcat(*columns)


def _limits(
    program: Transcription, point: Point, bounds: tuple[Floats, Floats], state_bounds: Mapping[str, tuple[float, float]]
) -> tuple[Floats, Floats]:
    width = program.model.n + program.model.nz
    sides = []
    for side in (0, 1):
        wide = np.full(width, -np.inf if side == 0 else np.inf)
        for k, limits in _places(program.model, state_bounds):
            wide[k] = limits[side]
        free = -np.inf if side == 0 else np.inf
        first, element = np.tile(wide, len(point.first)), np.tile(wide, POINTS)
        inner = np.tile(np.concatenate([wide[program.model.n :][: program.functions.after], element]), len(point.inner))
        sides.append(
            np.concatenate(
                [bounds[side], first, np.full(point.zeta.size, free), inner, np.full(point.noise.size, free)]
            )
        )
    return sides[0], sides[1]
