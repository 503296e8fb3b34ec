"""What the two examples of the grey-box paper share: model, record, unknowns, and studies of many data sets.

N. R. Kristensen, H. Madsen, S. B. Jørgensen, Parameter estimation in stochastic grey-box models, Automatica 40 (2004)
225. Its tables rest on one data set each; here every table is a study of many, with the same model, truth, noise and
number of samples.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

import grisaille as gr
from grisaille_reproductions import kristensen_reactor, kristensen_wall
from grisaille_reproductions.comparison import Size

if TYPE_CHECKING:
    from grisaille.results.monte_carlo import MonteCarlo
    from grisaille_reproductions.registry import Workers


SEED = 2004


@dataclass(frozen=True, eq=False)
class Example:
    """One of the two examples."""

    title: str
    model: Callable[..., gr.Model]
    """Of the diffusion and, for low-pass noise, its bandwidth."""
    plan: Callable[..., list[gr.Experiment]]
    names: dict[str, str]
    diffusions: tuple[str, ...]
    watched: tuple[str, ...]
    """Symbols whose coverage is reported."""
    step: float
    bandwidth: float
    method: gr.KalmanML

    @property
    def unknowns(self) -> list[str]:
        return list(self.names.values())

    def guess(self, diffusion: float) -> dict[str, float] | None:
        """The truth; σ = 0.01 where there is no diffusion, as in Table 1."""
        return None if diffusion else self.start(0.01)

    def start(self, sigma: float) -> dict[str, float]:
        return dict.fromkeys(self.diffusions, sigma)

    def study(
        self, diffusion: float, runs: int, *, store: Path | None = None, executor: Workers = None, **plan: int
    ) -> MonteCarlo:  # fmt: skip
        """Many data sets under one diffusion, each fitted."""
        return gr.monte_carlo(
            self.model(diffusion), self.plan(**plan), self.unknowns, self.method, runs=runs, seed=SEED, step=self.step,
            guess=self.guess(diffusion), store=store, executor=executor,
        )  # fmt: skip

    def in_symbols(self, estimates: pd.DataFrame) -> pd.DataFrame:
        """Estimates under the tables' symbols; measurement noise as variance."""
        found = estimates[self.unknowns].set_axis(list(self.names), axis=1)
        variances = [symbol for symbol, name in self.names.items() if name.startswith("noise(")]
        return found.assign(**{symbol: found[symbol] ** 2 for symbol in variances})


REACTOR = Example(
    "Fed-batch reactor",
    kristensen_reactor.reactor,
    kristensen_reactor.plan,
    kristensen_reactor.NAMES,
    kristensen_reactor.DIFFUSIONS,
    ("μ_max", "K₁"),
    kristensen_reactor.STEP,
    kristensen_reactor.BANDWIDTH,
    kristensen_reactor.METHOD,
)
WALL = Example(
    "Wall",
    kristensen_wall.wall,
    kristensen_wall.plan,
    kristensen_wall.NAMES,
    kristensen_wall.DIFFUSIONS,
    ("G₁", "G₂", "H₁", "H₂", "H₃"),
    kristensen_wall.STEP,
    kristensen_wall.BANDWIDTH,
    kristensen_wall.METHOD,
)


def where(size: Size, executor: Workers) -> Workers:
    """Small studies run in this process."""
    return "serial" if executor is None and size == "small" else executor


def shelf(folder: Path | None, name: str) -> Path | None:
    """Where a study keeps its runs: in the folder of the figures."""
    if folder is None:
        return None
    folder.mkdir(parents=True, exist_ok=True)
    return folder / f"{name}.db"
