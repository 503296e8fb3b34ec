"""A small problem folder to break: made once in memory, written where a test needs it."""

from __future__ import annotations

from pathlib import Path

MODEL = '''
import grisaille as gr
from grisaille import der

class Tank(gr.Model):
    """A tank that runs out through a pipe."""
    area = gr.Parameter(2.0, "m2")
    k = gr.Parameter(0.5, "m2/s", bounds=(0.01, 10.0))
    level = gr.Variable(start=1.0, unit="m")
    inflow = gr.Input("m3/s")
    w = gr.Disturbance(gr.spectra.lowpass(bandwidth=1.0), scale=0.1)
    y = gr.Output(level, unit="m", noise=0.01)
    outflow = k * level
    equations = [area * der(level) == inflow - outflow + w]
'''

PROBLEM = """title = "A tank"
model = "Tank"
estimate = ["k", "start(level)"]
seed = 1

[parameters]
area = 2.0
k = { guess = 0.4, bounds = [0.01, 10.0] }

[[experiments]]
file = "data/run.csv"
time = "t"
inputs = ["inflow"]
outputs = ["y"]

[method]
name = "OutputError"
compiled = true

[study]
kind = "monte-carlo"
runs = 3
"""


def table() -> str:
    """Ten seconds of the tank with k = 0.5 from a level of 1.5, without noise."""
    from math import exp

    rows = [f"{0.5 * n},0.2,{0.4 + 1.1 * exp(-0.125 * n):.6f}" for n in range(21)]
    return "\n".join(["t,inflow,y", "s,m3/s,m", *rows]) + "\n"


def write(folder: Path, problem: str = PROBLEM, model: str = MODEL) -> Path:
    """The folder, with other texts where given."""
    (folder / "data").mkdir(parents=True, exist_ok=True)
    (folder / "model.py").write_text(model, encoding="utf-8")
    (folder / "problem.toml").write_text(problem, encoding="utf-8")
    (folder / "data" / "run.csv").write_text(table(), encoding="utf-8")
    return folder


def changed(*pairs: str) -> str:
    """The problem with texts replaced: old, new, old, new, …"""
    text = PROBLEM
    for old, new in zip(pairs[::2], pairs[1::2], strict=True):
        assert old in text, f"{old!r} is not in the problem"
        text = text.replace(old, new, 1)
    return text
