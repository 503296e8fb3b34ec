"""Methods of every study beside its table: repeat any run as a fit, and write a page."""

from __future__ import annotations

import os
from pathlib import Path

from grisaille.calling import checked_methods
from grisaille.results.fit import Fit
from grisaille.study.study import Study


@checked_methods
class Runs(Study):
    """Finished runs of one task, each of which can be had again."""

    def repeat(self, run: int) -> Fit:
        """Run one run again, alone, as a fit with its data; what made a run fail is raised.

        run : its number in the table
        """
        return Fit.of(super().repeat(run))

    def report(self, path: str | os.PathLike[str], *, title: str | None = None) -> Path:
        """Write the study as one HTML page that needs no network; gives its path.

        path : a file name that ends in .html
        title : instead of the model's name
        """
        from grisaille.reporting.report_study import study_report

        return study_report(self, path, title=title)
