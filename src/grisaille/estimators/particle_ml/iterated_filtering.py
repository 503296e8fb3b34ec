"""Iterated filtering: unknowns that walk with the particles, in steps that shrink from pass to pass.

Each particle has values of its own, which take a random step at every sample and are drawn again with the states; what
survives lies where the likelihood is large. It needs no derivatives and no start near the maximum. Starts of states
walk at the first instant alone. Reference: E. L. Ionides, D. Nguyen, Y. Atchadé, S. Stoev, A. A. King, Proc. Natl.
Acad. Sci. 112 (2015) 719.
"""

from __future__ import annotations

from dataclasses import dataclass

import casadi as ca
import numpy as np

from grisaille.bound_experiment.unknown import Unknown
from grisaille.compilation.particles import CHARTS, Walk
from grisaille.errors import EstimationError
from grisaille.estimation.experiment_terms import ExperimentTerm
from grisaille.estimation.likelihood import own_theta_and_steps
from grisaille.estimators.particle_ml.particle_problem import ParticleProblem
from grisaille.optimization.journal import SearchJournal
from grisaille.optimization.scaled import Scaled

START_SHARE = 0.3
"""Of the walk over a pass, for what acts at the start alone."""
INSIDE = 1e-6
"""Of a range: how near to its ends what walks may begin."""


@dataclass(frozen=True)
class Cooling:
    """How steps shrink: by ``factor`` over fifty passes, within a pass sample by sample.

    deviation : of the walk over a whole pass at the beginning, in sizes of the unknowns
    """

    passes: int = 40
    deviation: float = 0.3
    factor: float = 0.5

    def at(self, progress: np.ndarray) -> np.ndarray:
        """Return deviations after so many passes."""
        return np.asarray(self.deviation * self.factor ** (progress / 50.0))


class IteratedFiltering(Scaled):
    """Passes over all experiments of a problem."""

    def __init__(self, problem: ParticleProblem, cooling: Cooling, journal: SearchJournal) -> None:
        self.problem, self.unknowns, self.cooling, self.journal = problem, problem.unknowns, cooling, journal
        charts = [_chart(u) for u in self.unknowns]
        self.charts = np.array([CHARTS.index(c) for c in charts])

    def run(self, theta: np.ndarray, seed: int) -> np.ndarray:
        """Return θ after all passes."""
        particles = self._particles()
        swarm = np.repeat(self._inward(theta)[None], particles, axis=0)
        for k in range(self.cooling.passes):
            for case in self.problem.discretised_problem.cases:
                swarm = self._pass(case, swarm, k, seed + 104_729 * (k + 1))
            self.journal.add()
            self.journal.reach(self._outward(swarm.mean(axis=0)))
        return self._outward(swarm.mean(axis=0))

    def _particles(self) -> int:
        steps = self.problem.discretised_problem.cases[0].discretisation
        return int(2 * -(-getattr(steps, "particles", 1000) // 2))

    def _pass(self, case: ExperimentTerm, swarm: np.ndarray, number: int, seed: int) -> np.ndarray:
        mine = list(case.unknowns)
        theta = self._outward(swarm.mean(axis=0))
        own, steps = own_theta_and_steps(case, theta)
        runner = case.runner
        point = runner.trial.at(own, runner.form)
        N, n = len(runner.trial.times), len(mine)
        progress = number + np.arange(N + 1) / (N + 1)
        deviations = np.repeat(self.cooling.at(progress)[:, None] / np.sqrt(N + 1), n, axis=1)
        is_start = np.array([self._acts_at_start(case, k) for k in mine])
        deviations[1:, is_start] = 0.0
        # one step has to do there what the others do in many
        deviations[0, is_start] *= np.sqrt(N + 1) * START_SHARE
        deviations *= self._sizes(theta)[mine]
        size = runner.particle_filter(steps, own, seed).formulas.s.numel()
        dstart = np.zeros((n, int(size)))
        sx, sz = point.dstart.sx, point.dstart.sz
        dstart[:, : sx.shape[1]] = sx
        dstart[:, runner.filter.model.n : runner.filter.model.n + sz.shape[1]] = sz
        walk = Walk(
            swarm[:, mine], deviations, self.charts[mine],
            np.array([(self.unknowns[k].lower, self.unknowns[k].upper) for k in mine]), own, point.dq, dstart,
        )  # fmt: skip
        answer = runner.walked(own, steps, seed, walk)
        if answer.failed != -1:
            raise EstimationError(f"experiment '{case.name}': {runner._reason(answer.failed)}")
        assert answer.coordinates is not None
        moved = swarm.copy()
        moved[:, mine] = answer.coordinates
        return moved

    def _sizes(self, theta: np.ndarray) -> np.ndarray:
        """Return the deviation of a step in walking coordinates that is one of an unknown's own size."""
        return np.array([_step_size(u, float(v)) for u, v in zip(self.unknowns, theta, strict=True)])

    def _acts_at_start(self, case: ExperimentTerm, k: int) -> bool:
        """Whether an unknown says where states begin and nothing else: it then walks at the first instant alone."""
        unknown = self.unknowns[k]
        if unknown.kind != "parameter":
            return unknown.kind == "start"
        model = case.runner.filter.model
        if unknown.target not in model.quantities:
            return False
        symbol = model.q[model.quantities.index(unknown.target)]
        formulas = (model.drift, model.noise, model.measured, model.variance, model.residual, model.constraints)
        return not any(ca.depends_on(ca.vec(ca.densify(f)), symbol) for f in formulas if f.numel())

    def _inward(self, theta: np.ndarray) -> np.ndarray:
        return np.array([_inward(u, v) for u, v in zip(self.unknowns, theta, strict=True)])

    def _outward(self, walking: np.ndarray) -> np.ndarray:
        found = [_outward(u, v) for u, v in zip(self.unknowns, walking, strict=True)]
        return np.asarray(np.clip(found, *self.bounds))


def _chart(u: Unknown) -> str:
    if np.isfinite(u.lower) and np.isfinite(u.upper) and u.lower < u.guess < u.upper and not u.logarithmic:
        return "logistic" if u.guess != 0 or u.lower < 0 else "identity"
    return "exponential" if u.logarithmic else "identity"


def _step_size(u: Unknown, value: float) -> float:
    """Return the size of an unknown over dθ/dw, the slope of its walking coordinate."""
    kind, size = _chart(u), max(u.size, abs(value))
    if kind == "logistic":
        slope = (value - u.lower) * (u.upper - value) / (u.upper - u.lower)
        return size / max(slope, INSIDE * (u.upper - u.lower))
    return 1.0 if kind == "exponential" else size


def _inward(u: Unknown, value: float) -> float:
    kind = _chart(u)
    if kind == "exponential":
        return float(np.log(value))
    if kind == "identity":
        return value
    margin = INSIDE * (u.upper - u.lower)
    inside = min(max(value, u.lower + margin), u.upper - margin)
    return float(np.log((inside - u.lower) / (u.upper - inside)))


def _outward(u: Unknown, walking: float) -> float:
    kind = _chart(u)
    if kind == "exponential":
        return float(np.exp(walking))
    return float(u.lower + (u.upper - u.lower) / (1 + np.exp(-walking))) if kind == "logistic" else walking
