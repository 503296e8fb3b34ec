"""One differential-algebraic model, one record, three estimators that see its disturbance in three ways.

A pendulum in Cartesian coordinates (index 3) is pushed by a known and by an unknown, coloured force; the angle is
measured, the drag coefficient unknown.

    m v̇x = τ x − k|vx|vx + u + w,    m v̇y = τ y − k|vy|vy − m g,    x² + y² = L²

Collocation estimates the path of the disturbance with the parameter, the extended Kalman filter integrates it out by
linearisation, simulated prediction errors compare the data with the mean over its realizations. None of them asks the
user to solve the constraint. The source of the methods compared, M. S. Varziri, Parameter Estimation in Nonlinear
Continuous-Time Dynamic Models with Modelling Errors and Process Disturbances, thesis, Queen's University (2008), treats
ordinary differential equations; the extension is ours.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

import grisaille as gr
from grisaille import atan2, der
from grisaille_reproductions.comparison import Reproduction, Row, Size, new_figure, save_figures

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from grisaille.estimation.estimator import Estimator
    from grisaille_reproductions.registry import Workers


TRUE_DRAG = 0.3
SEED = 11


class PushedPendulum(gr.Model):
    """A pendulum with drag under a known and an unknown force."""

    m = gr.Parameter(0.3, "kg")
    g = gr.Parameter(9.81, "m/s2")
    L = gr.Parameter(1.0, "m")
    k = gr.Parameter(TRUE_DRAG, "kg/m", bounds=(0.01, 5.0))
    x, y = gr.Variable(0.5 * L, "m"), gr.Variable(-(0.75**0.5) * L, "m")
    vx, vy = gr.Variable(0.0, "m/s"), gr.Variable(0.0, "m/s")
    tension = gr.Variable(unit="N/m")
    u = gr.Input("N")
    w = gr.Disturbance(gr.spectra.lowpass(bandwidth=4.0), scale=0.1)
    phi = gr.Output(atan2(x, -y), noise=0.01, unit="rad")
    equations = [
        der(x) == vx,
        der(y) == vy,
        m * der(vx) == tension * x - k * abs(vx) * vx + u + w,
        m * der(vy) == tension * y - k * abs(vy) * vy - m * g,
        x**2 + y**2 == L**2,
    ]


def record(samples: int, seed: int = SEED) -> gr.Experiment:
    """A record every 0.1 s, pushed to and fro near the resonance."""
    times = 0.1 * np.arange(samples)
    push = np.sign(np.sin(3.0 * times))
    run = gr.simulate(PushedPendulum(), times, inputs={"u": push}, realizations=1, seed=seed, noise=True)
    return gr.Experiment(times, {"u": push}, {"phi": run["phi"].to_numpy().reshape(-1)}, name="pendulum")


def methods(size: Size) -> dict[str, Estimator]:
    realizations = 60 if size == "small" else 1000
    return {
        "collocation": gr.Collocation(criterion="laplace"),
        "extended Kalman filter": gr.KalmanML(substeps=10),
        "simulated prediction errors": gr.SimulatedPEM(realizations=realizations, seed=1),
    }


def fits(size: Size) -> dict[str, gr.Fit]:
    """The drag by each method, from twice its value."""
    data = record(61 if size == "small" else 601)
    guess = {"k": 2 * TRUE_DRAG}
    return {
        name: gr.fit(PushedPendulum(), data, ["k"], method, guess=guess, progress=False)
        for name, method in methods(size).items()
    }


def three_methods(size: Size, folder: Path | None, executor: Workers) -> Reproduction:
    """Three estimates with their standard errors."""
    found = fits(size)
    rows = [
        Row(f"k by {name} [kg/m]", f"{float(f['k']):.4g} ± {f['k'].std_error:.2g}", None, TRUE_DRAG)
        for name, f in found.items()
    ]
    rows.append(Row("largest distance between two, in their standard errors", largest_distance(found), None, "≲ 1"))
    rows.append(Row("index of the model", gr.analyze(PushedPendulum()).index))
    notes = (
        "The theory column holds the exact value. The distance of two estimates is divided by the larger of their "
        "standard errors.",
        "Simulated prediction errors use the mean only, not the path; their standard error is the largest.",
    )
    drawn = {} if folder is None else {"three-methods": _draw(found)}
    title = "A differential-algebraic model, three estimators"
    return Reproduction(title, tuple(rows), notes, save_figures(drawn, folder))


def largest_distance(found: dict[str, gr.Fit]) -> float:
    """Between any two estimates, in the larger of their standard errors."""
    values = [(float(f["k"]), float(f["k"].std_error)) for f in found.values()]
    return max(abs(a - b) / max(s, t) for a, s in values for b, t in values)


def _draw(found: dict[str, gr.Fit]) -> Figure:
    figure, (axis,) = new_figure(1, 1, width=6.0, height=2.6)
    for place, (name, fit) in enumerate(found.items()):
        axis.errorbar(float(fit["k"]), -place, xerr=fit["k"].std_error, fmt="o", capsize=4, label=name)
    axis.axvline(TRUE_DRAG, color="0.6", linewidth=0.8)
    axis.set(xlabel="drag coefficient k [kg/m], ± one standard error", yticks=[])
    axis.set_yticks(range(0, -len(found), -1), list(found))
    axis.margins(y=0.3)
    return figure
