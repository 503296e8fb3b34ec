"""What ``grisaille demo`` shows: a pendulum in gusts, from its equations to parameters that can be trusted.

Five equations as they stand in a textbook: Newton's law in two directions, and a rod of constant length in place of an
angle. Written like this it is a differential-algebraic system of index 3. The pendulum is released off its rest
position, pushed once, and swings in gusts that nobody measures. From its angle alone drag and gusts are estimated: by
output error, which takes the gusts for noise and is misled, and by a Kalman filter, which is not.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

import grisaille as gr
from grisaille import atan2, der
from grisaille.writing import write_figure

if TYPE_CHECKING:
    import xarray as xr
    from rich.table import Table

SHOWN = ("time", "x", "y", "phi", "tension")
LENGTH, DRAG, RELEASED, GUSTS = 6.25, 0.05, 4.0, 0.2
TIMES = np.linspace(0.0, 30.0, 601)
NEXT = """What to try next
  grisaille reproduce --list                 published tables, computed again
  fit.report("report.html")                  such a page for a fit of your own
  fit.profile("k").plot()                    how far the data hold the drag
  gr.multistart(model, data, ["k"])          the same fit from many starts
  gr.monte_carlo(model, data, ["k"])         how far noise spreads the estimate"""


class Pendulum(gr.Model):
    """Pendulum in Cartesian coordinates: an index-3 DAE with drag and gusts."""

    m = gr.Parameter(0.3, "kg")
    g = gr.Parameter(9.81, "m/s2")
    L = gr.Parameter(LENGTH, "m")
    k = gr.Parameter(DRAG, "kg/m", bounds=(0.005, 20.0))

    x, y = gr.Variable(start=0.0, unit="m"), gr.Variable(start=-L, unit="m")
    vx, vy = gr.Variable(start=0.0, unit="m/s"), gr.Variable(start=0.0, unit="m/s")
    tension = gr.Variable(unit="N/m")

    u = gr.Input("N")
    gust = gr.Disturbance(gr.spectra.lowpass(bandwidth=2.0), scale=0.1, unit="N")
    phi = gr.Output(atan2(x, -y), noise=0.002, unit="rad")

    equations = [
        der(x) == vx,
        der(y) == vy,
        m * der(vx) == tension * x - k * abs(vx) * vx + u + gust,
        m * der(vy) == tension * y - k * abs(vy) * vy - m * g,
        x**2 + y**2 == L**2,
    ]


def push(t: float) -> float:
    """Return a force of half a second after fifteen seconds, smooth at both ends [N]."""
    return 4.0 * np.sin(2 * np.pi * (t - 15.0)) ** 2 if 15.0 < t < 15.5 else 0.0


def record() -> gr.Experiment:
    """Return the angle, ten times a second for half a minute, with noise; it swung in gusts of 0.2 N s^½, drag 0.05
    kg/m.
    """
    times = TIMES[::2]
    force = np.array([push(t) for t in times])
    swung = gr.simulate(
        Pendulum(), times, {"u": force}, {"k": DRAG, "scale(gust)": GUSTS}, start={"x": RELEASED}, realizations=1,
        seed=3, noise=True,
    )  # fmt: skip
    angle = swung["phi"].to_numpy()[0]
    return gr.Experiment(times, {"u": force}, {"phi": angle}, name="in gusts", start={"x": RELEASED})


def run(directory: Path) -> Path:
    """Analyse, simulate and fit the pendulum, print all three, write a picture and a report; return its path."""
    from rich.console import Console

    model = Pendulum()
    print(model, end="\n\n")
    print(gr.analyze(model), end="\n\n")
    result = gr.simulate(model, TIMES, inputs={"u": push}, start={"x": RELEASED}, rtol=1e-8)
    Console(highlight=False).print(_table(result))
    print(f"Simulation: {result.attrs['status']}.", end="\n\n")
    fit = _fits(record())
    picture = _draw(result, directory)
    report: Path = fit.report(directory / "report.html", profiles=True, title="Pendulum: drag, in gusts")
    print(f"Picture: {picture.resolve()}")
    print(f"Report:  {report.resolve()}")
    print("         open it in a browser: equations, estimates, zoomable plots, residual tests, the code to repeat it")
    print(f"\n{NEXT}")
    return report


def _fits(data: gr.Experiment) -> gr.Fit:
    """Return the drag by the wrong estimator and by the right one, and what each says about itself."""
    print("Its angle was measured while gusts blew that nobody measured. Drag and gusts, fitted:")
    misled = gr.fit(Pendulum(), data, ["k"], gr.OutputError(), guess={"k": 0.1})
    fit = gr.fit(Pendulum(), data, ["k", "scale(gust)"], guess={"k": 0.1})
    print(fit, end="\n\n")
    print(f"The same data by two estimators; the truth is k = {DRAG:g} kg/m:")
    for said, found in (("output error, gusts held at zero", misled), ("Kalman filter", fit)):
        k = found["k"]
        off, health = abs(k - DRAG) / k.std_error, "white" if found.diagnose() else "NOT white"
        print(f"  {said:<34}{float(k):.4f} ± {k.std_error:.2g}  {off:5.1f} standard errors off, residuals {health}")
    tension = fit.states(names=["tension"])["tension"].sel(given="smoothed").isel(time=-1) * -LENGTH
    print(
        f"And what was never measured, the force in the rod at the end: {float(tension.sel(statistic='mean')):.3f} ± "
        f"{abs(float(tension.sel(statistic='std'))):.3f} N",
        end="\n\n",
    )
    return fit


def _table(result: xr.Dataset) -> Table:
    """Return eleven instants of the trajectory, and how well the rod kept its length."""
    from rich.table import Table

    table = Table(title="The trajectory, every three seconds")
    for name in SHOWN:
        table.add_column(f"{name}\n{result[name].attrs.get('units', 's')}", justify="right")
    table.add_column("x² + y² − L²\nm²", justify="right")
    for row in range(0, result.sizes["time"], 60):
        at = result.isel(time=row)
        error = float(at["x"] ** 2 + at["y"] ** 2) - LENGTH**2
        table.add_row(*(f"{float(at[name]):.4f}" for name in SHOWN), f"{error:.1e}")
    return table


def _draw(result: xr.Dataset, directory: Path) -> Path:
    """Return the path in the plane, and angle and force over time."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9.0, 3.6), layout="constrained")
    plane, angle = figure.subplots(1, 2, width_ratios=(1, 2))
    for row in range(0, 60, 4):
        plane.plot([0, result["x"][row]], [0, result["y"][row]], color="0.85", linewidth=0.8)
    plane.plot(result["x"], result["y"], color="0.25")
    plane.plot([0], [0], "o", color="0.25", markersize=4)
    plane.set(xlabel="x [m]", ylabel="y [m]", title="path of the bob")
    plane.set_aspect("equal")
    angle.plot(result["time"], result["phi"], color="0.25", label="angle φ [rad]")
    angle.plot(result["time"], result["u"] / 10, color="tab:red", linewidth=0.9, label="force u [10 N]")
    angle.set(xlabel="time [s]", title="released, then pushed")
    angle.legend(frameon=False, loc="upper right")
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / "pendulum.png"
    return write_figure(path, figure, "The picture", dpi=150)
