"""A body in free fall with drag: one unknown, one or two noisy records of its height.

    ṡ = v,      m v̇ = −c v|v| − m g,      m = 10 kg, h = 30 m, c = 0.5 kg/m, σ = 1 m, 31 samples in 3 s

The printed state equation (4.16) lacks the division of c by m; without it no published number can be met. Source:
S. O. Fladischer, System Identification of Nonlinear Dynamic Systems, master's thesis, Montanuniversität Leoben (2020),
section 4.1. The noise of Tables 4.1 and 4.2 is not published, so ours is another draw.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import grisaille as gr
from grisaille import der
from grisaille_reproductions.comparison import Reproduction, Row, Size, new_figure, save_figures
from grisaille_reproductions.valleys import count_valleys

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from grisaille_reproductions.registry import Workers


TIMES = np.linspace(0.0, 3.0, 31)
DRAG = 0.5
STARTS = {"s": 30.0, "v": 0.0}
METHOD = gr.OutputError(rtol=1e-9)
UNPUBLISHED = "The noise behind the published estimates is not published; ours is another draw of N(0, 1)."


class FreeFall(gr.Model):
    """A falling body with quadratic drag, its height measured."""

    m = gr.Parameter(10.0, "kg")
    g = gr.Parameter(9.81, "m/s2")
    c = gr.Parameter(DRAG, "kg/m")
    s, v = gr.Variable(STARTS["s"], "m"), gr.Variable(STARTS["v"], "m/s")
    height = gr.Output(s, noise=1.0, unit="m")
    equations = [der(s) == v, m * der(v) == -c * abs(v) * v - m * g]


def exact_height(c: float = DRAG, m: float = 10.0, g: float = 9.81) -> np.ndarray:
    """s = h − (m/c) ln cosh(√(g c/m) t), a fall from rest."""
    return np.asarray(STARTS["s"] - m / c * np.log(np.cosh(np.sqrt(g * c / m) * TIMES)))


def record(name: str, values: np.ndarray, *, known: tuple[str, ...] = ("s", "v")) -> gr.Experiment:
    """An experiment with some starts known."""
    return gr.Experiment(TIMES, {}, {"height": values}, name=name, start={n: STARTS[n] for n in known})


def noisy(seed: int) -> np.ndarray:
    return exact_height() + np.random.default_rng(seed).standard_normal(len(TIMES))


def fit_drag(*records: gr.Experiment, optimizer: Any = "gauss-newton") -> gr.Fit:
    """The drag coefficient from the document's start, c = 0."""
    return gr.fit(FreeFall(), list(records), ["c"], gr.OutputError(optimizer, rtol=1e-9), guess={"c": 0.0})


def one_data_set(size: Size, folder: Path | None, executor: Workers) -> Reproduction:
    """Table 4.1."""
    a = record("A", noisy(41))
    simplex, newton = fit_drag(a, optimizer="nelder-mead"), fit_drag(a)
    rows = (
        Row("ψ_A, simplex [kg/m]", float(simplex["c"]), 0.450063),
        Row("ψ_A, Gauss–Newton [kg/m]", float(newton["c"]), 0.449959),
        Row("their distance, in standard errors", abs(float(simplex["c"]) - float(newton["c"])) / newton["c"].std_error,
            (0.450063 - 0.449959) / 0.02615),
        Row("exact ψ from ψ_A, in standard errors", abs(float(newton["c"]) - DRAG) / newton["c"].std_error,
            (0.5 - 0.449959) / 0.02615),
    )  # fmt: skip
    figures = {} if folder is None else {"figures-4.1-4.3": _trajectories(a, {"A": newton})}
    return Reproduction("Free fall, data set A (Table 4.1)", rows, (UNPUBLISHED,), save_figures(figures, folder))


def two_data_sets(size: Size, folder: Path | None, executor: Workers) -> Reproduction:
    """Table 4.2: fitting repeats jointly is fitting their mean, (4.37)–(4.45)."""
    a, b = record("A", noisy(41)), record("B", noisy(42))
    mean = record("mean", (a.measurements("height")[1] + b.measurements("height")[1]) / 2)
    fits = {"A": fit_drag(a), "B": fit_drag(b), "A,B": fit_drag(a, b), "mean": fit_drag(mean)}
    published = {"A": 0.449959, "B": 0.521219, "A,B": 0.484568, "mean": 0.484568}
    rows = [Row(f"ψ_{n} [kg/m]", float(f["c"]), published[n]) for n, f in fits.items()]
    apart = abs(float(fits["A,B"]["c"]) - float(fits["mean"]["c"]))
    rows.append(Row("|ψ_A,B − ψ_mean|", apart, "< 1e-11"))
    figures = {} if folder is None else {"figures-4.4-4.6": _trajectories(a, fits)}
    title = "Free fall, data sets A and B (Table 4.2)"
    return Reproduction(title, tuple(rows), (UNPUBLISHED,), save_figures(figures, folder))


def cost_surfaces(size: Size, folder: Path | None, executor: Workers) -> Reproduction:
    """Figs. 4.11 and 4.12: slices of the cost with unknown initial conditions."""
    points = 31 if size == "small" else 101
    a, b = record("A", noisy(41), known=("v",)), record("A", noisy(41), known=())
    sections = {
        "4.11": gr.fit(FreeFall(), a, ["c", "start(s)"], METHOD).surface(
            "c", "start(s)", ranges={"c": (0.0, 1.0), "start(s)": (25.0, 35.0)}, points=points
        ),
        "4.12": gr.fit(FreeFall(), b, ["start(s)", "start(v)"], METHOD).surface(
            "start(s)", "start(v)", ranges={"start(s)": (25.0, 35.0), "start(v)": (-5.0, 5.0)}, points=points
        ),
    }
    rows = []
    for number, section in sections.items():
        rows.append(Row(f"Fig. {number}: valleys", count_valleys(section.data["objective"].to_numpy()), 1))
        rows += [
            Row(f"Fig. {number}: {n} of the minimum", v) for n, v in zip(section.names, section.estimate, strict=True)
        ]
    figures = {} if folder is None else {f"figure-{n}": s.plot() for n, s in sections.items()}
    title = "Free fall, cost over drag and initial conditions (Figs. 4.11, 4.12)"
    return Reproduction(title, tuple(rows), figures=save_figures(figures, folder))


def _trajectories(data: gr.Experiment, fits: dict[str, gr.Fit]) -> Figure:
    """Cost against the drag coefficient, measured and fitted heights, and speeds."""
    figure, (cost, height, speed) = new_figure(1, 3)
    grid = np.linspace(0.0, 1.0, 51)
    for name, fit in fits.items():
        values = [2 * gr.evaluate(FreeFall(), fit.experiments, METHOD, {"c": float(c)}).objective for c in grid]
        cost.plot(grid, values, label=f"ε_{name}")
        run = gr.simulate(FreeFall(c=float(fit["c"])), TIMES)
        height.plot(TIMES, run["s"], label=f"ψ_{name}")
        speed.plot(TIMES, run["v"], label=f"ψ_{name}")
    height.plot(*data.measurements("height")[:2], "o", color="0.6", markersize=3, zorder=0)
    cost.set(xlabel="ψ [kg/m]", ylabel="ε(ψ) [m²]", yscale="log")
    height.set(xlabel="time [s]", ylabel="position [m]")
    speed.set(xlabel="time [s]", ylabel="velocity [m/s]")
    for axis in (cost, height, speed):
        axis.legend(frameon=False)
    return figure
