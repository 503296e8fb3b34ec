"""Cost functions of four curve fits: one is a bowl, one has many valleys, although both are easy to write.

    ψ₁x² + ψ₂x,     sin ψx,  ψ₁ sin ψ₂x,     e^{ψx},  ψ₁ e^{ψ₂x}

Source: S. O. Fladischer, System Identification of Nonlinear Dynamic Systems, master's thesis, Montanuniversität Leoben
(2020), section 3.2.1, Figs. 3.1–3.6. Cost is the sum of squares ε(ψ).
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import grisaille as gr
from grisaille import exp, sin
from grisaille_reproductions.comparison import Reproduction, Row, Size, new_figure, save_figures
from grisaille_reproductions.valleys import count_valleys

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from grisaille_reproductions.registry import Workers


class Parabola(gr.Model):
    a, b = gr.Parameter(1.0), gr.Parameter(0.0)
    x = gr.Input()
    y = gr.Output(a * x**2 + b * x, noise=1.0)


class Sine(gr.Model):
    a, b = gr.Parameter(1.0), gr.Parameter(3.0)
    x = gr.Input()
    y = gr.Output(a * sin(b * x), noise=1.0)


class Exponential(gr.Model):
    a, b = gr.Parameter(2.0), gr.Parameter(0.5)
    x = gr.Input()
    y = gr.Output(a * exp(b * x), noise=1.0)


def cost_functions(size: Size, folder: Path | None, executor: Workers) -> Reproduction:
    """Figs. 3.1–3.6."""
    points = 41 if size == "small" else 201
    x, around = np.linspace(-2.0, 3.0, 51), np.linspace(0.0, 2 * np.pi, 51)
    noisy = 2.0 * x**2 + 0.5 * x + np.random.default_rng(31).standard_normal(51)
    line = gr.fit(Parabola(), _data(x, noisy), ["a", "b"])
    wave = gr.fit(Sine(), _data(around, np.sin(3.0 * around)), ["a", "b"])
    growth = gr.fit(Exponential(), _data(x, 2.0 * np.exp(0.5 * x)), ["a", "b"])
    surfaces = {
        "3.2": line.surface("a", "b", ranges={"a": (0.0, 5.0), "b": (-2.5, 2.5)}, points=points),
        "3.4": wave.surface("a", "b", ranges={"a": (-4.0, 4.0), "b": (-5.0, 5.0)}, points=points),
        "3.6": growth.surface("a", "b", ranges={"a": (-2.0, 3.0), "b": (-1.0, 1.0)}, points=points),
    }
    grids = {"3.3": np.linspace(-10.0, 10.0, 2 * points - 1), "3.5": np.linspace(-1.0, 1.0, points)}
    curves = {
        "3.3": _costs(Sine(), _data(around, np.sin(3.0 * around)), grids["3.3"]),
        "3.5": _costs(Exponential(a=1.0), _data(x, np.exp(0.5 * x)), grids["3.5"]),
    }
    valleys = {n: count_valleys(s.data["objective"].to_numpy()) for n, s in surfaces.items()}
    lowest = {n: float(grids[n][np.argmin(c)]) for n, c in curves.items()}
    rows = (
        Row("3.1: ψ₁ (exact 2)", float(line["a"])),
        Row("3.1: ψ₂ (exact 0.5)", float(line["b"])),
        Row("3.2: valleys of the parabola", valleys["3.2"], 1),
        Row("3.3: valleys of sin ψx", count_valleys(curves["3.3"]), "several"),
        Row("3.3: lowest at ψ", lowest["3.3"], 3.0),
        Row("3.4: lowest valleys of ψ₁ sin ψ₂x", _lowest_valleys(surfaces["3.4"]), 2),
        Row("3.4: all its valleys", valleys["3.4"], "several"),
        Row("3.5: valleys of exp ψx", count_valleys(curves["3.5"]), 1),
        Row("3.5: lowest at ψ", lowest["3.5"], 0.5),
        Row("3.6: valleys of ψ₁ exp ψ₂x", valleys["3.6"], 1),
    )
    figures = {} if folder is None else _figures(surfaces, grids, curves)
    return Reproduction("Cost functions of curve fits (Figs. 3.1–3.6)", rows, figures=save_figures(figures, folder))


def _data(x: np.ndarray, y: np.ndarray) -> gr.Experiment:
    return gr.Experiment(inputs={"x": x}, outputs={"y": y})


def _costs(model: gr.Model, data: gr.Experiment, grid: np.ndarray) -> np.ndarray:
    return np.array([2 * gr.evaluate(model, data, parameters={"b": float(b)}).objective for b in grid])


def _lowest_valleys(surface: Any) -> int:
    """Valleys that reach down to where the best one does, as far as the grid can tell."""
    cost = surface.data["objective"].to_numpy()
    return count_valleys(cost, below=float(cost.min() + 0.05 * np.median(cost)))


def _figures(
    surfaces: dict[str, Any], grids: dict[str, np.ndarray], curves: dict[str, np.ndarray]
) -> dict[str, Figure]:
    figures = {f"figure-{n}": s.plot() for n, s in surfaces.items()}
    for n, cost in curves.items():
        figure, (axis,) = new_figure()
        axis.plot(grids[n], cost, color="0.25")
        axis.set(xlabel="ψ", ylabel="ε(ψ)", title=f"Fig. {n}")
        figures[f"figure-{n}"] = figure
    return figures
