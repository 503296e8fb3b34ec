"""The summary of a Monte Carlo study: location, spread, bias, and whether intervals cover as often as they claim.

Coverage is judged by an exact two-sided binomial test against the nominal level, per unknown, at 0.1 %. Statistics are
taken over converged runs; the others are counted beside them, never dropped in silence.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

import numpy as np

from grisaille.errors import EstimationError
from grisaille.study.result_rows import column

if TYPE_CHECKING:
    import pandas as pd

    from grisaille.study.monte_carlo_task import MonteCarloRuns

SIGNIFICANCE = 1e-3


@dataclass(frozen=True)
class StudySummary:
    """A table with one row per unknown, and how the runs ended."""

    table: pd.DataFrame
    counts: dict[str, int]
    level: float
    headline: str

    def __str__(self) -> str:
        shown = self.table.drop(columns=["hits", "intervals", "bias_error"])
        lines = [self.headline, shown.to_string(float_format=lambda v: f"{v:.5g}")]
        doubtful = self.table.index[self.table["verdict"].str.startswith("too")]
        for name in doubtful:
            row = self.table.loc[name]
            lines.append(
                f"{name}: {row['hits']} of {row['intervals']} intervals at {100 * self.level:g} % hold the truth; "
                f"{row['verdict']} (p = {row['p']:.2g})."
            )
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return f"<p>{escape(self.headline)}</p>{self.table.to_html(float_format=lambda v: f'{v:.5g}')}"


def summarize(study: MonteCarloRuns, level: float, left_out: Sequence[int] = ()) -> StudySummary:
    """Return the summary of a study."""
    import pandas as pd

    left_out = _runs(left_out)
    strangers = sorted(set(left_out) - set(range(len(study))))
    if strangers:
        raise EstimationError(f"left_out names run {strangers[0]}: runs are numbered from 0 to {len(study) - 1}.")

    if not 0 < level < 1:
        raise EstimationError(f"level is {level!r}; give a number between 0 and 1, such as 0.95.")
    used = study.table[study.table["converged"] & ~study.table.index.isin(list(left_out))]
    rows = {n: _row(used, n, float(study.truth[n]), level) for n in study.names}
    headline = f"{study._prepared.task.kind} of {study.model_name}: {study._counted()}"
    if left_out:
        headline += f", {len(set(left_out))} left out"
    return StudySummary(pd.DataFrame.from_dict(rows, orient="index"), study.counts, level, headline)


def _runs(left_out: Sequence[int]) -> list[int]:
    """Return numbers of runs, from whatever holds whole numbers."""
    found = np.asarray(left_out)
    if found.ndim != 1 or (found.size and found.dtype.kind not in "iu"):
        raise EstimationError(f"left_out is {left_out!r}; give the numbers of runs, such as left_out=[3, 17].")
    return [int(k) for k in found]


def _row(used: pd.DataFrame, name: str, truth: float, level: float) -> dict[str, object]:
    estimates = used[column(name)].to_numpy()
    n = len(estimates)
    std = float(estimates.std(ddof=1)) if n > 1 else np.nan
    mean = float(estimates.mean()) if n else np.nan
    hits, intervals = _hits(used, name, truth, level)
    p = binomial_p_value(hits, intervals, level)
    return {
        "truth": truth, "mean": mean, "median": float(np.median(estimates)) if n else np.nan, "std": std,
        "bias": mean - truth, "bias_error": std / np.sqrt(n) if n else np.nan, "skewness": _skewness(estimates),
        "mean_std_error": float(used[f"std_error({name})"].mean()) if n else np.nan,
        "at_bound": int(used["at_bound"].str.split(", ").map(lambda names: name in names).sum()) if n else 0,
        "hits": hits, "intervals": intervals, "coverage": hits / intervals if intervals else np.nan, "p": p,
        "verdict": coverage_verdict(hits, intervals, level, p),
    }  # fmt: skip


def _hits(used: pd.DataFrame, name: str, truth: float, level: float) -> tuple[int, int]:
    """Return intervals that hold the truth; an estimate held by a bound has none and does not count."""
    from scipy.stats import t

    error = used[f"std_error({name})"].to_numpy()
    dof = np.maximum(used["degrees_of_freedom"].to_numpy(dtype=float), 1)
    has_one = error > 0
    half = t.ppf(0.5 + level / 2, dof) * error
    inside = np.abs(used[column(name)].to_numpy() - truth) <= half
    return int((inside & has_one).sum()), int(has_one.sum())


def binomial_p_value(hits: int, intervals: int, level: float) -> float:
    from scipy.stats import binomtest

    return float(binomtest(hits, intervals, level).pvalue) if intervals else np.nan


def coverage_verdict(hits: int, intervals: int, level: float, p: float) -> str:
    if not intervals:
        return "no intervals"
    if p >= SIGNIFICANCE:
        return "as claimed"
    return "too seldom" if hits < level * intervals else "too often"


def _skewness(values: np.ndarray) -> float:
    spread = values.std() if len(values) else 0.0
    return float(np.mean((values - values.mean()) ** 3) / spread**3) if spread > 0 else np.nan
