"""The LuGre model of friction: a bristle that bends before the body slides, driven by a triangular force.

    m v̇ = u − F,      F = σ₀ z + σ₁ ż + b v,      ż = v − |v| z / g(v),
    σ₀ g(v) = m g (μ + (μ₀ − μ) e^{−(v/v_s)²}),      σ₁ = 2√(σ₀ m)  (critical damping)

Source: S. O. Fladischer, System Identification of Nonlinear Dynamic Systems, master's thesis, Montanuniversität Leoben
(2020), section 4.3; (4.93) prints the quotient under the root, the same for m = 1 kg. Its amplitudes are shown only in
pictures (except 0.5 and 1.5 μ₀mg), and so are its curves: what it says about them is checked.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

import grisaille as gr
from grisaille import der, exp, sqrt
from grisaille_reproductions.comparison import Reproduction, Row, Size, new_figure, save_figures

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.figure import Figure

    from grisaille_reproductions.registry import Workers


UNKNOWNS = ["b", "sigma0", "vs", "mu0", "mu"]
PERIOD = 5.0
STATIC = 0.15 * 9.81
"""μ₀ m g [N]."""
SMALL, LARGE = (0.25, 0.5, 0.75, 0.95), (1.0, 1.25, 1.5, 2.0)


class LuGre(gr.Model):
    """A body on a rough plane, pushed by a force."""

    m = gr.Parameter(1.0, "kg")
    g = gr.Parameter(9.81, "m/s2")
    b = gr.Parameter(0.4, "kg/s", "viscous friction")
    sigma0 = gr.Parameter(1e5, "N/m", "stiffness of the bristle")
    vs = gr.Parameter(0.01, "m/s", "Stribeck velocity")
    mu0 = gr.Parameter(0.15, "", "static friction")
    mu = gr.Parameter(0.10, "", "sliding friction")
    x, v, z = gr.Variable(0.0, "m"), gr.Variable(0.0, "m/s"), gr.Variable(0.0, "m")
    friction = gr.Variable(unit="N")
    u = gr.Input("N")
    y = gr.Output(x, unit="m")
    equations = [
        der(x) == v,
        m * der(v) == u - friction,
        friction == sigma0 * z + 2 * sqrt(sigma0 * m) * der(z) + b * v,
        der(z) == v - abs(v) * sigma0 * z / (m * g * (mu + (mu0 - mu) * exp(-((v / vs) ** 2)))),
    ]


def triangle(amplitude: float, *, swing: bool) -> tuple[np.ndarray, np.ndarray]:
    """One period: up, down below zero and back, or (``swing=False``) a single peak. ``amplitude`` in μ₀ m g."""
    peak = amplitude * STATIC
    if swing:
        return PERIOD * np.array([0.0, 0.25, 0.75, 1.0]), np.array([0.0, peak, -peak, 0.0])
    return PERIOD * np.array([0.0, 0.5, 1.0]), np.array([0.0, peak, 0.0])


def hysteresis(size: Size, folder: Path | None, executor: Workers) -> Reproduction:
    """Figs. 4.25–4.30: displacement before sliding, loops of friction, the Stribeck curve."""
    times = np.linspace(0.0, PERIOD, 2001 if size == "full" else 501)
    runs = {
        a: gr.simulate(LuGre(), times, inputs={"u": triangle(a, swing=True)}, hold={"u": "foh"}, rtol=1e-8)
        for a in (*SMALL, *LARGE)
    }
    gentle, strong = runs[0.5], runs[1.5]
    along = float((gentle["friction"] * gentle["v"] < 0).mean())
    rows = (
        Row("0.5 μ₀mg: largest |x| [m]", float(abs(gentle["x"]).max()), "micro"),
        Row("1.5 μ₀mg: largest |x| [m]", float(abs(strong["x"]).max()), "macro"),
        Row("1.5 μ₀mg: largest friction before sliding [N]", _peak(strong), None, STATIC),
        Row("1.5 μ₀mg: lowest friction while sliding [N]", _lowest(strong), None, 0.10 * 9.81),
        Row("0.5 μ₀mg: share of time friction drives the motion [%]", 100 * along, "> 0"),
        Row("0.5 μ₀mg: x that is left after the cycle [m]", float(gentle["x"][-1])),
    )
    notes = ("Theory: friction rises to μ₀mg, falls to about μmg when sliding begins, and grows again with bv.",)
    figures = {} if folder is None else _loops(runs)
    title = "LuGre friction, response to a triangular force (Figs. 4.25–4.30)"
    return Reproduction(title, rows, notes, save_figures(figures, folder))


def sensitivities(size: Size, folder: Path | None, executor: Workers) -> Reproduction:
    """Figs. 4.31–4.33: which parameters move the response, before and while sliding."""
    times = np.linspace(0.0, PERIOD, 501 if size == "full" else 126)
    found = {}
    for amplitude in (0.5, 1.5):
        data = gr.Experiment(times, {"u": triangle(amplitude, swing=True)}, {"y": np.zeros(len(times))}, hold="foh")
        found[amplitude] = gr.sensitivity(LuGre(), data, UNKNOWNS)
    largest = {a: abs(s.data["y"]).max("time").to_series() for a, s in found.items()}
    order = {a: ", ".join(s.sort_values(ascending=False).index) for a, s in largest.items()}
    pair = found[0.5].data["y"].to_dataframe()["y"].unstack("parameter")[["vs", "mu"]]
    rows = [Row(f"{a} μ₀mg: ∂x/∂ log {n} [m]", float(s[n])) for a, s in largest.items() for n in UNKNOWNS]
    rows += [
        Row("0.5 μ₀mg: the two strongest", order[0.5].rsplit(", ", 3)[0], "sigma0, mu0"),
        Row("1.5 μ₀mg: the weakest", order[1.5].rsplit(", ", 1)[1], "sigma0"),
        Row("0.5 μ₀mg: 1 − correlation of v_s and μ", 1 - float(pair.corr().iloc[0, 1]), "similar, not the same"),
    ]
    notes = (
        "Before sliding, v ≪ v_s: both act through (μ₀ − μ)(v/v_s)², and 2(μ₀ − μ) = μ makes the two relative "
        "sensitivities equal to leading order; no experiment of this kind tells v_s and μ apart.",
    )
    figures = {} if folder is None else {f"figure-{n}": found[a].plot() for n, a in (("4.31", 0.5), ("4.33", 1.5))}
    title = "LuGre friction, sensitivities (Figs. 4.31–4.33)"
    return Reproduction(title, tuple(rows), notes, save_figures(figures, folder))


def _peak(run: xr.Dataset) -> float:
    """Friction where sliding begins, on the way up."""
    return float(run["friction"].where(run["time"] < PERIOD / 4).max())


def _lowest(run: xr.Dataset) -> float:
    """The lowest friction after the peak and before the force returns, while the body slides faster than 3 v_s."""
    sliding = run["friction"].where((run["v"] > 0.03) & (run["time"] < 0.4 * PERIOD))
    return float(sliding.min())


def _loops(runs: dict[float, xr.Dataset]) -> dict[str, Figure]:
    figures = {}
    for name, amplitudes in (("small", SMALL), ("large", LARGE)):
        figure, (position, loop, curve) = new_figure(1, 3)
        for a in amplitudes:
            run = runs[a]
            position.plot(run["time"], run["x"], label=f"{a:g} μ₀mg")
            loop.plot(run["x"], run["friction"])
            curve.plot(run["v"], run["friction"])
        position.set(xlabel="time [s]", ylabel="x [m]")
        loop.set(xlabel="x [m]", ylabel="friction [N]")
        curve.set(xlabel="v [m/s]", ylabel="friction [N]")
        position.legend(frameon=False)
        figures[f"hysteresis-{name}"] = figure
    return figures
