"""Tables 6 to 9 of the grey-box paper: one data set without diffusion, four starts of σ.

The log-likelihood depends on σ², so σ = 0 is a stationary point and a search in log σ never arrives there. CTSM's
estimates of σ spread over 1e-19 … 3e-4; those are zeros, and ours are reported as zero. Tables 7 and 9, by MoCaVa with
low-pass noise, can only be printed; ours beside them are fits with such noise, from the same starts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

import grisaille as gr
from grisaille.errors import DataError
from grisaille_reproductions.comparison import Reproduction, Row, Size
from grisaille_reproductions.kristensen import REACTOR, WALL, Example
from grisaille_reproductions.kristensen_tables import FROM_STARTS, STARTS

if TYPE_CHECKING:
    from grisaille_reproductions.registry import Workers


TRIED = (2, 5, 20)
"""Data sets among which one is looked for whose levels are all zero, as the source's were."""
SUBSTEPS = 8
"""Of the extended filter, the same from every start: chosen at the guess they would differ, and with them log L."""


def table6(size: Size, folder: Path | None, executor: Workers) -> Reproduction:
    """The reactor, white noise."""
    return _table(6, REACTOR, None, size)


def table7(size: Size, folder: Path | None, executor: Workers) -> Reproduction:
    """The reactor, low-pass noise."""
    return _table(7, REACTOR, REACTOR.bandwidth, size)


def table8(size: Size, folder: Path | None, executor: Workers) -> Reproduction:
    """The wall, white noise."""
    return _table(8, WALL, None, size)


def table9(size: Size, folder: Path | None, executor: Workers) -> Reproduction:
    """The wall, low-pass noise."""
    return _table(9, WALL, WALL.bandwidth, size)


def _table(number: int, example: Example, bandwidth: float | None, size: Size) -> Reproduction:
    chosen, substeps = (range(4), SUBSTEPS) if size == "full" else ((0, 3), 2)
    run, data = data_set(example)
    fits = [from_start(example, data, STARTS[k], bandwidth, substeps) for k in chosen]
    found = example.in_symbols(pd.DataFrame([f.parameters["estimate"] for f in fits]))
    published = {s: [FROM_STARTS[number][s][k] for k in chosen] for s in example.names}
    rows = [Row(s, _listed(found[s].to_numpy()), _listed(published[s])) for s in example.names]
    ordinary = [s for s in example.names if not s.startswith("σ")]
    objectives = np.array([f.log_likelihood for f in fits])
    apart = np.ptp(found[ordinary].to_numpy(), axis=0) / np.abs(found[ordinary].mean().to_numpy())
    rows += [
        Row("converged", sum(f.converged for f in fits), None, len(fits)),
        Row("log-likelihood, largest difference", float(np.ptp(objectives)), None, "< 1e-6"),
        Row("parameters but σ, largest relative difference", float(apart.max()), _published_apart(number, ordinary)),
        Row("σ reported as zero", f"{_zeros(example, fits)} of {len(fits) * len(example.diffusions)}"),
    ]
    program, noise = ("CTSM", "white") if bandwidth is None else ("MoCaVa", f"low-pass ({bandwidth:g} rad/h)")
    notes = (
        f"Starts σ = {', '.join(f'{STARTS[k]:g}' for k in chosen)}, all else at the truth; published: {program}.",
        f"Ours: {noise} noise; data set {run} of the study without diffusion, the first whose σ are all zero. The "
        f"source's data are not published, so estimates differ; what is compared is how far results lie apart.",
    )
    return Reproduction(f"{example.title}, four starts (Table {number})", tuple(rows), notes)


@cache
def data_set(example: Example) -> tuple[int, list[gr.Experiment]]:
    """The first data set without diffusion in which all levels are zero at the maximum of the likelihood."""
    for tried in TRIED:
        study = example.study(0.0, tried, executor="serial")
        zero = (study.table[list(example.diffusions)] == 0).all(axis=1).to_numpy()
        if zero.any():
            return int(zero.argmax()), study.data(int(zero.argmax()))
    raise DataError(f"In none of {TRIED[-1]} data sets of the {example.title.lower()} are all σ estimated as zero.")


def from_start(
    example: Example, data: list[gr.Experiment], sigma: float, bandwidth: float | None = None, substeps: int = SUBSTEPS
) -> gr.Fit:  # fmt: skip
    """A fit from the truth with all σ at one value."""
    guess = {**example.start(sigma), **_noise_guess(example)}
    method = replace(example.method, substeps=substeps)
    return gr.fit(example.model(0.1, bandwidth), data, example.unknowns, method, guess=guess, progress=False)


def _noise_guess(example: Example) -> dict[str, float]:
    """Levels of measurement noise at the truth; without, a fit would look for a start of its own."""
    flat = {f"noise({name})": value for name, value in {"y_X": 0.1, "y_S": np.sqrt(1e-3), "y_V": 0.1, "q": 0.1}.items()}
    return {name: float(flat[name]) for name in example.unknowns if name in flat}


def _listed(values: Sequence[float]) -> str:
    return ", ".join("–" if np.isnan(v) else f"{v:.5g}" for v in values)


def _published_apart(number: int, ordinary: list[str]) -> float:
    values = np.array([FROM_STARTS[number][s] for s in ordinary])
    return float(((np.nanmax(values, axis=1) - np.nanmin(values, axis=1)) / np.nanmean(values, axis=1)).max())


def _zeros(example: Example, fits: list[gr.Fit]) -> int:
    return sum(int(f.parameters.loc[list(example.diffusions), "estimate"].eq(0).sum()) for f in fits)
