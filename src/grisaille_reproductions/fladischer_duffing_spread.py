"""How far noise spreads the stiffness of the hardening spring, and what that does to a response never measured.

Source as in ``fladischer_duffing``: Table 4.5 with its ranges for outliers, and the verification input (4.74).
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import grisaille as gr
from grisaille_reproductions.comparison import Reproduction, Row, Size, new_figure, save_figures
from grisaille_reproductions.fladischer_duffing import GUESS, METHOD, SETS, TIMES, UNKNOWNS, HardeningSpring, record
from grisaille_reproductions.statistics import histogram, moments

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from grisaille.results.monte_carlo import MonteCarlo
    from grisaille_reproductions.registry import Workers


RANGES = {"A": (60.0, 68.0), "B": (60.0, 68.0), "AB": (62.0, 66.0)}
PUBLISHED = {
    "A": (990, 64.0158, 0.5184, 0.3490), "B": (949, 63.9046, 1.2272, 0.0845), "AB": (995, 63.9921, 0.1387, 0.8819)
}  # fmt: skip
STEPS = (np.array([0.0, 10 / 3, 20 / 3, 10.0]), np.array([10.0, -10.0, 20.0, 20.0]))
"""u_v of (4.74): three levels, held."""


def spread_of_stiffness(size: Size, folder: Path | None, executor: Workers) -> Reproduction:
    """Table 4.5 and Figs. 4.17–4.21."""
    runs, shown = (1000, 100) if size == "full" else (8, 6)
    where = "serial" if executor is None and size == "small" else executor
    plans = {name: [record(n) for n in members] for name, members in SETS.items()}
    studies = {
        name: gr.monte_carlo(HardeningSpring(), plan, UNKNOWNS, METHOD, runs=runs, seed=5, guess=GUESS, executor=where)
        for name, plan in plans.items()
    }
    rows: list[Row] = []
    for name, study in studies.items():
        theory = gr.fit(HardeningSpring(), plans[name], UNKNOWNS)["k"].std_error
        rows.append(Row(f"k_{name}: converged of {runs}", int(study.table["converged"].sum())))
        rows += _rows(name, _selected(study, name), runs, theory)
    errors = {name: _verification(study, name, shown) for name, study in studies.items()}
    rows += [Row(f"y_v(ψ_{n}): median rms error [m]", float(np.median(e))) for n, e in errors.items()]
    best = min(errors, key=lambda n: float(np.median(errors[n])))
    rows.append(Row("best for the verification input", f"ψ_{best}", "ψ_AB"))
    notes = [
        f"{runs} data sets; selected: converged, and within {RANGES['A']} N/m for A and B, {RANGES['AB']} N/m for AB.",
        "The ranges are the source's and cut the tails of B at 3.2 standard deviations.",
    ]
    figures = {} if folder is None else {"figures-4.19-4.20": _histograms(studies)}
    title = "Hardening spring, spread of the stiffness (Table 4.5)"
    return Reproduction(title, tuple(rows), tuple(notes), save_figures(figures, folder))


def _chosen(study: MonteCarlo, name: str) -> Any:
    """Estimates of the converged runs inside the source's range."""
    low, high = RANGES[name]
    k = study.estimates["k"]
    return study.estimates[study.table["converged"].astype(bool) & (k > low) & (k < high)]


def _selected(study: MonteCarlo, name: str) -> np.ndarray:
    return np.asarray(_chosen(study, name)["k"])


def _rows(name: str, k: np.ndarray, runs: int, theory: float) -> list[Row]:
    m = moments(k)
    count, mean, std, p = PUBLISHED[name]
    return [
        Row(f"k_{name}: selected of {runs}", m.count, f"{count} of 1000"),
        Row(f"k_{name}: mean [N/m]", m.mean, mean, 64.0),
        Row(f"k_{name}: std [N/m]", m.std, std, theory),
        Row(f"k_{name}: p of normality", m.p_normal, p),
    ]


def _verification(study: MonteCarlo, name: str, count: int) -> np.ndarray:
    """RMS errors of responses to u_v, for the first estimates that were selected."""
    chosen = _chosen(study, name).head(count)
    exact = _respond({"k": 64.0, "h": 2.0, "b": 0.1})
    found = [_respond({n: float(row[n]) for n in ("k", "h", "b")}) for _, row in chosen.iterrows()]
    return np.array([np.sqrt(np.mean((y - exact) ** 2)) for y in found])


def _respond(values: dict[str, float]) -> np.ndarray:
    return np.asarray(gr.simulate(HardeningSpring(), TIMES, inputs={"u": STEPS}, parameters=values)["y"])


def _histograms(studies: dict[str, MonteCarlo]) -> Figure:
    figure, axes = new_figure(1, len(studies))
    for axis, (name, study) in zip(axes, studies.items(), strict=True):
        histogram(axis, _selected(study, name), "N/m")
        axis.set_title(f"k_{name}")
    return figure
