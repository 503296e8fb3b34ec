"""The same criterion as a sparse nonlinear program for IPOPT.

Slower than the descent of our own, and independent of it: the two check each other, and IPOPT's filter line search may
converge where a descent does not. Held coefficients are fixed by equal bounds.
"""

from __future__ import annotations

from collections.abc import Sequence

import casadi as ca
import numpy as np

from grisaille.collocation.array_types import Better, Floats, Mask
from grisaille.collocation.arrow_descent import ArrowQuadratic, DescentTask
from grisaille.collocation.nlp import Ipopt
from grisaille.collocation.normal_equations import CollocationPoints
from grisaille.collocation.spline_mesh import LocalBasis
from grisaille.collocation.spline_program import SplineProgram
from grisaille.collocation.trajectory_newton import SearchEnd
from grisaille.collocation.trial_record import RecordValues
from grisaille.collocation.vectorised import with_vectors
from grisaille.errors import EstimationError


def minimize(
    task: DescentTask, xi: Floats, betas: Sequence[Floats], *, wanted: Mask, tolerance: float, most: int,
    better: Better = None,
) -> SearchEnd[ArrowQuadratic]:  # fmt: skip
    """Minimise J from a point; unknowns that are not wanted stay; ``better`` is called with θ of every iteration."""
    theta = task.outer(xi)
    given = task.given(theta)
    scale = np.where(task.slopes(theta) != 0, np.abs(task.slopes(theta)), 1.0)
    s = ca.MX.sym("s", len(theta))
    symbols = [ca.MX.sym(f"beta{k}", len(b)) for k, b in enumerate(betas)]
    total = _prior(task, s, scale)
    for program, mine, g, beta in zip(task.programs, task.moved, given, symbols, strict=True):
        _refuse_moving_starts(program, g)
        total += _criterion(program, [s[k] * scale[k] for k in mine], g, beta)
    options = {"max_iter": most, "tol": max(tolerance, 1e-10)}
    natural = _natural_bounds(task)

    def seen(x: Floats) -> None:
        if better is not None:
            better(np.clip(x[: len(theta)] * scale, *natural))

    solver = Ipopt(ca.vertcat(s, *symbols), total, ca.MX(0, 1), options, seen)
    found = solver.run(np.concatenate([theta / scale, *betas]), *_bounds(task, theta, scale, given, betas, wanted))
    sizes = np.cumsum([len(theta), *(len(b) for b in betas)])
    scaled, *solved = np.split(found.x, sizes[:-1])
    task.evaluations += found.iterations
    quadratic = task.linearised(task.inner(np.clip(scaled * scale, *natural)), solved)
    trace = [{"evaluation": float(task.evaluations), "objective": quadratic.cost}]
    return SearchEnd(quadratic, found.converged, found.message, found.iterations, trace)


def _criterion(program: SplineProgram, theta: Sequence[ca.MX], given: RecordValues, beta: ca.MX) -> ca.MX:
    """Return ½ Σ ρ² of one experiment as a formula; starts that are unknowns replace their coefficients."""
    record = program.record
    moves = record.trial.moves
    values = {t: theta[k] for t, k in zip(moves.targets("parameter"), moves.places("parameter"), strict=True)}
    values.update(record.trial.constants)
    p = record.trial.formulas.symbolic(values)
    q = ca.vertcat(p, given.q[record.structure.system.np :])
    for row, state in record.start_of.items():
        place = int(program.mesh.first[state])
        beta = ca.vertcat(beta[:place], theta[row], beta[place + 1 :])
    model = _formula(program, "drift", program.cells, beta, q)
    slopes = _matrix(program.cells.local.slope, program.cells.local, program.mesh.count)
    w = ca.reshape(slopes @ beta, program.n, len(program.cells.t)) - model
    data = np.nan_to_num(record.y[program.seen]).T - _formula(program, "measured", program.samples, beta, q)
    rho = _blocks(program._root("drift", given)) @ ca.vec(w)
    eta = _blocks(program._root("measured", given)) @ ca.vec(data)
    states, precision = program.start_states(), program._start_prior(np.zeros(program.mesh.count), given)[1]
    start = beta[[int(k) for k in program.mesh.first[states]]] if len(states) else ca.MX(0, 1)
    return 0.5 * (ca.sumsqr(rho) + ca.sumsqr(eta) + ca.bilin(ca.DM(precision), start, start))


def _formula(program: SplineProgram, what: str, points: CollocationPoints, beta: ca.MX, q: ca.MX) -> ca.MX:
    """Return the drift or the outputs at all points, one column each."""
    model = program.record.stochastic
    function = model.cached_value(
        ("for IPOPT", what),
        lambda: ca.Function(what, model.arguments, [model.drift if what == "drift" else model.measured]),
    )
    count = len(points.t)
    X = ca.reshape(_matrix(points.local.phi, points.local, program.mesh.count) @ beta, program.n, count)
    columns = [
        [ca.MX(ca.DM(points.t))],
        [X[i, :].T for i in range(program.n)],
        [ca.MX(ca.DM(u)) for u in points.u.T],
        ca.vertsplit(q) if q.numel() else [],
    ]
    rows = [v if v.numel() == count else ca.repmat(v, count, 1) for v in with_vectors(function, columns)]
    return ca.horzcat(*rows).T


def _matrix(basis: Floats, local: LocalBasis, count: int) -> ca.DM:
    """Return the basis as one sparse matrix: β → the states at all points, point by point."""
    from scipy.sparse import csc_matrix

    point, state, place = np.nonzero(basis)
    rows, columns = point * basis.shape[1] + state, local.index[point, place]
    shape = (basis.shape[0] * basis.shape[1], count)
    return ca.DM(csc_matrix((basis[point, state, place], (rows, columns)), shape=shape))


def _blocks(U: Floats) -> ca.DM:
    """Return square blocks on the diagonal."""
    from scipy.sparse import csc_matrix

    point, i, j = np.nonzero(U)
    size = U.shape[1]
    total = len(U) * size
    return ca.DM(csc_matrix((U[point, i, j], (point * size + i, point * size + j)), shape=(total, total)))


def _prior(task: DescentTask, s: ca.MX, scale: Floats) -> ca.MX:
    """Return what priors add to the criterion."""
    if task.prior_formula is None:
        return ca.MX(0)
    theta = ca.SX.sym("theta", len(scale))
    return ca.Function("prior", [theta], [task.prior_formula(theta)])(s * scale)


def _refuse_moving_starts(program: SplineProgram, given: RecordValues) -> None:
    moved = [k for k in range(program.n) if given.dstart[:, k].any() and k not in program.record.start_of.values()]
    if moved:
        raise EstimationError(
            f"The start of {program.record.stochastic.names[moved[0]]} is a formula of estimated parameters, which "
            f"optimizer='ipopt' does not follow; use optimizer='gauss-newton'."
        )


def _bounds(
    task: DescentTask,
    theta: Floats,
    scale: Floats,
    given: Sequence[RecordValues],
    betas: Sequence[Floats],
    wanted: Mask,
) -> tuple[Floats, Floats]:
    lower, upper = _natural_bounds(task)
    low, high = np.where(wanted, lower, theta) / scale, np.where(wanted, upper, theta) / scale
    lows, highs = [low], [high]
    for k, (program, g, beta) in enumerate(zip(task.programs, given, betas, strict=True)):
        held, placed = program.held(g), program.placed(beta, g)
        floor, ceiling = task.limits[k] if task.limits else (-np.inf, np.inf)
        lows.append(np.where(held, placed, floor))
        highs.append(np.where(held, placed, ceiling))
    return np.concatenate(lows), np.concatenate(highs)


def _natural_bounds(task: DescentTask) -> tuple[Floats, Floats]:
    with np.errstate(over="ignore", invalid="ignore"):
        low, high = task.outer(task.lower), task.outer(task.upper)
    return np.where(np.isfinite(task.lower), low, -np.inf), np.where(np.isfinite(task.upper), high, np.inf)
