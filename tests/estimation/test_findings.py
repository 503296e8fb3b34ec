"""What only some methods find has a field of its own, comes back from files, and is read from those of 0.1.0."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from old_files import questions

import grisaille as gr
from grisaille.estimation.findings import EnsembleResult, ErrorSize, MeshResult, UnexplainedErrors
from grisaille.estimation.hac import RobustErrors
from grisaille.estimation.persistence import findings_as_data, restored_findings

TABLE = {
    "criterion": 3.5, "penalty": 0.01, "explained_exactly": 1.0, "moved_by_start": 2.5, "limit(scale(w))": 0.3,
    "limit(noise(y[0])@run)": 0.4, "student(k)": 7.0, "student(start(x)@run)": np.inf, "independent(y)": 31.0,
    "stretch": 3.0, "disturbed_residuals": 1.0, "realizations": 64.0, "monte_carlo_share": 0.02, "correction": 0.1,
    "size(y)@run (2)": 1.4, "size_p(y)@run (2)": 0.03, "unexplained(y@run (2))": 3.0, "bias(k)": -0.2,
    "covered(scale(w))": 0.81, "refinements": 2.0, "elements": 40.0, "pieces": 4.0, "of my own(k)": 9.0,
}  # fmt: skip


def test_a_table_by_name_becomes_fields() -> None:
    found = restored_findings({"extra": TABLE, "why": {"Collocation": "given: direct"}}, gr.Collocation())
    assert found == {
        "transcription": "direct", "compared": 3.5, "penalty": 0.01, "explained_exactly": True, "moved_by_start": 2.5,
        "limits": {"scale(w)": 0.3, "noise(y[0])@run": 0.4},
        "robust": RobustErrors({"k": 7.0, "start(x)@run": np.inf}, {"y": 31.0}, 3.0),
        "ensemble": EnsembleResult(
            64, 0.02, 0.1, (ErrorSize("y", "run (2)", 1.4, 0.03),), (UnexplainedErrors("y", "run (2)", 3.0),),
            {"k": -0.2}, {"scale(w)": 0.81},
        ),
        "mesh": MeshResult(2, elements=40, pieces=4), "details": {"of my own(k)": 9.0},
    }  # fmt: skip


@pytest.mark.parametrize("extra", [TABLE, {}])
def test_fields_come_back_from_text(extra: dict[str, float]) -> None:
    fit = gr.load(questions.FILES / "output_error.nc")
    estimate = replace(fit.estimate, **restored_findings({"extra": extra, "why": {}}, fit.method))
    again = restored_findings({"findings": json.loads(json.dumps(findings_as_data(estimate)))}, fit.method)
    assert {name: getattr(estimate, name) for name in again} == again


@pytest.mark.parametrize(
    ("name", "field"), [("simulated_pem", "ensemble"), ("collocation_amle", "mesh"), ("collocation_laplace", "mesh")]
)
def test_files_of_0_1_0_have_them(name: str, field: str, tmp_path) -> None:
    fit = gr.load(questions.FILES / f"{name}.nc")
    assert getattr(fit.estimate, field) is not None and not fit.estimate.details
    fit.save(tmp_path / "fit.nc")
    again = gr.load(tmp_path / "fit.nc")
    assert findings_as_data(again.estimate) == findings_as_data(fit.estimate) and str(again) == str(fit)
