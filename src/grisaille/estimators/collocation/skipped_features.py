"""Bumps and short conditions that lie between the points at which collocation evaluates the model
(``bound_experiment.skipped_bends``).

Elements half as long are compared by the residuals that they leave, and knots by what bends inside cells: both see
nothing of a bump that no point meets.
"""

from __future__ import annotations

from collections.abc import Sequence

import casadi as ca
import numpy as np

from grisaille.bound_experiment.skipped_bends import BendSearch, SkippedBump, SolutionPath
from grisaille.collocation.array_types import Floats
from grisaille.collocation.direct.direct_model import DirectModel
from grisaille.collocation.direct.element_mesh import RADAU_MATRIX, RADAU_NODES
from grisaille.collocation.direct.path_newton import LinearizedPath, PathPoint
from grisaille.collocation.direct.refinement import lagrange
from grisaille.collocation.direct.solution_statistics import quantities_along
from grisaille.collocation.quadrature import make_quadrature
from grisaille.collocation.spline_program import SplineProgram
from grisaille.disturbance.stochastic_model import StochasticModel
from grisaille.estimators.collocation.spline_solution import SplineSolution
from grisaille.experiment.record_cells import cut_into_cells

POINTS_PER_INTERVAL = 24
"""Parts of an element or a cell in which its path is given."""
MIN_BUMP_EFFECT = 0.02
"""Of a state's standard deviation: bumps that matter."""
MIN_RELATIVE_DEVIATION = 1e-6
"""Part of a state's size that stands for its standard deviation where that is smaller."""
MET_WIDTH = 0.5
"""Of an element or a cell: what is so wide is met by its points."""


def features_skipped_by_elements(at: PathPoint, curvature: LinearizedPath | None) -> list[tuple[str, SkippedBump]]:
    """Return what elements pass, with the name of the record; nothing is done where rates do not bend with states."""
    program = at.program
    model = program.model
    bends = model.cached_value("bends", lambda: _bends_of_elements(model))
    if bends is None:
        return []
    found = []
    for r, record in enumerate(program.records):
        values, deviation = quantities_along(at, curvature, r, np.zeros((len(at.theta),) * 2), model.X)
        allowed = _allowed(values, deviation)
        q = program.functions.quantities(program.slots.values(at.theta)[r], program.slots.constant_values[r])
        bumps = bends.passed(_path_on_elements(at, r), q, allowed, RADAU_NODES, RADAU_MATRIX[-1])
        found += [(record.name, b) for b in bumps if b.share < MET_WIDTH]
    return found


def features_skipped_by_cells(solution: SplineSolution) -> list[tuple[int, SkippedBump]]:
    """Return what cells between knots pass, with the number of the experiment."""
    found = []
    for k, program in enumerate(solution.at.task.programs):
        bends = _bends_of_splines(program.record.stochastic)
        if bends is None:
            continue
        beta, given = solution.at.parts[k].beta, solution.at.given[k]
        path, (nodes, weights) = _path_on_cells(program, beta)
        nothing = np.zeros((len(solution.theta),) * 2)
        values, P, _ = solution.moments(k, program.record.times, nothing)
        allowed = _allowed(values, np.sqrt(np.maximum(np.einsum("kii->ki", P), 0.0)))
        bumps = bends.passed(path, given.q, allowed, nodes, weights)
        found += [(k, b) for b in bumps if b.share < MET_WIDTH]
    return found


def describe_skipped_features(found: Sequence[tuple[str, SkippedBump]], parts: str, remedy: str) -> list[str]:
    """Describe the skipped features in one note."""
    if not found:
        return []
    name, bump = max(found, key=lambda f: f[1].more)
    more = "" if len(found) == 1 else f" (the narrowest of {len(found)})"
    return [
        f"{parts}: near t = {bump.time:.6g} of '{name}' the trajectory passes a bump or a short condition, which "
        f"begins or ends where {bump.text} is zero, in {bump.width:.2g}{more}. The points at which the model holds do "
        f"not meet it, and estimates ignore it: {remedy}."
    ]


def _allowed(values: Floats, deviation: Floats) -> Floats:
    with np.errstate(all="ignore"):
        spread = np.nan_to_num(np.nanmedian(np.nan_to_num(deviation), axis=0))
        return np.asarray(
            np.maximum(
                MIN_BUMP_EFFECT * spread + MIN_RELATIVE_DEVIATION * np.nanmax(np.abs(values), axis=0, initial=0.0),
                1e-300,
            )
        )


def _bends_of_elements(model: DirectModel) -> BendSearch | None:
    system = model.structure.system
    signals = [s.name for s in system.signals]
    pairs = zip(
        [model.X, model.Z, model.q, model.u, model.t],
        [model.state_names, system.implicit_names, model.quantities, signals, ["time"]],
        strict=True,
    )
    names = {
        s.element_hash(): n
        for column, of in pairs
        for s, n in zip(ca.vertsplit(column) if column.numel() else [], of, strict=False)
    }
    arguments = [model.t, model.X, model.Z, ca.vertcat(model.u, model.v), model.q]
    return BendSearch.of(arguments, model.rates, model.residual, names)


def _bends_of_splines(model: StochasticModel) -> BendSearch | None:
    arguments = [model.t, model.X, model.z, model.u, model.q]
    return model.cached_value(
        "bends", lambda: BendSearch.of(arguments, model.drift, model.residual, model.symbol_names)
    )


def _path_on_elements(at: PathPoint, r: int) -> SolutionPath:
    """Return the polynomials of every element."""
    program, point = at.program, at.point
    mesh, (first, last) = program.meshes[r], program.span(r)
    n, nz, count, s = program.model.n, program.model.nz, last - first, len(RADAU_NODES)
    grid = np.linspace(0.0, 1.0, POINTS_PER_INTERVAL + 1)
    values = point.inner[first:last, program.functions.after :].reshape(count, s, n + nz)
    X = np.concatenate([program.previous(point)[first:last, None], values[:, :, :n]], axis=1)
    inside = lagrange(RADAU_NODES, grid)
    drive = point.noise[first:last].reshape(count, s, program.model.nv)
    signals = np.concatenate([mesh.u, drive], axis=2)
    t = mesh.bounds[:-1, None] + mesh.lengths[:, None] * grid
    X, Z, u = (
        np.einsum("jk,eki->eji", w, v)
        for w, v in ((lagrange(np.append(0.0, RADAU_NODES), grid), X), (inside, values[:, :, n:]), (inside, signals))
    )
    return SolutionPath(t, X, Z, u)


def _path_on_cells(program: SplineProgram, beta: Floats) -> tuple[SolutionPath, tuple[Floats, Floats]]:
    """Return the spline in every cell, and the quadrature there."""
    mesh, record = program.mesh, program.record
    cells = cut_into_cells(mesh.bounds, record.table)
    t, u = cells.at(np.linspace(0.0, 1.0, POINTS_PER_INTERVAL + 1))
    inside = np.repeat((cells.bounds[:-1] + cells.bounds[1:]) / 2, POINTS_PER_INTERVAL + 1)
    X = mesh.local(inside, t.ravel()).values(beta).reshape(*t.shape, -1)
    rule = make_quadrature(program.knots.quadrature, np.array([0.0, 1.0]), max(s.order for s in mesh.splines))
    return SolutionPath(t, X, np.zeros((*t.shape, 0)), u), (rule.fractions, rule.weights[0])
