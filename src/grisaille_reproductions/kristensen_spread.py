"""Tables 1 to 5 of the grey-box paper: estimates over many data sets beside those of CTSM and MoCaVa from one.

Coverage of 95 % intervals is judged by an exact binomial test, refused below p = 0.1 %. A published estimate is inside
our spread when it lies between our smallest and our largest. The published MoCaVa column can only be printed; what it
shows, white noise replaced by low-pass noise, is repeated by fitting our data with such a model.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

import grisaille as gr
from grisaille_reproductions.comparison import Reproduction, Row, Size, new_figure, save_figures
from grisaille_reproductions.kristensen import REACTOR, WALL, Example, shelf, where
from grisaille_reproductions.kristensen_reactor import TIMES, CrossedRuns, crossings, feed
from grisaille_reproductions.kristensen_tables import ESTIMATES

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from grisaille.results.monte_carlo import MonteCarlo
    from grisaille_reproductions.registry import Workers


JOINT = 10
"""Records fitted together."""
DIFFUSION = {1: 0.0, 2: 0.1, 3: np.sqrt(0.1), 4: 0.0, 5: 0.1}
LABEL = {0.0: "no diffusion", 0.1: "weak diffusion", np.sqrt(0.1): "strong diffusion"}


def table1(
    size: Size, folder: Path | None, executor: Workers, data_sets: int | None = None, low_pass: int | None = None
) -> Reproduction:  # fmt: skip
    """Single records without diffusion."""
    return _table(1, REACTOR, size, folder, executor, data_sets, low_pass)


def table2(
    size: Size, folder: Path | None, executor: Workers, data_sets: int | None = None, low_pass: int | None = None,
    joint: int | None = None,
) -> Reproduction:  # fmt: skip
    """Single records under weak diffusion, and ten records jointly."""
    return _with_joint(2, size, folder, executor, data_sets, low_pass, joint, 200)


def table3(
    size: Size, folder: Path | None, executor: Workers, data_sets: int | None = None, low_pass: int | None = None,
    joint: int | None = None,
) -> Reproduction:  # fmt: skip
    """The same under strong diffusion."""
    return _with_joint(3, size, folder, executor, data_sets, low_pass, joint, 40)


def table4(
    size: Size, folder: Path | None, executor: Workers, data_sets: int | None = None, low_pass: int | None = None
) -> Reproduction:  # fmt: skip
    """The wall without diffusion."""
    return _table(4, WALL, size, folder, executor, data_sets, low_pass)


def table5(
    size: Size, folder: Path | None, executor: Workers, data_sets: int | None = None, low_pass: int | None = None
) -> Reproduction:  # fmt: skip
    """The wall with diffusion."""
    return _table(5, WALL, size, folder, executor, data_sets, low_pass)


def _with_joint(
    number: int, size: Size, folder: Path | None, executor: Workers, data_sets: int | None, low_pass: int | None,
    joint: int | None, full: int,
) -> Reproduction:  # fmt: skip
    """A table of single records with rows and notes of records fitted together."""
    single = _table(number, REACTOR, size, folder, executor, data_sets, low_pass)
    runs = (full if size == "full" else 0) if joint is None else joint
    if not runs:
        return single
    diffusion = DIFFUSION[number]
    store = shelf(folder, f"kristensen-table{number}-joint")
    study = REACTOR.study(diffusion, runs, store=store, executor=where(size, executor), records=JOINT)
    crossed = crossings(study, REACTOR.model(diffusion), JOINT)
    rows = _coverage(REACTOR, study, ~crossed.runs, f"{JOINT} records jointly, ")
    notes = (f"Jointly: {runs} data sets of {JOINT} records; {_ended(study, crossed)}",)
    return Reproduction(single.title, single.rows + tuple(rows), single.notes + notes, single.figures)


def _table(
    number: int, example: Example, size: Size, folder: Path | None, executor: Workers, data_sets: int | None,
    low_pass: int | None,
) -> Reproduction:  # fmt: skip
    runs, filtered = (200, 20) if size == "full" else (3, 0)
    runs, filtered = data_sets or runs, filtered if low_pass is None else low_pass
    diffusion = DIFFUSION[number]
    model = example.model(diffusion)
    store = shelf(folder, f"kristensen-table{number}")
    study = example.study(diffusion, runs, store=store, executor=where(size, executor))
    crossed = crossings(study, model) if example is REACTOR else CrossedRuns(np.zeros(runs, dtype=bool), ())
    used = study.table["converged"].to_numpy(dtype=bool) & ~crossed.runs
    found = example.in_symbols(study.estimates)[used]
    others = _low_pass(example, diffusion, study, np.flatnonzero(used)[:filtered])
    rows = [_row(symbol, found[symbol], ESTIMATES[number][symbol]) for symbol in example.names]
    rows.append(_inside(number, found))
    rows += _coverage(example, study, ~crossed.runs, "")
    rows += [
        Row(f"low-pass noise: {s}, median", float(others[s].median()), f"MoCaVa {ESTIMATES[number][s][2]:.5g}")
        for s in others.columns
        if s.startswith("σ") or s in example.watched
    ]
    notes = [
        "Ours: median (5 % … 95 %) over data sets; published: CTSM | MoCaVa, from one data set.",
        f"{runs} data sets; {_ended(study, crossed)}",
        "Intervals come from the curvature of the likelihood; how often they hold the truth is reported as it is.",
    ]
    figures = {} if folder is None else {f"kristensen-table{number}": _figure(example, study, found, number)}
    title = f"{example.title}, {LABEL[diffusion] if example is REACTOR else _wall_label(diffusion)} (Table {number})"
    return Reproduction(title, tuple(rows), tuple(notes), save_figures(figures, folder))


def _wall_label(diffusion: float) -> str:
    return "with diffusion" if diffusion else "without diffusion"


def _row(symbol: str, found: pd.Series, published: tuple[float, float, float]) -> Row:
    true, ctsm, mocava = published
    low, middle, high = found.quantile([0.05, 0.5, 0.95])
    return Row(symbol, f"{middle:.4g} ({low:.4g} … {high:.4g})", f"{ctsm:.5g} | {mocava:.5g}", true)


def _inside(number: int, found: pd.DataFrame) -> Row:
    published = {s: values[1] for s, values in ESTIMATES[number].items()}
    # σ of 1e-19 … 1e-4 in the source are zeros
    zero = {s: s.startswith("σ") and value < 1e-4 and found[s].min() < 1e-4 for s, value in published.items()}
    outside = [s for s, v in published.items() if not zero[s] and not found[s].min() <= v <= found[s].max()]
    said = f"{len(published) - len(outside)} of {len(published)}"
    return Row("CTSM's estimates inside our spread", said + (f", not {', '.join(outside)}" if outside else ""))


def _coverage(example: Example, study: MonteCarlo, kept: np.ndarray, prefix: str) -> list[Row]:
    """Bias and hits of those intervals that are watched, over converged runs that stayed in their domain."""
    from scipy.stats import binomtest, t

    table = study.table[study.table["converged"].to_numpy(dtype=bool) & kept]
    rows = []
    for symbol in example.watched:
        name = example.names[symbol]
        estimate, error = table[name].to_numpy(), table[f"std_error({name})"].to_numpy()
        truth, has_one = float(study.truth[name]), error > 0
        half = t.ppf(0.975, np.maximum(table["degrees_of_freedom"].to_numpy(dtype=float), 1)) * error
        hits, count = int((np.abs(estimate - truth) <= half)[has_one].sum()), int(has_one.sum())
        p = float(binomtest(hits, count, 0.95).pvalue) if count else np.nan
        bias = (estimate.mean() - truth) / estimate.std(ddof=1) if len(estimate) > 1 else np.nan
        verdict = "refused" if p < 1e-3 else "not refused"
        rows += [
            Row(f"{prefix}{symbol}: bias in standard deviations", float(bias)),
            Row(f"{prefix}{symbol}: intervals that hold the truth", f"{hits} of {count}, {verdict}", None, "95 %"),
            Row(f"{prefix}{symbol}: p of the exact test", p),
        ]
    return rows


def _ended(study: MonteCarlo, crossed: CrossedRuns) -> str:
    """How the runs ended, with the seeds of those that left their domain."""
    counts = study.counts
    text = f"{counts['converged']} fits converged, {counts['not converged']} did not, {counts['failed']} failed"
    if not crossed.seeds:
        return f"{text}; no path crossed the pole of μ." if study.model_name == "FedBatchReactor" else f"{text}."
    seeds = ", ".join(str(s) for s in crossed.seeds)
    return f"{text}; {len(crossed.seeds)} with a path beyond the pole of μ are left out, seeds {seeds}."


def _low_pass(example: Example, diffusion: float, study: MonteCarlo, runs: np.ndarray) -> pd.DataFrame:
    """Our data fitted with low-pass noise in place of white noise."""
    model = example.model(diffusion or 0.01, example.bandwidth)
    fits = [gr.fit(model, study.data(int(r)), example.unknowns, example.method, progress=False) for r in runs]
    kept = [f.parameters["estimate"] for f in fits if f.converged]
    return example.in_symbols(pd.DataFrame(kept)) if kept else pd.DataFrame()


def _figure(example: Example, study: MonteCarlo, found: pd.DataFrame, number: int) -> Figure:
    """The first data set, as in Figs. 2 and 3, and where estimates fall."""
    figure, axes = new_figure(1, 1 + len(example.watched), width=4.2)
    (record, *_) = study.data(0)
    for name, samples in record.outputs.items():
        axes[0].plot(samples.times, samples.values, ".", markersize=3, label=name)
    if example is REACTOR:
        begin, level = feed()
        axes[0].stairs(level, [*begin, TIMES[-1]], color="0.3", label="F")
    axes[0].set(xlabel="time [h]")
    axes[0].legend(fontsize=8)
    for axis, symbol in zip(axes[1:], example.watched, strict=True):
        axis.hist(found[symbol], bins=max(5, len(found) // 8), color="0.8")
        true, ctsm, mocava = ESTIMATES[number][symbol]
        for value, colour, label in ((true, "k", "true"), (ctsm, "tab:blue", "CTSM"), (mocava, "tab:red", "MoCaVa")):
            axis.axvline(value, color=colour, label=label)
        axis.set(xlabel=symbol, yticks=[])
        axis.legend(fontsize=8)
    return figure
