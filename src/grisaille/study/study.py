"""The base of all studies: a table with one row per run, and each run again on request."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from grisaille.calling import checked_methods
from grisaille.errors import EstimationError
from grisaille.estimation.fitted import Fitted
from grisaille.structure.structure_cache import structure_of
from grisaille.study.result_rows import column
from grisaille.study.study_task import PreparedTask, RunAnswer

if TYPE_CHECKING:
    import pandas as pd


@checked_methods
class Study:
    """Finished runs of one task: what all studies have. Runs again as fits and reports are in ``results``."""

    def __init__(self, prepared: PreparedTask, answers: Sequence[RunAnswer]) -> None:
        self._prepared, self._answers = prepared, tuple(answers)

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of what was estimated."""
        return self._prepared.layout.names

    @property
    def model_name(self) -> str:
        return structure_of(self._prepared.task.model).model.name

    def __len__(self) -> int:
        return len(self._answers)

    @cached_property
    def table(self) -> pd.DataFrame:
        """Return one row per run: estimates, standard errors, 95 % intervals, objective, how it ended, and its seed.

        A function of model, data, options and master seed alone, bit for bit; wall times are in ``seconds``.
        """
        import pandas as pd

        columns = self._prepared.layout.columns
        table: dict[str, Any] = {c: [a.row[c] for a in self._answers] for c in columns}
        table["seed"] = np.array([a.seed for a in self._answers], dtype=np.uint64)
        return pd.DataFrame(table, index=pd.RangeIndex(len(self), name="run"))

    @cached_property
    def seconds(self) -> pd.Series:
        """Wall time of each run, in the process that did it."""
        import pandas as pd

        index = pd.RangeIndex(len(self), name="run")
        return pd.Series([a.seconds for a in self._answers], index=index, name="seconds", dtype=float)

    @cached_property
    def estimates(self) -> pd.DataFrame:
        """Return the estimates alone, one column per unknown; NaN where a run failed."""
        chosen = self.table[[column(n) for n in self.names]]
        return chosen.set_axis(list(self.names), axis=1)

    @property
    def failures(self) -> pd.DataFrame:
        """Return the runs that gave no estimate, with their seeds and reasons."""
        return self.table.loc[self.table["failure"] != "", ["failure", "status", "seed"]]

    @cached_property
    def counts(self) -> dict[str, int]:
        """Return how the runs ended."""
        failure = self.table["failure"]
        counts = {
            "runs": len(self),
            "converged": int(self.table["converged"].sum()),
            "not converged": int(((failure == "") & ~self.table["converged"]).sum()),
            "failed": int((failure != "").sum()),
        }
        return counts | {f"failed: {stage}": int((failure == stage).sum()) for stage in sorted(set(failure) - {""})}

    def repeat(self, run: int) -> Fitted:
        """Run one run again, alone, as a fit with its data; what made a run fail is raised."""
        if isinstance(run, bool) or not isinstance(run, int | np.integer) or not 0 <= run < len(self):
            raise EstimationError(f"There is no run {run!r}: runs are numbered from 0 to {len(self) - 1}.")
        return self._prepared.fit(int(run))

    def _counted(self) -> str:
        counts = self.counts
        text = f"{counts['converged']} of {counts['runs']} runs converged"
        if counts["not converged"]:
            text += f", {counts['not converged']} did not"
        stages = [f"{n} ({name.partition(': ')[2]})" for name, n in counts.items() if ": " in name]
        return text + (f", {counts['failed']} failed: {', '.join(stages)}" if stages else "")
