"""A model that no simulation from its start can follow, and splines that can (Figs. 1.1, 1.2; Bock's example).

    ẋ₁ = x₂,    ẋ₂ = μ² x₁ − (μ² + p²) sin pt,    x(0) = (0, π),    μ = 20, p = π

The solution is x₁ = sin πt, beside others that grow as exp(20 t): an error of 1e-9 in the start is one of 0.2 at t = 1.
Splines are held by data along the whole way, so nothing grows.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

import grisaille as gr
from grisaille import der, sin
from grisaille_reproductions.comparison import Reproduction, Row, Size, new_figure, save_figures

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.figure import Figure

    from grisaille_reproductions.registry import Workers


TIMES = np.linspace(0.0, 2.0, 81)
NOISE = 0.01
GUESS = {"p": 2.0}
SHOOTING = {
    "single shooting": gr.OutputError(),
    "multiple shooting": gr.OutputError(shooting="multiple"),
}
UNKNOWNS = ("p", "start(x1)", "start(x2)")


class Unstable(gr.Model):
    """Eqs. (1.3), which the splines may miss a little; x₁ is measured."""

    mu = gr.Parameter(20.0)
    p = gr.Parameter(np.pi, bounds=(0.5, 10.0))
    x1, x2 = gr.Variable(start=0.0), gr.Variable(start=np.pi)
    w1 = gr.Disturbance(gr.spectra.white(), scale=1e-3)
    w2 = gr.Disturbance(gr.spectra.white(), scale=2e-2)
    y = gr.Output(x1, noise=NOISE)
    equations = [der(x1) == x2 + w1, der(x2) == mu**2 * x1 - (mu**2 + p**2) * sin(p * gr.time) + w2]


def unstable(size: Size, folder: Path | None, executor: Workers, data_sets: int | None = None) -> Reproduction:
    """The simulation, the splines, and estimates of p by both."""
    runs = data_sets or (200 if size == "full" else 5)
    exact = np.sin(np.pi * TIMES)
    simulated = simulate()["x1"].values.reshape(-1)
    data = [record(k) for k in range(runs)]
    splines = [
        gr.fit(Unstable(), d, UNKNOWNS, gr.Collocation(criterion="amle"), guess=GUESS, progress=False) for d in data
    ]
    path = trajectory(splines[0])
    shots = {name: [_shoot(d, m) for d in data[: 20 if size == "full" else 2]] for name, m in SHOOTING.items()}
    p, errors = np.array([f["p"] for f in splines]), [f["p"].std_error for f in splines]
    rows = [
        Row("simulated: error of x₁ at t = 0.5", float(abs(simulated - exact)[20])),
        Row("simulated: error of x₁ at t = 2", float(abs(simulated - exact)[-1]), "leaves the solution"),
        Row("splines: largest error of x₁", float(np.abs(path - exact).max()), "nearly coincident"),
        Row("splines: fits that converged", f"{sum(f.converged for f in splines)} of {runs}"),
        Row("splines: p, mean", float(p.mean()), None, float(np.pi)),
        Row("splines: p, standard deviation", float(p.std(ddof=1)), None, float(np.mean(errors))),
    ]
    rows += [Row(f"output error, {name}: fits that converged", f"{sum(s)} of {len(s)}") for name, s in shots.items()]
    notes = (
        f"{TIMES.size} values of x₁ with a noise of {NOISE:g}, p guessed as {GUESS['p']:g}, starts unknown.",
        "The theory of the standard deviation is the mean standard error of the fits.",
    )
    drawn = {} if folder is None else {"varziri-unstable": _draw(data[0], simulated, path)}
    return Reproduction("An unstable model (Figs. 1.1, 1.2)", tuple(rows), notes, save_figures(drawn, folder))


def simulate() -> xr.Dataset:
    """As in Fig. 1.1: without disturbances, tolerances 1e-6 and 1e-12."""
    return gr.simulate(Unstable(), TIMES, realizations=None, rtol=1e-6, atol=1e-12, method="explicit")


def record(seed: int) -> gr.Experiment:
    """The exact solution with noise."""
    noise = np.random.default_rng([1983, seed]).normal(size=TIMES.size)
    return gr.Experiment(TIMES, outputs={"y": np.sin(np.pi * TIMES) + NOISE * noise}, name=f"record {seed}")


def trajectory(fit: gr.Fit) -> np.ndarray:
    """x₁ of the splines at the sampling instants."""
    band = fit.states(names=["x1"])["x1"].sel(given="smoothed", statistic="mean")
    return np.asarray(np.interp(TIMES, band["time"].values, band.values))


def _shoot(data: gr.Experiment, method: gr.OutputError) -> bool:
    """Whether output error converges, near the truth."""
    fit = gr.fit(Unstable(), data, UNKNOWNS, method, guess=GUESS, progress=False)
    return bool(fit.converged and abs(fit["p"] / np.pi - 1) < 0.1)


def _draw(data: gr.Experiment, simulated: np.ndarray, path: np.ndarray) -> Figure:
    figure, axes = new_figure(1, 2)
    for axis, found, label in zip(axes, (simulated, path), ("simulated", "splines"), strict=True):
        axis.plot(TIMES, np.sin(np.pi * TIMES), color="0.5", label="exact")
        axis.plot(TIMES, found, "--", label=label)
        axis.set(xlabel="t", ylabel="x₁", ylim=(-1.6, 1.6))
    samples = data.measurements("y")
    axes[1].plot(samples.times, samples.values, "k.", markersize=3, label="measured")
    for axis in axes:
        axis.legend(fontsize=8)
    return figure
