"""A fit of a model without a feature does not enter the rooms of that feature."""

from __future__ import annotations

import sys
from pathlib import Path
from types import FrameType

import numpy as np
import pytest

import grisaille as gr
from grisaille import der

PACKAGE = Path(gr.__file__).parent
ROOMS = (
    "estimators/dead_time_scan.py", "estimators/output_error/kink_descent.py",
    "estimators/output_error/difference_steps.py",
    "estimators/output_error/event_order.py", "estimation/curves/curve_smoothness.py", "experiment/event_schedule.py",
    "experiment/switching_times.py", "filtering/jumps/near_switches.py", "simulation/event_texts.py",
    "simulation/delayed_unknowns.py",
    "simulation/ensembles/rough_signals.py", "structure/delays/", "structure/time_schedule.py",
    "bound_experiment/dead_times.py",
)  # fmt: skip


class Tank(gr.Model):
    k, q = gr.Parameter(0.5, bounds=(0.01, 5.0)), gr.Parameter(0.8, bounds=(0.0, 9.0))
    h, w = gr.Variable(1.5), gr.Disturbance(gr.spectra.lowpass(3.0), scale=0.05)
    y = gr.Output(h, noise=0.02)
    equations = [der(h) == q - k * h**1.5 + w]


@pytest.mark.parametrize("method", [gr.OutputError(), gr.KalmanML(), gr.SimulatedPEM(realizations=8)], ids=str)
def test_what_a_model_has_not_is_not_entered(method: gr.estimation.estimator.Estimator) -> None:
    times = np.linspace(0.0, 5.0, 26)
    data = gr.Experiment(times, {}, {"y": 1.4 + 0.1 * np.exp(-times) + 0.02 * np.sin(40 * times)})
    model, entered = Tank(), set[str]()

    def look(frame: FrameType, event: str, argument: object) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(str(PACKAGE)):
            entered.add(str(Path(frame.f_code.co_filename).relative_to(PACKAGE)))

    gr.fit(model, data, ["k", "q"], method)
    sys.setprofile(look)
    try:
        gr.fit(model, data, ["k", "q"], method)
    finally:
        sys.setprofile(None)
    assert "bound_experiment/bound_experiment.py" in entered
    assert not [file for file in sorted(entered) if file.startswith(ROOMS)]
