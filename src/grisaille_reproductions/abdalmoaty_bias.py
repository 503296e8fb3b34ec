"""The simulated prediction error estimator's bias: what few realizations do to it, and what long records do to it.

The mean of M simulations has the variance s²/M itself, which the plain criterion adds to the squared errors: its
minimum moves to where s² is small. Subtracting the estimated s²/M removes that. Estimates come from one interpolated
ensemble for all data sets (``abdalmoaty_curve``); few realizations are averaged over several ensembles. The settings
are those of the program.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from grisaille_reproductions.abdalmoaty import PROGRAM, SAMPLING, TRANSIENT, TRUTH
from grisaille_reproductions.abdalmoaty_curve import COUNT, CostCurve, trace_curve
from grisaille_reproductions.abdalmoaty_estimates import simulate_data
from grisaille_reproductions.comparison import Reproduction, Row, Shown, Size, new_figure, save_figures

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from grisaille_reproductions.registry import Workers


PUBLISHED: dict[tuple[int, str], Shown] = {(50_000, "bias"): "±0.034"}
EXPECTED = {
    (20, False): 0.50, (100, False): 0.16, (500, False): 0.09, (20, True): 0.05, (100, True): 0.07, (500, True): 0.07
}  # fmt: skip
"""Bias of k at N = 5000 by an independent program, with its own input path and data."""
QUIET = 2
"""Realizations of the undisturbed model: all are alike."""
POINTS: dict[Size, int] = {"full": COUNT, "small": 12}
"""Values of k between which means are interpolated; twelve leave them within 1e-3 standard deviations."""


def finite_ensembles(
    size: Size, folder: Path | None, executor: Workers, data_sets: int | None = None, samples: int | None = None,
    realizations: int | tuple[int, ...] | None = None,
) -> Reproduction:  # fmt: skip
    """Bias of k by the number of realizations, with and without the correction; numbers replace those of the size."""
    runs, n = (1000, 5000) if size == "full" else (60, 1500)
    runs, n = data_sets or runs, samples or n
    known = (20, 100, 500) if size == "full" else (10, 40)
    counts: tuple[int, ...] = tuple(np.atleast_1d(realizations or known).tolist())
    y = simulate_data(PROGRAM, runs, n)
    rows: list[Row] = []
    found: dict[str, np.ndarray] = {}
    for count in counts:
        ensembles = max(1, max(counts) // count)
        curves = [trace_curve(PROGRAM, n, count, count=POINTS[size], seed=1 + e) for e in range(ensembles)]
        for corrected in (False, True):
            each = np.array([c.fit(y, used(n), corrected=corrected) for c in curves])
            named = f"M = {count}, {'corrected' if corrected else 'plain'}"
            expected = EXPECTED.get((count, corrected)) if n == 5000 else None
            rows.append(Row(f"{named}: bias of k", float(each.mean() - TRUTH), None, expected))
            rows.append(Row(f"{named}: standard error of that", _standard_error(each, count)))
            found[named] = each.mean(axis=0)
    notes = [
        f"{runs} data sets of {n} samples; every M with {max(counts)} realizations in all, few in several ensembles.",
        "The theory column holds what an independent program found with another input and other data, to ±0.03.",
        "What the correction leaves does not come from M: it shrinks as records grow (abdalmoaty/consistency).",
    ]
    figures = {} if folder is None else {"finite-m": _boxes(found)}
    title = "Pendulum, bias by the number of realizations"
    return Reproduction(title, tuple(rows), tuple(notes), save_figures(figures, folder))


def consistency(
    size: Size, folder: Path | None, executor: Workers, data_sets: int | None = None, realizations: int | None = None,
    lengths: int | tuple[int, ...] | None = None,
) -> Reproduction:  # fmt: skip
    """Bias and spread of k against the length of the record, output error beside."""
    runs, count = (1000, 500) if size == "full" else (60, 40)
    known = (1000, 2000, 5000, 10_000, 20_000, 50_000) if size == "full" else (1000, 2000, 4000)
    runs, count = data_sets or runs, realizations or count
    each: tuple[int, ...] = tuple(np.atleast_1d(lengths or known).tolist())
    longest, points = max(each), POINTS[size]
    y = simulate_data(PROGRAM, runs, longest)
    curves = {"corrected": trace_curve(PROGRAM, longest, count, count=points), "output error": _quiet(longest, points)}
    found = {m: {n: c.fit(y, used(n)) for n in each} for m, c in curves.items()}
    rows = [row for m, by in found.items() for n, sample in by.items() for row in _against_length(m, n, sample)]
    off = curves["corrected"].distance(PROGRAM, TRUTH)
    notes = [
        f"{runs} data sets, {count} realizations, a transient of {TRANSIENT} samples left out.",
        f"The interpolated mean is {off:.1e} of the output's standard deviation off the simulated one.",
        "The spread times the root of the samples used settles: the estimator converges as their root.",
    ]
    figures = {} if folder is None else {"consistency": _lengths(found)}
    title = "Pendulum, bias and spread against the length of the record"
    return Reproduction(title, tuple(rows), tuple(notes), save_figures(figures, folder))


def used(samples: int) -> slice:
    """The columns of ``simulate_data`` that ``Experiment(skip=TRANSIENT)`` leaves."""
    return slice(TRANSIENT - 1, samples)


def _quiet(samples: int, points: int) -> CostCurve:
    return trace_curve(replace(PROGRAM, disturbance_scale=0.0), samples, QUIET, count=points)


def _standard_error(each: np.ndarray, realizations: int) -> float:
    """Of the mean over ensembles (rows) and data sets (columns); an ensemble's mean errs like a record by √M less."""
    ensembles, data_sets = each.shape
    variance = float(each.var(axis=1, ddof=1).mean())
    return float(np.sqrt(variance * (1 / data_sets + 1 / (ensembles * realizations))))


def _against_length(method: str, n: int, sample: np.ndarray) -> list[Row]:
    bias, spread = float(sample.mean() - TRUTH), float(sample.std(ddof=1))
    shown = {"bias": bias, "its standard error": spread / len(sample) ** 0.5, "std": spread}
    shown["std × √samples"] = spread * (n - TRANSIENT) ** 0.5
    known = PUBLISHED if method == "corrected" else {(50_000, "bias"): 0.95}
    return [Row(f"{method}, N = {n}: {name}", value, known.get((n, name))) for name, value in shown.items()]


def _boxes(found: dict[str, np.ndarray]) -> Figure:
    figure, (axis,) = new_figure(width=6.0)
    axis.boxplot(list(found.values()), showmeans=True, medianprops={"color": "tab:red"})
    axis.set_xticks(range(1, len(found) + 1), [name.replace(", ", "\n") for name in found], fontsize=7)
    axis.axhline(TRUTH, linestyle=":", color="0.3")
    axis.set(ylabel="k [kg/m]", title="estimates, mean over ensembles")
    return figure


def _lengths(found: dict[str, dict[int, np.ndarray]]) -> Figure:
    figure, (left, right) = new_figure(1, 2)
    for (method, by), colour in zip(found.items(), ("tab:blue", "tab:orange"), strict=True):
        n = SAMPLING * np.array(list(by))
        spread = np.array([s.std(ddof=1) for s in by.values()])
        bias = np.array([s.mean() for s in by.values()]) - TRUTH
        band = 2 * spread / np.sqrt([len(s) for s in by.values()])
        left.errorbar(n, bias, band, marker="o", color=colour, label=method)
        right.loglog(n, spread, marker="o", color=colour, label=method)
    left.axhline(0, linestyle=":", color="0.3")
    left.set(xscale="log", xlabel="length [s]", ylabel="bias of k [kg/m]")
    right.set(xlabel="length [s]", ylabel="standard deviation of k [kg/m]")
    left.legend(frameon=False)
    return figure
