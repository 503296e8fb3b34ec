"""The command line: what each command prints and writes, and what mistakes are told."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import xarray as xr

from grisaille.cli import main

TANK = '''
import grisaille as gr
from grisaille import der

class Tank(gr.Model):
    """A tank that runs out through a pipe."""
    area = gr.Parameter(2.0, "m2")
    k = gr.Parameter(0.5, "m2/s")
    level = gr.Variable(start=1.0, unit="m", fixed=True)
    inflow = gr.Input("m3/s", default=0.0)
    equations = [area * der(level) == inflow - k * level]

class Lid(gr.Model):
    """One equation too few."""
    a, b = gr.Variable(), gr.Variable()
    equations = [a + b == 1]
'''


@pytest.fixture
def plant(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "plant.py"
    path.write_text(TANK)
    return path


def level(times: np.ndarray, inflow: float = 0.0, k: float = 0.5) -> np.ndarray:
    return inflow / k + (1.0 - inflow / k) * np.exp(-k * times / 2.0)


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    import grisaille

    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"grisaille {grisaille.__version__}\n"


def test_demo_prints_and_writes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "--output", str(tmp_path / "new")]) == 0
    printed = capsys.readouterr().out
    plot = tmp_path / "new" / "pendulum.png"
    assert plot.stat().st_size > 10_000
    assert str(plot) in printed
    assert "index" in printed and "tension" in printed
    wrong, right = (line for line in printed.splitlines() if "standard errors off" in line)
    assert "output error" in wrong and "NOT white" in wrong and float(wrong.split()[-7]) > 50
    assert "Kalman filter" in right and "residuals white" in right and float(right.split()[-6]) < 3


def test_analyze(plant: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["analyze", "plant.py:Tank"]) == 0
    assert "level" in capsys.readouterr().out


def test_simulate_to_csv(plant: Path) -> None:
    given = ["--parameter", "k=0.25", "--input", "inflow=0.1"]
    assert main(["simulate", "plant.py:Tank", "--times", "0:4:0.1", *given, "--output", "out.csv"]) == 0
    table = pd.read_csv("out.csv")
    np.testing.assert_allclose(table["time"], np.linspace(0, 4, 41), rtol=0, atol=1e-12)
    np.testing.assert_allclose(table["level"], level(table["time"], inflow=0.1, k=0.25), rtol=1e-4)


def test_simulate_to_netcdf_and_plot(plant: Path) -> None:
    outputs = ["--output", "out.nc", "--plot", "out.png"]
    assert main(["simulate", "plant.py:Tank", "--times", "0:4:0.5", *outputs]) == 0
    with xr.open_dataset("out.nc", engine="h5netcdf") as result:
        np.testing.assert_allclose(result["level"], np.exp(-result["time"] / 4), rtol=1e-4)
    assert Path("out.png").stat().st_size > 5_000


def test_simulate_with_an_input_from_a_file(plant: Path) -> None:
    Path("in.csv").write_text("t,inflow,other\n0,0.5,0\n10,0.5,0\n")
    given = ["--input", "inflow=in.csv"]
    assert main(["simulate", "plant.py:Tank", "--times", "0:10:1", *given, "--output", "out.csv"]) == 0
    np.testing.assert_allclose(pd.read_csv("out.csv")["level"], 1.0, rtol=1e-6)


def test_simulate_prints_without_files(plant: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate", "plant.py:Tank", "--times", "0:4:0.5"]) == 0
    assert "level" in capsys.readouterr().out


def test_cache_shows_and_clears(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("GRISAILLE_CACHE", str(tmp_path / "cache"))
    assert main(["cache"]) == 0
    assert str(tmp_path / "cache") in capsys.readouterr().out
    assert main(["cache", "clear"]) == 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["analyze", "nowhere.py:Tank"], "no Python file 'nowhere.py'"),
        (["analyze", "plant.py:Tonk"], "no model class 'Tonk'"),
        (["analyze", "plant.py"], "which model? Choose from: plant.py:Tank, plant.py:Lid"),
        (["analyze", "plant.py:Lid"], "a + b"),
        (["simulate", "plant.py:Tank", "--times", "0:10"], "FIRST:LAST:STEP"),
        (["simulate", "plant.py:Tank", "--times", "0:10:-1"], "STEP must be positive"),
        (["simulate", "plant.py:Tank", "--times", "0:1:0.1", "--parameter", "k"], "write NAME=VALUE"),
        (["simulate", "plant.py:Tank", "--times", "0:1:0.1", "--parameter", "k=much"], "'much' is not a number"),
        (["simulate", "plant.py:Tank", "--times", "0:1:0.1", "--parameter", "kk=1"], "kk"),
        (["simulate", "plant.py:Tank", "--times", "0:1:0.1", "--input", "inflow=in.csv:u"], "no column 'u'"),
        (["simulate", "plant.py:Tank", "--times", "0:1:0.1", "--input", "inflow=in.csv"], "none is called 'inflow'"),
        (["simulate", "plant.py:Tank", "--times", "0:1:0.1", "--input", "inflow=gone.csv"], "gone.csv"),
        (["simulate", "plant.py:Tank", "--times", "0:1:0.1", "--output", "out.mat"], ".csv or .nc"),
    ],
)
def test_mistakes_are_one_message(
    plant: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], words: str
) -> None:
    Path("in.csv").write_text("t,v,w\n0,1,2\n1,1,2\n")
    assert main(arguments) == 2
    message = capsys.readouterr().err
    assert message.startswith("grisaille: ") and words in message
    assert "Traceback" not in message


def test_mistakes_in_the_users_file_name_its_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "broken.py"
    path.write_text("import grisaille\n\nvalue = undefined_thing\n")
    assert main(["analyze", f"{path}:Any"]) == 2
    assert "broken.py, line 3: NameError" in capsys.readouterr().err
    path.write_text("def f(:\n    pass\n")
    assert main(["analyze", f"{path}:Any"]) == 2
    assert "broken.py, line 1: SyntaxError" in capsys.readouterr().err


def test_notices_are_one_line(plant: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    import grisaille

    analyze = grisaille.analyze

    def warn(model: grisaille.Model) -> grisaille.Analysis:
        warnings.warn("mind the gap", UserWarning, stacklevel=1)
        return analyze(model)

    monkeypatch.setattr(grisaille, "analyze", warn)
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        assert main(["analyze", "plant.py:Tank"]) == 0
    assert capsys.readouterr().err == "grisaille: mind the gap\n"


def test_debug_shows_the_traceback(plant: Path) -> None:
    from grisaille.errors import ModelError

    with pytest.raises(ModelError):
        main(["--debug", "analyze", "plant.py:Tonk"])


def test_the_last_time_is_included_only_when_steps_lead_to_it() -> None:
    from grisaille.cli import times_of

    np.testing.assert_allclose(times_of("0:1:0.1"), np.linspace(0, 1, 11))
    np.testing.assert_allclose(times_of("0:1:0.3"), [0, 0.3, 0.6, 0.9], atol=1e-12)
    np.testing.assert_allclose(times_of("-1:2:1.5"), [-1, 0.5, 2])
