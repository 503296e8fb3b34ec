"""Estimates over many data sets: the mean of a disturbed pendulum as predictor, against output error.

On the grid, as in the source: for every value θ_j the mean ȳ and the variance s² of M simulations are made once, for
the longest record, and serve all data sets and all lengths N (in the drag they are interpolated: ``abdalmoaty_curve``),

    J(θ_j) = Σ_k (y_k − ȳ_k)²        and, corrected for finite M,        Σ_k [(y_k − ȳ_k)² − s_k²/M].

Output error is the same with the disturbance at zero. By Gauss–Newton: ``gr.monte_carlo`` with ``gr.SimulatedPEM`` and
``gr.OutputError``. Source as in ``abdalmoaty``: Fig. 1.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import grisaille as gr
from grisaille.disturbance import Purpose
from grisaille_reproductions.abdalmoaty import PRINTED, PROGRAM, SPACING, TRANSIENT, TRUTH, Settings, times
from grisaille_reproductions.abdalmoaty_curve import trace_curve
from grisaille_reproductions.abdalmoaty_together import simulate_data as simulate_batches, simulate_together
from grisaille_reproductions.comparison import Reproduction, Row, Shown, Size, new_figure, save_figures

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from grisaille_reproductions.registry import Workers


METHODS = ("proposed", "corrected", "output error")
RTOL = 1e-4
POINTS = 14
"""Values of the drag at which an ensemble is simulated: between them its mean is some 1e-5 standard deviations off."""
PUBLISHED: dict[tuple[str, str], Shown] = {
    ("proposed", "mean"): "6.25 ± 0.034",
    ("output error", "mean"): 7.20,
    ("output error", "median"): 7.21,
}
"""At N = 50 000; other lengths are shown in a picture only."""


@dataclass(frozen=True)
class Extent:
    """How much is computed."""

    data_sets: int
    lengths: tuple[int, ...]
    realizations: int
    step: float
    """Of the grid from 3.85 to 10.25."""

    @property
    def grid(self) -> np.ndarray:
        return np.arange(3.85, 10.25 + self.step / 2, self.step)


EXTENTS: dict[Size, Extent] = {
    "full": Extent(1000, (1000, 5000, 10_000, 50_000), 500, 0.08),
    "small": Extent(40, (1000, 2000), 40, 0.16),
}


def estimates(
    size: Size, folder: Path | None, executor: Workers, data_sets: int | None = None,
    lengths: int | tuple[int, ...] | None = None, realizations: int | None = None, step: float | None = None,
    device: str = "cpu",
) -> Reproduction:  # fmt: skip
    """Fig. 1, with the settings of the text and with those of the program; numbers replace those of the size."""
    known = EXTENTS[size]
    extent = Extent(
        data_sets or known.data_sets, tuple(np.atleast_1d(lengths or known.lengths).tolist()),
        realizations or known.realizations, step or known.step,
    )  # fmt: skip
    found = {s.name: on_grid(s, extent, device) for s in (PRINTED, PROGRAM)}
    rows = [
        row
        for settings in (PRINTED, PROGRAM)
        for n in extent.lengths
        for method in METHODS
        for row in _rows(settings, n, method, found[settings.name][n][method])
    ]
    ends = sum(_at_ends(sample, extent.grid) for f in found.values() for by in f.values() for sample in by.values())
    notes = [
        f"{extent.data_sets} data sets (published: 1000), {extent.realizations} realizations (500), transient of "
        f"{TRANSIENT} samples left out, grid of {len(extent.grid)} points from 3.85 to 10.25 (81).",
        "With the settings of the text neither method is biased: Fig. 1 belongs to those of the program.",
        "The input is one path; another one moves output error at N = 50 000 between 6.9 and 7.3.",
    ]
    notes += [f"{ends} estimates lie on an end of the grid."] if ends else []
    figures = {} if folder is None else {f"fig1-{name}": _boxes(name, f) for name, f in found.items()}
    title = "Pendulum, estimates on the grid (Fig. 1)"
    return Reproduction(title, tuple(rows), tuple(notes), save_figures(figures, folder))


def on_grid(settings: Settings, extent: Extent, device: str = "cpu") -> dict[int, dict[str, np.ndarray]]:
    """Length → method → the estimate of every data set."""
    longest = max(extent.lengths)
    y = simulate_data(settings, extent.data_sets, longest, device)
    predict = _one_by_one if device == "cpu" else _together
    mean, variance, alone = predict(settings, longest, extent, device)
    plain, quiet = (_squares(y, predictions, extent.lengths) for predictions in (mean, alone))
    spread = {n: variance[:, TRANSIENT:n].sum(axis=1) / extent.realizations for n in extent.lengths}
    costs = {n: dict(zip(METHODS, (plain[n], plain[n] - spread[n], quiet[n]), strict=True)) for n in extent.lengths}
    return {n: {m: extent.grid[np.argmin(c, axis=1)] for m, c in by.items()} for n, by in costs.items()}


def _one_by_one(
    settings: Settings, samples: int, extent: Extent, device: str
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Mean and variance of φ at all values, and its course without disturbance: one value after the other."""
    ensemble, grid = _ensemble(settings, samples, extent), [float(theta) for theta in extent.grid]
    mean, variance = (np.array(a) for a in zip(*(ensemble(theta) for theta in grid), strict=True))
    return mean, variance, np.array([_statistics(settings, samples, theta, None)[0] for theta in grid])


def _together(
    settings: Settings, samples: int, extent: Extent, device: str
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Mean and variance of φ at all values, and its course without disturbance, with the same random numbers."""
    quiet, purpose = (
        replace(settings, disturbance_scale=0.0),
        Purpose.DATA if _is_plain(settings, extent) else Purpose.MODEL,
    )
    mean, variance = simulate_together(settings, samples, extent.grid, extent.realizations, device, purpose, RTOL)
    alone, _ = simulate_together(quiet, samples, extent.grid, 2, device, purpose, RTOL)
    return mean, variance, alone


def _is_plain(settings: Settings, extent: Extent) -> bool:
    """Whether every value of the grid is simulated."""
    return settings.unknown != "k" or len(extent.grid) <= POINTS


def _ensemble(settings: Settings, samples: int, extent: Extent) -> Callable[[float], tuple[np.ndarray, np.ndarray]]:
    """Mean and variance of φ at a value: interpolated in the drag, where few simulations tell all; else simulated."""
    if _is_plain(settings, extent):
        return lambda theta: _statistics(settings, samples, theta, extent.realizations)
    curve = trace_curve(settings, samples, extent.realizations, count=POINTS, span=(extent.grid[0], extent.grid[-1]))
    return lambda theta: curve.at(theta)[:2]


def by_gauss_newton(
    size: Size, folder: Path | None, executor: Workers, data_sets: int | None = None, samples: int | None = None,
    realizations: int | None = None,
) -> Reproduction:  # fmt: skip
    """The program's settings at one length; numbers replace those of the size."""
    runs, n, count = (100, 5000, 500) if size == "full" else (4, 1200, 20)
    runs, n, count = data_sets or runs, samples or n, realizations or count
    method = gr.SimulatedPEM(realizations=count, step=SPACING, rtol=RTOL)
    plain = gr.SimulatedPEM(realizations=count, step=SPACING, rtol=RTOL, correction=False)
    # one after the other: an ensemble uses all processors by itself
    options: dict[str, Any] = {"runs": runs, "seed": 7, "executor": executor or "serial", "bounds": {"k": (1.0, 30.0)}}
    studies = {
        name: gr.monte_carlo(PROGRAM.model(), PROGRAM.plan(n), ["k"], chosen, **options)
        for name, chosen in (("corrected", method), ("proposed", plain), ("output error", gr.OutputError()))
    }
    rows = [r for name, s in studies.items() for r in _rows(PROGRAM, n, name, s.estimates["k"].dropna().to_numpy())]
    told = studies["corrected"].summary().table.loc["k"]
    rows.append(Row("k corrected: mean of the standard errors", float(told["mean_std_error"])))
    rows.append(Row("k corrected: 95 % intervals that hold the truth", f"{told['hits']} of {told['intervals']}"))
    lost = {name: runs - int(s.table["converged"].sum()) for name, s in studies.items()}
    notes = [f"{runs} data sets, {count} realizations; the bounds are wider than the grid of the source."]
    notes += [f"{name}: {c} runs did not converge." for name, c in lost.items() if c]
    found = {n: {name: s.estimates["k"].dropna().to_numpy() for name, s in studies.items()}}
    figures = {} if folder is None else {"fig1-gauss-newton": _boxes("program, Gauss–Newton", found)}
    title = "Pendulum, estimates by Gauss–Newton (Fig. 1)"
    return Reproduction(title, tuple(rows), tuple(notes), save_figures(figures, folder))


def _statistics(settings: Settings, samples: int, theta: float, count: int | None) -> tuple[np.ndarray, np.ndarray]:
    """Mean and variance of φ after the start; without a count, the course without disturbance."""
    quiet = {} if count else {"scale(w)": 0.0}
    run = gr.simulate(
        settings.model(), times(samples), settings.inputs(samples), {settings.unknown: theta, **quiet}, hold="foh",
        realizations=count or 2, seed=1, step=SPACING, rtol=RTOL, reduce=["mean", "variance"],
    )  # fmt: skip
    return run.phi_mean.values[1:], run.phi_variance.values[1:]


def simulate_data(settings: Settings, count: int, samples: int, device: str = "cpu") -> np.ndarray:
    """Measurements after the start, (data sets, samples); seeds other than the model's."""
    return simulate_batches(settings, count, samples, RTOL, device)


def _squares(y: np.ndarray, predictions: np.ndarray, lengths: Sequence[int]) -> dict[int, np.ndarray]:
    """Length → Σ_k (y_k − ŷ_k)² after the transient, (data sets, predictions); each sample is used once."""
    total, found, first = np.zeros((len(y), len(predictions))), {}, TRANSIENT
    for n in sorted(set(lengths)):
        Y, P = y[:, first:n], predictions[:, first:n]
        own = np.einsum("ij,ij->i", Y, Y)[:, None] + np.einsum("ij,ij->i", P, P)
        total, first = total + (own - 2 * Y @ P.T), max(first, n)
        found[n] = total
    return found


def _rows(settings: Settings, n: int, method: str, sample: np.ndarray) -> list[Row]:
    name = f"{settings.name}: {settings.unknown} {method}, N = {n}"
    numbers = {"mean": float(np.mean(sample)), "median": float(np.median(sample)), "std": float(np.std(sample, ddof=1))}
    known = {s: PUBLISHED.get((method, s)) if n == 50_000 else None for s in numbers}
    theory = {"mean": TRUTH, "median": TRUTH}
    return [Row(f"{name}, {s}", v, known[s], theory.get(s)) for s, v in numbers.items()]


def _at_ends(sample: np.ndarray, grid: np.ndarray) -> int:
    return int(np.sum((sample == grid[0]) | (sample == grid[-1])))


def _boxes(title: str, found: dict[int, dict[str, np.ndarray]]) -> Figure:
    figure, (axis,) = new_figure(width=7.0)
    labels = [f"{m}\n{n}" for n in found for m in METHODS]
    samples = [found[n][m] for n in found for m in METHODS]
    axis.boxplot(samples, showmeans=True, meanprops={"marker": "D"}, medianprops={"color": "tab:red"})
    axis.set_xticks(range(1, len(labels) + 1), labels, fontsize=6)
    axis.axhline(TRUTH, linestyle=":", color="0.3")
    axis.set(title=title, ylabel="estimate", xlabel="method, N")
    return figure
