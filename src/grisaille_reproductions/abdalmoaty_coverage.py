"""Whether 95 % intervals of the simulated prediction error method hold the truth in 95 % of all cases.

The pendulum of the program with a stronger input and shorter records, so that k is known to some percent and the
estimator is nearly normal; every data set is fitted by ``gr.SimulatedPEM``. The errors of one record are correlated
over seconds, so intervals that take them as independent are far too short: those of output error are shown beside.
Judged by an exact binomial test: nominal coverage is refused below p = 0.1 %.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.stats import binomtest

import grisaille as gr
from grisaille_reproductions.abdalmoaty import PROGRAM, SPACING, TRUTH, times
from grisaille_reproductions.comparison import Reproduction, Row, Size, new_figure, save_figures

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from grisaille.results.monte_carlo import MonteCarlo
    from grisaille_reproductions.registry import Workers


STUDY = replace(PROGRAM, name="coverage", input_scale=1.0)
EVERY, SKIP = 5, 100
STEP = EVERY * SPACING
LEVEL, REFUSED = 0.95, 1e-3


def coverage(
    size: Size, folder: Path | None, executor: Workers, data_sets: int | None = None, samples: int | None = None,
    realizations: int | None = None,
) -> Reproduction:  # fmt: skip
    """Hits of the intervals and the exact test; numbers replace those of the size."""
    runs, n, count = (400, 1000, 50) if size == "full" else (8, 400, 10)
    runs, n, count = data_sets or runs, samples or n, realizations or count
    methods = {
        "SimulatedPEM": gr.SimulatedPEM(realizations=count, step=STEP, rtol=1e-4),
        "output error": gr.OutputError(),
    }
    options: dict[str, Any] = {"runs": runs, "seed": 11, "executor": executor or "serial", "bounds": {"k": (1.0, 30.0)}}
    studies = {name: gr.monte_carlo(STUDY.model(), plan(n), ["k"], m, **options) for name, m in methods.items()}
    rows = [row for name, study in studies.items() for row in _rows(name, study.summary(LEVEL).table.loc["k"])]
    lost = runs - int(studies["SimulatedPEM"].table["converged"].sum())
    notes = [
        f"{runs} data sets of {n} samples, {count} realizations; coverage is refused where p < {100 * REFUSED:g} %.",
        "Output error takes its errors as independent and leaves the disturbance's mean to k.",
    ]
    notes += [f"{lost} runs did not converge."] if lost else []
    figures = {} if folder is None else {"coverage": _figure(studies["SimulatedPEM"])}
    return Reproduction(
        "Pendulum, coverage of 95 % intervals", tuple(rows), tuple(notes), save_figures(figures, folder)
    )


def plan(samples: int) -> gr.Experiment:
    """An experiment without its measurements; its input bends only where the disturbance is drawn."""
    t = times(samples)
    inputs = {name: (at[::EVERY], path[::EVERY]) for name, (at, path) in STUDY.inputs(samples).items()}
    return gr.Experiment(t, inputs, {"phi": np.zeros(t.size)}, hold="foh", skip=SKIP, name="coverage")


def _rows(method: str, told: Any) -> list[Row]:
    hits, count = int(told["hits"]), int(told["intervals"])
    p = float(binomtest(hits, count, LEVEL).pvalue)
    return [
        Row(f"{method}: mean of k [kg/m]", float(told["mean"]), None, TRUTH),
        Row(f"{method}: std of k [kg/m]", float(told["std"])),
        Row(f"{method}: mean of the standard errors [kg/m]", float(told["mean_std_error"])),
        Row(f"{method}: intervals that hold the truth", f"{hits} of {count}"),
        Row(f"{method}: share of them [%]", 100 * hits / max(count, 1), None, 100 * LEVEL),
        Row(f"{method}: p of the exact test", p),
        Row(f"{method}: nominal coverage", "refused" if p < REFUSED else "not refused"),
    ]


def _figure(study: MonteCarlo) -> Figure:
    figure, (axis,) = new_figure(width=7.0)
    table = study.table.sort_values("k")
    k, error = table["k"].to_numpy(), 1.96 * table["std_error(k)"].to_numpy()
    inside = np.abs(k - TRUTH) <= error
    at = np.arange(k.size)
    for chosen, colour in ((inside, "0.6"), (~inside, "tab:red")):
        axis.vlines(at[chosen], (k - error)[chosen], (k + error)[chosen], color=colour, linewidth=0.6)
    axis.axhline(TRUTH, linestyle=":", color="0.2")
    axis.set(xlabel="data set, ordered", ylabel="k and its interval [kg/m]")
    return figure
