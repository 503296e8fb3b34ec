"""A fit as text: a regression table that ends with the diagnosis in words."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from grisaille.estimation.fit import Fit

WIDTH = 98


def summarize(fit: Fit) -> str:
    """The table that ``print(fit)`` shows."""
    e = fit.estimate
    name = type(fit.method).__name__
    lines = [
        f"{fit.model_name} fitted by {name}",
        "═" * WIDTH,
        f"{'experiments':<18}{len(fit.experiments):<12}{'measurements':<18}{e.count:<12}{'unknowns':<12}{len(e.unknowns)}",
        f"{'log-likelihood':<18}{_short(e.log_likelihood):<12}" + _criteria(fit),
        "─" * WIDTH,
        f"{'':<22}{'estimate':>13}{'std. error':>12}{'95 % interval':>27}{'t':>9}{'p':>8}  unit",
    ]
    units = {u.name: u.unit for u in e.unknowns}
    for label, row in fit.parameters.iterrows():
        interval = f"[{_short(row.lower)}, {_short(row.upper)}]"
        t = "" if np.isnan(row.t) else f"{row.t:.2f}"
        p = "" if np.isnan(row.p) else f"{row.p:.3f}"
        mark = " at bound" if row.status == "at bound" else ""
        lines.append(
            f"{label!s:<22}{_short(row.estimate):>13}{_short(row.std_error):>12}{interval:>27}{t:>9}{p:>8}  "
            f"{units.get(str(label), '')}{mark}"
        )
    lines.append("─" * WIDTH)
    for output, row in fit.quality.iterrows():
        lines.append(
            f"{output!s:<22}{int(row.samples)} samples, rms {_short(row.rms)}, R² {row.r2:.5f}, {row.fit_percent:.2f} %"
        )
    lines.append("─" * WIDTH)
    lines.append(e.status)
    lines += [f"• {note}" for note in e.notes] or ["• every unknown is determined by the data"]
    return "\n".join(lines)


def summarize_html(fit: Fit) -> str:
    """The same for notebooks."""
    notes = "".join(f"<li>{escape(n)}</li>" for n in fit.notes) or "<li>every unknown is determined by the data</li>"
    colour = "#1a7f37" if fit.converged else "#b42318"
    return (
        f"<div><p><b>{type(fit.method).__name__}</b>, {fit.estimate.count} measurements</p>"
        f"{fit.parameters.to_html(float_format=lambda v: f'{v:.5g}')}"
        f"<p style='color:{colour}'>{escape(fit.status)}</p><ul>{notes}</ul></div>"
    )


def _criteria(fit: Fit) -> str:
    if not fit.estimate.is_likelihood:
        return "(not a likelihood: no AIC, BIC)"
    return f"{'AIC':<18}{_short(fit.aic):<12}{'BIC':<12}{_short(fit.bic)}"


def _short(value: float) -> str:
    return f"{value:.6g}"
