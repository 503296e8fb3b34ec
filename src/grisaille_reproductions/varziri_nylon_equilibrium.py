"""Nylon 612: which formula of the apparent equilibrium constant, from steady states.

    K_a = L W_eq / (C A) at rest,      K_a = Γ(W_eq, T) / (γ_W/γ_W0) K_a0 exp(−(ΔH/R)(1/T − 1/T₀)) + ε    (6.21)–(6.23)

Eight formulas for Γ are compared by their sums of squares; the rows that the source marks as steady states are the
data. Source: M. S. Varziri, thesis, Queen's University (2008), section 6.4.2. The source also had 17 steady states of
three catalysed runs; their water pressures are not printed, so they cannot be used here.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

import grisaille as gr
from grisaille import exp, sqrt
from grisaille_reproductions.comparison import Reproduction, Row, Size, new_figure, save_figures
from grisaille_reproductions.varziri_nylon import ACTIVITY_0, GAS, REFERENCE, equilibrium_water

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from grisaille_reproductions.registry import Workers


PUBLISHED_SQUARES = {1: 4058.13, 2: 3956.58, 3: 4058.13, 4: 12955.14, 5: 5351.68, 6: 3573.92, 7: 3487.91, 8: 3573.14}
PUBLISHED_ESTIMATES = {"a": 0.60, "K_a0": 22.01, "dH": -39.62}
TEXTS = {
    1: "a + b W", 2: "1 + exp(a + b/T) W", 3: "1 + a W", 4: "1", 5: "2 − exp(−W/b)", 6: "1 + a (1 − exp(−W/b))",
    7: "1 + a √W + b W", 8: "1 + a √W",
}  # fmt: skip
FEWER = (
    "Ours are the steady states of the six runs without catalyst; the source also had 17 of three catalysed runs, "
    "whose water pressures are not printed. Sums of squares therefore compare only among each other."
)


class Equilibrium(gr.Model):
    """The apparent equilibrium constant at given water and temperature; formula 8."""

    K_a0 = gr.Parameter(22.01)
    dH = gr.Parameter(-39.62, "kJ/mol")
    a = gr.Parameter(0.6)
    b = gr.Parameter(0.0)
    W_eq, T = gr.Input("mol/Mg"), gr.Input("K")
    K_a = gr.Variable()
    gamma = gr.Variable()
    y = gr.Output(K_a)

    def activity(self) -> Any:
        return 1 + self.a * sqrt(self.W_eq)

    def equations(self) -> Any:
        inverse = (1 / self.T - 1 / REFERENCE) / GAS
        yield self.gamma == self.activity()
        yield self.K_a == self.gamma * ACTIVITY_0 / exp(9.624 - 3613 / self.T) * self.K_a0 * exp(-self.dH * inverse)


def _variant(number: int, formula: Any) -> type[Equilibrium]:
    return type(f"Equilibrium{number}", (Equilibrium,), {"activity": formula, "__doc__": f"Γ = {TEXTS[number]}"})


VARIANTS: dict[int, tuple[type[Equilibrium], dict[str, float]]] = {
    1: (_variant(1, lambda s: s.a + s.b * s.W_eq), {"a": 30.0, "b": 0.3, "dH": -40.0}),
    2: (_variant(2, lambda s: 1 + exp(s.a + s.b / s.T) * s.W_eq), {"K_a0": 40.0, "a": -4.0, "b": 0.0, "dH": -40.0}),
    3: (_variant(3, lambda s: 1 + s.a * s.W_eq), {"K_a0": 40.0, "a": 0.02, "dH": -40.0}),
    4: (_variant(4, lambda s: 1 + 0 * s.W_eq), {"K_a0": 60.0, "dH": -40.0}),
    5: (_variant(5, lambda s: 2 - exp(-s.W_eq / s.b)), {"K_a0": 40.0, "b": 20.0, "dH": -40.0}),
    6: (
        _variant(6, lambda s: 1 + s.a * (1 - exp(-s.W_eq / s.b))),
        {"K_a0": 40.0, "a": 2.0, "b": 30.0, "dH": -40.0},
    ),
    7: (
        _variant(7, lambda s: 1 + s.a * sqrt(s.W_eq) + s.b * s.W_eq),
        {"K_a0": 22.0, "a": 0.6, "b": 0.01, "dH": -40.0},
    ),
    8: (Equilibrium, {"K_a0": 22.0, "a": 0.6, "dH": -40.0}),
}
"""Model and first values of its unknowns; in (1) K_a0 is one, as only its products with a and b matter."""


@cache
def steady_states() -> pd.DataFrame:
    """Marked rows with water in equilibrium and the observed K_a."""
    rows = gr.examples.nylon612_table().query("steady").dropna().copy()
    rows["W_eq"] = equilibrium_water(rows["P_W"].to_numpy(), rows["T"].to_numpy())
    links = (1e6 - 115.15 * rows["C"] - 58.10 * rows["A"] - 18.02 * rows["W_eq"]) / 155.23
    rows["K_a"] = links * rows["W_eq"] / (rows["C"] * rows["A"])
    return rows.reset_index(drop=True)


@cache
def fit_formula(number: int) -> gr.Fit:
    """One of the eight formulas."""
    rows = steady_states()
    signals = {"W_eq": rows["W_eq"].to_numpy(), "T": rows["T"].to_numpy()}
    data = gr.Experiment(None, signals, {"y": rows["K_a"].to_numpy()})
    variant, guess = VARIANTS[number]
    model = variant(K_a0=1.0) if number == 1 else variant()
    return gr.fit(model, data, list(guess), gr.OutputError(max_evaluations=2000), guess=guess, progress=False)


def sum_of_squares(fit: gr.Fit) -> float:
    rows = steady_states()
    return float(((rows["K_a"] - predicted(fit)) ** 2).sum())


def predicted(fit: gr.Fit) -> np.ndarray:
    rows = steady_states()
    signals = {"W_eq": rows["W_eq"].to_numpy(), "T": rows["T"].to_numpy()}
    return np.asarray(fit.predict(gr.Experiment(None, signals, {"y": rows["K_a"].to_numpy()}))["y"].to_numpy())


def selection(size: Size, folder: Path | None, executor: Workers) -> Reproduction:
    """Table 6.1."""
    rows = []
    for number, text in TEXTS.items():
        fit = fit_formula(number)
        rows.append(Row(f"({number}) Γ = {text}: Σ(ΔK_a)²", sum_of_squares(fit), PUBLISHED_SQUARES[number]))
    data = steady_states()
    groups = data.groupby(["T", "P_W"])["K_a"]
    spread = float((groups.var() * (groups.count() - 1)).sum() / (groups.count() - 1).sum())
    rows += [Row("steady states", len(data), "about 38"), Row("pooled variance of repeated K_a", spread, 94.9)]
    notes = (
        FEWER,
        "Formulas 1 and 3 are one model written twice, 4 is too poor; of the formulas with three unknowns, 8 fits "
        "best, and the fourth unknown of 6 and 7 is not worth its place: the source's choice.",
    )
    return Reproduction("Nylon 612, formulas of K_a (Table 6.1)", tuple(rows), notes)


def estimates(size: Size, folder: Path | None, executor: Workers) -> Reproduction:
    """Table 6.2."""
    fit = fit_formula(8)
    rows = [
        Row(
            f"{name}{' [kJ/mol]' if name == 'dH' else ''}", f"{float(fit[name]):.4g} ± {fit[name].std_error:.2g}", value
        )
        for name, value in PUBLISHED_ESTIMATES.items()
    ]
    apart = fit_formula(7)
    table = apart.parameters
    for name in ("a", "b"):
        low, high = table["lower"][name], table["upper"][name]
        shown = f"{low:.3g} … {high:.3g}" if np.isfinite(high - low) else "not determined"
        rows.append(Row(f"formula 7: {name}, 95 % interval", shown, "contains 0"))
    return Reproduction("Nylon 612, K_a = Γ … with Γ = 1 + a√W_eq (Table 6.2)", tuple(rows), (FEWER,))


def figures(size: Size, folder: Path | None, executor: Workers) -> Reproduction:
    """Figs. 6.1 to 6.4: observed and predicted K_a, and residuals."""
    data, fit = steady_states(), fit_formula(8)
    fitted = predicted(fit)
    residual = data["K_a"].to_numpy() - fitted
    rows = (
        Row("correlation of residuals with T", float(np.corrcoef(residual, data["T"])[0, 1]), "none seen"),
        Row("correlation of residuals with W_eq", float(np.corrcoef(residual, data["W_eq"])[0, 1]), "none seen"),
        Row("largest residual, in deviations", float(np.abs(residual).max() / residual.std(ddof=3))),
    )
    drawn = {} if folder is None else {"figures-6.1-6.4": _draw(data, fitted)}
    notes = ("Fig. 6.1 shows the catalysed runs at 290 °C; ours shows the runs at 284 °C, with the fitted curve.",)
    title = "Nylon 612, K_a observed and predicted (Figs. 6.1–6.4)"
    return Reproduction(title, rows, notes, save_figures(drawn, folder))


def _curve(water: np.ndarray, T: float) -> np.ndarray:
    """The fitted K_a over water at one temperature."""
    fit = fit_formula(8)
    data = gr.Experiment(None, {"W_eq": water, "T": np.full_like(water, T)}, {"y": np.zeros_like(water)})
    return np.asarray(fit.predict(data)["y"].to_numpy())


def _draw(data: pd.DataFrame, fitted: np.ndarray) -> Figure:
    figure, axes = new_figure(2, 3, width=4.2, height=3.0)
    hot = data[data["T"] > 556.0]
    axes[0].plot(hot["W_eq"], hot["K_a"], "o", color="0.4")
    water = np.linspace(0.0, 45.0, 100)
    axes[0].plot(water, _curve(water, float(hot["T"].iloc[0])), color="tab:red")
    axes[0].set(xlabel="W_eq [mol/Mg]", ylabel="K_a", title="284 °C")
    for axis, name, label in ((axes[1], "T", "T [K]"), (axes[2], "W_eq", "W_eq [mol/Mg]")):
        axis.plot(data[name], data["K_a"], "o", color="0.4", label="observed")
        axis.plot(data[name], fitted, "+", color="tab:red", markersize=9, label="predicted")
        axis.set(xlabel=label, ylabel="K_a")
        axis.legend(frameon=False)
    for axis, name, label in ((axes[4], "T", "T [K]"), (axes[5], "W_eq", "W_eq [mol/Mg]")):
        axis.axhline(0.0, color="0.7", linewidth=0.8)
        axis.plot(data[name], data["K_a"] - fitted, "o", color="0.4")
        axis.set(xlabel=label, ylabel="residual of K_a")
    axes[3].set_axis_off()
    return figure
