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
    rng = np.random.Generator(np.random.PCG64())
    rng.bit_generator.state = chain.generator
    metric, search = chain.metric, chain.step
    density, point = metric.density(target), Point(chain.z, chain.log_density, chain.gradient)
    ends, first = window_ends(options.tune), options.tune // OUTER_SHARE
    window, corrections = list(chain.window), chain.corrections
    made: list[Transition] = []
    places: list[np.ndarray] = []
    failed: list[np.ndarray] = []
    steps: list[float] = []
    for number in range(chain.done, chain.done + transitions):
        is_tuning = number < options.tune
        steps.append(search.step if is_tuning else search.found)
        found = transition(density, point, steps[-1], rng)
        made.append(found)
        point = found.point
        places.append(metric.outer(point.z))
        if found.diverged is not None:
            failed.append(metric.outer(found.diverged))
        if not is_tuning:
            continue
        search = search.learned(found.acceptance, options.acceptance)
        if ends and first <= number < ends[-1]:
            window.append(point.z)
        if number + 1 in ends:
            learned = learned_covariance(window, corrections > 0)
            window = []
            if learned is not None:
                xi = metric.outer(point.z)
                metric, corrections = metric.corrected(learned), corrections + 1
                density, z = metric.density(target), metric.inner(xi)
                point = Point(z, *density(z))
                search = DualAveraging.beginning(first_step(density, point, rng, search.found)[0])
    block = Block(
        np.array(places).reshape(len(made), -1), np.array([t.point.log_density for t in made]),
        np.array([t.acceptance for t in made]), np.array([t.energy for t in made]), np.array(steps),
        np.array([t.evaluations for t in made], dtype=int), np.array([t.depth for t in made], dtype=int),
        np.array([t.diverged is not None for t in made], dtype=bool),
        np.array(failed).reshape(-1, len(point.z)),
    )  # fmt: skip
    after = replace(
        chain, done=chain.done + transitions, metric=metric, z=point.z, log_density=point.log_density,
        gradient=point.gradient, step=search, window=tuple(window), generator=rng.bit_generator.state,
        corrections=corrections,
    )  # fmt: skip
    return after, block
