"""A chain as data that any process can carry on: where it is, what its warm-up has found, its random numbers.

``advance`` takes a chain a number of transitions further and returns it with what it drew. The numbers do not depend
on how many transitions are made at a time, nor by which process: the state of the random numbers travels along.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from grisaille.posteriors.kernel import Point, Target, Transition
from grisaille.posteriors.metric import Metric
from grisaille.posteriors.nuts import transition
from grisaille.posteriors.step_size import ACCEPTANCE, DualAveraging, first_step
from grisaille.posteriors.warm_up import OUTER_SHARE, learned_covariance, window_ends
from grisaille.study.seeds import run_seed

START_SPREAD = 1.5
"""Standard deviations of the points where chains begin, in those of the metric: wider than the posterior."""
START_TRIES = 100


@dataclass(frozen=True)
class SamplingOptions:
    """How chains are drawn.

    draws, tune : transitions that are kept of each chain, and those of its warm-up
    acceptance : the mean acceptance that the step is chosen for
    """

    draws: int
    tune: int
    acceptance: float = ACCEPTANCE


@dataclass(frozen=True, eq=False)
class Chain:
    """A chain between two transitions.

    number, seed : which one it is
    done : transitions so far, those of the warm-up first
    z, log_density, gradient : the point, in the coordinates of the metric
    step : the search of the step
    window : draws z of the window that is going on
    generator : the state of its random numbers
    corrections : how often the metric was corrected
    """

    number: int
    seed: int
    done: int
    metric: Metric
    z: np.ndarray
    log_density: float
    gradient: np.ndarray
    step: DualAveraging
    window: tuple[np.ndarray, ...]
    generator: Mapping[str, Any]
    corrections: int = 0

    def as_data(self) -> dict[str, Any]:
        """Return numbers, texts and lists of them, exact to the last bit."""
        return {
            "number": self.number, "seed": self.seed, "done": self.done, "centre": self.metric.centre.tolist(),
            "factor": self.metric.factor.tolist(), "z": self.z.tolist(), "log_density": self.log_density,
            "gradient": self.gradient.tolist(), "step": asdict(self.step),
            "window": [z.tolist() for z in self.window], "generator": self.generator, "corrections": self.corrections,
        }  # fmt: skip

    @classmethod
    def of_data(cls, data: Mapping[str, Any]) -> Chain:
        """Return the chain that ``as_data`` wrote down."""
        centre, factor, z, gradient = (
            np.array(data[name], dtype=float) for name in ("centre", "factor", "z", "gradient")
        )
        window = tuple(np.array(z, dtype=float) for z in data["window"])
        return cls(
            data["number"], data["seed"], data["done"], Metric(centre, factor), z, data["log_density"], gradient,
            DualAveraging(**data["step"]), window, data["generator"], data["corrections"],
        )  # fmt: skip


@dataclass(frozen=True, eq=False)
class Block:
    """What some transitions of a chain drew; rows are transitions.

    xi : (n, unknowns), in unbounded coordinates
    log_density, acceptance, energy, step, evaluations, depth : (n,)
    diverging : (n,), whether the trajectory diverged, and ``divergences`` where, (number of them, unknowns)
    """

    xi: np.ndarray
    log_density: np.ndarray
    acceptance: np.ndarray
    energy: np.ndarray
    step: np.ndarray
    evaluations: np.ndarray
    depth: np.ndarray
    diverging: np.ndarray
    divergences: np.ndarray

    def as_data(self) -> dict[str, Any]:
        """Return lists of numbers."""
        return {name: value.tolist() for name, value in vars(self).items()}

    @classmethod
    def of_data(cls, data: Mapping[str, Any], unknowns: int) -> Block:
        """Return the block that ``as_data`` wrote down."""
        kinds: dict[str, Any] = {"evaluations": int, "depth": int, "diverging": bool}
        arrays = {n: np.array(data[n], dtype=kinds.get(n, float)) for n in cls.__dataclass_fields__}
        return cls(**{n: a.reshape(-1, unknowns) if n in ("xi", "divergences") else a for n, a in arrays.items()})

    @classmethod
    def joined(cls, blocks: list[Block]) -> Block:
        """Return blocks that follow each other as one."""
        return cls(**{n: np.concatenate([getattr(b, n) for b in blocks]) for n in cls.__dataclass_fields__})


def begin_chain(target: Target, metric: Metric, number: int, seed: int) -> Chain | None:
    """Return a chain before its first transition; None where no point around the centre has a density.

    metric : around whose centre chains begin, more widely than it expects the posterior to be
    seed : of the whole posterior; each chain has numbers of its own
    """
    own = run_seed(seed, number)
    rng = np.random.Generator(np.random.PCG64(own))
    density = metric.density(target)
    for attempt in range(START_TRIES):
        # nearer to the centre the more often there was no density
        z = START_SPREAD * 0.9**attempt * rng.standard_normal(len(metric.centre))
        value, gradient = density(z)
        if value > -np.inf and np.isfinite(gradient).all():
            step, _ = first_step(density, Point(z, value, gradient), rng)
            search = DualAveraging.beginning(step)
            return Chain(number, own, 0, metric, z, value, gradient, search, (), rng.bit_generator.state)
    return None


def advance(target: Target, chain: Chain, transitions: int, options: SamplingOptions) -> tuple[Chain, Block]:
    """Return a chain after some more transitions, and what they drew."""
    moving = _MovingChain(target, chain, options)
    for _ in range(transitions):
        moving.move()
    return moving.chain(), moving.block()


class _MovingChain:
    """A chain while it makes transitions."""

    def __init__(self, target: Target, begun: Chain, options: SamplingOptions) -> None:
        self.target, self.begun, self.options = target, begun, options
        self.rng = np.random.Generator(np.random.PCG64())
        self.rng.bit_generator.state = begun.generator
        self.ends, self.first = window_ends(options.tune), options.tune // OUTER_SHARE
        self.done, self.corrections, self.window = begun.done, begun.corrections, list(begun.window)
        self.metric, self.search = begun.metric, begun.step
        self.density = self.metric.density(target)
        self.point = Point(begun.z, begun.log_density, begun.gradient)
        self.made: list[Transition] = []
        self.steps: list[float] = []
        self.places: list[np.ndarray] = []
        self.failed: list[np.ndarray] = []

    def move(self) -> None:
        """Make one transition."""
        is_tuning = self.done < self.options.tune
        step = self.search.step if is_tuning else self.search.found
        found = transition(self.density, self.point, step, self.rng)
        self.point = found.point
        self.made.append(found)
        self.steps.append(step)
        self.places.append(self.metric.outer(found.point.z))
        if found.diverged is not None:
            self.failed.append(self.metric.outer(found.diverged))
        if is_tuning:
            self._learn(found)
        self.done += 1

    def _learn(self, found: Transition) -> None:
        """Search the step, and test the metric where a window ends."""
        self.search = self.search.learned(found.acceptance, self.options.acceptance)
        if self.ends and self.first <= self.done < self.ends[-1]:
            self.window.append(found.point.z)
        if self.done + 1 in self.ends:
            covariance = learned_covariance(self.window, self.corrections > 0)
            self.window = []
            if covariance is not None:
                self._correct(covariance)

    def _correct(self, covariance: np.ndarray) -> None:
        """Go on in a corrected metric, with a new search of the step."""
        xi = self.metric.outer(self.point.z)
        self.metric, self.corrections = self.metric.corrected(covariance), self.corrections + 1
        self.density = self.metric.density(self.target)
        z = self.metric.inner(xi)
        self.point = Point(z, *self.density(z))
        step, _ = first_step(self.density, self.point, self.rng, self.search.found)
        self.search = DualAveraging.beginning(step)

    def chain(self) -> Chain:
        """Return the chain as it is now."""
        return replace(
            self.begun, done=self.done, metric=self.metric, z=self.point.z, log_density=self.point.log_density,
            gradient=self.point.gradient, step=self.search, window=tuple(self.window),
            generator=self.rng.bit_generator.state, corrections=self.corrections,
        )  # fmt: skip

    def block(self) -> Block:
        """Return what was drawn."""
        n, made = len(self.point.z), self.made
        return Block(
            np.array(self.places).reshape(-1, n), np.array([t.point.log_density for t in made]),
            np.array([t.acceptance for t in made]), np.array([t.energy for t in made]), np.array(self.steps),
            np.array([t.evaluations for t in made], dtype=int), np.array([t.depth for t in made], dtype=int),
            np.array([t.diverged is not None for t in made], dtype=bool), np.array(self.failed).reshape(-1, n),
        )  # fmt: skip
