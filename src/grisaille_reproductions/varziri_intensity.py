"""The stirred tank with unknown intensities and unknown starts: three ways to estimate them, on the same data.

Figs. 5.2–5.8, Table 5.1, and Table 5.2, whose estimator is ours by ``gr.KalmanML``. The source takes 200 equal knots;
the best path bends at every sample, and a spline that cannot takes its own stiffness for a disturbance: both choices of
knots are shown. First guess: half of every parameter, about which the source draws its guesses, and the true scales.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import grisaille as gr
from grisaille_reproductions import varziri_cstr as cstr
from grisaille_reproductions.comparison import Reproduction, Row, Size, save_figures
from grisaille_reproductions.varziri_intensity_figures import draw_intensities
from grisaille_reproductions.varziri_nonlinear import ORDER, STEP, plan
from grisaille_reproductions.varziri_spread import Question, endings, run_studies, side_by_side

if TYPE_CHECKING:
    from grisaille.estimation.estimator import Estimator
    from grisaille.results.monte_carlo import MonteCarlo
    from grisaille_reproductions.registry import Workers


STARTS = ("start(C_A)", "start(T)")
INTENSITIES = {"scale(w_C)": 4e-3, "scale(w_T)": 4.0}
"""True Q of the material and of the energy balance."""
SHOWN = {"scale(w_C)": "Q_p1", "scale(w_T)": "Q_p2"}
UNKNOWNS = (*ORDER, *STARTS, *INTENSITIES)
METHODS: dict[str, Any] = {
    "AMLE": gr.Collocation(criterion="amle", intensities="estimate", refine=0),
    "AMLE, debiased": gr.Collocation(criterion="amle", intensities="estimate", refine=0, debias=True),
    "AMLE, 200 knots": gr.Collocation(criterion="amle", intensities="estimate", knots=200),
    "marginal": gr.Collocation(criterion="laplace", refine=0),
    "Kalman": gr.KalmanML(initial_covariance={"C_A": 0.0, "T": 0.0}),
}
ERRORS = {
    "a": (0.2823, 0.5612), "b": (0.0508, 0.0916), "E_R": (0.0989, 0.1951), "k_ref": (0.0062, 0.0112),
    "start(C_A)": (0.0139, 0.0323), "start(T)": (0.54, 0.79),
}  # fmt: skip
"""Standard deviations of Tables 5.1 (AMLE) and 5.2 (CTSM), from one data set."""
SINGLE = {"scale(w_C)": (2.43e-3, 3.00e-3), "scale(w_T)": (2.87, 2.63)}
"""Intensities of the same."""
FULL = {"AMLE": 500, "AMLE, debiased": 200, "AMLE, 200 knots": 200, "Kalman": 200, "marginal": 200}


def unknown_intensities(
    size: Size, folder: Path | None, executor: Workers, data_sets: int | None = None
) -> Reproduction:
    """Estimates, intensities and times."""
    small = {"AMLE": 4, "marginal": 2}
    chosen = FULL if size == "full" else small
    runs = {label: data_sets or count for label, count in chosen.items()}
    methods = {label: METHODS[label] for label in chosen}
    asked = Question(cstr.Reactor(), plan(at_once=True), UNKNOWNS, first_guess(), STEP)
    studies = run_studies(asked, methods, runs, size=size, name="intensity", folder=folder, executor=executor)
    errors = {name: f"AMLE {ours:g} | CTSM {theirs:g}" for name, (ours, theirs) in ERRORS.items()}
    rows = side_by_side(studies, (*ORDER, *STARTS), errors)
    rows += [row for name in INTENSITIES for row in _intensity_rows(studies, name)]
    rows += _times(studies["AMLE"], methods, 1 if size == "small" else 5)
    notes = [
        "Data sets: " + ", ".join(f"{label} {count}" for label, count in runs.items()) + "; the first ones are common.",
        "Published: from one data set. Standard errors of AMLE hold for the intensities found.",
        *endings(studies),
    ]
    figures: dict[str, Any] = {}
    if folder is not None:
        figures = draw_intensities(studies, (*ORDER, *STARTS), {n: (SHOWN[n], q) for n, q in INTENSITIES.items()})
    title = "Stirred tank, unknown intensities (Figs. 5.2–5.8, Tables 5.1, 5.2)"
    return Reproduction(title, tuple(rows), tuple(notes), save_figures(figures, folder))


def first_guess() -> dict[str, float]:
    """Half of every parameter; scales begin at those declared, the true ones."""
    scales = {name: float(np.sqrt(q)) for name, q in INTENSITIES.items()}
    return {**cstr.halved_guess(), **scales}


def intensity_ratios(study: MonteCarlo, name: str) -> np.ndarray:
    """Q̂/Q of the converged fits."""
    return np.asarray(study.estimates[name][study.table["converged"]]) ** 2 / INTENSITIES[name]


def _intensity_rows(studies: dict[str, MonteCarlo], name: str) -> list[Row]:
    ratios = [intensity_ratios(s, name) for s in studies.values()]
    published = " | ".join(f"{q / INTENSITIES[name]:.2f}" for q in SINGLE[name])
    quartiles = (np.quantile(r, [0.25, 0.75]) for r in ratios)
    return [
        Row(f"{SHOWN[name]}: median of Q̂/Q", " | ".join(f"{np.median(r):.3f}" for r in ratios), published, 1.0),
        Row(f"{SHOWN[name]}: quartiles of Q̂/Q", " | ".join(f"{low:.2f}–{high:.2f}" for low, high in quartiles)),
    ]


def _times(study: MonteCarlo, methods: dict[str, Estimator], fits: int) -> list[Row]:
    """Processor time, which others on the machine do not change."""
    spent = {}
    for label, method in methods.items():
        begin = time.process_time()
        for run in range(fits):
            gr.fit(cstr.Reactor(), study.data(run), UNKNOWNS, method, guess=first_guess(), progress=False)
        spent[label] = (time.process_time() - begin) / fits
    many = " | ".join(f"{500 * s / 2 / 60:.1f}" for s in spent.values())
    return [
        Row("processor seconds per fit, data included", " | ".join(f"{s:.2f}" for s in spent.values())),
        Row("500 fits on two processors [min]", many, None, "< 10"),
    ]
