"""Fits by particle filters to many simulated data sets: do intervals hold the truth, where are maxima?

python benchmarks/particle_coverage.py double-well [--sets=N] [--particles=N] [--processes=N] [--folder=FOLDER]

Problems: double-well (against the exact maximum, by a grid), reactor (ten records jointly, strongly disturbed),
encoder (rounded to steps of two noise deviations), thermostat (hysteresis under noise), counts (with a random rate).
One line of JSON for each data set is added to a file of FOLDER; sets that are there are not fitted again.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np

import grisaille as gr
from grisaille import der
from grisaille.study.seeds import experiment_seed
from grisaille_reproductions.kristensen_reactor import STEP, feed, plan, reactor

Row = dict[str, object]
WELL_TIMES = np.arange(0.0, 100.0, 0.5)
WELL_START = 0.04


class DoubleWell(gr.Model):
    a = gr.Parameter(1.0, bounds=(0.1, 5.0))
    sigma = gr.Parameter(0.6, bounds=(0.1, 3.0))
    x = gr.Variable(1.0)
    w = gr.Disturbance(gr.spectra.white(), scale=sigma)
    y = gr.Output(x, noise=0.2)
    equations = [der(x) == a * x - x**3 + w]


class Encoder(gr.Model):
    """A wheel whose angle is read in steps of two deviations of its noise."""

    k = gr.Parameter(1.0, bounds=(0.1, 5.0))
    d = gr.Parameter(0.4, bounds=(0.02, 3.0))
    s = gr.Parameter(0.5, bounds=(0.05, 3.0))
    x, v = gr.Variable(1.0), gr.Variable(0.0)
    w = gr.Disturbance(gr.spectra.white(), scale=s)
    y = gr.Output(x, distribution=gr.laws.Rounded(step=0.4, of=gr.laws.Normal(std=0.2)))
    equations = [der(x) == v, der(v) == -k * x - d * v + w]


class Thermostat(gr.Model):
    """A room that is heated between two temperatures, under weather."""

    C = gr.Parameter(1.0, bounds=(0.1, 10.0))
    P = gr.Parameter(5.0, bounds=(1.0, 20.0))
    T = gr.Variable(20.0)
    on = gr.Discrete(1)
    w = gr.Disturbance(gr.spectra.lowpass(bandwidth=0.5), scale=0.6)
    y = gr.Output(T, noise=0.1)
    equations = [C * der(T) == P * on - 0.2 * (T - 10.0) + w, gr.when(T > 21.0, on == 0).otherwise(T < 19.0, on == 1)]


class Counts(gr.Model):
    """Events counted over intervals at a rate whose logarithm wanders."""

    m = gr.Parameter(1.0, bounds=(-2.0, 4.0))
    b = gr.Parameter(0.3, bounds=(0.02, 3.0))
    s = gr.Parameter(0.5, bounds=(0.05, 3.0))
    x = gr.Variable(m)
    w = gr.Disturbance(gr.spectra.white(), scale=s)
    y = gr.Output(gr.exp(x), distribution=gr.laws.Poisson())
    equations = [der(x) == -b * (x - m) + w]


def double_well(number: int, particles: int) -> Row:
    y = gr.simulate(DoubleWell(), WELL_TIMES, realizations=1, seed=100 + number, noise=True)["y"].values[0]
    data = gr.Experiment(WELL_TIMES, {}, {"y": y})
    method = gr.ParticleML(particles=particles, initial_covariance={"x": WELL_START})
    fit = gr.fit(DoubleWell(), data, ["a", "sigma"], method)
    exact = exact_maximum(y, [float(fit["a"]), float(fit["sigma"])])
    return {**described(fit, {"a": 1.0, "sigma": 0.6}), "exact": exact}


def exact_maximum(y: np.ndarray, start: list[float]) -> list[float]:
    """The maximum of the likelihood on a grid of states, whose transitions are products of short ones."""
    from scipy.optimize import minimize

    def both(logs: np.ndarray) -> float:
        fine, coarse = (well_likelihood(y, *np.exp(logs), h) for h in (1 / 128, 1 / 64))
        return -(2 * fine - coarse)

    return list(np.exp(minimize(both, np.log(start), method="Nelder-Mead", options={"xatol": 3e-4, "fatol": 1e-4}).x))


def well_likelihood(y: np.ndarray, a: float, sigma: float, h: float) -> float:
    x = np.linspace(-2.8, 2.8, 320)
    step, s = x[1] - x[0], sigma * np.sqrt(h)
    kernel = np.exp(-0.5 * ((x[:, None] - (x + (a * x - x**3) * h)) / s) ** 2) / (s * np.sqrt(2 * np.pi)) * step
    for _ in range(round(np.log2(0.5 / h))):
        kernel = kernel @ kernel
    weights = np.exp(-0.5 * (x - 1.0) ** 2 / WELL_START)
    weights /= weights.sum()
    total = 0.0
    for k, value in enumerate(y):
        weights = kernel @ weights if k else weights
        seen = weights * np.exp(-0.5 * ((value - x) / 0.2) ** 2) / (0.2 * np.sqrt(2 * np.pi))
        total += float(np.log(seen.sum()))
        weights = seen / seen.sum()
    return total


def strongly_disturbed_reactor(number: int, particles: int) -> Row:
    model, data = reactor(0.3162), []
    for k, experiment in enumerate(plan(10)):
        seed = experiment_seed(7000 + number, k)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", category=UserWarning)
            run = gr.simulate(
                model,
                experiment.time,
                inputs={"F": feed()},
                realizations=1,
                seed=seed,
                noise=True,
                step=STEP,
                strict=False,
            )
        if not bool((run["S"] > -0.03).all()):
            continue
        outputs = {name: run[name].values[0] for name in ("y_X", "y_S", "y_V")}
        data.append(gr.Experiment(experiment.time, {"F": feed()}, outputs, name=f"record {k + 1}"))
    names = ["X_0", "S_0", "V_0", "mu_max", "K_1", "scale(w_X)", "scale(w_S)", "scale(w_V)"]
    truth = {"mu_max": 1.0, "K_1": 0.03, "X_0": 1.0, "scale(w_S)": 0.3162}
    found = {}
    for label, method in (("kalman", gr.KalmanML()), ("particles", gr.ParticleML(particles=particles))):
        found[label] = described(gr.fit(model, data, names, method), truth)
    return {**found["particles"], "kalman": found["kalman"], "records": len(data)}


def simulated(model: gr.Model, times: np.ndarray, truth: dict[str, float]) -> Callable[[int, int], Row]:
    def run(number: int, particles: int) -> Row:
        y = gr.simulate(model, times, realizations=1, seed=300 + number, noise=True)["y"].values[0]
        data = gr.Experiment(times, {}, {"y": y})
        return described(gr.fit(model, data, list(truth), gr.ParticleML(particles=particles)), truth)

    return run


PROBLEMS: dict[str, tuple[Callable[[int, int], Row], int]] = {
    "double-well": (double_well, 500),
    "reactor": (strongly_disturbed_reactor, 100),
    "encoder": (simulated(Encoder(), np.arange(0.0, 40.0, 0.2), {"k": 1.0, "d": 0.4, "s": 0.5}), 200),
    "thermostat": (simulated(Thermostat(), np.arange(0.0, 40.0, 0.2), {"C": 1.0, "P": 5.0}), 200),
    "counts": (simulated(Counts(), np.arange(0.0, 200.0, 1.0), {"m": 1.0, "b": 0.3, "s": 0.5}), 200),
}


def described(fit: gr.Fit, truth: dict[str, float]) -> Row:
    found = {n: (float(fit[n]), float(fit[n].std_error)) for n in truth}
    held = {n: bool(abs(v - truth[n]) < 1.96 * e) for n, (v, e) in found.items()}
    off = {n: (v - truth[n]) / e if e > 0 else None for n, (v, e) in found.items()}
    return {"converged": bool(fit.converged), "found": found, "held": held, "off": off, "status": fit.status}


def one(job: tuple[str, int, int]) -> Row:
    problem, number, particles = job
    begin = time.process_time()
    try:
        row = PROBLEMS[problem][0](number, particles)
    except (gr.GrisailleError, ArithmeticError, np.linalg.LinAlgError) as error:
        row = {"failed": str(error)}
    return {"set": number, **row, "seconds": time.process_time() - begin}


def summary(rows: list[Row]) -> str:
    fits = [r for r in rows if "found" in r]
    lines = [f"{len(rows)} sets, {len(fits)} fitted, {sum(bool(r['converged']) for r in fits)} converged"]
    for name in fits[0]["held"] if fits else ():  # type: ignore[attr-defined]
        held = sum(r["held"][name] for r in fits)  # type: ignore[index]
        off = np.array([r["off"][name] for r in fits if r["off"][name] is not None], dtype=float)  # type: ignore[index]
        lines.append(
            f"{name}: held {held} of {len(fits)}, mean off {off.mean():+.2f} ± {off.std() / len(off) ** 0.5:.2f}"
        )
    if fits and "exact" in fits[0]:
        away = []
        for r in fits:
            pairs = zip(r["found"].values(), r["exact"], strict=True)  # type: ignore[attr-defined,call-overload]
            away.append(max(abs(v - x) / e for (v, e), x in pairs))
        lines.append(f"standard errors from the exact maximum: median {np.median(away):.3f}, most {max(away):.3f}")
    if fits and "kalman" in fits[0]:
        held = [r["kalman"]["held"]["K_1"] for r in fits]  # type: ignore[index,call-overload]
        lines.append(f"K_1 by the extended filter: held {sum(held)} of {len(held)}")
    lines.append(f"processor seconds a set: median {np.median([r['seconds'] for r in rows]):.1f}")
    return "\n".join(lines)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("problem", choices=PROBLEMS)
    parser.add_argument("--sets", type=int, default=1)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--particles", type=int)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--folder", type=Path)
    given = parser.parse_args(arguments)
    file = None if given.folder is None else given.folder / f"{given.problem}.jsonl"
    rows = [json.loads(line) for line in file.read_text("utf-8").splitlines()] if file and file.is_file() else []
    known = {row["set"] for row in rows}
    particles = given.particles or PROBLEMS[given.problem][1]
    jobs = [(given.problem, k, particles) for k in range(given.first, given.first + given.sets) if k not in known]
    if given.processes > 1:
        with multiprocessing.get_context("spawn").Pool(given.processes, on_one_processor) as pool:
            for row in pool.imap_unordered(one, jobs):
                rows.append(row)
                note(file, row)
    else:
        for job in jobs:
            rows.append(one(job))
            note(file, rows[-1])
    print(summary(rows))
    return 0


def on_one_processor() -> None:
    """Keep a worker to one processor, so that its threads are not in the way of other workers."""
    number = int(multiprocessing.current_process().name.rpartition("-")[2])
    if hasattr(os, "sched_setaffinity"):
        known = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, {known[number % len(known)]})


def note(file: Path | None, row: Row) -> None:
    if file is None:
        return
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("a", encoding="utf-8") as out:
        out.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
