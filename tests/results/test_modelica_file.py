"""Fits written as Modelica models that extend the original, and read again."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from modelica.texts import DRIVE

import grisaille as gr
from grisaille.modelica.full import is_available

TIMES = np.linspace(0.0, 4.0, 40)
NOISE = 0.01 * np.random.default_rng(0).normal(size=(4, 40))
needs_compiler = pytest.mark.skipif(not is_available(), reason="the extra modelica is not installed")


def drive(source: Path | str) -> gr.Model:
    return gr.read_modelica(source).with_inputs({"motor.tau": 0.0}).with_outputs({"angle": "load.phi"}, noise=0.01)


def fitted(model: gr.Model, names: list[str], runs: str = "A", **options: object) -> gr.Fit:
    output, *_ = gr.simulate(model, TIMES[:2]).data_vars if not model._content.outputs else model._content.outputs
    data = []
    for k, name in enumerate(runs):
        inputs = {n: np.sin(TIMES) for n in model._content.inputs}
        y = gr.simulate(model, TIMES, inputs=inputs)[output].values + NOISE[k]
        data.append(gr.Experiment(TIMES, inputs, {output: y}, name=name))
    return gr.fit(model, data, names, method=gr.OutputError(), **options)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "drive.bmo"
    path.write_text(DRIVE)
    return path


def test_a_flat_model_comes_back_with_its_values(file: Path, tmp_path: Path) -> None:
    fit = fitted(drive(file).replace({"load.J": 1.9}), ["spring.c", "start(load.phi)"])
    again = gr.read_modelica(fit.to_modelica(tmp_path / "DriveFitted.mo"))
    assert again.parameters["spring.c"].value == float(fit["spring.c"]) and again.parameters["load.J"].value == 1.9
    assert again.start["load.phi"] == float(fit["start(load.phi)"])
    assert (again.with_inputs({"motor.tau": 0.0}).with_outputs({"angle": "load.phi"}, noise=0.01)) == fit.model
    text = (tmp_path / "DriveFitted.mo").read_text()
    assert "'spring.c' = " in text and "standard error" in text and "OutputError" in text
    (tmp_path / "other").mkdir()
    moved = (tmp_path / "DriveFitted.mo").rename(tmp_path / "other" / "DriveFitted.mo")
    assert gr.read_modelica(moved, path=[tmp_path]) == again
    with pytest.raises(gr.ModelError, match=r"put 'drive\.bmo' beside it"):
        gr.read_modelica(moved)


def test_a_model_given_as_a_text_is_kept_below(tmp_path: Path) -> None:
    fit = fitted(drive(DRIVE), ["spring.c"])
    again = gr.read_modelica(fit.to_modelica(tmp_path / "DriveFitted.mo"))
    assert again.parameters["spring.c"].value == float(fit["spring.c"])
    second = fitted(again.with_outputs({"angle": "load.phi"}, noise=0.01), ["load.J"])  # a fit of a fit
    last = gr.read_modelica(second.to_modelica(tmp_path / "Second.mo"))
    assert last.parameters["load.J"].value == float(second["load.J"])
    assert last.parameters["spring.c"].value == float(fit["spring.c"])


def test_a_saved_fit_and_one_with_several_experiments(file: Path, tmp_path: Path) -> None:
    fit = fitted(drive(file), ["spring.c", "load.J"], "AB", local=["load.J"])
    fit.save(tmp_path / "fit.nc")
    text = gr.load(tmp_path / "fit.nc").to_modelica(tmp_path / "Shared.mo").read_text()
    assert "Not in the model: load.J@A" in text and "'load.J' =" not in text
    for run in "AB":
        again = gr.read_modelica(fit.to_modelica(tmp_path / f"Run{run}.mo", experiment=run))
        assert again.parameters["load.J"].value == float(fit[f"load.J@{run}"])


def test_refusals(file: Path, tmp_path: Path) -> None:
    fit = fitted(drive(file), ["spring.c"])
    for name, words in (
        ("Drive.txt", r"ends in \.mo"),
        ("M.mo", "as the one that it extends"),
        ("a-b.mo", "no plain name"),
        ("nowhere/A.mo", "no folder"),
    ):
        with pytest.raises(gr.GrisailleError, match=words):
            fit.to_modelica(tmp_path / name)
    (tmp_path / "Mine.mo").write_text("model Mine end Mine;")
    with pytest.raises(gr.EstimationError, match="left as it is"):
        fit.to_modelica(tmp_path / "Mine.mo")

    class Decay(gr.Model):
        k = gr.Parameter(0.5)
        x = gr.Variable(start=1.0)
        y = gr.Output(x, noise=0.01)
        equations = [gr.der(x) == -k * x]

    with pytest.raises(gr.EstimationError, match="was not read from Modelica"):
        fitted(Decay(), ["k"]).to_modelica(tmp_path / "Decay.mo")


NET = """
package Plant
  model Cell
    parameter Real k(unit = "1/s") = 1.0;
    Real x(start = 1.0, fixed = true);
    input Real u;
  equation
    der(x) = u - k * x;
  end Cell;
  model Chain
    Cell cells[3](k = {1.0, 2.0, 3.0}, each x(start = 0.5));
    parameter Real 'gain/2'(unit = "1") = 1.5;
    parameter Real w[2] = {1.0, 0.5};
    Real y;
  equation
    cells[1].u = 'gain/2';
    cells[2].u = cells[1].x;
    cells[3].u = w[1] * cells[2].x + w[2];
    y = cells[3].x;
  end Chain;
end Plant;
"""


@needs_compiler
def test_entries_of_arrays_and_quoted_names(tmp_path: Path) -> None:
    (tmp_path / "Plant.mo").write_text(NET)
    model = gr.read_modelica(tmp_path / "Plant.mo", name="Plant.Chain").with_outputs({"x3": "cells[3].x"}, noise=0.01)
    quoted = next(name for name in model.parameters if "gain" in name)
    names = ["cells[2].k", quoted, "w[2]", "start(cells[3].x)"]
    fit = fitted(model, names)
    again = gr.read_modelica(fit.to_modelica(tmp_path / "ChainFitted.mo"))
    for name in names[:3]:
        assert again.parameters[name].value == float(fit[name])
    assert again.start == {**model.start, "cells[3].x": float(fit["start(cells[3].x)"])}
    assert again.parameters["cells[3].k"].value == 3.0 and again.parameters["w[1]"].value == 1.0
    text = (tmp_path / "ChainFitted.mo").read_text()
    assert "extends Plant.Chain(" in text and "cells(k = {1.0, " in text and "'gain/2' = " in text
    before, after = (gr.simulate(m, TIMES)["cells[3].x"].values for m in (fit.model, again))
    np.testing.assert_array_equal(before, after)


@needs_compiler
def test_a_model_of_a_package_in_a_folder(tmp_path: Path) -> None:
    package = tmp_path / "Plant"
    package.mkdir()
    (package / "package.mo").write_text("package Plant\nend Plant;\n")
    (package / "Tank.mo").write_text(
        "within Plant;\nmodel Tank\n  parameter Real k = 0.5;\n  Real x(start = 1.0, fixed = true);\n"
        "equation\n  der(x) = -k * x;\nend Tank;\n"
    )
    fit = fitted(gr.read_modelica(package / "Tank.mo", path=[tmp_path]).with_outputs({"y": "x"}, noise=0.01), ["k"])
    fit.to_modelica(tmp_path / "TankFitted.mo")
    assert gr.read_modelica(tmp_path / "TankFitted.mo", path=[tmp_path]).parameters["k"].value == float(fit["k"])
    assert "extends Plant.Tank(" in (tmp_path / "TankFitted.mo").read_text()
