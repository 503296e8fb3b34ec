"""The first tab: measured and predicted curves, the verdict on the residuals, estimates, and the fit of each output."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from grisaille.bound_experiment.unknown import Unknown
from grisaille.estimation.fitted import Fitted
from grisaille.estimation.printing.declared_laws import declared_laws
from grisaille.estimation.printing.fit_summary import kinds_of_intervals
from grisaille.markup import Html, joined, table, tag
from grisaille.model.notation.mathml import symbol
from grisaille.reporting.labels import as_exact, count, p_text, short_number, three_digits
from grisaille.reporting.page import bullets, card, facts, scrolling

if TYPE_CHECKING:
    import pandas as pd

HEAD = (
    "",
    "estimate",
    "std. error",
    "95 % interval",
    "unit",
    "t",
    "p",
    "guess",
    "bounds",
    "status",
    "guess → interval",
)
FREE = "free"


def summary(fit: Fitted, first: Html, scores: pd.DataFrame | None = None) -> Html:
    """Return ``first``: curves and the verdict; then parameters with notes, and outputs; ``scores`` as in
    ``report``.
    """
    verdict = tag("p", tag("strong", fit.status))
    said = fit.notes or ["Every unknown is determined by the data."]
    tested = [f"residuals: {fit.residual_verdict}"] if fit.residual_verdict else []
    notes = bullets([*said, *tested, f"intervals: {kinds_of_intervals(fit)}", *fit.limits().notes])
    estimates = card(scrolling(parameters(fit)), verdict, notes, title="Parameters")
    outputs = card(facts(_criteria(fit)), scrolling(_quality(fit, scores)), title="Fit of each output")
    return joined((card(first, title="Measured and predicted"), estimates, outputs))


def parameters(fit: Fitted) -> Html:
    """Return one row per unknown, then the noise levels."""
    unknowns = {u.name: u for u in fit.estimate.unknowns}
    rows = [_row(str(name), row, unknowns.get(str(name))) for name, row in fit.parameters.iterrows()]
    kept = [k for k in range(len(HEAD)) if k < 4 or any(row[k] not in ("", "—", FREE) for row in rows)]
    cells = [[row[k] for k in kept] for row in rows]
    numbers = [at for at, k in enumerate(kept) if k in (1, 2, 3, 5, 6, 7)]
    return table([HEAD[k] for k in kept], cells, numbers=numbers, stacked=True)


def _row(name: str, row: Any, unknown: Unknown | None) -> list[Html | str]:
    has_one = row.std_error > 0 or row.lower < row.upper
    estimate, lower, upper = (as_exact(v, row.std_error) for v in (row.estimate, row.lower, row.upper))
    interval = f"{lower} … {upper}" if has_one else "—"
    return [
        symbol(name), estimate, three_digits(row.std_error) if row.std_error > 0 else "—", interval,
        "" if unknown is None else unknown.unit, short_number(row.t, 4), p_text(row.p), short_number(row.guess, 4),
        _bounds(unknown),
        _status(str(row.status), unknown), "" if unknown is None or not row.std_error > 0 else _picture(row),
    ]  # fmt: skip


def _bounds(unknown: Unknown | None) -> str:
    if unknown is None or not np.isfinite([unknown.lower, unknown.upper]).any():
        return ""
    low, high = (("−∞" if v < 0 else "∞") if np.isinf(v) else short_number(v) for v in (unknown.lower, unknown.upper))
    return f"{low} … {high}"


def _status(status: str, unknown: Unknown | None) -> Html | str:
    prior = "" if unknown is None or unknown.prior is None else f", prior {unknown.prior}"
    if status in ("at bound", "at kink"):
        return tag("span", f"{status}{prior}", class_="verdict bad")
    return f"{'estimated from residuals' if status == 'noise' else status}{prior}"


def _picture(row: Any) -> Html | str:
    """Return the interval as a bar, the guess as a tick, on a common scale."""
    if not np.isfinite([row.guess, row.lower, row.upper]).all():
        return ""
    low, high = min(row.lower, row.guess), max(row.upper, row.guess)
    if not high > low:
        return ""

    def at(value: float) -> str:
        return f"{8 + 160 * (value - low) / (high - low):.1f}"

    words = f"guess {short_number(row.guess)}, interval {short_number(row.lower)} to {short_number(row.upper)}"
    return tag(
        "svg", tag("line", x1="8", x2="168", y1="12", y2="12", class_="range"),
        tag("line", x1=at(row.lower), x2=at(row.upper), y1="12", y2="12", class_="width"),
        tag("line", x1=at(row.guess), x2=at(row.guess), y1="4", y2="20", class_="guess"),
        tag("circle", cx=at(row.estimate), cy="12", r="3.5", class_="dot"),
        viewBox="0 0 176 24", class_="interval", role="img", aria_label=words,
    )  # fmt: skip


def _criteria(fit: Fitted) -> Iterator[tuple[str, str]]:
    e = fit.estimate
    yield "measurements", f"{e.count}"
    yield "degrees of freedom", f"{e.degrees_of_freedom:.4g}"
    yield "objective", short_number(fit.objective, 6)
    if e.is_likelihood:
        yield "log-likelihood", short_number(fit.log_likelihood, 6)
        yield "AIC", short_number(fit.aic, 6)
        yield "BIC", short_number(fit.bic, 6)


def _quality(fit: Fitted, scores: pd.DataFrame | None) -> Html:
    units = fit.initial_model._content.outputs
    if scores is None:
        scores = fit.quality.rename(columns={"fit_percent": "fit"}).assign(horizon=fit.method.predictions_are)
    laws, is_scored = declared_laws(fit), "log_score" in scores
    rows = [
        (
            symbol(str(o)), str(q.horizon), f"{int(q.samples)}", short_number(q.rms, 4),
            units[o].unit if o in units else "",
            f"{q.r2:.5f}", f"{q.fit:.2f} %", *([short_number(q.log_score, 4)] if is_scored else []),
            *([laws.get(str(o), "normal")] if laws else []),
        )
        for o, q in scores.iterrows()
    ]  # fmt: skip
    head = ("output", "predictions", "samples", "rms residual", "unit", "R²", "fit")
    more = (*(["log score"] if is_scored else []), *(["law"] if laws else []))
    return table((*head, *more), rows, numbers=(2, 3, 5, 6, *([7] if is_scored else [])), stacked=True)


def subtitle(fit: Fitted) -> list[str]:
    """Return the lines below the title."""
    described = fit.initial_model._content.description
    if not fit.names:
        measured = count(fit.estimate.count, "measurement")
        how = f"predicted by {type(fit.method).__name__} at given values, and compared with {measured}"
        return [*([described.splitlines()[0]] if described else []), how]
    how = (
        f"fitted by {type(fit.method).__name__} to {count(fit.estimate.count, 'measurement')} of "
        f"{count(len(fit.experiments), 'experiment')}, {count(len(fit.names), 'unknown')}"
    )
    return [*([described.splitlines()[0]] if described else []), how]
