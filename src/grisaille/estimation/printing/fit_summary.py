"""A fit as text: a regression table that ends with the diagnosis in words."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

import numpy as np

from grisaille.estimation.estimator import SIMULATION
from grisaille.estimation.printing.declared_laws import declared_laws
from grisaille.markup import table, tag
from grisaille.model.notation.mathml import symbol

if TYPE_CHECKING:
    import pandas as pd

    from grisaille.estimation.fitted import Fitted

LINE_WIDTH = 98
UNDETERMINED = "not determined"
"""What stands in the place of an interval that is the whole line."""


def summarize(fit: Fitted) -> str:
    """Return the table that ``print(fit)`` shows."""
    e = fit.estimate
    name, way = type(fit.method).__name__, _transcription(fit)
    first = max(22, *(len(str(label)) + 2 for label in (*fit.parameters.index, *fit.quality.index)))
    width = LINE_WIDTH - 22 + first
    lines = [
        f"{fit.model_name} fitted by {name}",
        "═" * width,
        f"{'experiments':<18}{len(fit.experiments):<12}{'measurements':<18}{e.count:<12}{'unknowns':<12}{len(e.unknowns)}",
        _criteria(fit),
        *textwrap.wrap(f"{'trajectories':<18}{way}" if way else "", LINE_WIDTH, subsequent_indent=" " * 18),
        *textwrap.wrap(f"{'intervals':<18}{kinds_of_intervals(fit)}", LINE_WIDTH, subsequent_indent=" " * 18),
        *textwrap.wrap(_laws(fit), LINE_WIDTH, subsequent_indent=" " * 18),
        *textwrap.wrap(_tested(fit), LINE_WIDTH, subsequent_indent=" " * 18),
        *textwrap.wrap(_details(fit), LINE_WIDTH, subsequent_indent=" " * 18),
        "─" * width,
        f"{'':<{first}}{'estimate':>13}{_doubtful(fit, 'std. error'):>12}{_doubtful(fit, '95 % interval'):>27}"
        f"{'t':>9}{'p':>8}  unit",
    ]
    units = {u.name: u.unit for u in e.unknowns}
    for label, row in fit.parameters.iterrows():
        is_open = _is_undetermined(row)
        interval = UNDETERMINED if is_open else f"[{_short(row.lower)}, {_short(row.upper)}]"
        t = "" if is_open or np.isnan(row.t) else f"{row.t:.2f}" if abs(row.t) < 1e5 else f"{row.t:.2g}"
        p = "" if is_open or np.isnan(row.p) else f"{row.p:.3f}"
        mark = f" {row.status}" if row.status in ("at bound", "at kink", "zero") else ""
        lines.append(
            f"{label!s:<{first}}{_short(row.estimate):>13}{_short(row.std_error):>12}{interval:>27}{t:>9}{p:>8}  "
            f"{units.get(str(label), '')}{mark}"
        )
    lines.append("─" * width)
    for output, row in fit.quality.iterrows():
        samples = _many(int(row.samples), "sample")
        lines.append(
            f"{output!s:<{first}}{samples}, rms {_short(row.rms)}, R² {row.r2:.5f}, {row.fit_percent:.2f} "
            f"%{_prediction_basis(fit)}"
        )
    lines.append("─" * width)
    lines.append(e.status)
    marks = {e.caution: "*", **dict.fromkeys(fit.doubts, "!")}
    lines += [f"{marks.get(note, '•')} {note}" for note in fit.notes] or ["• every unknown is determined by the data"]
    lines += [f"• {note}" for note in fit.limits().notes]
    return "\n".join(lines)


def summarize_html(fit: Fitted) -> str:
    """Return the same for notebooks, shorter."""
    units = {u.name: u.unit for u in fit.estimate.unknowns}
    rows = [
        (
            symbol(str(name)), f"{row.estimate:.6g}", f"{row.std_error:.3g}",
            UNDETERMINED if _is_undetermined(row) else f"{row.lower:.5g} … {row.upper:.5g}",
            units.get(str(name), ""), str(row.status),
        )
        for name, row in fit.parameters.iterrows()
    ]  # fmt: skip
    head = ("", "estimate", _doubtful(fit, "std. error"), _doubtful(fit, "95 % interval"), "unit", "status")
    said = f"{fit.model_name}, fitted by {type(fit.method).__name__} to {_many(fit.estimate.count, 'measurement')}"
    quality = [
        f"{o}: {q.fit_percent:.2f} % fit, R² {q.r2:.5f}{_prediction_basis(fit)}" for o, q in fit.quality.iterrows()
    ]
    way = _transcription(fit)
    laws = [f"{output}: {law}" for output, law in declared_laws(fit).items()]
    notes = [*([way] if way else []), *laws, *quality, *(fit.notes or ["every unknown is determined by the data"])]
    notes += [f"residuals: {fit.residual_verdict}"] if fit.residual_verdict else []
    notes += [f"intervals: {kinds_of_intervals(fit)}", *fit.limits().notes]
    notes += [_details(fit)] if fit.estimate.details else []
    status = tag("p", "✓ " if fit.converged else "✗ ", fit.status)
    return tag(
        "div", tag("p", tag("strong", said)), table(head, rows), status, tag("ul", *(tag("li", n) for n in notes))
    )


def kinds_of_intervals(fit: Fitted) -> str:
    """Return which of the table's intervals are of which kind."""
    found = fit.limits()
    by_kind = {kind: [n for n, k in zip(fit.names, found.kinds, strict=True) if k == kind] for kind in found.kinds}
    others = [f"{kind}: {', '.join(names)}" for kind, names in by_kind.items() if kind != "Wald"]
    wald = ["Wald's"] if "Wald" in by_kind else []
    if found.said:
        wald = [f"Wald's, {found.said}"]
    elif wald and not others:
        wald = ["Wald's, within a tenth of their widths of the profiles'"]
    return "; ".join([*others, *wald])


def _is_undetermined(row: pd.Series) -> bool:
    """Return whether nothing at all is known of an unknown, so that it has no interval, t or p."""
    return bool(np.isposinf(row.std_error) and np.isneginf(row.lower) and np.isposinf(row.upper))


def _doubtful(fit: Fitted, heading: str) -> str:
    """Return a heading with the mark of a doubt about it."""
    return f"{heading}{'*' if fit.estimate.caution else ''}{'!' if fit.doubts else ''}"


def _laws(fit: Fitted) -> str:
    """Return the laws that outputs declare, with the estimates in them."""
    said = "; ".join(f"{output}: {law}" for output, law in declared_laws(fit).items())
    return f"{'laws':<18}{said}" if said else ""


def _tested(fit: Fitted) -> str:
    return f"{'residuals':<18}{fit.residual_verdict}" if fit.residual_verdict else ""


def _details(fit: Fitted) -> str:
    """Return numbers of a method from outside the package."""
    said = ", ".join(f"{name} {_short(value)}" for name, value in fit.estimate.details.items())
    return f"{'details':<18}{said}" if said else ""


def _prediction_basis(fit: Fitted) -> str:
    """Return what was predicted from, where that is more than the start and the inputs."""
    how = [] if fit.method.predictions_are == SIMULATION else [fit.method.predictions_are]
    how += ["as the loss counts them"] if fit.method.score is not None else []
    return f" ({', '.join(how)})" if how else ""


def _transcription(fit: Fitted) -> str:
    """Return how collocation represents trajectories; nothing for other estimators."""
    return fit.estimate.transcription


def _criteria(fit: Fitted) -> str:
    e = fit.estimate
    if not e.is_likelihood:
        return f"{'criterion':<18}{_short(e.objective):<12}not a likelihood: no AIC, BIC"
    return (
        f"{'log-likelihood':<18}{_short(e.log_likelihood):<12}{'AIC':<18}{_short(fit.aic):<12}"
        f"{'BIC':<12}{_short(fit.bic)}"
    )


def _short(value: float) -> str:
    return f"{value:.6g}"


def _many(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"
