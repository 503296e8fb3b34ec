"""The criterion along the parameter, with innovations kept or drawn anew at every value.

10 s, M = 20 realizations, points of the disturbance 0.1 s apart. A twice differentiable criterion has second
differences

    [J(θ + δ) − 2 J(θ) + J(θ − δ)]/δ²

that do not change as δ shrinks; with fresh innovations they grow like δ⁻², because neighbouring values are independent.
Source as in ``abdalmoaty``: Fig. 2.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import grisaille as gr
from grisaille_reproductions.abdalmoaty import PRINTED, PROGRAM, TRUTH, Settings, times
from grisaille_reproductions.comparison import Reproduction, Row, Size, new_figure, save_figures

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from grisaille_reproductions.registry import Workers


SAMPLES, REALIZATIONS, GRID = 100, 20, 0.1
SPACINGS = (0.16, 0.08, 0.04)
"""δ; the second is that of the source's grid."""


def smoothness(size: Size, folder: Path | None, executor: Workers) -> Reproduction:
    """Fig. 2, with the settings of the text and of the program."""
    half = 3.2 if size == "full" else 0.8
    rows: list[Row] = []
    curves: dict[str, tuple[np.ndarray, np.ndarray, np.ndarray]] = {}
    for settings in (PRINTED, PROGRAM):
        theta = TRUTH + SPACINGS[-1] * np.arange(-round(half / SPACINGS[-1]), round(half / SPACINGS[-1]) + 1)
        kept, fresh = criterion(settings, theta), criterion(settings, theta, fresh=True)
        curves[settings.name] = theta, kept, fresh
        for label, values in (("kept", kept), ("fresh", fresh)):
            rows += [
                Row(f"{settings.name}: {label}, largest second difference at δ = {d:g}", bend(values, d), None)
                for d in SPACINGS
            ]
            rows.append(Row(f"{settings.name}: {label}, turning points", turning_points(values), None))
        rows.append(Row(f"{settings.name}: largest |kept twice − kept|", _repeated(settings, theta, kept), None, 0.0))
    notes = ("The source shows curves only: smooth with kept innovations, ragged with fresh ones.",)
    figures = {} if folder is None else {"fig2": _figure(curves)}
    title = "Pendulum, smoothness of the criterion (Fig. 2)"
    return Reproduction(title, tuple(rows), notes, save_figures(figures, folder))


def criterion(settings: Settings, theta: np.ndarray, *, fresh: bool = False) -> np.ndarray:
    """J(θ)·10⁶ against one data set."""
    model, t, inputs = settings.model(), times(SAMPLES), settings.inputs(SAMPLES)
    options: dict[str, Any] = {"hold": "foh", "step": GRID, "rtol": 1e-5}
    y = gr.simulate(model, t, inputs, realizations=1, seed=2000, noise=True, **options).phi.values[0]
    found = []
    for j, value in enumerate(theta):
        run = gr.simulate(
            model, t, inputs, {settings.unknown: float(value)}, realizations=REALIZATIONS, reduce="mean",
            seed=1 + j if fresh else 1, **options,
        )  # fmt: skip
        found.append(np.mean((y[1:] - run.phi.values[1:]) ** 2))
    return 1e6 * np.array(found)


def bend(values: np.ndarray, spacing: float) -> float:
    """Largest second difference over δ², of values that are ``SPACINGS[-1]`` apart."""
    every = values[:: round(spacing / SPACINGS[-1])]
    return float(np.abs(np.diff(every, 2)).max() / spacing**2)


def turning_points(values: np.ndarray) -> int:
    """Where the curve changes between rising and falling."""
    return int(np.sum(np.diff(np.sign(np.diff(values))) != 0))


def _repeated(settings: Settings, theta: np.ndarray, before: np.ndarray) -> float:
    some = slice(None, None, 10)
    return float(np.abs(criterion(settings, theta[some]) - before[some]).max())


def _figure(curves: dict[str, tuple[np.ndarray, np.ndarray, np.ndarray]]) -> Figure:
    figure, axes = new_figure(1, len(curves))
    for axis, (name, (theta, kept, fresh)) in zip(axes, curves.items(), strict=True):
        axis.plot(theta, fresh, color="tab:orange", label="fresh at every value")
        axis.plot(theta, kept, color="tab:blue", label="kept")
        axis.axvline(TRUTH, linestyle=":", color="0.3")
        axis.set(title=name, xlabel="θ", ylabel="criterion [10⁻⁶ rad²]")
        axis.legend(frameon=False)
    return figure
