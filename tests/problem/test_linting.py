"""Deliberate mistakes in problem folders: each is told once, with its line, in words that lead on."""

from __future__ import annotations

from pathlib import Path

import pytest
from problem.folders import MODEL, PROBLEM, changed, write

import grisaille as gr
from grisaille.problem import lint

ESTIMATE = 'estimate = ["k", "start(level)"]'
GUESS = "guess = 0.4"
METHOD = 'name = "OutputError"'


def mistakes() -> list[tuple[str, str, str]]:
    """Old text, new text and what is said, from ``mistakes.txt``."""
    lines = (Path(__file__).parent / "mistakes.txt").read_text("utf-8").splitlines()
    told = [line[2:].replace("\\n", "\n") for line in lines if line[:2] in ("- ", "+ ", "= ")]
    return list(zip(told[::3], told[1::3], told[2::3], strict=True))


@pytest.mark.parametrize(("old", "new", "said"), mistakes())
def test_a_mistake_is_told_once(tmp_path: Path, old: str, new: str, said: str) -> None:
    found = lint(write(tmp_path, changed(old, new)))
    assert len(found.errors) == 1, str(found)
    assert said in str(found.errors[0])


def test_there_are_enough_of_them() -> None:
    assert len(mistakes()) >= 80


def test_a_sound_folder_has_no_findings(tmp_path: Path) -> None:
    assert lint(write(tmp_path)).items == []


def test_all_mistakes_at_once(tmp_path: Path) -> None:
    broken = changed("seed = 1", "sed = 1", GUESS, "guess = 40", 'time = "t"', 'time = "s"', METHOD, 'name = "Kalman"',
                     "runs = 3", "runs = 0")  # fmt: skip
    found = lint(write(tmp_path, broken))
    assert [f.line for f in found.errors] == [4, 17, 22, 8, 12]
    with pytest.raises(gr.DataError, match="5 mistakes") as refusal:
        gr.load_problem(tmp_path)
    assert all(str(f) in str(refusal.value) for f in found.errors)


def test_mistakes_in_the_model_name_its_line(tmp_path: Path) -> None:
    (finding,) = lint(write(tmp_path, model=MODEL.replace("inflow - outflow", "inflow - outflw"))).errors
    assert (finding.file, finding.line) == ("model.py", 14)
    assert "NameError: name 'outflw' is not defined" in finding.message


def test_a_model_that_is_not_determined(tmp_path: Path) -> None:
    model = MODEL.replace('inflow = gr.Input("m3/s")', 'inflow = gr.Variable()\n    inflw = gr.Input("m3/s")')
    (finding, *_) = lint(write(tmp_path, model=model)).errors
    assert finding.file == "model.py" and "inflow" in finding.message


def test_what_is_worth_a_look(tmp_path: Path) -> None:
    folder = write(tmp_path)
    (folder / "data" / "run.csv").write_text((folder / "data" / "run.csv").read_text().replace("s,m3/s,m\n", ""))
    (folder / "data" / "forgotten.csv").write_text("t\n0\n")
    found = lint(folder)
    assert not found.errors
    units, forgotten = found.notes
    assert 'add units = { inflow = "m3/s", y = "m" }' in units.message and units.line == 10
    assert str(forgotten) == "data/forgotten.csv: no experiment reads this file."


def test_without_experiments(tmp_path: Path) -> None:
    text = PROBLEM[: PROBLEM.index("[[experiments]]")] + PROBLEM[PROBLEM.index("[method]") :]
    (finding,) = lint(write(tmp_path, text)).errors
    assert "lacks 'experiments'. The runs of the plant, one [[experiments]] for each file." in str(finding)


def test_single_brackets(tmp_path: Path) -> None:
    (finding,) = lint(write(tmp_path, changed("[[experiments]]", "[experiments]"))).errors
    assert finding.message == "is a table; give one table [[experiments]] (two brackets) for each file."


def test_nothing_to_estimate(tmp_path: Path) -> None:
    text = changed(ESTIMATE + "\n", "", "k = { guess = 0.4, bounds = [0.01, 10.0] }", "k = 0.5")
    (finding,) = lint(write(tmp_path, text)).errors
    assert 'such as estimate = ["area", "k"]' in finding.message


def test_places_that_are_no_problem_folders(tmp_path: Path) -> None:
    with pytest.raises(gr.DataError, match=r"There is no folder .*grisaille new two-tank nowhere"):
        lint(tmp_path / "nowhere")
    (tmp_path / "notes.txt").write_text("")
    with pytest.raises(gr.DataError, match=r"it has no problem.toml \(it holds notes.txt\)"):
        lint(tmp_path)
