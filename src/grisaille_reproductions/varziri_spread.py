"""What many fits of one plan say about a method: bias, error, spread, coverage; several methods side by side.

Every method sees the same data sets (same seed). Bias is told in standard deviations of the estimates. Statistics are
over the fits that converged; how many did not is counted beside them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

import grisaille as gr
from grisaille_reproductions.comparison import Row, Size, new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from grisaille.estimation.estimator import Estimator
    from grisaille.results.monte_carlo import MonteCarlo
    from grisaille_reproductions.registry import Workers


SEED = 2008
Shown = float | str


@dataclass(frozen=True)
class Symbol:
    """How the source writes an unknown: its letter, with the unit it is given in."""

    text: str
    factor: float = 1.0


SYMBOLS = {
    "a": Symbol("a [1e6]", 1e-6),
    "b": Symbol("b"),
    "E_R": Symbol("E/R [1000 K]", 1e-3),
    "k_ref": Symbol("k_ref [1/min]"),
    "start(C_A)": Symbol("C_A(0) [kmol/m³]"),
    "start(T)": Symbol("T(0) [K]"),
}


@dataclass(frozen=True)
class Question:
    """What every method is asked: unknowns of a model, on data that are simulated at the instants of a plan."""

    model: gr.Model
    plan: gr.Experiment
    unknowns: Sequence[str]
    guess: Mapping[str, float]
    step: float


def run_studies(
    asked: Question, methods: Mapping[str, Estimator], runs: int | Mapping[str, int], *, size: Size, name: str,
    folder: Path | None, executor: Workers,
) -> dict[str, MonteCarlo]:  # fmt: skip
    """Run one study per method, all of the same data sets; in a folder each is kept, and continues where it stopped."""
    where = "serial" if executor is None and size == "small" else executor
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
    found = {}
    for label, method in methods.items():
        count = runs if isinstance(runs, int) else runs[label]
        store = None if folder is None else folder / f"{name}-{label.replace(' ', '-').replace(',', '')}.db"
        found[label] = gr.monte_carlo(
            asked.model, asked.plan, asked.unknowns, method, runs=count, seed=SEED, step=asked.step,
            guess=asked.guess, store=store, executor=where,
        )  # fmt: skip
    return found


def accuracy(study: MonteCarlo, left_out: Sequence[int] = ()) -> pd.DataFrame:
    """One row per unknown: bias (also in standard deviations), standard deviation, root-mean-square error,
    inter-quartile range, mean standard error, and the share of 95 % intervals that hold the truth."""
    told = study.summary(0.95, left_out).table
    error = study.estimates[_used(study, left_out)] - study.truth
    return pd.DataFrame(
        {
            "bias": told["bias"],
            "bias_in_std": told["bias"] / told["std"],
            "std": told["std"],
            "rms": np.sqrt((error**2).mean()),
            "iqr": error.quantile(0.75) - error.quantile(0.25),
            "std_error": told["mean_std_error"],
            "coverage": told["coverage"],
        }
    )


def _used(study: MonteCarlo, left_out: Sequence[int]) -> pd.Series[bool]:
    return study.table["converged"] & ~study.table.index.isin(list(left_out))


def side_by_side(
    studies: Mapping[str, MonteCarlo], names: Sequence[str], errors: Mapping[str, Shown], left_out: Sequence[int] = ()
) -> list[Row]:
    """The methods' numbers in one cell each, in the order of the first row.

    errors : published standard errors by name
    left_out : runs that do not count
    """
    tables = {label: accuracy(study, left_out) for label, study in studies.items()}
    rows = [
        Row("methods, in the order of the numbers", " | ".join(studies)),
        Row("converged", " | ".join(f"{s.counts['converged']} of {len(s)}" for s in studies.values())),
    ]

    def cell(name: str, column: str, factor: float, shape: str) -> str:
        return " | ".join(f"{factor * t.loc[name, column]:{shape}}" for t in tables.values())

    for name in names:
        symbol = SYMBOLS[name]
        rows += [
            Row(f"{symbol.text}: bias in standard deviations", cell(name, "bias_in_std", 1.0, "+.2f")),
            Row(f"{symbol.text}: root-mean-square error", cell(name, "rms", symbol.factor, ".3g")),
            Row(f"{symbol.text}: inter-quartile range", cell(name, "iqr", symbol.factor, ".3g")),
            Row(f"{symbol.text}: mean standard error", cell(name, "std_error", symbol.factor, ".3g"), errors.get(name)),
            Row(f"{symbol.text}: 95 % intervals that hold the truth [%]", cell(name, "coverage", 100.0, ".0f")),
        ]
    return rows


def standard_error(lower: float, upper: float) -> float:
    """Of a published 95 % interval."""
    return (upper - lower) / (2 * 1.959964)


def endings(studies: Mapping[str, MonteCarlo]) -> list[str]:
    """Fits that failed or did not converge, with their seeds."""
    told = []
    for label, study in studies.items():
        lost = study.table[~study.table["converged"]]
        if len(lost):
            seeds = ", ".join(str(s) for s in lost["seed"].head(5))
            told.append(f"{label}: {len(lost)} of {len(study)} fits did not converge (seeds {seeds}).")
    return told


def box_plots(studies: Mapping[str, MonteCarlo], names: Sequence[str], left_out: Sequence[int] = ()) -> Figure:
    """One panel per unknown, one box per method, the truth as a line."""
    figure, axes = new_figure(1, len(names), width=1.2 + 0.8 * len(studies))
    for axis, name in zip(axes, names, strict=True):
        symbol = SYMBOLS[name]
        samples = [symbol.factor * s.estimates[name][_used(s, left_out)].to_numpy() for s in studies.values()]
        axis.boxplot(samples, tick_labels=list(studies), widths=0.6)
        truth = float(next(iter(studies.values())).truth[name])
        axis.axhline(symbol.factor * truth, linestyle=":", color="0.4")
        axis.set_title(symbol.text)
        axis.tick_params("x", rotation=30)
    return figure
