"""How far noise spreads the estimates of the free fall: one record, repeats, and unknown initial conditions.

Linear theory gives the standard deviation σ √((JᵀJ)⁻¹): 0.02615 kg/m for c alone, and 0.0551 kg/m, 0.506 m, 0.667 m/s
with both starts unknown; n repeats divide it by √n. Source as in ``fladischer_free_fall``: Tables 4.3, 4.4, Fig. 4.10.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import grisaille as gr
from grisaille_reproductions.comparison import Reproduction, Row, Size, new_figure, save_figures
from grisaille_reproductions.fladischer_free_fall import METHOD, FreeFall, exact_height, fit_drag, record
from grisaille_reproductions.statistics import histogram, moments

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from grisaille.results.monte_carlo import MonteCarlo
    from grisaille_reproductions.registry import Workers


GUESS = {"c": 0.0}
STARTS = ["start(s)", "start(v)"]


def spread_of_drag(size: Size, folder: Path | None, executor: Workers) -> Reproduction:
    """Table 4.3: ψ over many data sets, one record and two."""
    runs = 10_000 if size == "full" else 60
    a, b = record("A", exact_height()), record("B", exact_height())
    method = gr.OutputError("gauss-newton", rtol=1e-7)
    options: dict[str, Any] = {"runs": runs, "guess": GUESS, "executor": _where(size, executor)}
    studies = {
        "A": gr.monte_carlo(FreeFall(), a, ["c"], method, seed=1, **options),
        "B": gr.monte_carlo(FreeFall(), b, ["c"], method, seed=2, **options),
        "A,B": gr.monte_carlo(FreeFall(), [a, b], ["c"], method, seed=3, **options),
    }
    theory = {"A": _theory(a), "B": _theory(b), "A,B": _theory(a, b)}
    published = {
        "A": (0.500277, 0.0258864, 0.256843),
        "B": (0.500331, 0.0262175, 0.142756),
        "A,B": (0.500041, 0.018495, 0.424425),
    }
    rows = []
    for name, study in studies.items():
        m = moments(study.estimates["c"].dropna().to_numpy())
        mean, std, p = published[name]
        rows += [
            Row(f"ψ_{name}: mean [kg/m]", m.mean, mean, 0.5), Row(f"ψ_{name}: std [kg/m]", m.std, std, theory[name]),
            Row(f"ψ_{name}: skewness", m.skewness), Row(f"ψ_{name}: p of normality", m.p_normal, p),
        ]  # fmt: skip
    checked = 5 if size == "small" else 100
    rows.append(Row(f"|ψ_A,B − ψ_mean|, largest of {checked}", _largest_gap(studies["A,B"], checked), "1e-6"))
    figures = {} if folder is None else {"figures-4.8-4.9": _histograms({n: studies[n] for n in ("A", "A,B")})}
    notes = (f"{runs} data sets each (published: 10 000).", *_failures(studies))
    title = "Free fall, spread of the drag coefficient (Table 4.3)"
    return Reproduction(title, tuple(rows), notes, save_figures(figures, folder))


def repeats(size: Size, folder: Path | None, executor: Workers) -> Reproduction:
    """Fig. 4.10: k/√n fitted to the standard deviations of joint fits of n records."""
    runs, most = (1000, 6) if size == "full" else (40, 3)
    method = gr.OutputError("gauss-newton", rtol=1e-7)
    theory = _theory(record("A", exact_height()))
    counts = np.arange(1, most + 1)
    spreads = []
    for n in counts:
        plan = [record(f"repeat {k}", exact_height()) for k in range(n)]
        study = gr.monte_carlo(
            FreeFall(), plan, ["c"], method, runs=runs, seed=10 + int(n), guess=GUESS, executor=_where(size, executor)
        )
        spreads.append(moments(study.estimates["c"].dropna().to_numpy()).std)
    root = 1 / np.sqrt(counts)
    k = float(root @ spreads / (root @ root))
    rows = [Row("k of k/√n [kg/m]", k, 0.0259, theory)]
    rows += [Row(f"std of ψ, {n} records", s, None, theory / np.sqrt(n)) for n, s in zip(counts, spreads, strict=True)]
    figure, (axis,) = new_figure()
    axis.plot(counts, spreads, "o", color="0.25")
    axis.plot(np.linspace(1, most, 100), k / np.sqrt(np.linspace(1, most, 100)), color="tab:red", label="k/√n")
    axis.set(xlabel="number of records", ylabel="std of ψ [kg/m]")
    axis.legend(frameon=False)
    title = "Free fall, spread against the number of repeats (Fig. 4.10)"
    return Reproduction(title, tuple(rows), (f"{runs} runs each.",), save_figures({"figure-4.10": figure}, folder))


def spread_with_starts(size: Size, folder: Path | None, executor: Workers) -> Reproduction:
    """Table 4.4: drag and both initial conditions unknown."""
    runs = 5000 if size == "full" else 60
    plan = record("A", exact_height(), known=())
    study = gr.monte_carlo(
        FreeFall(), plan, ["c", *STARTS], gr.OutputError("gauss-newton"), runs=runs, seed=4, guess=GUESS,
        executor=_where(size, executor),
    )  # fmt: skip
    exact = gr.fit(FreeFall(), plan, ["c", *STARTS], METHOD)
    published = {
        "c": (0.50304, 0.0571966, 0.279727), "start(s)": (30.0256, 0.4999, 0.924865),
        "start(v)": (-0.0611812, 0.688684, 0.112976),
    }  # fmt: skip
    rows = []
    for name, (mean, std, p) in published.items():
        m = moments(study.estimates[name].dropna().to_numpy())
        rows += [
            Row(f"{name}: mean", m.mean, mean, float(exact[name])),
            Row(f"{name}: std", m.std, std, exact[name].std_error),
            Row(f"{name}: p of normality", m.p_normal, p),
        ]
    notes = (f"{runs} data sets (published: 1000).", *_failures({"A": study}))
    figures = {} if folder is None else {"table-4.4": study.plot()}
    title = "Free fall, initial conditions unknown (Table 4.4)"
    return Reproduction(title, tuple(rows), notes, save_figures(figures, folder))


def _where(size: Size, executor: Workers) -> Any:
    return "serial" if executor is None and size == "small" else executor


def _theory(*records: gr.Experiment) -> float:
    """Standard deviation of c by the derivatives at the truth."""
    return float(gr.fit(FreeFall(), list(records), ["c"], METHOD)["c"].std_error)


def _largest_gap(study: MonteCarlo, checked: int) -> float:
    """Joint fits against fits of the mean, on the same data."""
    gaps = []
    for run in range(checked):
        a, b = study.data(run)
        mean = record("mean", (a.measurements("height")[1] + b.measurements("height")[1]) / 2)
        gaps.append(abs(float(fit_drag(a, b)["c"]) - float(fit_drag(mean)["c"])))
    return max(gaps)


def _failures(studies: dict[str, MonteCarlo]) -> list[str]:
    lost = {n: len(s) - int(s.table["converged"].sum()) for n, s in studies.items()}
    return [f"{name}: {count} runs did not converge." for name, count in lost.items() if count]


def _histograms(studies: dict[str, MonteCarlo]) -> Figure:
    figure, axes = new_figure(1, len(studies))
    for axis, (name, study) in zip(axes, studies.items(), strict=True):
        histogram(axis, study.estimates["c"].dropna().to_numpy(), "kg/m")
        axis.set_title(f"ψ_{name}")
    return figure
