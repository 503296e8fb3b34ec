"""``gr.multistart``: the same fit from many starts, and which minima they find."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from grisaille.errors import EstimationError
from grisaille.estimation.fit import Fit
from grisaille.estimators.choice import choose_method
from grisaille.estimators.fitting import find_unknowns, named_experiments
from grisaille.model.classes import Model
from grisaille.study.basins import find_basins
from grisaille.study.engine import run_task
from grisaille.study.rows import column
from grisaille.study.starting_points import make_starts
from grisaille.study.study import Study
from grisaille.study.task import make_task

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


def multistart(
    model: Model,
    experiments: Any,
    estimate: Iterable[object] | None = None,
    method: Any = "auto",
    starts: int = 100,
    sampling: Any = "sobol",
    seed: int = 0,
    *,
    bounds: Mapping[str, tuple[float, float]] | None = None,
    ranges: Mapping[str, tuple[float, float]] | None = None,
    priors: Any = None,
    local: Iterable[str] = (),
    store: str | Path | None = None,
    executor: Any = None,
    progress: bool = False,
) -> Multistart:
    """Fit from many starts; a start that fails is a row of the table, never the end of the study.

    model, experiments, estimate, method, bounds, priors, local : as in ``gr.fit``
    starts : how many; a grid takes the nearest whole number per unknown
    sampling : ``"sobol"``, ``"latin"``, ``"grid"``; a dict of values by name, whose products are tried (unknowns not
        named begin as in ``gr.fit``); a DataFrame with columns by name; an array with one row per start
    seed : of the sampling
    ranges : where starts are drawn, by name; the bounds, or the central 95 % of priors, otherwise
    store : file that keeps finished starts; the same call with the same file goes on where it stopped
    executor : None (a process per processor), a number of processes, ``"serial"``, or any ``concurrent.futures``
        executor, such as ``client.get_executor()`` of a Dask client
    progress : show a bar, with failures counted
    """
    data = named_experiments(experiments)
    for experiment in data:
        experiment.check(model)
    listed = estimate if estimate is None or isinstance(estimate, str) else list(estimate)
    chosen, _ = choose_method(method, model, data, listed)
    unknowns = find_unknowns(model, data, listed, bounds=bounds, priors=priors, local=tuple(local), method=chosen)
    points = make_starts(unknowns, sampling, starts, seed, dict(ranges or {}))
    first = {u.name: float(v) for u, v in zip(unknowns, points.points[0], strict=True) if np.isfinite(v)}
    task = make_task(
        "multistart", model, data, method, points, seed, estimate=listed, guess=first, bounds=bounds, priors=priors,
        local=local,
    )  # fmt: skip
    return Multistart(*run_task(task, len(points.points), store, executor, progress))


class Multistart(Study):
    """Fits of the same data from many starts."""

    @cached_property
    def table(self) -> pd.DataFrame:
        """One row per start: its guess, estimates, objective, criterion, basin, how it ended.

        ``criterion`` is −log likelihood − log prior (for robust losses, the loss), which can be compared between
        starts; ``objective`` is taken at each fit's own noise level. ``basin`` numbers the minima from the best on; −1:
        not converged.
        """
        table = super().table
        errors = table[[f"std_error({n})" for n in self.names]].to_numpy()
        estimates = table[[column(n) for n in self.names]].to_numpy()
        basin = find_basins(estimates, errors, table["criterion"].to_numpy(), table["converged"].to_numpy(dtype=bool))
        table.insert(table.columns.get_loc("criterion") + 1, "basin", basin)
        return table

    @cached_property
    def basins(self) -> pd.DataFrame:
        """The minima, best first: how many starts led there, their share, criterion, estimates."""
        import pandas as pd

        found = self.table[self.table["basin"] >= 0]
        heads = found.loc[found.groupby("basin")["criterion"].idxmin()] if len(found) else found
        counts = found["basin"].value_counts().sort_index()
        summary = pd.DataFrame({"count": counts.to_numpy(), "share": counts.to_numpy() / len(self)}, index=counts.index)
        summary["run"] = heads.index.to_numpy()
        summary["criterion"] = heads["criterion"].to_numpy()
        summary["above_best"] = summary["criterion"] - (summary["criterion"].iloc[0] if len(summary) else 0.0)
        for name in self.names:
            summary[name] = heads[column(name)].to_numpy()
        return summary.rename_axis("basin")

    @cached_property
    def best(self) -> Fit:
        """The converged fit with the lowest criterion (of all, when none converged)."""
        usable = self.table[self.table["converged"]] if self.table["converged"].any() else self.table
        criterion = usable["criterion"]
        if not criterion.notna().any():
            raise EstimationError(
                f"None of the {len(self)} starts gave an estimate; the first says: {self.table['status'].iloc[0]}"
            )
        return self.repeat(int(criterion.idxmin()))

    def plot(self, *, ax: Any = None) -> Figure:
        """A waterfall: every start's criterion above the best, sorted, coloured by basin.

        ax : axes to draw on instead of a new figure
        """
        from grisaille.study.plotting import draw_waterfall

        return draw_waterfall(self, ax)

    def __str__(self) -> str:
        many = "minimum" if len(self.basins) == 1 else "distinct minima"
        lines = [f"Multistart of {self.model_name}: {self._counted()}; {len(self.basins)} {many}"]
        for basin, row in self.basins.head(8).iterrows():
            values = ", ".join(f"{n} = {row[n]:.6g}" for n in self.names[:6])
            lines.append(
                f"  {basin}: {int(row['count'])} starts ({100 * row['share']:.0f} %), {row['above_best']:.4g} above "
                f"the best: {values}"
            )
        return "\n".join(lines)

    __repr__ = __str__
