"""The nonlinear stirred tank: estimates over many data sets beside output error's.

Four cases: two parameters (Figs. 3.9, 3.10), four (Figs. 4.2–4.9, Table 4.1), four without measured concentration
(Figs. 4.10–4.17, Table 4.2), four under a drifting disturbance (Figs. 4.18–4.26, Table 4.3). The second case is also
run with steps of 5 K instead of 3 K of the coolant: its standard errors are then nearer to the published ones, but some
runs ignite, which are counted and left out. Splines as in the source: knots every 0.3 min for the temperature, every
0.2 min for the concentration, five quadrature points between two, starts known, first guess half of every true value.
Ours are the marginal likelihood by Laplace's approximation, and the few steps towards it that take off the bias of the
source's criterion.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import grisaille as gr
from grisaille.errors import GrisailleError
from grisaille_reproductions import varziri_cstr as cstr
from grisaille_reproductions.comparison import Reproduction, Row, Size, new_figure, save_figures
from grisaille_reproductions.varziri_paths import draw_state, state_band
from grisaille_reproductions.varziri_spread import (
    SEED,
    Question,
    accuracy,
    box_plots,
    endings,
    run_studies,
    side_by_side,
    standard_error,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from grisaille.results.monte_carlo import MonteCarlo
    from grisaille_reproductions.registry import Workers


STEP = 0.05
"""Minutes: largest step in simulated data."""
AMLE, DEBIASED, MARGINAL, OUTPUT_ERROR = "AMLE", "AMLE debiased", "marginal", "output error"
ORDER = ("a", "b", "E_R", "k_ref")
IGNITED = 365.0
"""Kelvin."""


@dataclass(frozen=True)
class Case:
    name: str
    title: str
    model: Callable[[], gr.Model]
    outputs: tuple[str, ...]
    unknowns: tuple[str, ...]
    runs: int
    published: dict[str, tuple[float, float]]
    """95 % intervals from one data set; a in 1e6, E/R in 1000 K."""
    coolant: float = cstr.STEPS["T_cin"]
    """Step of the coolant's temperature [K]."""


TWO = Case(
    "figures-3.9-3.10", "two parameters (Figs. 3.9, 3.10)", cstr.Reactor, ("y_C", "y_T"), ("E_R", "k_ref"), 50, {}
)
MEASURED = Case(
    "table-4.1", "both states measured (Figs. 4.2–4.9, Table 4.1)", cstr.Reactor, ("y_C", "y_T"), ORDER, 100,
    {"a": (1.4501, 2.6322), "b": (0.3307, 0.5400), "E_R": (8.3152, 8.7592), "k_ref": (0.4575, 0.4866)},
)  # fmt: skip
STRONG = replace(
    MEASURED, name="table-4.1-strong", title="both states measured, the coolant steps by 5 K (Table 4.1)", coolant=5.0
)
UNMEASURED = Case(
    "table-4.2", "concentration unmeasured (Figs. 4.10–4.17, Table 4.2)", cstr.Reactor, ("y_T",), ORDER, 100,
    {"a": (1.0750, 2.4559), "b": (0.3062, 0.5765), "E_R": (8.0477, 8.9000), "k_ref": (0.3932, 0.4577)},
)  # fmt: skip
DRIFTING = Case(
    "table-4.3", "a drifting disturbance (Figs. 4.18–4.26, Table 4.3)", cstr.DriftingReactor, ("y_C", "y_T"), ORDER,
    100, {"a": (0.6019, 2.0615), "b": (0.3337, 0.7259), "E_R": (7.8400, 8.8890), "k_ref": (0.3924, 0.4549)},
)  # fmt: skip


def two_parameters(size: Size, folder: Path | None, executor: Workers, data_sets: int | None = None) -> Reproduction:
    """Figs. 3.9 and 3.10."""
    return _compare(TWO, size, folder, executor, data_sets)


def measured(size: Size, folder: Path | None, executor: Workers, data_sets: int | None = None) -> Reproduction:
    """Figs. 4.2–4.9 and Table 4.1."""
    return _compare(MEASURED, size, folder, executor, data_sets)


def strongly_measured(size: Size, folder: Path | None, executor: Workers, data_sets: int | None = None) -> Reproduction:
    """Figs. 4.2–4.9 and Table 4.1 under larger steps of the coolant, which ignite some runs."""
    return _compare(STRONG, size, folder, executor, data_sets)


def unmeasured(size: Size, folder: Path | None, executor: Workers, data_sets: int | None = None) -> Reproduction:
    """Figs. 4.10–4.17 and Table 4.2."""
    return _compare(UNMEASURED, size, folder, executor, data_sets)


def drifting(size: Size, folder: Path | None, executor: Workers, data_sets: int | None = None) -> Reproduction:
    """Figs. 4.18–4.26 and Table 4.3."""
    return _compare(DRIFTING, size, folder, executor, data_sets)


def plan(
    outputs: tuple[str, ...] = ("y_C", "y_T"), *, at_once: bool = False, coolant: float = cstr.STEPS["T_cin"]
) -> gr.Experiment:
    """Times and inputs; measured values at the steady state stand for those to be drawn."""
    steady = {"y_C": 1.5965, "y_T": 341.379}
    signals = {n: (t, np.full(t.size, steady[n])) for n, t in cstr.sample_times(at_once).items() if n in outputs}
    return gr.Experiment(inputs=cstr.inputs(T_cin=coolant), outputs=signals, t0=0.0, name="reactor")


def spline_method(states: tuple[str, ...]) -> gr.Collocation:
    """Knots and quadrature of the source."""
    every = {"C_A": 0.2, "T": 0.3, "d": 0.3}
    placed = {s: np.arange(0.0, cstr.SPAN - 0.05, every[s]) for s in states}
    # the state of a drifting disturbance
    knots = {"d[0]" if s == "d" else s: at for s, at in placed.items()}
    return gr.Collocation(criterion="amle", knots=knots, quadrature=5)


def _compare(case: Case, size: Size, folder: Path | None, executor: Workers, data_sets: int | None) -> Reproduction:
    runs = data_sets or (case.runs if size == "full" else 4)
    splines = spline_method(_states(case))
    methods: dict[str, Any] = {AMLE: splines, DEBIASED: replace(splines, debias=True), OUTPUT_ERROR: gr.OutputError()}
    if size == "full" and case in (MEASURED, STRONG):
        methods[MARGINAL] = gr.Collocation(criterion="laplace", refine=0)
    asked = Question(case.model(), plan(case.outputs, coolant=case.coolant), case.unknowns, _guess(case), STEP)
    studies = run_studies(asked, methods, runs, size=size, name=case.name, folder=folder, executor=executor)
    published = {n: standard_error(*interval) for n, interval in case.published.items()}
    ignited = find_ignited(studies[AMLE]) if case.coolant > cstr.STEPS["T_cin"] else ()
    rows = [
        *side_by_side(studies, case.unknowns, published, ignited), *_ratios(studies, case.unknowns, ignited),
    ]  # fmt: skip
    one = _OneDataSet(case)
    rows += one.rows()
    notes = [
        f"{runs} data sets; first guess: half of every true value.",
        "Published: standard errors from the printed interval of one data set; box plots are printed as pictures only.",
        "AMLE is biased: it leaves out how far paths scatter around the best one, which depends on the parameters. "
        "AMLE debiased: gr.Collocation(debias=True), which takes this off.",
        *_ignitions(studies[AMLE], ignited),
        *endings(studies),
    ]
    figures: dict[str, Any] = {}
    if folder is not None:
        figures = {
            f"varziri-{case.name}": box_plots(studies, case.unknowns, ignited),
            f"varziri-{case.name}-fit": one.draw(),
        }
    title = f"Stirred tank, {case.title}"
    return Reproduction(title, tuple(rows), tuple(notes), save_figures(figures, folder))


def _states(case: Case) -> tuple[str, ...]:
    return ("C_A", "T", "d") if case is DRIFTING else ("C_A", "T")


def _guess(case: Case) -> dict[str, float]:
    return {name: value for name, value in cstr.halved_guess().items() if name in case.unknowns}


def find_ignited(study: MonteCarlo) -> tuple[int, ...]:
    """Data sets that became hotter than any steady state without ignition, or whose simulation ended in it."""

    def is_hot(run: int) -> bool:
        try:
            return bool(study.data(run)[0].measurements("y_T").values.max() > IGNITED)
        except GrisailleError:
            return True

    return tuple(k for k in range(len(study)) if is_hot(k))


def _ignitions(study: MonteCarlo, ignited: tuple[int, ...]) -> list[str]:
    if not ignited:
        return []
    seeds = ", ".join(str(study.table["seed"][k]) for k in ignited)
    return [f"{len(ignited)} of {len(study)} data sets ignited (above {IGNITED:g} K) and do not count; seeds {seeds}."]


def _ratios(studies: dict[str, MonteCarlo], names: tuple[str, ...], left_out: tuple[int, ...]) -> list[Row]:
    """Each method's errors over those of output error."""
    reference = accuracy(studies[OUTPUT_ERROR], left_out)
    rows = []
    for label in (label for label in (AMLE, DEBIASED, MARGINAL) if label in studies):
        found = accuracy(studies[label], left_out)
        for name in names:
            column, what = ("iqr", "inter-quartile range") if name in ("a", "b") else ("rms", "root-mean-square error")
            ratio = float(found.loc[name, column] / reference.loc[name, column])
            rows.append(Row(f"{name}: {what}, {label} over output error", ratio, "better" if label == AMLE else None))
    return rows


class _OneDataSet:
    """A fit of one data set, with the path behind it."""

    def __init__(self, case: Case, seed: int = SEED) -> None:
        self.case, self.model = case, case.model()
        self.data = cstr.simulate_experiment(seed, self.model, case.outputs, T_cin=case.coolant)
        # on the instants of the record, so that the path is that of the record
        grid = np.unique(np.concatenate([[0.0], *cstr.sample_times().values()]))
        self.path = gr.simulate(self.model, grid, inputs=cstr.inputs(T_cin=case.coolant), realizations=1, seed=seed)
        self.fit = gr.fit(
            self.model, self.data, case.unknowns, spline_method(_states(case)), guess=_guess(case), progress=False
        )

    def rows(self) -> list[Row]:
        """How often the bands of the states hold the true path."""
        return [
            Row(f"one data set: {n} inside its 95 % band [%]", 100 * self._share_inside(n), None, 95)
            for n in _states(self.case)
        ]

    def _true(self, name: str) -> tuple[np.ndarray, np.ndarray]:
        return self.path["time"].values, self.path[name].values.reshape(-1)

    def _share_inside(self, name: str) -> float:
        band, (t, true) = state_band(self.fit, name), self._true(name)
        at, low, high = (band["time"].values, *(band.sel(statistic=s).values for s in ("lower", "upper")))
        used = (t > at[0]) & (t <= at[-1])
        inside = (np.interp(t, at, low) <= true) & (true <= np.interp(t, at, high))
        return float(inside[used].mean())

    def draw(self) -> Figure:
        """Data, true path and fitted path; Figs. 4.6, 4.8, 4.26."""
        names = _states(self.case)
        figure, axes = new_figure(len(names), 1, width=7.0, height=2.4)
        for axis, name in zip(axes, names, strict=True):
            draw_state(axis, self.fit, name, self._true(name))
        return figure
