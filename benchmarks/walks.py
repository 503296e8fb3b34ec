"""How far one fit walks: files and functions of the package that a warm fit of each estimator runs through.

    python benchmarks/walks.py

A second fit of the same model and data is counted, so that what is prepared once per model is not. Comprehensions and
lambdas belong to the function around them.
"""

from __future__ import annotations

import sys
from pathlib import Path
from types import CodeType, FrameType

import numpy as np

import grisaille as gr
from grisaille import der

PACKAGE = str(Path(gr.__file__).parent)
TIMES = np.linspace(0.0, 5.0, 51)


class Tank(gr.Model):
    """A level that falls, disturbed."""

    k = gr.Parameter(0.5, bounds=(0.01, 5.0))
    q = gr.Parameter(0.8, bounds=(0.0, 9.0))
    h = gr.Variable(1.5)
    w = gr.Disturbance(gr.spectra.lowpass(3.0), scale=0.05)
    y = gr.Output(h, noise=0.02)
    equations = [der(h) == q - k * h**1.5 + w]


METHODS = {
    "OutputError": gr.OutputError(),
    "SimulatedPEM": gr.SimulatedPEM(realizations=16),
    "KalmanML": gr.KalmanML(),
    "Collocation amle": gr.Collocation(criterion="amle"),
    "Collocation laplace": gr.Collocation(criterion="laplace"),
}


def record() -> gr.Experiment:
    """Simulated at other values, by small steps of Euler's method, with noise."""
    random, h, seen = np.random.default_rng(1), 1.5, []
    for _ in TIMES:
        seen.append(h)
        for _ in range(100):
            h += 1e-3 * (1.0 - 0.6 * h**1.5)
    return gr.Experiment(TIMES, {}, {"y": np.array(seen) + 0.02 * random.standard_normal(len(TIMES))})


def walked(method: gr.estimation.estimator.Estimator) -> set[CodeType]:
    """Every function of the package that the second fit calls."""
    model, data, seen = Tank(), record().replace(name="record"), set()

    def look(frame: FrameType, event: str, argument: object) -> None:
        if event == "call":
            seen.add(frame.f_code)

    gr.fit(model, data, ["k", "q"], method)
    sys.setprofile(look)
    try:
        gr.fit(model, data, ["k", "q"], method)
    finally:
        sys.setprofile(None)
    return {c for c in seen if c.co_filename.startswith(PACKAGE) and not c.co_name.startswith("<")}


if __name__ == "__main__":
    for name, method in METHODS.items():
        functions = walked(method)
        files = {c.co_filename for c in functions}
        print(f"{name:20s} {len(files):4d} files {len(functions):5d} functions")
        if "-v" in sys.argv:
            for file in sorted(files):
                mine = sorted({c.co_qualname for c in functions if c.co_filename == file})
                print(f"    {Path(file).relative_to(PACKAGE)}: {', '.join(mine)}")
