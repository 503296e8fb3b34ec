"""Units that files and frames name in their headers."""

import io

import numpy as np
import pandas as pd
import pytest

import grisaille as gr
from grisaille import der

ROWS = "0,1\n1,2\n2,3\n"


def read(header, **options):
    time, y = header.split(",")
    return gr.Experiment.from_csv(io.StringIO(f"{header}\n{ROWS}"), time=time, outputs={"y": y}, **options)


@pytest.mark.parametrize(
    "header, time, output",
    [
        ("t [h],y [m/s2]", "h", "m/s2"), ("t(min),T[degC]", "min", "degC"), ("t,y", "s", None),
        ("t (left),y (right)", "s", None), ("x[0],legs[1].y", "s", None), ("t [],y [ V ]", "s", "V"),
    ],
)  # fmt: skip
def test_units_in_brackets_are_read(header, time, output):
    """Times in hours were taken for seconds without a word."""
    data = read(header)
    assert (data.clock.unit, data.units.get("y")) == (time, output)


def test_a_frame_names_units_too():
    frame = pd.DataFrame({"t [h]": [0.0, 1.0, 2.0], "T [K]": [1.0, 2.0, 3.0]})
    data = gr.Experiment.from_frame(frame, time="t [h]", outputs={"y": "T [K]"})
    assert (data.clock.unit, data.units["y"]) == ("h", "K")


def test_two_units_of_one_column_are_refused():
    with pytest.raises(gr.DataError, match=r"'t \[h\]', is in h .* and unit='s' is given: numbers are not converted"):
        read("t [h],y", unit="s")
    with pytest.raises(gr.DataError, match="'t', is in h by its header or the row below it, and unit='min'"):
        gr.Experiment.from_csv(io.StringIO(f"t,y\nh,K\n{ROWS}"), time="t", outputs=["y"], unit="min")
    assert read("t [h],y", unit="h").clock.unit == "h"
    dated = pd.DataFrame({"t [h]": pd.date_range("2025-01-01", periods=3, freq="h"), "y": [1.0, 2.0, 3.0]})
    data = gr.Experiment.from_frame(dated, time="t [h]", outputs=["y"], unit="s")
    assert data.time == pytest.approx([0, 3600, 7200])


def test_a_fit_in_seconds_refuses_a_file_in_hours():
    class Tank(gr.Model):
        tau = gr.Parameter(2.0, "s", bounds=(0.1, 50))
        x = gr.Variable(1.0)
        y = gr.Output(x, noise=0.01)
        equations = [tau * der(x) == -x]

    t = np.arange(20.0)
    random = np.random.default_rng(0)
    frames = [
        pd.DataFrame({f"t [{unit}]": t, "y": np.exp(-t / 3) + 0.01 * random.normal(size=20)}) for unit in ("s", "h")
    ]
    seconds, hours = (
        gr.Experiment.from_frame(f, time=f.columns[0], outputs=["y"], name=n)
        for f, n in zip(frames, ("a", "b"), strict=True)
    )
    fit = gr.fit(Tank(), seconds, ["tau"])
    assert "s" in str(fit["tau"])
    for ask in (fit.validate, fit.predict, lambda data: gr.fit(Tank(), [seconds, data], ["tau"])):
        with pytest.raises(gr.DataError, match="Times are in s in 'a' and in h in 'b'"):
            ask(hours)
    assert any(n.startswith("Times are in h in the data, but the units of tau") for n in gr.fit(Tank(), hours).notes)
