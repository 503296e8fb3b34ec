"""Stores: exact, and refused with what differs."""

from __future__ import annotations

import math
import sqlite3
from pathlib import Path

import pytest
from study.examples import METHOD, PLAN, SERIAL, Line, line_study

import grisaille as gr
from grisaille.errors import EstimationError
from grisaille.problem.study_file import read_store
from grisaille.study.header import describe_method
from grisaille.study.store import Store
from grisaille.study.study_task import RunAnswer


def test_numbers_come_back_to_the_last_bit(tmp_path: Path) -> None:
    row = {"a": 0.1 + 0.2, "b": math.nan, "c": -math.inf, "d": 5e-324, "n": 7, "ok": True, "text": "k̂ → 1"}
    store = Store(tmp_path / "s.db", {"seed": "1"}, ["a", "b", "c", "d"])
    store.write([RunAnswer(4, 2**64 - 1, 0.25, row)])
    store.close()
    again = Store(tmp_path / "s.db", {"seed": "1"}, ["a", "b", "c", "d"])
    answer = again.read(5)[4]
    assert answer.seed == 2**64 - 1 and answer.seconds == 0.25
    assert math.isnan(answer.row.pop("b")) and math.isnan(row.pop("b"))
    assert answer.row == row
    assert again.read(4) == {}
    again.close()


CHANGES = [
    ({"seed": 4}, "seed \\(3 there, 4 here\\)"),
    ({"model": Line(p=2.5)}, "parameters: p \\(1.5 there, 2.5 here\\)"),
    ({"plan": PLAN.replace(inputs={"x": PLAN.inputs["x"].values + 1})}, "data: experiment 1"),
    ({"estimate": ["p"]}, "estimate \\(\\['p', 'q'\\] there, \\['p'\\] here\\)"),
    ({"method": gr.OutputError(rtol=1e-9)}, "method"),
    ({"bounds": {"p": (0.0, 9.0)}}, "bounds"),
    ({"noise": {"y": 0.5}}, "noise"),
    ({"guess": {"p": 1.0}}, "guess"),
]


@pytest.mark.parametrize(("change", "words"), CHANGES, ids=[next(iter(c)) for c, _ in CHANGES])
def test_another_study_is_refused_with_what_differs(change: dict, words: str, tmp_path: Path) -> None:
    line_study(2, store=tmp_path / "s.db")
    options = {"model": Line(), "plan": PLAN, "estimate": ["p", "q"], "seed": 3, "runs": 2, **SERIAL, **change}
    with pytest.raises(EstimationError, match=f"holds another study.*{words}.*Give another store="):
        gr.monte_carlo(store=tmp_path / "s.db", **options)


def test_a_row_that_was_changed_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    line_study(3, store=path)
    with sqlite3.connect(path) as connection:
        (row,) = connection.execute("SELECT row FROM runs WHERE run = 1").fetchone()
        connection.execute("UPDATE runs SET row = ? WHERE run = 1", (row.replace("1", "2", 1),))
    with pytest.raises(EstimationError, match=r"Run 1 in store=.* is not as it was written"):
        line_study(3, store=path)
    with pytest.raises(EstimationError, match="Run 1 in store="):
        read_store(path)


def test_rows_do_not_change_places(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    line_study(2, store=path)
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE runs SET row = (SELECT row FROM runs WHERE run = 0) WHERE run = 1")
    with pytest.raises(EstimationError, match="Run 1 in store="):
        line_study(2, store=path)


def test_older_stores_without_digests_are_continued(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    whole = line_study(3, store=path).table
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE header SET value = 'grisaille study 1' WHERE key = 'format'")
        for run, row in list(connection.execute("SELECT run, row FROM runs")):
            connection.execute("UPDATE runs SET row = ? WHERE run = ?", (row.partition("\n")[0], run))
        connection.execute("DELETE FROM runs WHERE run = 2")
    assert line_study(3, store=path).table.equals(whole)
    assert len(read_store(path).rows) == 3


def test_multistart_and_monte_carlo_do_not_mix(tmp_path: Path) -> None:
    line_study(2, store=tmp_path / "s.db")
    with pytest.raises(EstimationError, match="kind \\(monte_carlo there, multistart here\\)"):
        gr.multistart(Line(), PLAN, ["p", "q"], sampling=[[0.0, 0.0]], store=tmp_path / "s.db", **SERIAL)


def test_other_files_are_refused(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("not a database, but long enough to look like a file with a header " * 20)
    with sqlite3.connect(tmp_path / "other.db") as connection:
        connection.execute("CREATE TABLE songs (name TEXT)")
    connection.close()
    for name, words in (
        ("notes.txt", "cannot be used as a study's file"),
        ("other.db", "not of a study"),
        ("missing/folder.db", "unable to open database file"),
    ):
        with pytest.raises(EstimationError, match=words):
            line_study(1, store=tmp_path / name)


def test_a_multistart_resumes_and_grows(tmp_path: Path) -> None:
    data = PLAN.replace(outputs={"y": 1.0 - PLAN.inputs["x"].values})
    options = {"ranges": {"p": (-1.0, 1.0), "q": (-2.0, 2.0)}, "store": tmp_path / "s.db", "executor": "serial"}
    few = gr.multistart(Line(), data, ["p", "q"], METHOD, starts=3, **options)
    many = gr.multistart(Line(), data, ["p", "q"], METHOD, starts=6, **options)
    assert few.table["p"].tolist() == many.table["p"].tolist()[:3]


def test_methods_are_known_by_the_options_that_weredescribe_method() -> None:
    """An option that comes with a later version does not make older stores strangers."""
    assert describe_method(gr.Collocation()) == "Collocation(criterion='laplace')"
    assert describe_method(gr.Collocation(debias=True)) == "Collocation(criterion='amle', debias=True)"
    assert (
        describe_method(gr.Collocation(criterion="ipda", knots=[1.0])) == "Collocation(criterion='ipda', knots=(1.0,))"
    )
    assert describe_method(gr.OutputError(rtol=gr.OutputError().rtol)) == "OutputError()"
    assert describe_method(gr.OutputError(compiled=True)) == "OutputError()"


def test_stores_that_name_interpreted_runs_go_on(tmp_path: Path) -> None:
    told = {"method": "OutputError(rtol=1e-09, compiled=False)", "seed": "1"}
    Store(tmp_path / "s.db", told, ["a"]).close()
    Store(tmp_path / "s.db", {**told, "method": "OutputError(rtol=1e-09)"}, ["a"]).close()
    with pytest.raises(EstimationError, match="holds another study"):
        Store(tmp_path / "s.db", {**told, "method": "OutputError()"}, ["a"])


def test_stores_of_earlier_versions_go_on_and_of_later_ones_do_not(tmp_path: Path) -> None:
    said = {"method": "OutputError()", "seed": "1", "grisaille": "0.10.0"}
    Store(tmp_path / "s.db", said, ["a"]).close()
    Store(tmp_path / "s.db", {**said, "grisaille": "0.11.2"}, ["a"]).close()
    with pytest.raises(EstimationError, match=r"grisaille \(0\.10\.0 there, 0\.9\.0 here\)"):
        Store(tmp_path / "s.db", {**said, "grisaille": "0.9.0"}, ["a"])
