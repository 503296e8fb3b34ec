"""A problem folder from somebody's own file: what is read, guessed and said, and that the folder can be fitted."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from grisaille.cli import main
from grisaille.problem import create_from_csv, load_problem, read_file

Capture = pytest.CaptureFixture[str]
RANDOM = np.random.default_rng(4)


def lag(u: np.ndarray, step: float, T: float, gain: float, offset: float, start: float) -> np.ndarray:
    """T x' = c + K u − x with u held, exactly."""
    x, decay = [start], np.exp(-step / T)
    for value in u[:-1]:
        x.append(decay * x[-1] + (1 - decay) * (offset + gain * value))
    return np.array(x)


@pytest.fixture
def plain(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Time, an input that steps, and a lag of 2 with gain 3 from 0.5."""
    monkeypatch.chdir(tmp_path)
    t, u = np.arange(0.0, 20.0, 0.25), np.repeat([0.0, 1.0, 0.0, 1.0], 20)
    y = lag(u, 0.25, 2.0, 3.0, 1.0, 0.5) + 0.01 * RANDOM.normal(size=80)
    pd.DataFrame({"t": t, "pump": u, "level": y}).to_csv("run.csv", index=False)
    return Path("run.csv")


def test_a_folder_that_fits_at_once(plain: Path, capsys: Capture) -> None:
    assert main(["new", "--csv", "run.csv", "mine"]) == 0
    said = capsys.readouterr().out
    assert "Guessed: t is time." in said and "Guessed: level was measured" in said and "grisaille fit mine" in said
    assert main(["lint", "mine", "--quiet"]) == 0
    fit = load_problem("mine").fit()
    assert fit.converged
    truth = {"T_level": 2.0, "K_level_pump": 3.0, "c_level": 1.0, "start(x_level)": 0.5}
    assert set(fit.names) == set(truth)
    for name, value in truth.items():
        assert float(fit[name]) == pytest.approx(value, abs=4 * fit[name].std_error)


def test_what_is_said_is_taken(plain: Path, capsys: Capture) -> None:
    assert main(["new", "--csv", "run.csv", "--inputs", "level", "--outputs", "pump", "--time", "t", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert (
        answer["folder"] == "run" and answer["inputs"] == {"level": "level"} and answer["outputs"] == {"pump": "pump"}
    )
    assert not any("Guessed" in remark for remark in answer["remarks"])


def test_dates_units_commas_and_texts(tmp_path: Path) -> None:
    """Semicolons, decimal commas, units in headers, dates, notes, empty cells."""
    dates = pd.date_range("2024-03-01", periods=60, freq="15min")
    rows = ["Date;Heater [W];Room temp. (degC);2nd;note"]
    rows += [
        f"{d};{'' if k == 7 else 100 * (k % 9)};{18 + 0.1 * k:.1f};{k},5;ok".replace(".", ",")
        for k, d in enumerate(dates)
    ]
    file = tmp_path / "my house.csv"
    file.write_text("\n".join(rows).replace("temp, (", "temp. (") + "\n")
    read = create_from_csv(file, tmp_path / "house", outputs=["Room temp. (degC)"])
    assert [(c.name, c.unit) for c in read.inputs] == [("Heater", "W"), ("c_2nd", "")]
    assert [(c.name, c.unit) for c in read.outputs] == [("Room_temp", "degC")]
    assert read.options == {"decimal": ",", "unit": "min", "fill": "hold"}
    assert any("note" in remark for remark in read.remarks)
    written = tomllib.loads((tmp_path / "house" / "problem.toml").read_text())
    assert written["experiments"][0]["inputs"]["Heater"] == "Heater [W]"
    problem = load_problem(tmp_path / "house")
    assert set(problem.estimate) >= {"T_Room_temp", "K_Room_temp_c_2nd", "start(x_Room_temp)"}


def test_rows_without_time_are_a_plane(tmp_path: Path) -> None:
    u = RANDOM.normal(size=(30, 2))
    frame = pd.DataFrame({"u1": u[:, 0], "u2": u[:, 1], "y": 1 + 2 * u[:, 0] - u[:, 1] + 0.01 * RANDOM.normal(size=30)})
    frame.to_csv(tmp_path / "rows.csv", index=False)
    create_from_csv(tmp_path / "rows.csv", tmp_path / "plane")
    fit = load_problem(tmp_path / "plane").fit()
    assert [float(fit[n]) for n in ("c_y", "K_y_u1", "K_y_u2")] == pytest.approx([1, 2, -1], abs=0.02)


def test_an_input_that_does_not_vary_has_no_gain(tmp_path: Path, capsys: Capture) -> None:
    t = np.arange(30.0)
    pd.DataFrame({"t": t, "u": 2.0, "y": 1 - np.exp(-t / 5)}).to_csv(tmp_path / "a.csv", index=False)
    assert main(["new", "--csv", str(tmp_path / "a.csv"), str(tmp_path / "a")]) == 0
    assert "u does not vary" in capsys.readouterr().out
    assert load_problem(tmp_path / "a").estimate == ("T_y", "c_y", "start(x_y)")


MISTAKES = [
    (["--csv", "none.csv"], "There is no file 'none.csv'"),
    (["--csv", "run.csv", "--inputs", "pmp"], r"--inputs pmp: there is no such column of numbers. Did you mean 'pump'"),
    (["--csv", "run.csv", "--inputs", "pump", "--outputs", "pump"], "'pump' is among --inputs and --outputs"),
    (["--csv", "run.csv", "--inputs", "pump,level"], "nothing is left as an output"),
    (["--csv", "run.csv", "reactor", "mine"], "--csv takes a FOLDER and no template"),
    (["reactor", "--inputs", "pump"], "--inputs goes with --csv"),
    (["--csv", "texts.csv"], "no column of numbers"),
    (["--csv", "back.csv", "--time", "t"], "time"),
    (["--csv", "run.csv", "full"], "'full' exists and is not empty; nothing was written"),
]


@pytest.mark.parametrize(("words", "said"), MISTAKES, ids=[" ".join(w) for w, _ in MISTAKES])
def test_mistakes_are_one_sentence(plain: Path, capsys: Capture, words: list[str], said: str) -> None:
    Path("texts.csv").write_text("a,b\nx,y\nz,w\n")
    Path("back.csv").write_text("t,u,y\n0,1,1\n2,1,2\n1,1,3\n")
    Path("full").mkdir()
    Path("full/file").write_text("")
    assert main(["new", *words]) == 2
    error = capsys.readouterr().err
    assert said.replace("\\", "") in error or said in error
    assert "Traceback" not in error
    assert not Path("run").exists() and not Path("back").exists() and not Path("texts").exists()


def test_names_stay_apart_and_legal(tmp_path: Path) -> None:
    (tmp_path / "odd.csv").write_text(
        "time,lambda,a b,a-b,der\n" + "\n".join(f"{k},{k % 3},{k % 2},{k},{k}" for k in range(20)) + "\n"
    )
    read = read_file(tmp_path / "odd.csv", None, None, ["der"], None)
    assert [c.name for c in read.inputs] == ["c_lambda", "a_b", "a_b_"] and read.outputs[0].name == "c_der"


def test_columns_with_letters_beyond_ascii(tmp_path):
    """A bare key of TOML has none; the folder could not be read."""
    rows = [f"{k},{k // 10 % 2},{0.01 * k}" for k in range(40)]
    (tmp_path / "heat.csv").write_text("\n".join(["t,Wärme,Größe", *rows]), "utf-8")
    create_from_csv(tmp_path / "heat.csv", tmp_path / "heat", outputs=["Größe"])
    assert list(load_problem(tmp_path / "heat").experiments[0].inputs) == ["Wärme"]
    (tmp_path / "latin.csv").write_text("\n".join(["t,Wärme,y", *rows]), "latin-1")
    create_from_csv(tmp_path / "latin.csv", tmp_path / "latin", outputs=["y"], encoding="latin-1")
    assert list(load_problem(tmp_path / "latin").experiments[0].inputs) == ["Wärme"]
