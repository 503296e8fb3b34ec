"""Trajectories as splines that were solved for: what they say of samples and states.

The covariance of the states at an instant comes from the curvature A of the criterion by the trajectories, and from
the covariance C of the estimates,

    P = φ (A⁻¹ + A⁻¹B C BᵀA⁻¹) φᵀ,

of A⁻¹ only entries inside the band. Between knots a spline is stiffer than the path of a disturbed state, and its band
too narrow, by up to an eighth: where knots are placed automatically, instants without a measurement get knots of their
own before a band is drawn there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from grisaille.collocation import banded, descent, laplace
from grisaille.collocation.banded import BandedFactor
from grisaille.collocation.descent import Quadratic
from grisaille.collocation.intensity import Misfit, misfit_of
from grisaille.collocation.knots import folded_at
from grisaille.collocation.marginal import Marginal
from grisaille.collocation.newton import Ended
from grisaille.estimation.quantities import Quantities, Uncertain
from grisaille.estimators.collocation.spline_meshes import limits, on_mesh
from grisaille.estimators.collocation.trajectories import Solution, Statistics, Told
from grisaille.simulation.runner import Prediction

if TYPE_CHECKING:
    from grisaille.estimation.cases import Case

INNER = 1e-13
"""Predicted gain, relative to 1 + J, at which trajectories count as solved for given unknowns."""


@dataclass(frozen=True, eq=False)
class SplineSolution(Solution):
    """Where a descent stopped."""

    found: Ended[Quadratic]
    placed: bool = True
    """Whether knots were placed automatically."""

    @property
    def quadratic(self) -> Quadratic:
        return self.found.at

    def free(self) -> np.ndarray:
        every = np.ones(len(self.theta), dtype=bool)
        return np.asarray(self.quadratic.free(every) | (np.diag(self.quadratic.corner) <= 0))

    def told(self, cases: Sequence[Case], implicit: bool) -> Told:
        q, slopes, S = self.quadratic, self.quadratic.task.slopes(self.theta), self._reduced[0]
        moved = self.implicit_responses if implicit else self.responses
        residuals, errors, rows = [], [], []
        for case, program, part, given, V in zip(cases, q.task.programs, q.parts, q.given, moved, strict=True):
            data, mine = part.data, list(case.unknowns)
            total = -(data.by_beta @ V[program.samples.local.index])
            total[:, :, mine] += data.by_theta + program.start_share(part, given)
            place = np.full(len(case.grid), -1)
            place[program.seen] = np.arange(len(program.seen))
            for s in case.samples:
                column, at = program.record.outputs.index(s.output), place[s.rows]
                residuals.append(data.residuals[at, column])
                errors.append(part.errors[s.rows, column])
                rows.append(total[at, column])
        predictions = tuple(
            Prediction(p.record.y - part.errors, np.zeros((0, 0, 0)))
            for p, part in zip(q.task.programs, q.parts, strict=True)
        )
        return Told(
            q.slope / slopes, S / np.outer(slopes, slopes), np.concatenate(residuals), np.concatenate(errors),
            np.concatenate(rows), predictions,
        )  # fmt: skip

    @cached_property
    def _reduced(self) -> tuple[np.ndarray, list[np.ndarray]]:
        S, _, carried, _ = self.quadratic.reduced(self.quadratic.factors())
        return S, carried

    @property
    def responses(self) -> list[np.ndarray]:
        """−dβ̂/dθ of every experiment, by Gauss–Newton's curvature."""
        slopes = self.quadratic.task.slopes(self.theta)
        return [V / slopes for V in self._reduced[1]]

    @cached_property
    def implicit_responses(self) -> list[np.ndarray]:
        """The same by the exact curvature."""
        q, slopes = self.quadratic, self.quadratic.task.slopes(self.theta)
        at = q.task.linearised(q.xi, q.betas, exact=True)
        return [
            BandedFactor(banded.without(part.band, held)).solve(np.where(held[:, None], 0.0, border)) / slopes
            for part, held, border in zip(at.parts, q.held, at.borders, strict=True)
        ]

    def marginal(self, sensitive: bool) -> Marginal:
        q = self.quadratic
        extra, by = q.task.priors(self.theta)
        value, slope, freedom = 0.5 * float(extra @ extra), by.T @ extra, np.zeros(len(self.theta))
        for program, part, given, held, moved in zip(
            q.task.programs, q.parts, q.given, q.held, q.task.moved, strict=True
        ):
            at, mine = laplace.marginal(program, part, given, held, sensitive=sensitive), list(moved)
            value += at.value
            slope[mine] += at.slope
            freedom[mine] += at.freedom
        return Marginal(value, slope, freedom)

    def misfit(self, cases: Sequence[Case], outputs: Sequence[str]) -> Misfit:
        return misfit_of(self.quadratic, outputs)

    def statistics(self, k: int, names: Any, covariance: np.ndarray, width: float) -> Statistics:
        quadratic = self._with_knots_at_samples(k)
        program, given = quadratic.task.programs[k], quadratic.given[k]
        times = program.record.times
        quantities = Quantities(program.record.stochastic, names)
        X, P, unknowns = moments(quadratic, k, times, covariance)
        u = program.record.table.along(times)
        block = quantities.statistics(times, X, P, np.zeros((len(times), 0)), u, given.q, width, unknowns=unknowns)
        return program.record.name, times, list(quantities.rows), block

    def _with_knots_at_samples(self, k: int) -> Quadratic:
        """With knots at every instant of an experiment, where those of the fit were placed by itself."""
        found = self.quadratic
        task, program, betas = found.task, found.task.programs[k], found.betas
        mesh = folded_at(program.mesh, program.record.times)
        if not self.placed or mesh is program.mesh:
            return found
        programs = list(task.programs)
        programs[k], betas[k] = on_mesh(program, mesh, betas[k])
        floors, ceilings = limits(programs) if len(task.floors) else ((), ())
        finer = replace(task, programs=programs, floors=floors, ceilings=ceilings)
        nothing = np.zeros(len(found.xi), dtype=bool)
        again = descent.minimize(finer, found.xi, betas, wanted=nothing, near=True, tolerance=INNER)
        return again.at if again.converged else found

    def arrays(self) -> dict[str, np.ndarray]:
        return {f"coefficients_{k}": beta for k, beta in enumerate(self.quadratic.betas)}


def moments(
    quadratic: Quadratic, k: int, times: np.ndarray, covariance: np.ndarray
) -> tuple[np.ndarray, np.ndarray, Uncertain]:
    """Of the states of experiment k: means (T, n), covariances (T, n, n) at fixed unknowns, how these move them."""
    program, part, given = quadratic.task.programs[k], quadratic.parts[k], quadratic.given[k]
    factors = quadratic.factors()
    carried = quadratic.reduced(factors)[2]
    held = quadratic.held[k]
    band = banded.without(factors[k].inverse_band, held)
    band[0, held] = 0.0
    local = program.mesh.at(times)
    P = local.phi @ banded.gathered(band, local.index) @ np.swapaxes(local.phi, 1, 2)
    slopes, mine = quadratic.task.slopes(quadratic.theta), np.array(quadratic.task.moved[k], dtype=int)
    moved, known = -carried[k] / slopes, np.isfinite(given.start)
    moved[np.ix_(program.mesh.first[known], mine)] += given.dstart[:, known].T
    dq = np.zeros((len(slopes), given.dq.shape[1]))
    dq[mine] = given.dq
    return local.values(part.beta), P, Uncertain(local.phi @ moved[local.index], dq, covariance)
