"""Draws of all chains as arrays, before they are labelled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from grisaille.posteriors.chain import Block, Chain, SamplingOptions

STATISTICS = {
    "lp": "log_density",
    "acceptance_rate": "acceptance",
    "energy": "energy",
    "step_size": "step",
    "n_steps": "evaluations",
    "tree_depth": "depth",
    "diverging": "diverging",
}
"""The names that ArviZ has for what is recorded of transitions, and those of ``Block``."""


@dataclass(frozen=True, eq=False)
class PosteriorDraws:
    """What chains have drawn after their warm-up.

    theta, xi : (chains, draws, unknowns), as the model has them and in unbounded coordinates
    statistics : (chains, draws) each, by the names of ``STATISTICS``
    divergences : (number, unknowns), ξ where trajectories diverged
    options : how they were drawn
    corrections : of each chain, how often its warm-up corrected the metric of the fit
    evaluations : of the density and its gradient, warm-up included
    """

    theta: np.ndarray
    xi: np.ndarray
    statistics: Mapping[str, np.ndarray]
    divergences: np.ndarray
    options: SamplingOptions
    corrections: tuple[int, ...]
    evaluations: int

    @classmethod
    def of(
        cls, blocks: Sequence[Block], chains: Sequence[Chain], theta: np.ndarray, options: SamplingOptions
    ) -> PosteriorDraws:
        """Return the draws of blocks that hold all transitions, one block for each chain.

        theta : of the draws, (chains, draws, unknowns)
        """
        kept = slice(options.tune, options.tune + options.draws)
        statistics = {name: np.array([getattr(b, field)[kept] for b in blocks]) for name, field in STATISTICS.items()}
        failed = [b.divergences[int(b.diverging[: options.tune].sum()) :] for b in blocks]
        return cls(
            theta, np.array([b.xi[kept] for b in blocks]), statistics, np.concatenate(failed), options,
            tuple(c.corrections for c in chains), int(sum(b.evaluations.sum() for b in blocks)),
        )  # fmt: skip
