"""The linearised stirred tank: how the weight of the model acts on the estimates (Figs. 3.6, 3.7, §3.4.1).

    Ċ′ = w_C C′ + w_T T′ + η,    w_C = −F/V − g,    w_T = −g (E/R) C_As/T_s²,    g = k_ref exp(−E/R (1/T_s − 1/T_ref))

The criterion  Σ(y − C′)² + λ ∫(Ċ′ − …)² dt  depends on noise and intensity by λ = σ²/Q alone, so other weights than the
best one, λ = σ²/Q of the truth, are given as weights of the data. The source holds its noise for 0.1 min at a
variance of 2e-3; white noise of the same intensity, 2e-4, is used here. Its step of temperature is shown only as a
picture; here it is 15 K, from 2 min on.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import grisaille as gr
from grisaille import der, exp
from grisaille_reproductions.comparison import Reproduction, Row, Size, save_figures
from grisaille_reproductions.varziri_spread import Question, accuracy, box_plots, endings, run_studies

if TYPE_CHECKING:
    from grisaille.estimation.estimator import Estimator
    from grisaille.results.monte_carlo import MonteCarlo
    from grisaille_reproductions.registry import Workers


TRUE = {"k_ref": 0.461, "E_R": 8330.1}
TIMES = np.round(np.arange(241) * 0.1, 10)
INTENSITY = 2e-4
NOISE = 4e-4
"""Variance."""
WEIGHTS = (0.1, 1.0, 10.0)
"""λ over the best one."""
OUTPUT_ERROR = "output error"


class LinearReactor(gr.Model):
    """Eq. (3.31), in deviations from the steady state at 332 K."""

    k_ref = gr.Parameter(TRUE["k_ref"], "1/min", bounds=(0.01, 5.0))
    E_R = gr.Parameter(TRUE["E_R"], "K", bounds=(500.0, 40000.0))
    F, V = gr.Parameter(0.05, "m3/min"), gr.Parameter(1.0, "m3")
    T_s, T_ref = gr.Parameter(332.0, "K"), gr.Parameter(350.0, "K")
    C_s = gr.Parameter(0.567, "kmol/m3")
    Q = gr.Parameter(INTENSITY)

    C = gr.Variable(start=0.0, unit="kmol/m3", nominal=0.1)
    T = gr.Input("K")
    w = gr.Disturbance(gr.spectra.white(), scale=Q**0.5)
    y = gr.Output(C, noise=np.sqrt(NOISE), unit="kmol/m3")

    g = k_ref * exp(-E_R * (1 / T_s - 1 / T_ref))
    equations = [der(C) == -(F / V + g) * C - g * E_R * C_s / T_s**2 * T + w]


@dataclass(frozen=True)
class Noise:
    """How strongly the process is disturbed."""

    label: str
    factor: float


LEVELS = (Noise("process noise of the source", 1.0), Noise("ten times the process noise", 10.0))


def weights(size: Size, folder: Path | None, executor: Workers, data_sets: int | None = None) -> Reproduction:
    """Estimates with λ of 0.1, 1 and 10 times the best, and output error, at two levels of disturbance."""
    runs = data_sets or (50 if size == "full" else 6)
    rows: list[Row] = []
    figures: dict[str, Any] = {}
    notes = [f"{runs} data sets at each level; first guess: half of both true values; errors of E/R in 1000 K."]
    for level in LEVELS:
        studies = level_studies(level, runs, size, folder, executor)
        rows += _rows(level, studies)
        notes += endings(studies)
        if folder is not None:
            figures[f"varziri-linear-{level.factor:g}"] = box_plots(studies, list(TRUE))
    title = "Linear stirred tank, weights of the model (Figs. 3.6, 3.7)"
    return Reproduction(title, tuple(rows), tuple(notes), save_figures(figures, folder))


def level_studies(level: Noise, runs: int, size: Size, folder: Path | None, executor: Workers) -> dict[str, MonteCarlo]:
    """Studies by method, the same data in each."""
    model = LinearReactor(Q=level.factor * INTENSITY)
    guess = {name: 0.5 * value for name, value in TRUE.items()}
    found: dict[str, Any] = {}
    for label, method, weight in _methods():
        asked, name = Question(model, plan(weight), list(TRUE), guess, 0.1), f"linear-{level.factor:g}"
        found |= run_studies(asked, {label: method}, runs, size=size, folder=folder, name=name, executor=executor)
    return found


def _methods() -> list[tuple[str, Estimator, float]]:
    """Label, method, and the weight of residuals that multiplies λ: λ/λ_opt = 1/weight²."""
    splines: list[tuple[str, Any, float]] = [
        (f"{w:g} λ_opt", gr.Collocation(criterion="amle"), float(w**-0.5)) for w in WEIGHTS
    ]
    return [*splines, (OUTPUT_ERROR, gr.OutputError(), 1.0)]


def plan(weight: float = 1.0) -> gr.Experiment:
    step = (np.array([0.0, 2.0]), np.array([0.0, 15.0]))
    return gr.Experiment(
        inputs={"T": step}, outputs={"y": (TIMES, np.zeros(TIMES.size))}, t0=0.0, weights={"y": weight}, name="step"
    )


def _rows(level: Noise, studies: dict[str, MonteCarlo]) -> list[Row]:
    tables = {label: accuracy(study) for label, study in studies.items()}
    best, worst = tables["1 λ_opt"], tables[OUTPUT_ERROR]
    rows = [Row(f"{level.label}: methods", " | ".join(tables))]
    for name, factor in (("k_ref", 1.0), ("E_R", 1e-3)):
        for column, what in (("rms", "root-mean-square error"), ("iqr", "inter-quartile range")):
            cell = " | ".join(f"{factor * t.loc[name, column]:.3g}" for t in tables.values())
            rows.append(Row(f"{level.label}: {name}, {what}", cell))
        ratio = float(best.loc[name, "iqr"] / worst.loc[name, "iqr"])
        rows.append(Row(f"{level.label}: {name}, inter-quartile range, λ_opt over output error", ratio, "better"))
        covered = 100 * float(best.loc[name, "coverage"])
        rows.append(Row(f"{level.label}: {name}, 95 % intervals at λ_opt that hold the truth [%]", covered, None, 95))
    return rows
