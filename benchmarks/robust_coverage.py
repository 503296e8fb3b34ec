"""How often intervals of output error hold the truth under disturbances that the model does not have.

    python benchmarks/robust_coverage.py [SETS [PLANT …]]

Rooms heated through walls, disturbed by an Ornstein–Uhlenbeck process in their heat balance that the model leaves out;
data by NumPy with midpoint steps of a tenth of an interval. For each plant the share of sets whose 95 % intervals hold
the truth, plain and robust, the share said to be rough, and that without errors.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

import numpy as np

import grisaille as gr
from grisaille import der

TRUTH = {"R": 2.0, "C": 5.0, "G": 0.4}
FINE = 10


class Room(gr.Model):
    """One capacity behind one resistance."""

    R = gr.Parameter(1.5, "K/kW", bounds=(0.05, 50.0))
    C = gr.Parameter(4.0, "kWh/K", bounds=(0.05, 50.0))
    heat = gr.Input("kW")
    outside = gr.Input("K")
    T = gr.Variable(start=0.0, unit="K")
    y = gr.Output(T)
    equations = [C * der(T) == (outside - T) / R + heat]


class Rooms(gr.Model):
    """Two of them with a wall between; the second is not heated."""

    R = gr.Parameter(1.5, "K/kW", bounds=(0.05, 50.0))
    C = gr.Parameter(4.0, "kWh/K", bounds=(0.05, 50.0))
    G = gr.Parameter(0.3, "kW/K", bounds=(0.01, 10.0))
    heat = gr.Input("kW")
    outside = gr.Input("K")
    T = gr.Variable(start=0.0, unit="K")
    N = gr.Variable(start=0.0, unit="K")
    y = gr.Output(T)
    z = gr.Output(N)
    equations = [C * der(T) == (outside - T) / R + G * (N - T) + heat, C * der(N) == (outside - N) / R + G * (T - N)]


def record(
    rng: np.random.Generator, hours: float, slow: float, *, size: float = 0.6, two: bool = False, name: str = "record"
) -> gr.Experiment:
    """One record with a sample an hour; ``slow``: time constant of what disturbs, in hours."""
    n = int(hours)
    heat = np.repeat(rng.choice([0.0, 4.0], n // 8 + 1), 8)[:n]
    outside = 5 * np.sin(2 * np.pi * np.arange(n) / 24)
    G, h = TRUTH["G"] if two else 0.0, 1 / FINE
    keep, w = np.exp(-h / slow), size * rng.standard_normal()
    T = N = 0.0
    seen = np.zeros((n, 2))
    for k in range(n):
        seen[k] = T, N
        for _ in range(FINE):
            a, b = _rates(T, N, outside[k], heat[k], w, G)
            a, b = _rates(T + h / 2 * a, N + h / 2 * b, outside[k], heat[k], w, G)
            T, N = T + h * a, N + h * b
            w = keep * w + size * np.sqrt(1 - keep**2) * rng.standard_normal()
    seen += 0.1 * rng.standard_normal(seen.shape)
    outputs = {"y": seen[:, 0], "z": seen[:, 1]} if two else {"y": seen[:, 0]}
    return gr.Experiment(np.arange(n, dtype=float), {"heat": heat, "outside": outside}, outputs, name=name)


def _rates(T: float, N: float, outside: float, heat: float, w: float, G: float) -> tuple[float, float]:
    R, C = TRUTH["R"], TRUTH["C"]
    return ((outside - T) / R + G * (N - T) + heat + w) / C, ((outside - N) / R + G * (T - N) + 0.5 * w) / C


def with_gaps(rng: np.random.Generator, data: gr.Experiment) -> gr.Experiment:
    """A third of the samples missing, and a pause of a day."""
    values = np.array(data.outputs["y"].values)
    values[rng.random(len(values)) < 1 / 3] = np.nan
    values[100:124] = np.nan
    return data.replace(outputs={"y": (data.outputs["y"].times, values)})


Plant = tuple[type[gr.Model], Callable[[np.random.Generator], list[gr.Experiment]]]
PLANTS: dict[str, Plant] = {
    "fast": (Room, lambda rng: [record(rng, 400, 1.0, size=1.5)]),
    "medium": (Room, lambda rng: [record(rng, 400, 6.0)]),
    "slow": (Room, lambda rng: [record(rng, 400, 40.0)]),
    "short": (Room, lambda rng: [record(rng, 120, 6.0)]),
    "outputs": (Rooms, lambda rng: [record(rng, 400, 6.0, two=True)]),
    "records": (Room, lambda rng: [record(rng, 150, 6.0, name=f"run {k}") for k in range(4)]),
    "gaps": (Room, lambda rng: [with_gaps(rng, record(rng, 500, 6.0))]),
    "white": (Room, lambda rng: [record(rng, 200, 6.0, size=0.0)]),
}


def count(name: str, sets: int) -> str:
    """One line of the table."""
    model, draw = PLANTS[name]
    wanted = [n for n in TRUTH if n in ("R", "C") or model is Rooms]
    held, noted, began = {"plain": [], "robust": []}, [], time.process_time()
    for seed in range(sets):
        fit = gr.fit(model(), draw(np.random.default_rng([seed, len(name)])), wanted, gr.OutputError())
        for kind in held:
            found = fit.with_errors(kind).intervals(method="wald")
            held[kind].append([found.lower[n] <= TRUTH[n] <= found.upper[n] for n in wanted])
        said = " ".join(fit.with_errors("robust").notes)
        noted.append([bool(fit.doubts), "ROUGH" in said, "NONE" in said])
    shares = {k: " ".join(f"{100 * s:5.1f}" for s in np.mean(v, axis=0)) for k, v in held.items()}
    doubted, rough, none = 100 * np.mean(noted, axis=0)
    seconds = (time.process_time() - began) / sets
    return (
        f"{name:<9}{'/'.join(wanted):<7} plain {shares['plain']:<20} robust {shares['robust']:<20} "
        f"not white {doubted:.0f}, rough {rough:.0f}, none {none:.0f} %   {seconds:.2f} s a set"
    )


if __name__ == "__main__":
    wanted_sets = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    for plant in sys.argv[2:] or PLANTS:
        print(count(plant, wanted_sets), flush=True)
