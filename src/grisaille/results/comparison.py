"""``gr.compare``: fits side by side."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from grisaille.assessment.comparison import ComparedFits, compare_fits
from grisaille.calling import checked, checked_methods
from grisaille.estimation.fitted import Fitted


@checked_methods
class Comparison(ComparedFits):
    """A table of fits, likelihood-ratio tests of those that are nested, and remarks."""

    def report(self, path: str | os.PathLike[str], *, title: str | None = None) -> Path:
        """Write the comparison as one HTML page that needs no network; gives its path.

        path : a file name that ends in .html
        title : instead of "Comparison of fits"
        """
        from grisaille.reporting.report_comparison import comparison_report

        return comparison_report(self, path, title=title)


@checked
def compare(fits: Mapping[str, Fitted], nested: Iterable[tuple[str, str]] = ()) -> Comparison:
    """Return fits side by side: AIC, BIC, misfit by output, and likelihood-ratio tests.

    Parameters
    ----------
    fits : by label
    nested : pairs ``(smaller, larger)`` of labels for likelihood-ratio tests. Not checked: that the smaller of a pair
        is a special case of the larger, with values inside their ranges.

    Returns
    -------
    A comparison that prints as a table: ``table``, ``tests``, ``notes``, ``best`` (the label of the least AIC),
    ``report("comparison.html")``.

    Examples
    --------
    >>> held = gr.fit(Tank(), data, ["k"])
    >>> gr.compare({"k": held, "k and q": fit}, nested=[("k", "k and q")]).best
    'k and q'
    """
    found = compare_fits(fits, nested)
    return Comparison(found.table, found.tests, found.notes, found.fits)
