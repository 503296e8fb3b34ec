"""What reports say, that they are one file that calls nobody, and that their code repeats the fit."""

from __future__ import annotations

import base64
import re
from html import unescape
from pathlib import Path

import numpy as np
import pytest
from assessment.lines import X, line_fit
from reporting.fits import METHOD, NASTY, Tank, nasty_fit, tank_experiment, tank_fit, walk_fit

import grisaille as gr
from grisaille.errors import DataError
from grisaille.reporting import MEANINGS, Album, as_exact, fit_page, outputs, repeat_code, short_number

PAGE = fit_page(tank_fit())
TEXT = unescape(re.sub(r"<[^>]+>", " ", PAGE))


def test_estimates_intervals_guesses_and_bounds_are_told() -> None:
    fit = tank_fit()
    for name, row in fit.parameters.iterrows():
        lower, upper = (as_exact(v, row.std_error) for v in (row.lower, row.upper))
        assert f"{lower} … {upper}" in TEXT, name
        assert as_exact(row.estimate, row.std_error) in TEXT
    assert "0.05 … 5" in TEXT and "estimated from residuals" in TEXT
    assert fit.status in TEXT and short_number(fit.aic, 6) in TEXT


def test_curves_and_the_verdict_stand_above_the_table() -> None:
    first = PAGE[PAGE.index('id="summary"') : PAGE.index('id="outputs"')]
    order = ("Measured and predicted", "Residuals: ", "y, first", "Parameters", "Fit of each output")
    places = [first.index(words) for words in order]
    assert places == sorted(places)
    found = tank_fit().diagnose()
    bad = found.unhealthy_together
    assert ("✗ unhealthy" if bad else "✓ healthy") in first
    assert all(f"{v.test} of {v.output}" in unescape(first) for v in bad)


def test_every_part_is_there() -> None:
    for words in (
        "differential index",
        "1/h",
        "Experiment 'first'",
        "Cumulated periodogram of y",
        "Correlation of the",
    ):
        assert words in TEXT
    assert PAGE.count("<math display") == 1
    for verdict in tank_fit().diagnose().verdicts:
        assert verdict.sentence[1:] in TEXT
    for *_, suggestion in MEANINGS:
        assert suggestion in TEXT


def test_nothing_is_asked_of_the_network() -> None:
    rest = PAGE.replace("http://www.w3.org/2000/svg", "")
    assert not re.search(r"https?://|//cdn|@import|\bsrc=|url\((?!#)", rest)
    assert "default-src 'none'" in unescape(rest)


def test_users_words_are_escaped() -> None:
    page = fit_page(nasty_fit())
    assert NASTY not in page and "<script>document" not in page
    assert page.count("<script") == 2


def test_the_code_repeats_the_fit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    found = re.search(r'base64,([^"]+)" download="([^"]+)"', PAGE)
    assert found is not None
    Path(found[2]).write_bytes(base64.b64decode(found[1]))
    code = re.search(r'<code id="again">(.*?)</code>', PAGE, re.DOTALL)
    assert code is not None
    namespace: dict[str, object] = {}
    exec(unescape(code[1]), namespace)
    np.testing.assert_allclose(namespace["fit"].estimate.theta, tank_fit().estimate.theta, rtol=1e-9)


def test_code_names_options_bounds_and_priors() -> None:
    data = tank_experiment("A", 1)
    method = gr.OutputError(covariance="sandwich")
    fit = gr.fit(Tank(), data, ["k", "start(level)"], method, priors={"k": gr.LogNormal(0.5, 0.3)}, guess={"k": 0.4})
    code = repeat_code(fit, None)
    for part in (
        "gr.OutputError(covariance='sandwich')",
        "'k': (0.05, 5.0)",
        "gr.LogNormal(median=0.5",
        "'k': 0.4",
        "# 'Tank'",
    ):
        assert part in code
    compile(code, "snippet", "exec")


def test_profiles_only_where_asked_for() -> None:
    assert "profiles=True" in PAGE and "by the standard error" not in PAGE
    page = fit_page(gr.fit(Tank(), tank_experiment("A", 1, n=20), ["k"], METHOD), profiles=True)
    assert "by the standard error" in page and "There is only one unknown." in page


def test_filters_show_states_and_simulation() -> None:
    page = fit_page(walk_fit())
    assert 'id="states"' in page and "smoothed" in page and "simulated without looking at data" in page
    assert 'id="states"' not in PAGE


def test_a_fit_that_did_not_converge_says_so() -> None:
    fit = gr.fit(Tank(), tank_experiment("A", 1), ["k"], gr.OutputError(max_evaluations=1), guess={"k": 3.0})
    page = fit_page(fit)
    assert not fit.converged and 'class="chip bad"' in page and "not converged" in page


def test_large_data_stay_below_two_megabytes(tmp_path: Path) -> None:
    class Line(gr.Model):
        p, q = gr.Parameter(0.0), gr.Parameter(0.0)
        x = gr.Input()
        y = gr.Output(p + q * x)

    n = 100_000
    x = np.random.default_rng(1).standard_normal(n)
    y = 1 + 2 * x + np.random.default_rng(2).standard_normal(n)
    path = gr.fit(Line(), gr.Experiment(inputs={"x": x}, outputs={"y": y}), ["p", "q"], METHOD).report(
        tmp_path / "a.html"
    )
    assert path.stat().st_size < 2e6


def test_many_experiments_stay_readable(tmp_path: Path) -> None:
    class Line(gr.Model):
        p = gr.Parameter(0.0)
        y = gr.Output(p + 0 * gr.time)

    runs = [gr.Experiment(np.arange(12.0), {}, {"y": np.cos(np.arange(12.0) * k + k)}, name=f"r{k}") for k in range(26)]
    page = fit_page(gr.fit(Line(), runs, ["p"], METHOD))
    assert "… and 2 more experiments." in page and page.count('<option value="outputs-') == 24


@pytest.mark.parametrize(("name", "words"), [("report.pdf", "ends in .html"), ("nowhere/r.html", "no folder")])
def test_impossible_files_are_refused(tmp_path: Path, name: str, words: str) -> None:
    with pytest.raises(DataError, match=words):
        tank_fit().report(tmp_path / name)
    assert not list(tmp_path.iterdir())


def test_the_path_is_given_back_and_files_replaced(tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    path.write_text("old")
    assert tank_fit().report(str(path), title="A <title>") == path
    assert "<title>A &lt;title&gt;</title>" in path.read_text("utf-8")
    assert list(tmp_path.iterdir()) == [path]


def test_smoothed_residuals_are_shown_but_not_judged() -> None:
    fit = walk_fit()
    smoothed = gr.fit(fit.initial_model, list(fit.experiments), ["a"], gr.Collocation(criterion="amle"))
    page = fit_page(smoothed)
    assert "residuals not tested" in page and "Nothing was tested." in page
    assert "gr.KalmanML leaves innovations" in str(smoothed.diagnose())
    assert "Residuals of y" in page and "Autocorrelation of y" not in page
    assert "the band of 95 % contains the uncertainty of parameters" in page
    assert "Profiles of the criterion" in page


def test_static_models_are_drawn_over_their_only_input() -> None:
    album = Album()
    outputs(line_fit(), album, [line_fit().experiments[0].name])
    first, below = album.charts
    assert first.x == "x" and np.array_equal(np.sort(X), first.series[0].x) and below.x == "x"


def test_stages_of_a_search_are_drawn_apart() -> None:
    """An objective that was renewed (noise levels, weights) is another one; each falls."""
    from grisaille.reporting import stages

    objective = np.array([1e4, 10.0, 1e-8, 49.5, 49.4, 49.40001, 49.3])
    assert stages(objective) == [slice(0, 3), slice(3, 5), slice(5, 7)]
    assert stages(np.array([3.0, 2.0, 2.0])) == [slice(0, 3)] and all(
        (np.diff(objective[part]) <= 0).all() for part in stages(objective)
    )


def test_estimates_have_the_digits_that_their_errors_tell() -> None:
    given = [(1.43123, 0.0922), (11.5305, 0.879), (-0.0482504, 0.0019), (18.9797, 3.5e-7), (2e-9, 3e-11), (5e7, 2e3)]
    shown = ["1.4312", "11.530", "−0.04825", "18.9797", "2e−09", "5e+07"]
    assert [as_exact(v, e) for v, e in given] == shown
    assert as_exact(1.5, 0.0) == "1.5" and as_exact(float("nan"), 0.1) == "—" and as_exact(3.0, float("inf")) == "3"
