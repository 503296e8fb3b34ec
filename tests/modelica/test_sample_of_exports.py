"""A sample of public exports of the Standard Library's examples beside trajectories of another tool.

All of them: ``grisaille modelica check FOLDER``.
"""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest

from grisaille.study import find_files, run

SAMPLE = (
    "Blocks.Examples.BusUsage", "Blocks.Examples.SlewRateLimiter", "Electrical.Analog.Examples.CauerLowPassAnalog",
    "Electrical.Digital.Examples.BUF3S", "Electrical.Analog.Examples.ParallelResonance",
    "Mechanics.Rotational.Examples.First", "Mechanics.Translational.Examples.SignConvention",
    "Media.Examples.ReferenceAir.Inverse_sh_T", "StateGraph.Examples.FirstExample",
    "Thermal.HeatTransfer.Examples.ControlledTemperature",
)  # fmt: skip


@pytest.mark.parametrize("name", SAMPLE)
def test_exports_agree_with_another_tool(name: str, reference_data: Path) -> None:
    (file,) = find_files(reference_data / "modelica_base" / "models", reference_data / "modelica_base" / "references",
                         rf"^Modelica\.{name}$")  # fmt: skip
    assert file.reference is not None
    reached: dict[str, object] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # on starts and inputs that exports leave open
        run({"file": str(file.file), "name": None, "path": [], "reference": str(file.reference)}, reached.update)
    assert reached["verified"], reached
