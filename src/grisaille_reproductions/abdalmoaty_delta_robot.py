"""A delta robot identified through its disturbances: index 3, more than fifty variables, up to twelve unknowns.

One record of plate position and motor angles, simulated with disturbances that enter squared; each leg follows sines of
its own frequencies. ``gr.SimulatedPEM`` by Gauss–Newton, beside output error, which has to explain the mean of the
squared disturbances by wrong masses. The six outputs are weighted by the inverse covariance of their errors, estimated
with the rest: plate and angles move together, and what they do apart tells the lengths to a millimetre. Model:
``delta_robot``, whose source prints no table to compare with.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

import grisaille as gr
from grisaille_reproductions.comparison import Reproduction, Row, Size, new_figure, save_figures
from grisaille_reproductions.delta_robot import START, DeltaRobot

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from grisaille_reproductions.registry import Workers


GEOMETRY, INERTIA = ("base", "L1", "L2", "legs[1].azimuth"), ("M1", "J1", "J2", "M3")
FRICTION = ("friction[0]", "friction[1]", "friction[2]", "joint_friction")
ALL = (*GEOMETRY, *INERTIA, *FRICTION)
FEW = ("L1", "L2", "M3", "friction[0]")
OUTPUTS = ("x", "y", "z", "q0", "q1", "q2")
SAMPLING, STEP, SKIP = 0.05, 0.05, 40
FREQUENCIES = np.array([0.7, 2.1, 4.3, 7.1, 10.3])
AMPLITUDE = 0.11
"""Of every sine [rad]; together they swing an arm by some 30° to either side, clear of stretched legs."""
OFF = {True: 1.04, False: 1.3}
"""Guesses are the truth times this and divided by it, in turn: lengths and angles, and the rest."""


def identification(
    size: Size, folder: Path | None, executor: Workers, seconds: float | None = None, realizations: int | None = None,
    unknowns: int | None = None, seed: int = 3,
) -> Reproduction:  # fmt: skip
    """Truth, estimate and standard error of each unknown; numbers replace those of the size."""
    names = (ALL if size == "full" else FEW)[: unknowns or len(ALL)]
    length, count = (80.0, 64) if size == "full" else (4.0, 12)
    length, count = seconds or length, realizations or count
    model, data = DeltaRobot(), record(length, seed)
    truth = {n: float(model.parameters[n].value or 0.0) for n in names}
    guess = {n: v * (OFF[n in GEOMETRY] if k % 2 else 1 / OFF[n in GEOMETRY]) for k, (n, v) in enumerate(truth.items())}
    method = gr.SimulatedPEM(realizations=count, step=STEP, rtol=1e-4)
    fit = gr.fit(model, data, list(names), method, guess=guess, progress=False)
    alone = _without_disturbances(model, data, guess) if size == "full" else None
    told = gr.analyze(model)
    rows = [Row("variables", len(told.structure.model.variables), 30), Row("differential index", told.index, 3)]
    rows += [Row("unknowns", len(names), 12), Row("converged", str(fit.converged))]
    for n in names:
        table = fit.parameters.loc[n]
        found = f"{table.estimate:.4f} ± {table.std_error:.4f}"
        rows.append(Row(f"{n}: estimate ± standard error", found, None, truth[n]))
        off = (table.estimate - truth[n]) / table.std_error if table.std_error else str(table.status)
        rows.append(Row(f"{n}: error in standard errors", off))
        if alone is not None:
            rows.append(Row(f"{n}: by output error", float(alone[n]), None, truth[n]))
    notes = (
        f"One record of {length:g} s, {len(OUTPUTS)} outputs every {SAMPLING:g} s, {count} realizations, guesses "
        f"off by 4 % (geometry) and 30 %; the published column holds the source's counts.",
        "The mass of the rods is given: it can be exchanged for the other masses and inertias without a trace.",
        "Length, strength of the disturbances and unknowns were chosen after shorter records and stronger disturbances "
        "had failed; one draw of the data.",
        fit.status,
    )
    figures = {} if folder is None else {"delta-robot": _figure(data, fit)}
    return Reproduction("Delta robot, identification", tuple(rows), notes, save_figures(figures, folder))


def _without_disturbances(model: gr.Model, data: gr.Experiment, guess: dict[str, float]) -> gr.Fit:
    method = gr.OutputError(optimizer="levenberg-marquardt", max_evaluations=200)
    return gr.fit(model.replace({"gain": 0.0}), data, list(guess), method, guess=guess, progress=False)


def record(seconds: float, seed: int) -> gr.Experiment:
    """One simulated run with measurement noise."""
    t = SAMPLING * np.arange(round(seconds / SAMPLING) + 1)
    inputs = {f"legs[{k}].reference": reference(t, k) for k in range(3)}
    run = gr.simulate(
        DeltaRobot(), t, inputs, hold="foh", realizations=1, seed=seed, noise=True, step=STEP / 5, rtol=1e-6
    )
    outputs = {n: run[n].values[0] for n in OUTPUTS}
    return gr.Experiment(t, inputs, outputs, hold="foh", skip=min(SKIP, t.size // 4), name="run")


def reference(t: np.ndarray, leg: int) -> np.ndarray:
    """Sines whose frequencies no two legs share."""
    w = FREQUENCIES * (1 + 0.11 * leg)
    phases = np.random.default_rng(3 + leg).uniform(0, 2 * np.pi, w.size)
    return np.asarray(START + AMPLITUDE * np.sin(np.outer(t, w) + phases).sum(axis=1))


def _figure(data: gr.Experiment, fit: gr.Fit) -> Figure:
    figure, axes = new_figure(3, 1, width=8.0, height=1.9)
    mean = gr.simulate(
        fit.model, data.grid(), {f"legs[{k}].reference": reference(data.grid(), k) for k in range(3)}, hold="foh",
        realizations=50, step=STEP, rtol=1e-4, reduce=["mean", "variance"],
    )  # fmt: skip
    for axis, name in zip(axes, ("x", "y", "z"), strict=True):
        t, y, *_ = data.measurements(name)
        centre, spread = mean[f"{name}_mean"].values, np.sqrt(mean[f"{name}_variance"].values)
        axis.fill_between(data.grid(), centre - 2 * spread, centre + 2 * spread, color="0.85")
        axis.plot(t, y, ".", markersize=2, color="tab:blue")
        axis.plot(data.grid(), centre, linewidth=0.8, color="0.2")
        axis.set(ylabel=f"{name} [m]")
    axes[-1].set_xlabel("time [s]")
    return figure
