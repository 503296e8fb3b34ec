"""A package of twenty files: read with one call, fitted by two estimators, written back, read again."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import grisaille as gr
from grisaille.modelica.full import is_available

pytestmark = pytest.mark.skipif(not is_available(), reason="the extra modelica is not installed")
LIBRARY = Path(__file__).parents[1] / "modelica" / "library"
TRUE = {"window.R": 0.016, "boiler.data.P": 4600.0}
TIMES = np.linspace(0.0, 86400.0, 33)


@pytest.fixture(scope="module")
def room() -> gr.Model:
    read = gr.read_modelica(LIBRARY / "Heating" / "package.mo", name="Heating.Examples.Room")
    return read.with_outputs({"indoor": "air.T"}, noise=0.02)


@pytest.fixture(scope="module")
def record(room: gr.Model) -> gr.Experiment:
    measured = gr.simulate(room.replace(TRUE), TIMES)["indoor"].values
    noise = 0.02 * np.random.default_rng(6).normal(size=len(TIMES))
    return gr.Experiment(TIMES, outputs={"indoor": measured + noise}, name="day")


@pytest.mark.parametrize("method", [gr.OutputError(), gr.KalmanML()])
def test_there_and_back(room: gr.Model, record: gr.Experiment, method: object, tmp_path: Path) -> None:
    fit = gr.fit(room, record, list(TRUE), method=method)
    for name, value in TRUE.items():
        assert abs(float(fit[name]) - value) < 4 * fit[name].std_error
    file = fit.to_modelica(tmp_path / "RoomFitted.mo")
    again = gr.read_modelica(file, path=[LIBRARY])
    for name in TRUE:
        assert again.parameters[name].value == float(fit[name])
    before, after = (gr.simulate(m, TIMES)["air.T"].values for m in (fit.model, again))
    np.testing.assert_array_equal(before, after)
    assert "boiler(data(P = " in file.read_text() and type(method).__name__ in file.read_text()
