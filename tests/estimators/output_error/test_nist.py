"""Certified regression problems: every set, from both starts, to six digits; none claims convergence with fewer."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from zoo.nist import FORMULAS, regression_model

import grisaille as gr

SETS = [
    "Bennett5", "Chwirut1", "Chwirut2", "DanWood", "ENSO", "Gauss1", "Gauss2", "Gauss3", "Lanczos1", "Lanczos2",
    "Lanczos3", "MGH09", "MGH17", "Misra1a", "Misra1b", "Misra1c", "Misra1d", "Nelson", "Rat42", "Roszman1",
]  # fmt: skip


def digits(found: np.ndarray, certified: np.ndarray) -> float:
    return float(-np.log10(np.clip(np.abs(found / certified - 1), 1e-16, None)).max())


def load(name: str, folder: Path) -> tuple[gr.Experiment, list[dict[str, float]]]:
    certified = json.loads((folder / "nist_strd" / "certified.json").read_text())[name]
    with (folder / "nist_strd" / f"{name}.csv").open() as file:
        rows = list(csv.DictReader(file))
    columns = {key: np.array([float(row[key]) for row in rows]) for key in rows[0]}
    y = np.log(columns.pop("y")) if name == "Nelson" else columns.pop("y")
    return gr.Experiment(inputs=columns, outputs={"y": y}), certified["parameters"]


@pytest.mark.parametrize("start", ["start1", "start2"])
@pytest.mark.parametrize("name", SETS)
def test_certified_values(name: str, start: str, reference_data: Path) -> None:
    experiment, parameters = load(name, reference_data)
    model = regression_model(name, [p[start] for p in parameters])
    fit = gr.fit(model, experiment, [p["name"] for p in parameters])
    assert fit.converged
    assert not any(note.startswith("dead") for note in fit.notes)  # MGH17 has unknowns that are so on the way
    certified = np.array([p["certified"] for p in parameters])
    order = np.arange(len(certified))
    if name == "MGH17" and fit.estimate.theta[3] > fit.estimate.theta[4]:
        order = np.array([0, 2, 1, 4, 3])  # two exponentials that may change places
    worst = np.abs(fit.estimate.theta[order] / certified - 1).max()
    assert worst < 1e-6
    if name != "Lanczos1":
        deviations = np.array([p["std_dev"] for p in parameters])
        assert np.abs(fit.std_errors[order] / deviations - 1).max() < 1e-4


def test_every_formula_can_be_posed() -> None:
    for name in FORMULAS:
        assert gr.analyze(regression_model(name, [1.0] * 9)).index == 0
