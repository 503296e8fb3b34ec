"""Problem folders of Modelica models: made, linted, loaded; ``[signals]`` and what is wrong in it."""

from __future__ import annotations

from pathlib import Path

import pytest
from modelica.texts import DRIVE

import grisaille as gr
from grisaille.cli import main
from grisaille.errors import DataError
from grisaille.problem import file_to_run, lint


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "Drive.bmo").write_text(DRIVE)
    made = tmp_path / "drive"
    arguments = ["new", "--modelica", str(tmp_path / "Drive.bmo"), str(made), "--quiet"]
    assert main([*arguments, "--inputs", "motor.tau", "--outputs", "load.phi"]) == 0
    return made


def test_a_new_folder_can_be_fitted_and_runs_no_code(folder: Path) -> None:
    assert not lint(folder).errors and file_to_run(folder) is None
    problem = gr.load_problem(folder)
    assert problem.estimate == ("spring.c",)
    fit = problem.fit(progress=False)
    true = gr.read_modelica(DRIVE).parameters[problem.estimate[0]].value
    row = fit.parameters.loc[problem.estimate[0]]
    assert abs(row["estimate"] - true) < 4 * row["std_error"] < 0.05 * true


def test_nothing_is_overwritten_and_options_of_data_are_refused(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = str(tmp_path / "Drive.bmo")
    assert main(["new", "--modelica", file, str(folder)]) == 2
    assert main(["new", "--modelica", file, "--zone", "UTC"]) == 2
    assert main(["new", "--name", "Drive"]) == 2
    assert main(["new", "--modelica", file, str(tmp_path / "b"), "--outputs", "load.ph"]) == 2
    said = capsys.readouterr().err
    assert "not empty" in said and "--zone does not go" in said and "--modelica FILE.mo" in said
    assert "Did you mean 'load.phi'" in said and not (tmp_path / "b").exists()


SOURCE = """model Lag
  parameter Real A = 2.0;
  parameter Real k = 1.0;
  Real u;
  Real x(start = 0.5, fixed = true);
equation
  u = A * sin(3 * time);
  der(x) = u - k * x;
annotation(experiment(StartTime = 1e6, StopTime = 1000006));
end Lag;
"""


def test_what_a_recorded_input_replaces_is_not_estimated(tmp_path: Path) -> None:
    (tmp_path / "Lag.bmo").write_text(SOURCE)
    made = tmp_path / "lag"
    assert main(["new", "--modelica", str(tmp_path / "Lag.bmo"), str(made), "--quiet", "--inputs", "u"]) == 0
    problem = gr.load_problem(made)
    assert problem.estimate == ("k",) and not lint(made).errors
    row = problem.fit(progress=False).parameters.loc["k"]
    assert abs(row["estimate"] - 1.0) < 3 * row["std_error"] < 0.05


def write(folder: Path, signals: str) -> None:
    head, _, tail = (folder / "problem.toml").read_text().partition("[signals]")
    (folder / "problem.toml").write_text(
        f"{head}[signals]\n{signals}\n[[experiments]]{tail.partition('[[experiments]]')[2]}"
    )


def test_signals_are_marked_on_the_model(folder: Path) -> None:
    write(folder, """inputs = { "motor.tau" = 0.5 }
outputs = { "load.phi" = "load.phi" }
noise = 0.02
[[signals.disturbances]]
on = "spring.tau"
spectrum = { kind = "lowpass", bandwidth = 2.0, order = 2 }
scale = 0.3
label = "w"
""")  # fmt: skip
    drive = gr.read_modelica(DRIVE).with_inputs({"motor.tau": 0.5})
    drive = drive.with_disturbance("spring.tau", gr.spectra.lowpass(2.0, 2), scale=0.3, label="w")
    drive = drive.with_outputs({"load.phi": "load.phi"}, noise=0.02)
    assert gr.load_problem(folder).model.fingerprint == drive.fingerprint


@pytest.mark.parametrize(
    ("signals", "words"),
    [
        ('inputs = ["motor.ta"]', "signals.inputs.*Did you mean 'motor.tau'"),
        ('outputs = { angle = "load.ph" }', "signals.outputs.*Did you mean 'load.phi'"),
        ('output = ["load.phi"]', r"signals\.output is not a key of \[signals\]. Did you mean 'outputs'"),
        ("noise = 0.1", "noise goes with outputs"),
        ('outputs = "load.phi"', r"signals\.outputs is \"load.phi\"; give a list of variables"),
        ('[[signals.disturbances]]\non = "spring.tau"', r"signals\.disturbances\[1\] lacks 'spectrum'"),
        ('[[signals.disturbances]]\non = "spring.tau"\nspectrum = { kind = "lowpass" }',
         "a lowpass spectrum has bandwidth, got none"),
        ('[[signals.disturbances]]\non = "spring.tau"\nspectrum = { kind = "pink" }', 'give "white", "lowpass"'),
    ],
)  # fmt: skip
def test_mistakes_in_signals_have_their_place(folder: Path, signals: str, words: str) -> None:
    write(folder, signals)
    with pytest.raises(DataError, match=words):
        gr.load_problem(folder)


def test_commands_take_modelica_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "Drive.bmo").write_text(DRIVE)
    assert main(["analyze", str(tmp_path / "Drive.bmo")]) == 0
    assert "states      load.phi, load.w" in capsys.readouterr().out
    assert main(["analyze", str(tmp_path / "Drive.bmo:Other")]) == 2
    assert "no model 'Other'" in capsys.readouterr().err
