"""What notebooks show: HTML of structures, experiments, fits and studies, with users' words escaped."""

from __future__ import annotations

from assessment.lines import line_fit
from reporting.fits import NASTY, nasty_fit, tank_experiment, tank_fit

import grisaille as gr


def test_a_fit_is_a_compact_table() -> None:
    html = tank_fit()._repr_html_()
    for part in ("Tank, fitted by OutputError to 240 measurements", "1/h", "free", "R²", "✓"):
        assert part in html
    assert html.count("<tr>") == 1 + len(tank_fit().parameters)


def test_a_structure() -> None:
    html = gr.analyze(tank_fit().model)._repr_html_()
    assert "Tank: differential index" in html and "states" in html


def test_an_experiment() -> None:
    html = tank_experiment("run <1>", 1)._repr_html_()
    assert "run &lt;1&gt;" in html and "<table" in html and "12 h" in html


def test_a_comparison() -> None:
    assert "&lt;first&gt;" in gr.compare({"<first>": line_fit()})._repr_html_()


def test_users_words_are_escaped() -> None:
    fit = nasty_fit()
    things = (fit, fit.model, gr.analyze(fit.model), fit.experiments[0], fit.experiments[0].summary())
    for thing in things:
        assert NASTY not in thing._repr_html_()
