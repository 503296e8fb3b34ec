"""Studies, complete: ``gr.multistart``, ``gr.monte_carlo`` and ``gr.bootstrap`` with fits that can do all."""

from __future__ import annotations

import grisaille.fits
import grisaille.reporting.report_study  # noqa: F401
from grisaille.study.bootstrap import bootstrap
from grisaille.study.monte_carlo import monte_carlo
from grisaille.study.multistart import multistart

__all__ = ["bootstrap", "monte_carlo", "multistart"]
