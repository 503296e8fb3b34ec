"""How often the intervals of the table hold the truth: 95 % of them should, for every unknown.

    python benchmarks/interval_coverage.py [study …] [--sets 1000] [--store FILE]

Each set is drawn with its own seed, fitted, and asked for ``fit.intervals()`` as the table prints them. Counts are kept
in a small JSON file after every 20 sets, and the same command continues from there. Allowed are counts that an exact
binomial test at 0.1 % does not refuse: 926 … 971 of 1 000.

``slow`` is a process about an estimated mean, five time constants long: there the table's intervals must fail and say
so, and those by ``method="bootstrap"`` must not. It takes seconds for each set: ask for fewer.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import binom

import grisaille as gr
from grisaille import atan2, der

REFUSED = 1e-3
TOGETHER = 20


class OrnsteinUhlenbeck(gr.Model):
    """A process about a known mean, seen with known noise."""

    a = gr.Parameter(1.0, "1/s", bounds=(1e-3, 50.0))
    x = gr.Variable(start=0.0)
    w = gr.Disturbance(gr.spectra.white(), scale=0.5)
    y = gr.Output(x, noise=0.1)
    equations = [der(x) == -a * x + w]


class AboutMean(gr.Model):
    """The same about an unknown mean."""

    a, mu = gr.Parameter(0.5, "1/s", bounds=(1e-3, 50.0)), gr.Parameter(0.0)
    x = gr.Variable(start=0.0)
    w = gr.Disturbance(gr.spectra.white(), scale=0.5)
    y = gr.Output(x, noise=0.1)
    equations = [der(x) == a * (mu - x) + w]


class VanDerPol(gr.Model):
    """An oscillator with two unknown coefficients, seen at few instants with noise of unknown size."""

    m, k = gr.Parameter(1.0, bounds=(0.05, 20.0)), gr.Parameter(1.0, bounds=(0.05, 20.0))
    x, v = gr.Variable(start=1.0), gr.Variable(start=0.0)
    y = gr.Output(x)
    equations = [der(x) == v, der(v) == m * (1 - x**2) * v - k * x]


class Pendulum(gr.Model):
    """Cartesian, index 3: drag, length of the rod in its angle, released from an unknown place."""

    m, g, L = gr.Parameter(0.3, "kg"), gr.Parameter(9.81, "m/s2"), gr.Parameter(2.0, "m")
    k = gr.Parameter(0.4, "kg/s", bounds=(1e-3, 20.0))
    x, y = gr.Variable(start=1.0, unit="m"), gr.Variable(start=-(3.0**0.5), unit="m")
    vx, vy = gr.Variable(start=0.0, unit="m/s"), gr.Variable(start=0.0, unit="m/s")
    tension = gr.Variable()
    phi = gr.Output(atan2(x, -y), unit="rad")
    equations = [
        der(x) == vx,
        der(y) == vy,
        m * der(vx) == tension * x - k * vx,
        m * der(vy) == tension * y - k * vy - m * g,
        x**2 + y**2 == L**2,
    ]


@dataclass(frozen=True)
class Study:
    """What is drawn and fitted."""

    draw: Callable[[np.random.Generator], gr.Experiment]
    model: gr.Model
    truth: dict[str, float]
    method: Any
    beside: dict[str, Any] | None = None
    """Options of other intervals that are counted too."""


def wandering(n: int, a: float = 1.0, step: float = 0.5) -> Study:
    """Exact draws of the process."""
    f, spread = np.exp(-a * step), 0.5 / np.sqrt(2 * a)

    def draw(random: np.random.Generator) -> gr.Experiment:
        x = np.empty(n)
        x[0] = spread * random.standard_normal()
        for k in range(1, n):
            x[k] = f * x[k - 1] + spread * np.sqrt(1 - f**2) * random.standard_normal()
        return gr.Experiment(step * np.arange(n), {}, {"y": x + 0.1 * random.standard_normal(n)})

    method = gr.KalmanML(initial_covariance="stationary")
    if a == 1:
        return Study(draw, OrnsteinUhlenbeck(), {"a": 1.0, "scale(w)": 0.5}, method)
    return Study(draw, AboutMean(), {"a": a, "mu": 0.0}, method, {"method": "bootstrap", "samples": 80})


def noisy(model: gr.Model, times: np.ndarray, output: str, sigma: float, truth: dict[str, float]) -> Study:
    """One trajectory with normal noise, fitted by output error."""
    clean = gr.simulate(model, times, rtol=1e-9)[output].values

    def draw(random: np.random.Generator) -> gr.Experiment:
        return gr.Experiment(times, {}, {output: clean + sigma * random.standard_normal(len(times))})

    return Study(draw, model, truth, gr.OutputError())


STUDIES: dict[str, Callable[[], Study]] = {
    "ou41": lambda: wandering(41),
    "ou161": lambda: wandering(161),
    "slow": lambda: wandering(51, 0.5, 0.2),
    "vanderpol": lambda: noisy(
        VanDerPol(), np.linspace(0.0, 8.0, 25), "y", 0.3, {"m": 1.0, "k": 1.0, "start(x)": 1.0, "start(v)": 0.0}
    ),
    "pendulum": lambda: noisy(
        Pendulum(), np.linspace(0.0, 4.0, 41), "phi", 0.05, {"k": 0.4, "L": 2.0, "start(x)": 1.0}
    ),
}


def one(study: Study, name: str, number: int) -> dict[str, int]:
    """Of one set: whether each interval holds the truth, its kind, and whether the fit converged."""
    seed = [sum(map(ord, name)), number]
    fit = gr.fit(study.model, study.draw(np.random.default_rng(seed)), list(study.truth), study.method)
    found = fit.intervals()
    told: Counter[str] = Counter({"sets": 1, "converged": int(fit.converged)})
    for unknown, value in study.truth.items():
        low, high = found.loc[unknown]
        told[f"hit {unknown}"] = int(low <= value <= high)
        told[f"profile {unknown}"] = int(found.attrs["kinds"][unknown] == "profile")
    if study.beside:
        told["told"] = int(any("NOT calibrated" in note for note in found.attrs["notes"]))
        other = fit.intervals(**study.beside)
        for unknown, value in study.truth.items():
            low, high = other.loc[unknown]
            told[f"hit {unknown} by {study.beside['method']}"] = int(low <= value <= high)
    return told


def run(name: str, sets: int, store: Path | None) -> Counter[str]:
    """All sets of one study, from where the store has it."""
    kept = json.loads(store.read_text()) if store and store.exists() else {}
    total = Counter(kept.get(name, {}))
    study = STUDIES[name]()
    begin = time.process_time()
    while total["sets"] < sets:
        for _ in range(min(TOGETHER, sets - total["sets"])):
            total.update(one(study, name, total["sets"]))
        total["cpu ms"] += round(1000 * (time.process_time() - begin))
        begin = time.process_time()
        if store:
            kept = json.loads(store.read_text()) if store.exists() else {}
            beside = store.with_suffix(".part")
            beside.write_text(json.dumps({**kept, name: total}, indent=1))
            os.replace(beside, store)
    return total


def allowed(sets: int) -> tuple[int, int]:
    """Counts that the two-sided test does not refuse: half of 0.1 % on either side."""
    return int(binom.ppf(REFUSED / 2, sets, 0.95)), int(binom.ppf(1 - REFUSED / 2, sets, 0.95))


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    usual = [s for s in STUDIES if s != "slow"]
    parser.add_argument("studies", nargs="*", metavar="STUDY", choices=[*STUDIES, usual], default=usual)
    parser.add_argument("--sets", type=int, default=1000)
    parser.add_argument("--store", type=Path, default=None)
    chosen = parser.parse_args()
    low, high = allowed(chosen.sets)
    for name in chosen.studies:
        total = run(name, chosen.sets, chosen.store)
        seconds = total["cpu ms"] / 1000
        said = f", {total['told']} said to be not calibrated" if "told" in total else ""
        print(f"{name}: {total['sets']} sets, {total['converged']} converged{said}, {seconds:.0f} s of CPU time")
        for key in [k for k in total if k.startswith("hit ")]:
            unknown, hits = key[4:], total[key]
            verdict = "as claimed" if low <= hits <= high else "REFUSED"
            print(f"  {unknown:<18}{hits:>6} hold the truth ({low} … {high} allowed), "
                  f"{total[f'profile {unknown}']} by profile: {verdict}", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
