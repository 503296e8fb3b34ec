"""Solved trajectories as splines: their predictions of samples and states.

The covariance of the states at an instant comes from the curvature A of the criterion by the trajectories, and from
the covariance C of the estimates,

    P = φ (A⁻¹ + A⁻¹B C BᵀA⁻¹) φᵀ,

of A⁻¹ only entries inside the band. Between knots a spline is stiffer than the path of a disturbed state, and its band
too narrow, by up to an eighth: where knots are placed automatically, instants without a measurement get knots of their
own before a band is drawn there.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from grisaille.collocation import arrow_descent, banded, laplace
from grisaille.collocation.arrow_descent import ArrowQuadratic
from grisaille.collocation.banded import BandedFactor
from grisaille.collocation.knots import folded_at
from grisaille.collocation.laplace import Marginal
from grisaille.estimation.quantities import Quantities, StateMoments, UncertainUnknowns
from grisaille.estimators.collocation.trajectory_basis import Solution, Statistics, TrajectoryPredictions

if TYPE_CHECKING:
    from collections.abc import Sequence

TRAJECTORY_GAIN = 1e-13
"""Predicted gain, relative to 1 + J, at which trajectories count as solved for given unknowns."""


@dataclass(eq=False, kw_only=True)
class SplineSolution(Solution):
    """Where a descent stopped."""

    at: ArrowQuadratic
    placed: bool
    """Whether knots were placed automatically."""

    def free(self) -> np.ndarray:
        every = np.ones(len(self.theta), dtype=bool)
        return np.asarray(self.at.free(every) | (np.diag(self.at.corner) <= 0))

    def least(self) -> tuple[np.ndarray, np.ndarray]:
        slopes = self.at.task.slopes(self.theta)
        return self.at.slope / slopes, self._reduced[0] / np.outer(slopes, slopes)

    @property
    def has_exact_priors(self) -> bool:
        return self.at.exact

    def seen(self, k: int, implicit: bool) -> TrajectoryPredictions:
        program, part = self.at.task.programs[k], self.at.parts[k]
        moved = self._moved(k, self.implicit_responses if implicit else self.responses)
        jacobian = part.data.by_beta @ moved[program.samples.local.index]
        jacobian[:, :, list(self.at.task.moved[k])] += part.data.by_theta
        y, outputs = program.record.y, program.record.outputs
        residuals, rows = np.zeros(y.shape), np.zeros((*y.shape, len(self.theta)))
        residuals[program.seen], rows[program.seen] = part.data.residuals, jacobian
        return TrajectoryPredictions(outputs, y - part.errors, part.errors, residuals, rows)

    def _moved(self, k: int, responses: list[np.ndarray]) -> np.ndarray:
        """Return ∂β/∂θ of experiment k, known values at the first instant moving along."""
        moved = -responses[k]
        moved[:, list(self.at.task.moved[k])] += self.at.task.programs[k].start_slopes(self.at.given[k])
        return moved

    def explained(self, k: int) -> np.ndarray:
        q, program, B = self.at, self.at.task.programs[k], self.at.parts[k].data.by_beta
        free, slopes = q.free(np.ones(len(q.xi), dtype=bool)), q.task.slopes(self.theta)
        total = (B @ banded.gather_blocks(self._scatter(k), program.samples.local.index) * B).sum(axis=2)
        # the unknowns' share: the samples move with them
        inverse = np.linalg.pinv(self._reduced[0][np.ix_(free, free)], hermitian=True)
        along = (self.seen(k, False).jacobian[program.seen] * slopes)[:, :, free]
        total += np.einsum("krp,pq,krq->kr", along, inverse, along)
        found = np.zeros(program.record.y.shape)
        found[program.seen] = total
        return found

    def _scatter(self, k: int) -> np.ndarray:
        """Return the inverse of the curvature of experiment k by its coefficients, inside the band."""
        return banded.mask_held(self.factors[k].inverse_band, self.at.held[k])

    @cached_property
    def factors(self) -> list[BandedFactor]:
        return self.at.factors()

    @cached_property
    def _reduced(self) -> tuple[np.ndarray, list[np.ndarray]]:
        S, _, carried, _ = self.at.reduced(self.factors)
        return S, carried

    @property
    def responses(self) -> list[np.ndarray]:
        """−dβ̂/dθ of every experiment, by Gauss–Newton's curvature."""
        slopes = self.at.task.slopes(self.theta)
        return [V / slopes for V in self._reduced[1]]

    @cached_property
    def implicit_responses(self) -> list[np.ndarray]:
        """Return the same by the exact curvature."""
        q, slopes = self.at, self.at.task.slopes(self.theta)
        at = q.task.linearised(q.xi, q.betas, exact=True)
        return [
            BandedFactor(part.band, held).solve(np.where(held[:, None], 0.0, border)) / slopes
            for part, held, border in zip(at.parts, q.held, at.borders, strict=True)
        ]

    def marginal(self, sensitive: bool) -> Marginal:
        prior = self.at.task.priors(self.theta)
        value, slope, freedom = prior.value, prior.gradient, np.zeros(len(self.theta))
        for own in self.marginals(sensitive):
            value, slope, freedom = value + own.value, slope + own.slope, freedom + own.freedom
        return Marginal(value, slope, freedom)

    def marginals(self, sensitive: bool) -> list[Marginal]:
        q, found = self.at, []
        for program, part, given, held, moved in zip(
            q.task.programs, q.parts, q.given, q.held, q.task.moved, strict=True
        ):
            at, mine = laplace.marginal(program, part, given, held, sensitive=sensitive), list(moved)
            slope, freedom = np.zeros((2, len(self.theta)))
            slope[mine], freedom[mine] = at.slope, at.freedom
            found.append(Marginal(at.value, slope, freedom))
        return found

    def statistics(self, k: int, names: Sequence[str] | None, covariance: np.ndarray, width: float) -> Statistics:
        found = self._with_knots_at_samples(k)
        program, given = found.at.task.programs[k], found.at.given[k]
        times = program.record.times
        quantities = Quantities(program.record.stochastic, names)
        X, P, unknowns = found.moments(k, times, covariance)
        u = program.record.table.along(times)
        states, no_z = StateMoments(X, P), np.zeros((len(times), 0))
        block = quantities.statistics(times, states, no_z, u, given.q, width, unknowns=unknowns)
        return program.record.name, times, list(quantities.rows), block

    def _with_knots_at_samples(self, k: int) -> SplineSolution:
        """Return the solution with knots at every instant of an experiment, where those of the fit were placed
        automatically.
        """
        at, task, program, betas = self.at, self.at.task, self.at.task.programs[k], self.at.betas
        mesh = folded_at(program.mesh, program.record.times)
        if not self.placed or mesh is program.mesh:
            return self
        programs = list(task.programs)
        programs[k], betas[k] = program.moved_to(mesh, betas[k])
        finer = replace(task, programs=programs, limits=[p.limits for p in programs] if task.limits else [])
        nothing = np.zeros(len(at.xi), dtype=bool)
        again = arrow_descent.minimize(finer, at.xi, betas, wanted=nothing, near=True, tolerance=TRAJECTORY_GAIN)
        return SplineSolution.of(again, placed=True) if again.converged else self

    def moments(
        self, k: int, times: np.ndarray, covariance: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, UncertainUnknowns]:
        """Return, for the states of experiment k, means (T, n), covariances (T, n, n) at fixed unknowns, and their
        sensitivities.
        """
        task, given = self.at.task, self.at.given[k]
        program, mine = task.programs[k], list(task.moved[k])
        local = program.mesh.at(times)
        P = local.phi @ banded.gather_blocks(self._scatter(k), local.index) @ np.swapaxes(local.phi, 1, 2)
        moved, dq = self._moved(k, self.responses), np.zeros((len(self.theta), given.dq.shape[1]))
        dq[mine] = given.dq
        return local.values(self.at.parts[k].beta), P, UncertainUnknowns(local.phi @ moved[local.index], dq, covariance)

    def held_states(self) -> list[str]:
        q, names = self.at, {}
        for k, (program, part, given) in enumerate(zip(q.task.programs, q.parts, q.given, strict=True)):
            held = q.on_bounds(k, part) & ~program.held(given)
            model = program.record.stochastic
            for name, place in zip(model.names[: model.nx], program.mesh.places, strict=False):
                if held[place].any():
                    names[name] = True
        return list(names)

    def arrays(self) -> dict[str, np.ndarray]:
        return {f"coefficients_{k}": beta for k, beta in enumerate(self.at.betas)}
