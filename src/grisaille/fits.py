"""Fits, complete: the functions that make, load and compare them, and every method that later folders give to ``Fit``.

``estimation`` defines ``Fit`` and knows nothing of what comes after it; ``assessment`` and ``reporting`` add methods
when they are imported. ``gr.fit``, ``gr.Fit`` and ``gr.load`` come from here, and so bring a ``Fit`` that can do all.
"""

from __future__ import annotations

import grisaille.assessment.diagnosis
import grisaille.assessment.profile
import grisaille.assessment.profile_intervals
import grisaille.assessment.ratio_test
import grisaille.assessment.surface
import grisaille.estimation.saving
import grisaille.estimation.states
import grisaille.reporting.assessment_plots
import grisaille.reporting.fit_plots
import grisaille.reporting.report
import grisaille.reporting.report_comparison
import grisaille.study.bootstrap_intervals  # noqa: F401
from grisaille.assessment.comparison import compare
from grisaille.assessment.sensitivity import sensitivity
from grisaille.estimation.fit import Fit
from grisaille.estimation.loading import load
from grisaille.estimators.fitting import evaluate, fit

__all__ = ["Fit", "compare", "evaluate", "fit", "load", "sensitivity"]
