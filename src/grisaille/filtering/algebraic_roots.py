"""Algebraic unknowns of a filter at jumps of the inputs, and whether they were solved all along a record.

Between samples z is followed by a few Newton steps inside the formulas (``implicit``). A held input that jumps moves z
further than that: there z is solved afresh, outside the formulas, by damped Newton steps along

    u(λ) = u₋ + λ (u₊ − u₋),   λ from 0 to 1 in steps as long as Newton's method converges,

at the states the filter has when it arrives. The solution is where the formulas begin again; they end on the same root
for states and parameters nearby, so that it may be kept while these move, and is renewed where it no longer serves.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import casadi as ca
import numpy as np

from grisaille.compilation.casadi_evaluation import FlatEvaluation, flat_function
from grisaille.compilation.kalman.compiled_pass import PreparedPass
from grisaille.compilation.kalman.passing import FilterPass
from grisaille.disturbance.duals import Floats
from grisaille.disturbance.stochastic_model import StochasticModel
from grisaille.errors import EstimationError

if TYPE_CHECKING:
    from grisaille.filtering.passes import Passes

SOLVED_CORRECTION = 1e-5
"""A last correction below this part of an unknown's size leaves an error of its square."""
MIN_STEP = 1e-6
"""Of a step in λ."""
MAX_ITERATIONS = 30


class UnsolvedError(EstimationError):
    """Newton steps inside the formulas did not reach a root."""


class AlgebraicRoots:
    """The algebraic equations of a model, apart from its filter."""

    def __init__(self, model: StochasticModel) -> None:
        self.model, self.nz = model, int(model.z.numel())
        self.names = model.structure.system.implicit_names
        self._equations, self._correction = model.cached_value("algebraic equations", lambda: _functions(model))
        self.signals = sorted(set(ca.jacobian_sparsity(model.residual, model.u).get_col()))
        self.sizes = np.zeros(self.nz)
        """Of each unknown along the record, where it is solved."""

    def jumps(self, given: FilterPass) -> list[int]:
        """Return bounds at which an input of these equations jumps."""
        before = given.stages[given.edges[1:] - 1][:, self.signals]
        return (1 + np.flatnonzero((before != given.signals[1:][:, self.signals]).any(axis=1))).tolist()

    def is_solved(self, s: Floats) -> bool:
        """Return whether the algebraic unknowns at the end of a pass are solved; a pass that ran into NaN is a failure
        of its own.
        """
        return not bool((s[-self.nz :] > SOLVED_CORRECTION * self.sizes).any())

    def corrections(self, t: Floats, x: Floats, z: Floats, u: Floats, q: Floats) -> Floats:
        """Return (N, nz) what one more Newton step would change at N instants."""
        many = np.repeat(q[:, None], len(t), axis=1)
        return np.array(self._correction(t[None], x.T, z.T, u.T, many).full()).reshape(self.nz, len(t)).T

    def measure(self, given: FilterPass, kept: Floats, q: Floats, n: int) -> None:
        """Take the sizes of the unknowns from a pass, as far as they are solved in it."""
        x, z = kept[:, 1, :n], kept[:, 1, -2 * self.nz : -self.nz]
        left = self.corrections(given.bounds, x, z, given.signals, q)
        solved = np.isfinite(z) & (np.abs(left) <= 1e-6 * np.abs(z))
        self.sizes = np.maximum(self.sizes, np.where(solved, np.abs(z), 0.0).max(axis=0, initial=0.0))

    def solve(self, t: float, x: Floats, z: Floats, u: tuple[Floats, Floats], q: Floats) -> Floats | None:
        """Return z after a jump of the inputs, or None."""
        before, after = u
        done, step = 0.0, 1.0
        while done < 1.0:
            step = min(step, 1.0 - done)
            found = self._newton(t, x, z, before + (done + step) * (after - before), q)
            if found is None:
                step /= 4
                if step < MIN_STEP:
                    return None
                continue
            z, done, step = found, done + step, 2 * step
        return z

    def _newton(self, t: float, x: Floats, z: Floats, u: Floats, q: Floats) -> Floats | None:
        """Take damped Newton steps: each lowers the correction that the Jacobian of the last point predicts."""
        g, J = self._at(t, x, z, u, q)
        for _ in range(MAX_ITERATIONS):
            try:
                inverse = np.linalg.inv(J)
            except np.linalg.LinAlgError:
                return None
            change = inverse @ g
            size = np.abs(z) + np.abs(change)
            if not np.isfinite(change).all():
                return None
            if (np.abs(change) <= 1e-12 * size).all():
                return z - change
            part = 1.0
            while True:
                trial = z - part * change
                g_new, J_new = self._at(t, x, trial, u, q)
                with np.errstate(all="ignore"):
                    next_change = inverse @ g_new
                scale = np.where(size > 0, size, 1.0)
                if np.isfinite(next_change).all() and np.isfinite(J_new).all() and (
                    np.abs(next_change / scale).max() <= (1 - part / 4) * np.abs(change / scale).max() + 1e-14
                ):  # fmt: skip
                    break
                part /= 2
                if part < 1e-4:
                    return None
            z, g, J = trial, g_new, J_new
        return None

    def _at(self, t: float, x: Floats, z: Floats, u: Floats, q: Floats) -> tuple[Floats, Floats]:
        g, J = self._equations(t, x, z, u, q)
        return g, J.reshape(self.nz, self.nz).T


def _functions(model: StochasticModel) -> tuple[FlatEvaluation, ca.Function]:
    """Return residual with its Jacobian, and the correction of a Newton step."""
    arguments = [model.t, model.X, model.z, model.u, model.q]
    J = ca.jacobian(model.residual, model.z)
    equations = ca.Function("g", arguments, [ca.densify(model.residual), ca.densify(J)])
    return flat_function(equations), ca.Function("c", arguments, [ca.densify(ca.solve(J, model.residual))])


def restarts(filter: Passes, roots: AlgebraicRoots, given: FilterPass, q: Floats, s: Floats) -> Floats | None:
    """Return (K + 1, nz): z after every jump of the inputs, at the states with which the filter arrives; NaN elsewhere.

    None where there is no jump.
    """
    at = roots.jumps(given)
    if not at:
        return None
    n, nz = filter.model.n, roots.nz
    found = np.full((len(given.bounds), nz), np.nan)
    nothing = np.zeros((0, len(q)))
    edges = [0, *at]
    for first, last in zip(edges, at, strict=False):
        sample = given.sample[first : last + 1].copy()
        sample[-1] = -1
        piece = PreparedPass(replace(given.part(first, last, sample), given=None, condition=False))
        carried: Any = filter.carry(piece, q, s[None], nothing, keep=False)
        if carried.failed >= 0 or not np.isfinite(carried.s).all():
            return found
        s = carried.s.copy()
        u = given.stages[given.edges[last] - 1], given.signals[last]
        z = roots.solve(float(given.bounds[last]), s[:n], s[-2 * nz : -nz], u, q)
        if z is None:
            raise UnsolvedError(
                f"{', '.join(roots.names)} could not be solved after the jump of the inputs at t = "
                f"{given.bounds[last]:g}: the equations may have no solution there. Check the model there, or another "
                f"guess."
            )
        found[last] = z
        s[-2 * nz : -nz], s[-nz:] = z, 0.0
        roots.sizes = np.maximum(roots.sizes, np.abs(z))
    return found


def unsolved_message(roots: AlgebraicRoots, given: FilterPass, kept: Floats, newton: int) -> str:
    """Return which unknown, when, and by how much."""
    rho = kept[:, 1, -roots.nz :]
    bad = rho > SOLVED_CORRECTION * roots.sizes
    k = int(np.argmax(bad.any(axis=1)))
    i = int(np.argmax(bad[k]))
    return (
        f"{roots.names[i]} is not solved along the record: before t = {given.bounds[k]:g} the last of {newton} Newton "
        f"steps still moves it by {rho[k, i]:.2g} (its size is {roots.sizes[i]:.2g}). Between steps it changes too "
        f"fast: set more steps, gr.KalmanML(substeps=…), or another guess."
    )
