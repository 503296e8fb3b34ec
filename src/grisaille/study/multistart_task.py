"""The same fit from many starts, and which minima they find."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from grisaille.calling import checked_methods
from grisaille.errors import EstimationError
from grisaille.study.basins import find_basins
from grisaille.study.result_rows import column
from grisaille.study.study import Study

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from grisaille.drawing import Canvas


@checked_methods
class MultistartRuns(Study):
    """Fits of the same data from many starts."""

    @cached_property
    def table(self) -> pd.DataFrame:
        """Return one row per start: its guess, estimates, objective, criterion, basin, how it ended.

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
        """Return the minima, best first: how many starts led there, their share, criterion, estimates."""
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
    def best_run(self) -> int:
        """Return the converged run with the lowest criterion (of all, when none converged)."""
        usable = self.table[self.table["converged"]] if self.table["converged"].any() else self.table
        criterion = usable["criterion"]
        if not criterion.notna().any():
            raise EstimationError(
                f"None of the {len(self)} starts gave an estimate; the first says: {self.table['status'].iloc[0]}"
            )
        return int(criterion.idxmin())

    def plot(self, *, ax: Canvas | None = None) -> Figure:
        """Draw a waterfall: every start's criterion above the best, sorted, coloured by basin.

        ax : axes to draw on instead of a new figure
        """
        from grisaille.study.study_plots import draw_waterfall

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
