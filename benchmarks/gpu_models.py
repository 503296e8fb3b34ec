"""The whole package with a graphics processor, beside the processor alone: simulated means and fits of several models.

    python benchmarks/gpu_models.py [--realizations M] [--fits N]

Needs a device and CuPy. Each line is a second call, after compilation: seconds of wall clock on the device and on all
cores of the machine, and by how much answers differ: means relative to the size of the variable, estimates in standard
errors.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

import grisaille as gr
from grisaille import der
from grisaille_reproductions.abdalmoaty import PROGRAM

TIMES = np.linspace(0.0, 60.0, 601)
DEVICES = ("cuda", "cpu")


class Basin(gr.Model):
    """A level under a squared disturbance."""

    a = gr.Parameter(0.8, bounds=(0.1, 5.0))
    x = gr.Variable(0.0)
    w = gr.Disturbance(gr.spectra.lowpass(bandwidth=2.0), scale=1.0)
    y = gr.Output(x, noise=0.01)
    equations = [der(x) == -a * x + w**2]


class Well(gr.Model):
    """A double well under white noise."""

    a = gr.Parameter(1.0, bounds=(0.1, 5.0))
    x = gr.Variable(0.9, fixed=True)
    w = gr.Disturbance(gr.spectra.white(), scale=0.4)
    y = gr.Output(x, noise=0.05)
    equations = [der(x) == a * (x - x**3) + w]


class Valve(gr.Model):
    """A flow that only an equation gives."""

    a = gr.Parameter(0.8, bounds=(0.1, 5.0))
    x, z = gr.Variable(1.0), gr.Variable(0.5)
    w = gr.Disturbance(gr.spectra.lowpass(bandwidth=2.0), scale=0.5)
    y = gr.Output(x, noise=0.01)
    equations = [der(x) == -a * z + w, z + 0.3 * z**3 == x]


class Exchange(gr.Model):
    """A stiff exchange between two stores."""

    a = gr.Parameter(0.8, bounds=(0.1, 5.0))
    x, q = gr.Variable(1.1), gr.Variable(1.0)
    w = gr.Disturbance(gr.spectra.lowpass(bandwidth=2.0), scale=0.5)
    y = gr.Output(x, noise=0.01)
    equations = [der(x) == -a * q + w, der(q) == 1e4 * (x - q - 0.1 * q**3)]


def on_both(compute: Callable[[str], Any]) -> tuple[dict[str, Any], dict[str, float]]:
    """Answers and seconds of the second call, by device."""
    answers, seconds = {}, {}
    for device in DEVICES:
        compute(device)
        begin = time.perf_counter()
        answers[device] = compute(device)
        seconds[device] = time.perf_counter() - begin
    return answers, seconds


def means(title: str, model: gr.Model, realizations: int, inputs: Mapping[str, Any], **options: Any) -> None:
    """Print one line on the mean over realizations."""
    answers, seconds = on_both(
        lambda device: gr.simulate(
            model, TIMES, inputs=inputs, realizations=realizations, seed=3, reduce="mean", device=device, **options
        )
    )
    pairs = [(answers["cpu"][name].values, answers["cuda"][name].values) for name in answers["cpu"].data_vars]
    apart = max(float(np.abs(a - b).max() / max(np.abs(a).max(), 1e-300)) for a, b in pairs if a.dtype.kind == "f")
    print(f"{title}, mean of {realizations}", *(f"{d} {seconds[d]:.3f} s" for d in DEVICES), f"differ by {apart:.1e}")


def fits(title: str, model: gr.Model, truth: Mapping[str, float], realizations: int, inputs: Mapping[str, Any]) -> None:
    """Print one line on a fit by simulated prediction errors."""
    (name,) = truth
    plant = gr.simulate(model.replace(truth), TIMES, inputs=inputs, realizations=1, seed=7, noise=True)
    output = next(n for n in ("phi", "y") if n in plant)
    data = gr.Experiment(TIMES, inputs, {output: plant[output].values[0]})
    answers, seconds = on_both(
        lambda device: gr.fit(
            model, data, [name], gr.SimulatedPEM(realizations=realizations, seed=1, device=device), progress=False
        )
    )
    error = float(answers["cpu"].parameters.loc[name, "std_error"])
    apart = abs(float(answers["cpu"][name]) - float(answers["cuda"][name])) / error
    print(f"{title}, fit by {realizations}", *(f"{d} {seconds[d]:.3f} s" for d in DEVICES), f"differ by {apart:.1e}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--realizations", type=int, default=20_000, help="of simulated means")
    parser.add_argument("--fits", type=int, default=2_000, help="realizations of fits")
    asked = parser.parse_args()
    push = {"u": 2.0 * np.sin(0.9 * TIMES) + np.sin(2.1 * TIMES)}
    many, few = asked.realizations, max(asked.realizations // 10, 1)
    means("pendulum of index 3", PROGRAM.model(), many, push)
    means("level under a squared disturbance", Basin(), many, {})
    means("double well under white noise", Well(), many, {})
    means("implicit unknown", Valve(), many, {})
    means("stiff, frozen implicit steps", Exchange(), few, {}, method="frozen-implicit")
    fits("pendulum of index 3", PROGRAM.model(), {"k": 6.25}, asked.fits, push)
    fits("level under a squared disturbance", Basin(), {"a": 1.1}, asked.fits, {})


if __name__ == "__main__":
    main()
