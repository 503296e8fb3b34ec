"""A folder of Modelica files: how far each gets, and that a check which was stopped goes on."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from grisaille.cli import main
from grisaille.errors import DataError
from grisaille.study import ModelicaCheck, find_files, library_files, outcome_text, summary

DECAY = """package 'Decay'
  model 'Decay'
    Real 'x'(start = 1.0, fixed = true);
  equation
    der('x') = -'x';
    annotation(experiment(StopTime = 2.0));
  end 'Decay';
end 'Decay';
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One that is right, one that is wrong, one that cannot be read."""
    root = tmp_path_factory.mktemp("files")
    (root / "references").mkdir()
    t = np.linspace(0.0, 2.0, 21)
    for name, rate in (("Right", 1.0), ("Wrong", 1.2)):
        (root / f"{name}.bmo").write_text(DECAY)
        rows = "\n".join(f"{a},{b}" for a, b in zip(t, np.exp(-rate * t), strict=True))
        (root / "references" / f"{name}.csv").write_text(f"time,x\n{rows}\n")
    (root / "Broken.bmo").write_text(DECAY.replace("-'x'", "-'y'"))
    return root


def test_the_command_tells_stages_and_goes_on_where_it_was(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    store = tmp_path / "rows.jsonl"
    assert main(["modelica", "check", str(folder), "--output", str(store), "-j", "2"]) == 1
    said = capsys.readouterr().out
    assert "Right: verified" in said and "Wrong: simulated, 0 of 1 signals agree, worst x" in said
    assert "Broken: not read: ModelError" in said and "line 5: 'y' is not declared" in said
    rows = [json.loads(line) for line in store.read_text().splitlines()]
    assert {r["name"]: (r["read"], r["simulated"], r["verified"]) for r in rows} == {
        "Right": (True, True, True), "Wrong": (True, True, False), "Broken": (False, False, None),
    }  # fmt: skip

    store.write_text(store.read_text() + '{"name": "cut o')  # it was stopped while it wrote
    monkeypatch.setattr(ModelicaCheck, "_run", lambda self, file: pytest.fail(f"{file.name} is done again"))
    assert main(["modelica", "check", str(folder), "--output", str(store), "--json"]) == 1
    assert len(json.loads(capsys.readouterr().out)["files"]) == 3


def test_a_file_that_has_changed_or_was_late_is_done_again(folder: Path, tmp_path: Path) -> None:
    (file,) = find_files(folder, only="Right")
    store = tmp_path / "rows.jsonl"
    late = {"name": "Right", "digest": file.digest(()), "limit": 5.0, "late": True, "seconds": 5.0, "verified": False}
    store.write_text(json.dumps(late) + "\n")
    done: list[str] = []

    def run(self: ModelicaCheck, file: object) -> tuple[str, bool, int, str]:
        done.append("again")
        return "", False, 1, "fell"

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ModelicaCheck, "_run", run)
        assert [*ModelicaCheck([file], 5.0, store=store).rows()] == [late] and done == []
        (row,) = ModelicaCheck([file], 6.0, store=store).rows()
    assert done == ["again"] and "status 1: fell" in row["error"] and outcome_text(row).startswith("not read")


def test_a_file_that_takes_too_long_is_ended(folder: Path) -> None:
    (row,) = ModelicaCheck(find_files(folder, only="Right"), limit=0.01).rows()
    assert row["late"] and row["stopped"] == "read" and "not done in 0.01 s" in outcome_text(row)


def test_nothing_beside_the_files_is_run_and_silence_is_no_success(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "gzip.py").write_text(f"open({str(tmp_path / 'was_run')!r}, 'w')\nraise SystemExit(0)\n")
    (tmp_path / "Right.bmo").write_text(DECAY)
    (tmp_path / "Right.csv").write_text("time\n0\n1\n")
    monkeypatch.chdir(tmp_path)
    (row,) = ModelicaCheck(find_files(Path())).rows()
    assert not (tmp_path / "was_run").exists() and row["section"] == tmp_path.name
    assert row["verified"] is False and "Right.csv has no signals" in outcome_text(row)
    monkeypatch.setattr(ModelicaCheck, "_run", lambda self, file: ("", False, 0, ""))
    (row,) = ModelicaCheck(find_files(Path())).rows()
    assert row["stopped"] == "read" and "status 0" in outcome_text(row)


def test_a_library_that_has_changed_is_read_again(folder: Path, tmp_path: Path) -> None:
    (file,) = find_files(folder, only="Right")
    (tmp_path / "Library.mo").write_text("package Library end Library;")
    before = file.digest([tmp_path])
    library_files.cache_clear()
    assert file.digest([tmp_path]) == before != file.digest(())
    (tmp_path / "Library.mo").write_text("package Library constant Real g = 9.81; end Library;")
    library_files.cache_clear()
    assert file.digest([tmp_path]) != before


def test_sections_are_those_of_the_library(tmp_path: Path) -> None:
    name = "Modelica.Mechanics.Rotational.Examples.First"
    (tmp_path / f"{name}.mo").write_text("")
    (file,) = find_files(tmp_path)
    row = {"section": file.section, "seconds": 1.0, "read": True, "built": True, "simulated": True, "verified": True}
    assert "Mechanics.Rotational      1      1      1          1    1 of 1" in summary([row])


def test_folders_without_files_and_wrong_patterns(tmp_path: Path) -> None:
    for folder, only, words in (
        (tmp_path, "", "holds no"),
        (tmp_path / "x", "", "There is no"),
        (tmp_path, "(", "no reg"),
    ):
        with pytest.raises(DataError, match=words):
            find_files(folder, only=only)
