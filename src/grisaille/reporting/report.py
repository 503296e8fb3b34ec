"""``fit.report("report.html")``: everything about a fit in one page that needs nothing but itself.

The page holds equations, data, estimates, pictures that zoom, residual tests in words, how it was computed and the
lines that compute it again. Nothing new is estimated for it, except profiles where they are asked for.
"""

from __future__ import annotations

import os
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import grisaille
from grisaille.assessment.diagnosis import Diagnosis, diagnose
from grisaille.errors import GrisailleError
from grisaille.estimation.fitted import Fitted
from grisaille.markup import joined, tag
from grisaille.reporting.charts import Album
from grisaille.reporting.labels import count
from grisaille.reporting.page import Chip, Tab, build_page, card, write_page
from grisaille.reporting.report_computation import computation
from grisaille.reporting.report_curves import curves
from grisaille.reporting.report_data import data_part
from grisaille.reporting.report_model import model_part
from grisaille.reporting.report_outputs import first_curves, outputs
from grisaille.reporting.report_residuals import residuals, verdict_line
from grisaille.reporting.report_states import states
from grisaille.reporting.report_summary import subtitle, summary
from grisaille.reporting.report_uncertainty import uncertainty

if TYPE_CHECKING:
    import pandas as pd

MAX_RUNS = 24
"""Experiments that are drawn; all of them are in the tables of estimates and in the counts of tests."""


def report(
    fit: Fitted,
    path: str | os.PathLike[str],
    *,
    profiles: bool = False,
    title: str | None = None,
    scores: pd.DataFrame | None = None,
) -> Path:
    """Write the page; arguments as in ``Fit.report``.

    scores : of a record that was not fitted: a row per output and horizon, instead of how well outputs were fitted
    """
    return write_page(path, fit_page(fit, profiles=profiles, title=title, scores=scores))


def fit_page(
    fit: Fitted, *, profiles: bool = False, title: str | None = None, scores: pd.DataFrame | None = None
) -> str:
    """Return the page as text."""
    album = Album()
    runs = list(dict.fromkeys(case.name for case in fit.estimate.cases))[:MAX_RUNS]
    diagnosis = _diagnosis(fit)
    seen_first = first_curves(fit, album, runs)
    tabs = [
        Tab(
            "Summary", joined((summary(fit, joined((verdict_line(diagnosis), seen_first)), scores), curves(fit, album)))
        ),
        Tab("Outputs", outputs(fit, album, runs)),
    ]
    seen = states(fit, album, runs)
    if seen is not None:
        tabs.append(Tab("States", seen))
    if isinstance(diagnosis, Diagnosis):
        tabs.append(Tab("Residuals", residuals(fit, diagnosis, album, runs)))
    else:
        tabs.append(Tab("Residuals", card(tag("p", diagnosis), title="Residual tests")))
    tabs += [
        Tab("Uncertainty", uncertainty(fit, album, profiles)),
        Tab("Model", model_part(fit)),
        Tab("Data", data_part(fit.experiments, MAX_RUNS)),
        Tab("Computation", computation(fit, album)),
    ]
    return build_page(title or fit.model_name, subtitle(fit), _chips(fit, diagnosis), tabs, album, footer())


def footer() -> str:
    return f"Written by grisaille {grisaille.__version__} on {datetime.now().strftime('%Y-%m-%d at %H:%M')}."


def _diagnosis(fit: Fitted) -> Diagnosis | str:
    """Return the tests, or why there are none."""
    try:
        found: Diagnosis = diagnose(fit)
    except GrisailleError as error:
        return str(error)
    return found


def _chips(fit: Fitted, diagnosis: Diagnosis | str) -> list[Chip]:
    chips = [Chip("converged" if fit.converged else "not converged", fit.converged)]
    if isinstance(diagnosis, Diagnosis):
        bad, made = len(diagnosis.unhealthy_together), len(diagnosis.tested)
        tests = count(made, "residual test")
        words = f"{bad} of {tests} unhealthy" if bad else f"{tests} healthy"
        chips.append(Chip(words, not bad) if made else Chip("residuals not tested"))
    notes = len(fit.notes)
    chips.append(Chip(count(notes, "remark") if notes else "every unknown determined", None if notes else True))
    return chips
