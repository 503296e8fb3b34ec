"""A pass of a nonlinear filter in NumPy and CasADi, from formulas written out: what compiled ones must equal."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from grisaille.compilation import FlatEvaluation, flat_function
from grisaille.compilation.kalman import DEGREE, FilterPass, FilterProgram, PassResult, PreparedPass, with_directions
from grisaille.filtering import Passes

Floats = NDArray[np.float64]


def carry(self: Passes, given: PreparedPass, q: Floats, s: Floats, dq: Floats, keep: bool) -> PassResult:
    """In place of ``Passes.carry``."""
    return run_interpreted(self.program, replace(given.given, q=q), s[0], s[1:], dq, keep)


def evaluate(program: FilterProgram, name: str, ns: int) -> FlatEvaluation:
    """A function by its C name: arguments, then directions of s and q; values, then derivatives along them."""
    function, inputs = next((f, inputs) for n, f, inputs, _ in program.formulas.parts if n == name)
    made = with_directions(function, ("s", "q"), inputs, ns)
    return program._known.get(("reference", name, ns), lambda: flat_function(made))


def run_interpreted(
    program: FilterProgram, given: FilterPass, s: Floats, ds: Floats, dq: Floats, keep: bool
) -> PassResult:
    """The pass from s along directions ds, (ns, size), and dq, (ns, nq)."""
    update = evaluate(program, "gr_update", len(ds))
    result = PassResult.empty(given, s, ds, keep)
    waiting, edges = given.condition, given.edges
    for k, sample in enumerate(given.sample.tolist()):
        if k:
            _over_cell(program, given, k - 1, int(edges[k - 1]), result, dq)
        if result.kept is not None:
            result.kept[k, 0] = result.s
        if given.given is not None:
            there = ~np.isnan(given.given[k])
            result.s, result.ds = np.where(there, given.given[k], result.s), np.where(there, 0.0, result.ds)
        if sample >= 0:
            if not _at_sample(update, given, k, sample, result, dq, counted=not waiting):
                result.failed = sample
                return result
            waiting = False
        if result.kept is not None:
            result.kept[k, 1] = result.s
    return result


def _over_cell(program: FilterProgram, given: FilterPass, cell: int, first: int, r: PassResult, dq: Floats) -> None:
    m, length = int(given.steps[cell]), given.bounds[cell + 1] - given.bounds[cell]
    carry = _linearized if program.formulas.settle is not None else _direct
    for i in range(m):
        t, u = given.bounds[cell] + length * (i / m), given.stages[first + 2 * i : first + 2 * i + 3]
        found = carry(program, given, t, length / m, u, np.concatenate([r.s[None], r.ds]), dq)
        r.s, r.ds = found[0], found[1:]


def _direct(
    program: FilterProgram, given: FilterPass, t: float, h: float, u: Floats, s: Floats, dq: Floats
) -> Floats:  # fmt: skip
    step = evaluate(program, "gr_step", len(dq))
    return _stacked(step(t, h, s[0], *u, given.q, given.nominal, *_seeds(s, dq)), len(dq))


def _linearized(
    program: FilterProgram, given: FilterPass, t: float, h: float, u: Floats, s: Floats, dq: Floats
) -> Floats:  # fmt: skip
    coefficients, settle = evaluate(program, "gr_coefficients", len(dq)), evaluate(program, "gr_settle", len(dq))
    c = _stacked(coefficients(t, h, s[0], *u, given.q, given.nominal, *_seeds(s, dq)), len(dq))
    moved, _ = solve_linearized(c, s, h, given.doublings, program.formulas.n, program.formulas.powers)
    return _stacked(settle(t + h, moved[0], u[2], given.q, given.nominal, *_seeds(moved, dq)), len(dq))


def _seeds(s: Floats, dq: Floats) -> tuple[Floats, ...]:
    return (s[1:], dq) if len(dq) else ()


def _stacked(found: list[Floats], ns: int) -> Floats:
    """One output and its derivatives, the value first."""
    value = found[0][None]
    return np.concatenate([value, found[1].reshape(ns, value.shape[1])]) if ns else value


def _at_sample(
    update: FlatEvaluation, given: FilterPass, k: int, sample: int, r: PassResult, dq: Floats, counted: bool
) -> bool:
    data = (given.y[sample], given.mask[sample], given.scale[sample])
    directions = (r.ds, dq) if len(dq) else ()
    found = update(given.bounds[k], r.s, given.signals[k], given.q, given.nominal, *data, *directions)
    ny, ns = given.y.shape[1], len(dq)
    e, V = found[1], _full(found[2], ny)
    weighed = _weigh(e, V, given.robust)
    if weighed is None:
        return False
    inverse, a, added, slope = weighed
    de, dV = np.zeros((0, ny)), np.zeros((0, ny, ny))
    r.s = found[0]
    if ns:
        r.ds, de = found[3].reshape(r.ds.shape), found[4].reshape(ns, ny)
        dV = _full(found[5].reshape(ns, -1), ny)
    seen = given.mask[sample] != 0
    r.innovations[sample, seen], r.variances[sample, seen] = e[seen], np.diag(V)[seen]
    r.slopes[sample][:, seen] = de[:, seen]
    if counted:
        whitened = inverse @ dV
        r.count += int(seen.sum())
        r.base[0] += added
        r.base[1:] += np.trace(whitened, axis1=-2, axis2=-1) + slope * (2 * de @ a - (dV @ a) @ a)
        r.information += de @ inverse @ de.T + 0.5 * np.einsum("aij,bji->ab", whitened, whitened)
    return True


def _weigh(e: Floats, V: Floats, robust: float) -> tuple[Floats, Floats, float, float] | None:
    """V⁻¹, V⁻¹e, log det V + ρ, ρ'."""
    if not (np.isfinite(e).all() and np.isfinite(V).all()):
        return None
    try:
        root, inverse = np.linalg.cholesky(V), np.asarray(np.linalg.inv(V), dtype=np.float64)
    except np.linalg.LinAlgError:
        return None
    a = inverse @ e
    v, log_det = float(e @ a), 2 * float(np.log(np.diag(root)).sum())
    if robust < 0:
        bend = math.sqrt(1 + v / robust**2)
        return inverse, a, log_det + 2 * robust**2 * (bend - 1), 1 / bend
    if v > robust * robust:
        return inverse, a, log_det + robust * (2 * math.sqrt(v) - robust), robust / math.sqrt(v)
    return inverse, a, log_det + v, 1.0


def _full(V: Floats, ny: int) -> Floats:
    column, row = np.triu_indices(ny)
    full = np.zeros((*V.shape[:-1], ny, ny))
    full[..., row, column] = full[..., column, row] = V
    return full


def solve_linearized(c: Floats, s: Floats, h: float, doublings: int, n: int, powers: int) -> tuple[Floats, Floats]:
    """Carried columns (1 + ns, size) after the step, and Φ; c, (1 + ns, …), are the coefficients A, G, W, z."""
    nd, size, half = len(c), n + powers, n * (n + 1) // 2
    small, part = h * 2.0**-doublings, 2.0**-doublings
    A, G, W, z = np.split(c, [n * n, n * (n + powers), n * (n + powers) + half], axis=1)
    M = np.zeros((nd, size, size))
    M[:, :n, :n], M[:, :n, n:] = small * A.reshape(nd, n, n), small * G.reshape(nd, n, powers)
    M[0, n + np.arange(1, powers), n + np.arange(powers - 1)] = part * np.arange(1, powers)
    E, Q = _series(M, small * _symmetric(W, n), doublings, n)
    E[0, :n, :n] += np.eye(n)
    Phi = E[:, :n, :n]
    x = s[:, :n] + E[:, :n, n]
    P = _times(_times(Phi, _symmetric(s[:, n : n + half], n)), np.swapaxes(Phi, -1, -2)) + Q
    column, row = np.triu_indices(n)
    return np.concatenate([x, P[:, row, column], z], axis=1), Phi


def _series(M: Floats, W: Floats, doublings: int, n: int) -> tuple[Floats, Floats]:
    A, E, T, U, Q = M[:, :n, :n], M.copy(), M, W, W.copy()
    for k in range(2, DEGREE + 1):
        T = _times(M, T) / k
        moved = _times(A, U)
        U = (moved + np.swapaxes(moved, -1, -2)) / k
        E, Q = E + T, Q + U
    for _ in range(doublings):
        F = E[:, :n, :n].copy()
        F[0] += np.eye(n)
        Q = Q + _times(_times(F, Q), np.swapaxes(F, -1, -2))
        E = 2 * E + _times(E, E)
    return E, Q


def _times(X: Floats, Y: Floats) -> Floats:
    product = X[:1] @ Y
    product[1:] += X[1:] @ Y[:1]
    return np.asarray(product)


def _symmetric(half: Floats, n: int) -> Floats:
    column, row = np.triu_indices(n)
    full = np.zeros((len(half), n, n))
    full[:, row, column] = full[:, column, row] = half
    return full
