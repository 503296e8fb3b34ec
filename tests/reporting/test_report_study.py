"""Reports of studies and comparisons: their tables are those of the objects."""

from __future__ import annotations

import re
from html import unescape
from pathlib import Path

import numpy as np
from assessment.lines import METHOD, Line, line_experiment, line_fit

import grisaille as gr
from grisaille.reporting import comparison_page, short_number, study_page

SERIAL = {"executor": "serial", "seed": 1}


def text(page: str) -> str:
    return unescape(re.sub(r"<[^>]+>", " ", page))


def test_monte_carlo(tmp_path: Path) -> None:
    study = gr.monte_carlo(
        Line(p=1.5, q=-0.4), line_experiment(), ["p", "q"], METHOD, runs=30, noise={"y": 0.1}, **SERIAL
    )
    said = text(study_page(study))
    for _, row in study.summary().table.iterrows():
        assert short_number(row["mean"]) in said and f"{100 * row.coverage:.1f} %" in said and row.verdict in said
    assert "30 of 30 converged" in said and "intervals cover as claimed" in said
    assert study.report(tmp_path / "study.html").is_file()


def test_bootstrap_has_percentile_intervals() -> None:
    study = gr.bootstrap(line_fit(), 30, **SERIAL)
    said = text(study_page(study, title="<b>"))
    for _, row in study.intervals().iterrows():
        assert short_number(row.lower) in said and short_number(row.upper) in said
    assert "<b>" in said


def test_multistart_lists_its_minima() -> None:
    class Wave(gr.Model):
        f = gr.Parameter(1.0, bounds=(0.5, 8.0))
        x = gr.Input()
        y = gr.Output(gr.sin(f * x))

    x = np.linspace(0, 4, 40)
    y = np.sin(3 * x) + 0.05 * np.random.default_rng(1).standard_normal(40)
    study = gr.multistart(Wave(), gr.Experiment(inputs={"x": x}, outputs={"y": y}), ["f"], METHOD, starts=12, **SERIAL)
    assert len(study.basins) > 1
    said = text(study_page(study))
    assert f"{len(study.basins)} distinct minima" in said
    for _, row in study.basins.iterrows():
        assert short_number(row["f"], 6) in said


def test_failed_runs_are_listed() -> None:
    study = gr.multistart(
        Line(), line_experiment(), ["p"], METHOD, sampling=np.array([[0.0], [1.0]]), **SERIAL
    )  # fmt: skip
    broken = type(study)(study._prepared, study._answers)
    broken.table.loc[0, ["failure", "status"]] = "fit", "FAILED: <tag>"
    assert "FAILED: &lt;tag&gt;" in study_page(broken)


def test_comparison(tmp_path: Path) -> None:
    both = gr.compare({"<line>": line_fit(), "flat": line_fit(names=("p",))}, nested=[("flat", "<line>")])
    page = comparison_page(both)
    assert "<line>" not in page
    said = text(page)
    assert "least AIC: <line>" in said and short_number(both.table.loc["flat", "aic"], 6) in said
    assert "the larger fits better" in said
    assert both.report(tmp_path / "both.html").is_file()
