"""Problem folders on the command line: from a template to a fit, a report, a study; exit codes, JSON, silence."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from problem.folders import changed, write

import grisaille as gr
from grisaille.cli import COMMANDS, main, program

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return write(tmp_path / "tank").relative_to(tmp_path)


def answer(capsys: Capture) -> Any:
    """The JSON on standard output; nothing else may be there."""
    captured = capsys.readouterr()
    return json.loads(captured.out)


def test_help_is_about_the_program(capsys: Capture) -> None:
    assert main(["--help"]) == 0
    printed = capsys.readouterr().out
    assert "imported at once" not in printed
    assert all(f"\n  {name} " in printed for names in COMMANDS.values() for name in names)
    assert "Exit status: 0 fine; 1 finished" in " ".join(printed.split())
    assert main([]) == 0


@pytest.mark.parametrize("name", [name for names in COMMANDS.values() for name in names])
def test_every_command_explains_itself(name: str, capsys: Capture) -> None:
    assert main([name, "--help"]) == 0
    printed = capsys.readouterr().out
    assert f"Usage: grisaille {name}" in printed
    assert "--json" in printed or name in ("demo", "study", "modelica")


def test_from_a_template_to_a_sound_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["new", "reactor", "mine"]) == 0
    assert "grisaille fit mine" in capsys.readouterr().out
    assert main(["lint", "mine"]) == 0
    assert capsys.readouterr().out == "mine: nothing wrong.\n"
    assert main(["new", "reactor", "mine"]) == 2
    assert main(["new", "--list", "--json"]) == 0


def test_lint_tells_all_and_fails(folder: Path, capsys: Capture) -> None:
    (folder / "problem.toml").write_text(changed("seed = 1", "sed = 1", 'time = "t"', 'time = "s"'))
    assert main(["lint", str(folder)]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("problem.toml:4: sed is not a key") and lines[-1] == "tank: 2 mistakes."
    assert main(["lint", str(folder), "--json"]) == 1
    content = answer(capsys)
    assert content["errors"] == 2 and content["findings"][1]["line"] == 12
    assert main(["fit", str(folder)]) == 2
    assert "2 mistakes" in capsys.readouterr().err


def test_remarks_count_when_strict(folder: Path, capsys: Capture) -> None:
    (folder / "data" / "forgotten.csv").write_text("t\n0\n")
    assert main(["lint", str(folder)]) == 0
    assert "forgotten.csv: no experiment reads this file. (note)" in capsys.readouterr().out
    assert main(["lint", str(folder), "--strict"]) == 1


def test_fit_prints_and_writes(folder: Path, capsys: Capture) -> None:
    assert main(["fit", str(folder)]) == 0
    printed = capsys.readouterr().out
    assert "Tank fitted by OutputError" in printed and "converged" in printed
    assert float(gr.load(folder / "fit.nc")["k"]) == pytest.approx(0.5, rel=1e-4)
    assert "A tank" in (folder / "report.html").read_text("utf-8")


def test_fit_as_json(folder: Path, capsys: Capture) -> None:
    assert main(["fit", str(folder), "--json", "--no-report", "--output", "results"]) == 0
    content = answer(capsys)
    assert content["converged"] is True and content["files"] == ["results/fit.nc"]
    assert content["parameters"]["k"]["estimate"] == pytest.approx(0.5, rel=1e-4)
    assert content["parameters"]["k"]["unit"] == "m2/s"
    assert not Path("results/report.html").exists()


def test_quiet_is_silent(folder: Path, capsys: Capture) -> None:
    assert main(["fit", str(folder), "--quiet", "--no-report"]) == 0
    captured = capsys.readouterr()
    assert captured.out == captured.err == ""
    assert (folder / "fit.nc").is_file()


def test_a_fit_that_does_not_converge(folder: Path, capsys: Capture) -> None:
    given = ["--option", "max_evaluations=1", "--guess", "k=5", "--no-report"]
    assert main(["fit", str(folder), *given]) == 1
    assert "NOT converged" in capsys.readouterr().out


def test_other_estimators_options_and_names(folder: Path, capsys: Capture) -> None:
    given = ["--option", "optimizer=gauss-newton", "--estimate", "k", "--no-report", "--json"]
    main(["fit", str(folder), *given])
    assert set(answer(capsys)["parameters"]) == {"k"}
    method = gr.load(folder / "fit.nc").method
    assert method == gr.OutputError(optimizer="gauss-newton", compiled=True)


def test_report_and_compare(folder: Path, capsys: Capture) -> None:
    assert main(["fit", str(folder), "--no-report", "-q"]) == 0
    assert main(["fit", str(folder), "--no-report", "-q", "--output", "less", "--estimate", "k"]) == 0
    assert main(["report", str(folder), "--json"]) == 0
    assert answer(capsys) == {"fit": "tank/fit.nc", "report": "tank/report.html"}
    assert (folder / "report.html").is_file()
    assert main(["compare", str(folder), "small=less/fit.nc", "--nested", "small:tank", "--json"]) == 0
    content = answer(capsys)
    assert content["best"] == "tank" and content["tests"]["small ⊂ tank"]["degrees_of_freedom"] == 1
    assert main(["compare", str(folder), "small=less", "--report", "both.html"]) == 0
    assert "small" in Path("both.html").read_text("utf-8")


def test_a_study_is_run_shown_and_resumed(folder: Path, capsys: Capture) -> None:
    assert main(["study", "run", str(folder), "--runs", "2", "--workers", "1", "--json"]) == 0
    content = answer(capsys)
    assert content["counts"]["converged"] == 2 and content["store"] == "tank/monte-carlo.db"
    assert main(["study", "show", str(folder), "--json"]) == 0
    shown = answer(capsys)
    assert shown["counts"] == {"runs": 2, "converged": 2, "failed": 0}
    assert shown["estimates"]["k"]["mean"] == pytest.approx(content["estimates"]["k"]["mean"])
    resumed = ["study", "resume", "tank/monte-carlo.db", "--runs", "3", "--workers", "1", "--table", "runs.csv"]
    resumed += ["--report", "study.html"]
    assert main(resumed) == 0
    assert "2 of 3 runs are there" in capsys.readouterr().out
    assert len(pd.read_csv("runs.csv")) == 3 and Path("study.html").stat().st_size > 10_000
    assert main(["study", "show", str(folder)]) == 0
    assert "monte-carlo study in monte-carlo.db: 3 runs" in capsys.readouterr().out


def test_a_study_in_another_place_finds_its_folder(folder: Path, capsys: Capture) -> None:
    Path("stores").mkdir()
    given = ["--kind", "multistart", "--sampling", "latin", "--workers", "1", "-q"]
    (folder / "problem.toml").write_text(changed('kind = "monte-carlo"', 'kind = "multistart"',
        "runs = 3", 'runs = 2\nranges = { k = [0.2, 1.0], "start(level)" = [1.0, 2.0] }'))  # fmt: skip
    assert main(["study", "run", str(folder), "--store", "stores/s.db", *given]) == 0
    assert json.loads(Path("stores/s.json").read_text())["folder"] == "../tank"
    assert main(["study", "resume", "stores/s.db", "--workers", "1", "--json"]) == 0
    capsys.readouterr()


def test_simulate_an_experiment_of_a_folder(folder: Path) -> None:
    assert main(["simulate", str(folder), "--output", "out.csv", "--start", "level=1.5"]) == 0
    table = pd.read_csv("out.csv")
    measured = pd.read_csv(folder / "data" / "run.csv", skiprows=[1])
    # the folder's model has k = 0.5, as the data do
    assert table["y"].to_numpy() == pytest.approx(measured["y"].to_numpy(), rel=1e-4)


def test_analyze_a_folder_whose_data_are_missing(folder: Path, capsys: Capture) -> None:
    (folder / "data" / "run.csv").unlink()
    assert main(["analyze", str(folder), "--json"]) == 0
    content = answer(capsys)
    assert content["index"] == 0 and content["states"][0] == "level"


def test_the_schema_is_json(capsys: Capture) -> None:
    assert main(["schema"]) == 0
    assert answer(capsys)["title"] == "A grisaille problem: problem.toml"


def test_cache_and_reproductions_as_json(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    monkeypatch.setenv("GRISAILLE_CACHE", str(tmp_path / "cache"))
    assert main(["cache", "--json"]) == 0
    assert answer(capsys)["files"] == 0
    assert main(["reproduce", "--json"]) == 0
    assert "fladischer/table-4.3" in answer(capsys)["reproductions"]
    assert main(["reproduce", "fladischer/figures-3.1-3.6", "--json"]) == 0
    found = answer(capsys)["reproductions"]["fladischer/figures-3.1-3.6"]
    assert {"quantity", "ours", "published", "theory"} <= set(found["rows"][0])


def test_interrupted(folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    from grisaille.problem import Problem

    def stop(*_: object, **__: object) -> None:
        error = KeyboardInterrupt()
        error.add_note("2 of 3 runs are in 'study.db'; the same call continues from there.")
        raise error

    monkeypatch.setattr(Problem, "study", stop)
    assert main(["study", "run", str(folder)]) == 130
    assert "2 of 3 runs are in 'study.db'" in capsys.readouterr().err


def test_a_fault_of_ours_is_told_as_one(folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    from grisaille.problem import Problem

    def fail(*_: object, **__: object) -> None:
        raise ZeroDivisionError("division by zero")

    monkeypatch.setattr(Problem, "fit", fail)
    assert main(["fit", str(folder)]) == 3
    assert "ZeroDivisionError: division by zero. This is a fault of grisaille" in capsys.readouterr().err
    with pytest.raises(ZeroDivisionError):
        main(["fit", str(folder), "--debug"])


def test_help_imports_nothing_heavy() -> None:
    code = "import sys; from grisaille.cli import main; main(['--help']); print(sorted(sys.modules), file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    heavy = {"casadi", "pandas", "scipy", "xarray", "matplotlib", "rich", "h5py"}
    assert not heavy & set(re.findall(r"'(\w+)'", done.stderr))


def test_words_are_completed() -> None:
    from click.shell_completion import ShellComplete

    shell = ShellComplete(program, {}, "grisaille", "_GRISAILLE_COMPLETE")
    assert [item.value for item in shell.get_completions([], "st")] == ["study"]
    assert [item.value for item in shell.get_completions(["new"], "two")] == ["two-tank"]
    assert "--runs" in [item.value for item in shell.get_completions(["study", "run"], "--r")]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("fitt tank", "There is no command 'fitt'. Did you mean 'fit'"),
        ("fit tank --metod OutputError", "No such option '--metod'"),
        ("fit nowhere", "There is no folder 'nowhere'"),
        ("fit .", "is not a problem folder: it has no problem.toml (it holds tank)."),
        ("fit tank --method Kalman", "There is no estimator 'Kalman'. Did you mean 'KalmanML'?"),
        ("fit tank --option rtl=1e-6", "--option rtl is not a key of OutputError. Did you mean 'rtol'?"),
        ("fit tank --option rtol=small", '--option rtol is "small"; give a number.'),
        ("fit tank --option rtol", "--option rtol: write NAME=VALUE."),
        ("fit tank --method auto --option rtol=1", "--option needs an estimator: add --method, one of"),
        ("fit tank --guess k=much", "--guess k=much: 'much' is not a number."),
        ("fit tank --guess q=1", "guess= names 'q', which is not estimated here"),
        ("fit tank --estimate q", "Tank has no parameter or start called 'q'"),
        ("report tank", "There is no saved fit 'tank/fit.nc': 'grisaille fit tank' writes it."),
        ("report gone.nc", "There is no saved fit 'gone.nc'"),
        ("report tank/problem.toml", "is not a complete netCDF file"),
        ("report tank --output page.pdf", "--output page.pdf: files end in .html here."),
        ("compare tank --nested a", "There is no saved fit 'tank/fit.nc'"),
        ("compare", "Missing argument"),
        ("study run tank --kind jackknife", "'jackknife' is not one of"),
        ("study run tank --runs 0", "0 is not in the range x>=1"),
        ("study run tank --store gone/study.db", "there is no folder 'gone'"),
        ("study run tank --table runs.txt", "--table runs.txt: files end in .csv here."),
        ("study run tank --kind bootstrap --sampling sobol", "'sampling' is not a setting of bootstrap studies."),
        ("study resume tank", "holds no study (*.db). 'grisaille study run tank' begins one."),
        ("study resume gone.db", "There is no study 'gone.db'."),
        ("study show tank/problem.toml", "'tank/problem.toml' is not a study's file"),
        ("study", "Missing command"),
        ("simulate tank --experiment rum", "--experiment rum: the folder has run."),
        ("simulate tank/model.py:Tank", "--times is needed: FIRST:LAST:STEP"),
        ("simulate tank --times 0:1:0.1", "inflow"),
        ("new two-tanks", "There is no template 'two-tanks'. Did you mean 'two-tank'"),
        ("new", "Which template? There are"),
        ("new two-tank tank", "'tank' exists and is not empty; nothing was written."),
        ("reproduce fladisher/table-4.3", "There is no reproduction called 'fladisher/table-4.3'. Near: fladischer"),
        ("reproduce fladischer/table-4.1 --set data_set=3", "--set data_set: fladischer/table-4.1 has no such number."),
        ("reproduce fladischer/table-4.1 --size tiny", "'tiny' is not one of"),
        ("cache empty", "'empty' is not one of"),
    ],
)
def test_mistakes_on_the_command_line(folder: Path, arguments: str, said: str, capsys: Capture) -> None:
    assert main(arguments.split()) == 2
    captured = capsys.readouterr()
    told = captured.err.removeprefix("Runs tank/model.py.\n")
    assert told.startswith("grisaille: ") and said in told
    assert captured.out == ""


def test_mistakes_as_json(folder: Path, capsys: Capture) -> None:
    assert main(["fit", "nowhere", "--json"]) == 2
    captured = capsys.readouterr()
    assert "There is no folder 'nowhere'" in json.loads(captured.out)["error"] and captured.err


def test_reproductions_that_are_not_installed_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    from click.testing import CliRunner

    from grisaille.cli import reproduce_command

    def missing(name: str) -> None:
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)

    monkeypatch.setattr(reproduce_command.importlib, "import_module", missing)
    answer = CliRunner().invoke(reproduce_command.command, ["--list"])
    assert answer.exit_code != 0
    assert "checkout" in answer.output + str(answer.exception)


@pytest.fixture(scope="module")
def fitted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a saved fit."""
    made = write(tmp_path_factory.mktemp("fitted") / "tank")
    assert main(["fit", str(made), "--quiet", "--no-report"]) == 0
    return made


def test_predict_writes_a_table(fitted: Path, tmp_path: Path, capsys: Capture) -> None:
    fit = gr.load(fitted / "fit.nc")
    output = next(iter(fit.experiments[0].outputs))
    assert main(["predict", str(fitted), "--bands", "all", "--output", str(tmp_path / "p.csv")]) == 0
    table = pd.read_csv(tmp_path / "p.csv", index_col="time")
    expected = fit.predict(bands="all")[output]
    for column, statistic in ((output, "mean"), (f"{output}_lower_all", "lower"), (f"{output}_upper_all", "upper")):
        assert table[column].to_numpy() == pytest.approx(expected.sel(statistic=statistic).to_numpy())
    assert table[f"{output}_measured"].notna().any()
    capsys.readouterr()
    assert main(["predict", str(fitted), "--json"]) == 0
    assert len(answer(capsys)[output]) == len(table)


def test_predict_reads_new_data(fitted: Path, tmp_path: Path, capsys: Capture) -> None:
    fit = gr.load(fitted / "fit.nc")
    frame = fit.experiments[0].to_frame().rename_axis("time").reset_index()
    output = next(iter(fit.experiments[0].outputs))
    frame.rename(columns={output: "sensor"}).to_csv(tmp_path / "new.csv", index=False)
    given = ["predict", str(fitted), "--data", str(tmp_path / "new.csv")]
    assert main([*given, "--column", f"{output}=sensor", "--output", str(tmp_path / "p.csv"), "--quiet"]) == 0
    assert pd.read_csv(tmp_path / "p.csv")[f"{output}_measured"].notna().sum() > 5
    assert main([*given, "--time", "when"]) == 2
    assert main(given) == 2
    error = capsys.readouterr().err
    assert f"none of the outputs {output}" in error and "Traceback" not in error


def test_diagnose_tells_by_its_status(fitted: Path, tmp_path: Path, capsys: Capture) -> None:
    fit = gr.load(fitted / "fit.nc")
    healthy = bool(fit.diagnose())
    assert main(["diagnose", str(fitted), "--output", str(tmp_path / "tests.csv")]) == (0 if healthy else 1)
    assert "residuals of" in capsys.readouterr().out
    assert len(pd.read_csv(tmp_path / "tests.csv")) == len(fit.diagnose().table)
    strict = fit.diagnose(0.999)
    assert main(["diagnose", str(fitted), "--level", "0.999", "--json"]) == (0 if strict else 1)
    assert answer(capsys)["healthy"] == bool(strict)
    assert not strict, "at such a level something is always unhealthy"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["predict", "nowhere"], "There is no saved fit"),
        (["diagnose", "nowhere"], "There is no saved fit"),
        (["predict", "{}", "--experiment", "nosuch"], "nosuch"),
        (["predict", "{}", "--horizon", "soon"], "horizon is 'soon'"),
        (["predict", "{}", "--zone", "UTC"], "say how to read --data"),
        (["diagnose", "{}", "--level", "7"], "level is 7.0; give a number between 0 and 1"),
        (["diagnose", "{}", "--plot", "a.txt"], "files end in"),
    ],
)
def test_their_mistakes_are_sentences(fitted: Path, capsys: Capture, words: list[str], said: str) -> None:
    assert main([w.format(fitted) for w in words]) == 2
    error = capsys.readouterr().err
    assert said in error and "Traceback" not in error
