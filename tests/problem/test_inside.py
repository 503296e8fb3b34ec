"""A folder from a stranger: what it names lies in it, whatever way the name is written; only its model file is run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from problem.folders import MODEL, changed, table, write

import grisaille as gr
from grisaille.cli import main
from grisaille.problem import file_to_run, leads_outside, lint

RUNS = 'from pathlib import Path\nPath(__file__).with_name("ran").touch()\n'


def absolute(folder: Path, file: Path) -> str:
    return str(file)


def upwards(folder: Path, file: Path) -> str:
    return f"data/../../{file.name}"


def linked(folder: Path, file: Path) -> str:
    (folder / f"link{file.suffix}").symlink_to(file)
    return f"link{file.suffix}"


def through_a_linked_folder(folder: Path, file: Path) -> str:
    (folder / "other").symlink_to(file.parent)
    return f"other/{file.name}"


WAYS = [absolute, upwards, linked, through_a_linked_folder]


@pytest.mark.parametrize("way", WAYS)
def test_a_model_outside_is_not_run(tmp_path: Path, way: Callable[[Path, Path], str]) -> None:
    folder, outside = write(tmp_path / "tank"), tmp_path / "x.py"
    outside.write_text(RUNS + MODEL)
    name = way(folder, outside)
    write(folder, changed('model = "Tank"', f'model = "{name}:Tank"'))
    with pytest.raises(gr.DataError, match="runs only a model file inside it"):
        gr.load_problem(folder)
    (finding,) = lint(folder).errors
    assert (finding.place, finding.line) == ("model", 2) and repr(name) in finding.message
    assert file_to_run(folder) is None and not (tmp_path / "ran").exists()


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("pattern", [False, True])
def test_data_outside_are_not_read(tmp_path: Path, way: Callable[[Path, Path], str], pattern: bool) -> None:
    folder, outside = write(tmp_path / "tank"), tmp_path / "x.csv"
    outside.write_text(table())
    name = way(folder, outside)
    write(folder, changed("data/run.csv", name.replace(".csv", "*.csv") if pattern else name))
    (finding,) = lint(folder).errors
    assert finding.place == "experiments[1].file" and "Put the data into the folder" in finding.message


@pytest.mark.parametrize("way", [absolute, upwards, through_a_linked_folder])
def test_a_store_outside_is_not_written(tmp_path: Path, way: Callable[[Path, Path], str]) -> None:
    folder = write(tmp_path / "tank")
    name = way(folder, tmp_path / "x.db")
    write(folder, changed("runs = 3", f'runs = 3\nstore = "{name}"'))
    (finding,) = lint(folder).errors
    assert finding.place == "study.store" and "Name a file in the folder" in finding.message


def test_links_that_stay_inside_are_followed(tmp_path: Path) -> None:
    folder = write(tmp_path / "tank")
    (folder / "same.csv").symlink_to("data/run.csv")
    (folder / "same.py").symlink_to(folder / "model.py")
    write(folder, changed("data/run.csv", "same.csv", 'model = "Tank"', 'model = "same.py:Tank"'))
    elsewhere = tmp_path / "seen"
    elsewhere.symlink_to(folder)
    assert gr.load_problem(elsewhere).experiments[0].name == "same"


def test_a_link_to_nothing_is_named_as_such(tmp_path: Path) -> None:
    """It was called missing, with itself as what may have been meant."""
    folder = write(tmp_path / "tank")
    (folder / "same.csv").symlink_to("data/other.csv")
    write(folder, changed("data/run.csv", "same.csv"))
    (finding,) = lint(folder).errors
    assert finding.message == "'same.csv' is a link to a file that is not there."


@pytest.mark.parametrize("name", ["C:/x.py", "C:x.py", "\\\\server\\x.py", "a\\..\\..\\x.py", "/x.py", "a\0b.py"])
def test_other_systems_ways_out(tmp_path: Path, name: str) -> None:
    assert leads_outside(tmp_path, name)


def test_the_file_that_is_run_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = write(tmp_path / "tank", changed('model = "Tank"', 'model = "plant.py:Tank"'))
    (folder / "plant.py").write_text(MODEL)
    for command in ("lint", "analyze"):
        assert main([command, str(folder)]) == 0
        assert capsys.readouterr().err == f"Runs {folder / 'plant.py'}.\n"
        assert main([command, str(folder), "--json"]) == 0
        assert capsys.readouterr().err == ""


@pytest.mark.parametrize("way", WAYS)
def test_files_of_a_method_stay_inside(tmp_path: Path, way: Callable[[Path, Path], str]) -> None:
    """Every text among the options counts that may name a file, whatever the option is called."""
    folder, outside = write(tmp_path / "tank"), tmp_path / "x.json"
    outside.write_text("{}")
    name = way(folder, outside)
    write(folder, changed('name = "OutputError"\ncompiled = true', f'name = "SimulatedPEM"\ncheckpoint = "{name}"'))
    (finding,) = lint(folder).errors
    assert finding.place == "method.checkpoint" and repr(name) in finding.message
    assert outside.read_text() == "{}"


def test_files_of_a_method_are_named_from_the_folder_on(tmp_path: Path) -> None:
    folder = write(tmp_path / "tank", changed('name = "OutputError"\ncompiled = true',
                                              'name = "SimulatedPEM"\ncheckpoint = "search.json"'))  # fmt: skip
    assert gr.load_problem(folder).method.checkpoint == str(folder / "search.json")


def test_brackets_that_never_end(tmp_path: Path) -> None:
    folder = write(tmp_path / "tank", f"a = {'[' * 5000}{']' * 5000}")
    assert "nested too deeply" in lint(folder).errors[0].message
