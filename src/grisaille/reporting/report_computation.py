"""How the numbers came about: convergence, time, options, versions, and the lines that compute them again."""

from __future__ import annotations

import base64
import platform
import tempfile
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np

from grisaille.errors import GrisailleError
from grisaille.estimation.estimator import Estimator
from grisaille.estimation.fitted import Fitted
from grisaille.estimation.persistence.saving import save, versions
from grisaille.laws.law_content import call_text
from grisaille.markup import Html, joined, table, tag
from grisaille.reporting.charts import Album, Chart, ChartSeries
from grisaille.reporting.labels import count, short_number
from grisaille.reporting.page import bullets, card, facts, scrolling

MAX_FILE = 400_000
"""Bytes of a saved fit that a report still carries inside."""
MAX_DATA, MAX_EXPERIMENTS = 20_000, 12
"""Measurements and experiments of a fit that is saved for that."""
MAX_ROWS = 60


def computation(fit: Fitted, album: Album) -> Html:
    """Return everything about the run."""
    e = fit.estimate
    timing = [
        ("wall time", f"{e.seconds:.3g} s"), ("evaluations", f"{e.evaluations}"),
        ("from the minimum", f"{short_number(e.offset, 2)} standard errors"),
        ("seed", str(fit.method.options.get("seed", "none needed"))),
    ]  # fmt: skip
    failures = [f"{count(len(e.failures), 'evaluation')} failed; the first: {e.failures[0]}"] if e.failures else []
    run = card(facts(timing), bullets([fit.status, *failures]), *_trace(fit, album), title="Convergence")
    return joined(
        (
            card(*_again(fit), title="Compute it again"),
            run,
            card(*_method(fit), title="Method"),
            card(*_versions(fit), title="Versions"),
        )
    )


def _trace(fit: Fitted, album: Album) -> Iterator[Html]:
    trace = fit.trace
    if not len(trace) or "objective" not in trace:
        return
    objective = trace["objective"].to_numpy(dtype=float)
    at = trace["evaluation"].to_numpy(dtype=float) if "evaluation" in trace else np.arange(len(trace), dtype=float)
    parts = stages(objective)
    shown: list[ChartSeries] = []
    for k, part in enumerate(parts):
        above = objective[part] - objective[part].min()
        height = np.maximum(above, max(float(above.max()) * 1e-12, 1e-12))
        name = "above the best" if len(parts) == 1 else f"stage {k + 1}, above its best"
        shown.append(ChartSeries(name, "line", at[part], height, color=1 + k % 5))
        shown.append(
            ChartSeries(
                "improvements" if len(parts) == 1 else f"stage {k + 1}, improvements",
                "points",
                at[part],
                height,
                color=1 + k % 5,
            )
        )
    words = f"{len(trace)} improvements from {short_number(objective[0])} to {short_number(objective[-1])}."
    if len(parts) > 1:
        words += f" {len(parts)} stages: between them levels of noise, weights or steps were renewed."
    yield album.place(
        Chart("Objective above its best value", words, "evaluation", "objective − best", shown, 220, log_y=True)
    )
    columns = list(map(str, trace.columns))
    rows = [[_cell(v) for v in row] for row in trace.to_numpy()[:MAX_ROWS]]
    listing = scrolling(table(columns, rows, numbers=range(len(columns))))
    yield tag("details", tag("summary", "The trace as a table"), listing)


def stages(objective: np.ndarray) -> list[slice]:
    """Return stretches in which an objective falls; where it grows it is another one."""
    size = np.abs(objective[:-1]) if len(objective) else objective
    cuts = np.flatnonzero(np.diff(objective) > 1e-9 * np.maximum(size, 1e-300)) + 1
    edges = [0, *cuts.tolist(), len(objective)]
    return [slice(a, b) for a, b in pairwise(edges)]


def _cell(value: float) -> str:
    return f"{int(value)}" if float(value).is_integer() and abs(value) < 1e9 else short_number(value, 6)


def _method(fit: Fitted) -> Iterator[Html | None]:
    rows = [(name, repr(value)) for name, value in fit.method.options.items()]
    yield scrolling(table((type(fit.method).__name__, "option"), rows, prose=(1,)))
    if fit.why:
        yield tag("h3", "Why this estimator")
        yield bullets(f"{name}: {reason}" for name, reason in fit.why.items())


def _versions(fit: Fitted) -> Iterator[Html]:
    found = {**versions(), "machine": f"{platform.system()} {platform.machine()}"}
    yield facts(found.items())
    yield tag("p", "model ", tag("code", fit.initial_model.fingerprint[:16]), class_="muted")


def _again(fit: Fitted) -> Iterator[Html]:
    saved = _saved(fit)
    name = f"{''.join(c if c.isalnum() else '-' for c in fit.model_name.lower())}-fit.nc"
    if saved is not None:
        yield tag(
            "p", "These lines give the same estimates. They begin with a file that holds model, data and options: ",
            tag("a", f"save {name}", href=f"data:application/x-netcdf;base64,{saved}", download=name), ".",
        )  # fmt: skip
    else:
        yield tag("p", "These lines give the same estimates, from the same model and data.")
    yield tag("pre", tag("code", repeat_code(fit, name if saved is not None else None), id="again"), tabindex="0")
    yield tag("button", "Copy", type="button", data_copies="again")


def repeat_code(fit: Fitted, file: str | None) -> str:
    """Return Python that repeats the fit; from a saved file where there is one."""
    if file is not None:
        begin = [f'saved = gr.load("{file}")', "model, data = saved.initial_model, saved.experiments"]
    else:
        runs = ", ".join(repr(e.name) for e in fit.experiments[:8])
        begin = [
            f"model = ...  # {fit.model_name!r}, as in this report; fingerprint {fit.initial_model.fingerprint[:16]}",
            f"data = ...  # {count(len(fit.experiments), 'experiment')}: {runs}",
        ]
    unknowns = fit.estimate.unknowns
    guess = ", ".join(f"{u.name!r}: {float(u.guess)!r}" for u in unknowns)
    bounds = ", ".join(
        f"{u.name!r}: ({_limit(u.lower)}, {_limit(u.upper)})" for u in unknowns if np.isfinite([u.lower, u.upper]).any()
    )
    priors = ", ".join(f"{u.name!r}: {call_text(u.prior)}" for u in unknowns if u.prior is not None)
    lines = [
        "import grisaille as gr", "", *begin, "fit = gr.fit(", "    model,", "    data,",
        f"    estimate={list(fit.names)!r},", f"    method=gr.{method_code(fit.method)},", f"    guess={{{guess}}},",
        *([f"    bounds={{{bounds}}},"] if bounds else []), *([f"    priors={{{priors}}},"] if priors else []),
        ")", "print(fit)",
    ]  # fmt: skip
    return "\n".join(lines)


def _limit(value: float) -> str:
    return repr(float(value)) if np.isfinite(value) else f'float("{value}")'


def method_code(method: Estimator) -> str:
    usual = type(method)().options
    changed = [f"{name}={value!r}" for name, value in method.options.items() if value != usual[name]]
    return f"{type(method).__name__}({', '.join(changed)})"


def _saved(fit: Fitted) -> str | None:
    """Return the saved fit in base64, unless it is large or cannot be saved."""
    if fit.estimate.count > MAX_DATA or len(fit.experiments) > MAX_EXPERIMENTS:
        return None
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "fit.nc"
        try:
            save(fit, path)
        except GrisailleError:
            return None
        content = path.read_bytes()
    return base64.b64encode(content).decode() if len(content) <= MAX_FILE else None
