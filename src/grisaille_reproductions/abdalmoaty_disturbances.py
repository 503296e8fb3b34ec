"""Parameters of the disturbances themselves, and disturbances between the points of a coarse grid.

Where a disturbance enters squared its gain moves the mean of the output and is found from it, together with the drag k.
Correlation and frequency of forces that enter linearly move no mean: there ``match="mean"`` refuses and
``match="mean-variance"`` finds them from the spread. Joined by straight lines over a coarse grid a disturbance loses
variance, and a gain that is found from it grows: with lines over cells of length Δ the mean square of w is

    (2/3 + r(Δ)/3) E w²,     r : correlation of w(t), w(t + Δ),

while paths that are drawn between the points from the exact conditional distribution lose nothing.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

import grisaille as gr
from grisaille import atan2, der, sin
from grisaille_reproductions.abdalmoaty import PROGRAM, SPACING, Pendulum, known_path, times
from grisaille_reproductions.comparison import Reproduction, Row, Size, new_figure, save_figures
from grisaille_reproductions.two_masses import TwoMasses

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from grisaille_reproductions.registry import Workers


SKIP, COARSE = 100, 0.4
INPUT, EVERY = 0.6, 5
"""Scale of the pendulum's input, and how many points of its path lie between two bends of it."""
SHAKER = (0.4, 0.9, 2.3)
"""Frequencies of the force on the two bodies [rad/s]."""


class GainPendulum(gr.Model):
    """The pendulum with the gain of its disturbance as a parameter; its input is smooth and w starts stationary."""

    m, g, L = gr.Parameter(0.3, "kg"), gr.Parameter(9.81, "m/s2"), gr.Parameter(6.25, "m")
    k = gr.Parameter(6.25, "kg/m")
    gain = gr.Parameter(1.0, bounds=(0.1, 5.0))
    x, y = gr.Variable(0.0, "m"), gr.Variable(-L, "m")
    vx, vy = gr.Variable(0.0, "m/s"), gr.Variable(0.0, "m/s")
    tension = gr.Variable()
    w = gr.Disturbance(gr.spectra.resonance(frequency=4.0, damping=0.1), scale=1.2)
    u = 0.3 * sin(0.9 * gr.time)
    phi = gr.Output(atan2(x, -y), noise=0.002, unit="rad")
    equations = [
        der(x) == vx,
        der(y) == vy,
        m * der(vx) == tension * x - k * abs(vx) * vx + u + (gain * w) ** 2,
        m * der(vy) == tension * y - k * abs(vy) * vy - m * g,
        x**2 + y**2 == L**2,
    ]


def disturbance_parameters(
    size: Size,
    folder: Path | None,
    executor: Workers,
    samples: int | None = None,
    realizations: int | None = None,
) -> Reproduction:
    """Gain by the mean; correlation and frequency by mean and variance, and what the mean says to them."""
    n, count = (10_000, 300) if size == "full" else (1500, 40)
    n, count = samples or n, realizations or count
    method = gr.SimulatedPEM(realizations=count, step=EVERY * SPACING, rtol=1e-4)
    pendulum = _fit_pendulum(n, method)
    data, both = record_two_masses(n // 3), ["rho", "omega"]
    model, guess = TwoMasses(), {"rho": 0.2, "omega": 3.5}
    spread = gr.SimulatedPEM(realizations=count, step=0.1, rtol=1e-4, match="mean-variance")
    masses = gr.fit(model, data, both, spread, guess=guess, progress=False)
    rows = _compared("pendulum, mean", pendulum, {"k": 6.25, "scale(w)": PROGRAM.disturbance_scale})
    rows += _compared("two bodies, mean and variance", masses, {"rho": 0.6, "omega": 3.0})
    refusal = _refusal(data, guess, count)
    rows.append(Row("two bodies, mean alone", "refused" if refusal else "accepted", None, "refused"))
    notes = (
        f"Pendulum: {n} samples, input scale {INPUT:g}, disturbance as in the program. Two bodies: {n // 3} samples of "
        f"position and link force. {count} realizations each.",
        f"The method to the mean alone: {refusal or 'no objection.'}",
    )
    figures = {} if folder is None else {"disturbance-parameters": _figure(data, masses)}
    title = "Parameters of disturbances, by the mean and by mean and variance"
    return Reproduction(title, tuple(rows), notes, save_figures(figures, folder))


def coarse_grid(
    size: Size, folder: Path | None, executor: Workers, samples: int | None = None, realizations: int | None = None,
    spacings: float | tuple[float, ...] | None = None,
) -> Reproduction:  # fmt: skip
    """The gain found with lines and with exact paths between points Δ apart."""
    n, count = (2500, 200) if size == "full" else (1000, 32)
    n, count = samples or n, realizations or count
    known = (0.05, 0.2, 0.4) if size == "full" else (0.4,)
    data, model = record_pendulum(n), GainPendulum()
    rows, found = [], {}
    for spacing in np.atleast_1d(spacings or known).tolist():
        for between in ("linear", "exact"):
            method = gr.SimulatedPEM(realizations=count, step=spacing, between=between, rtol=1e-4)
            fit = gr.fit(model, data, ["gain"], method, progress=False)
            theory = 1.0 if between == "exact" else lost_gain(spacing)
            name = f"Δ = {spacing:g} s, {'lines' if between == 'linear' else 'exact'}"
            rows += _compared(name, fit, {"gain": 1.0}, {"gain": theory})
            found[name] = (float(fit["gain"]), float(fit["gain"].std_error))
    notes = (
        f"{n} samples of {COARSE:g} s simulated on a grid of 0.01 s, {count} realizations; the true gain is 1.",
        "Steps end on samples and on kinks of inputs, where a disturbance is drawn too: the input is a sine here.",
        "The theory column holds what the lost variance of lines asks of the gain; errors are against the truth.",
    )
    figures = {} if folder is None else {"coarse-grid": _gains(found)}
    title = "Disturbances on a coarse grid: lines against exact paths"
    return Reproduction(title, tuple(rows), notes, save_figures(figures, folder))


def lost_gain(spacing: float, frequency: float = 4.0, damping: float = 0.1) -> float:
    """√(E w² / E w_lin²) of a resonance joined by lines over cells of this length."""
    decay, turn = damping * frequency, frequency * np.sqrt(1 - damping**2)
    r = np.exp(-decay * spacing) * (np.cos(turn * spacing) + decay / turn * np.sin(turn * spacing))
    return float(1 / np.sqrt(2 / 3 + r / 3))


def record_pendulum(samples: int) -> gr.Experiment:
    """One run of the pendulum with a gain, drawn on the fine grid."""
    t = COARSE * np.arange(samples + 1)
    run = gr.simulate(GainPendulum(), t, noise=True, realizations=1, seed=21, step=SPACING, rtol=1e-5)
    return gr.Experiment(t, outputs={"phi": run.phi.values[0]}, skip=SKIP, name="pendulum")


def record_two_masses(samples: int) -> gr.Experiment:
    """One run of the two bodies, every 0.2 s."""
    t = 0.2 * np.arange(samples + 1)
    inputs = {"u": np.sin(np.outer(t, SHAKER)).sum(axis=1)}
    run = gr.simulate(TwoMasses(), t, inputs, hold="foh", noise=True, realizations=1, seed=22, step=0.02, rtol=1e-5)
    outputs = {n: run[n].values[0] for n in ("position", "force")}
    return gr.Experiment(t, inputs, outputs, hold="foh", skip=50, name="bodies")


def _fit_pendulum(samples: int, method: gr.SimulatedPEM) -> gr.Fit:
    t, inputs = times(samples), _inputs(samples)
    w = gr.Disturbance(gr.spectra.resonance(frequency=4.0, damping=0.1), scale=PROGRAM.disturbance_scale)
    model = Pendulum(w=w)
    run = gr.simulate(model, t, inputs, hold="foh", noise=True, realizations=1, seed=23, step=SPACING, rtol=1e-5)
    data = gr.Experiment(t, inputs, {"phi": run.phi.values[0]}, hold="foh", skip=SKIP, name="pendulum")
    return gr.fit(model, data, ["k", "scale(w)"], method, guess={"k": 5.0, "scale(w)": 0.8}, progress=False)


def _inputs(samples: int) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    t, path = known_path(samples)
    return {"u": (t[::EVERY], INPUT * path[::EVERY])}


def _refusal(data: gr.Experiment, guess: dict[str, float], count: int) -> str:
    """What the method says when it is to find both from the mean."""
    method = gr.SimulatedPEM(realizations=count, step=0.1, rtol=1e-4)
    try:
        gr.fit(TwoMasses(), data, list(guess), method, guess=guess, progress=False)
    except gr.EstimationError as refusal:
        return str(refusal)
    return ""


def _compared(label: str, fit: gr.Fit, truth: dict[str, float], theory: dict[str, float] | None = None) -> list[Row]:
    rows = []
    for name, value in truth.items():
        estimate, error = float(fit[name]), float(fit[name].std_error)
        shown = (theory or truth)[name]
        rows.append(Row(f"{label}: {name}", f"{estimate:.4f} ± {error:.4f}", None, shown))
        rows.append(Row(f"{label}: {name}, error in standard errors", (estimate - value) / error))
    return rows


def _figure(data: gr.Experiment, fit: gr.Fit) -> Figure:
    figure, axes = new_figure(2, 1, width=8.0, height=2.2)
    grid = data.grid()
    inputs = {"u": np.sin(np.outer(grid, SHAKER)).sum(axis=1)}
    told = gr.simulate(
        fit.model, grid, inputs, hold="foh", realizations=100, step=0.1, rtol=1e-4, reduce=["mean", "variance"]
    )
    for axis, name in zip(axes, ("position", "force"), strict=True):
        t, y, *_ = data.measurements(name)
        mean, spread = told[f"{name}_mean"].values, np.sqrt(told[f"{name}_variance"].values)
        axis.fill_between(grid, mean - 2 * spread, mean + 2 * spread, color="0.85")
        axis.plot(t, y, ".", markersize=2)
        axis.plot(grid, mean, linewidth=0.8, color="0.2")
        axis.set(ylabel=name, xlim=(0, min(100.0, grid[-1])))
    axes[-1].set_xlabel("time [s]")
    return figure


def _gains(found: dict[str, tuple[float, float]]) -> Figure:
    figure, (axis,) = new_figure(width=6.0)
    for k, (value, error) in enumerate(found.values()):
        axis.errorbar(k, value, 2 * error, marker="o", color="tab:blue")
    axis.axhline(1.0, linestyle=":", color="0.3")
    axis.set_xticks(range(len(found)), [name.replace(", ", "\n") for name in found], fontsize=7)
    axis.set(ylabel="gain ± 2 standard errors")
    return figure
