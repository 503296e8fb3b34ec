"""How often intervals of fits by laws of measurements hold the truth.

    python benchmarks/law_coverage.py [SETS [CASE …]]

Data are drawn by NumPy from the law around trajectories, and fitted by output error: eight laws around a decay, and six
laws around six models (static, an ODE, of index 1 and 3, two experiments, gaps), whose trajectories are SciPy's. For
each unknown the number of sets whose 95 % Wald intervals hold the truth, with the exact p-value of that number.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from law_models import MODELS, Case
from scipy.stats import binomtest

import grisaille as gr
from grisaille import der

Draw = Callable[[np.random.Generator, np.ndarray], np.ndarray]
TIMES = np.linspace(0.0, 10.0, 60)


def decay(law: Any, truth: dict[str, float], draw: Draw, size: float = 60.0) -> Case:
    """Return a decay onto a background, measured by a law, whose numbers may be the parameter ``s``."""

    class Decay(gr.Model):
        k = gr.Parameter(0.3, bounds=(0.01, 3.0))
        rest = gr.Parameter(5.0, bounds=(0.01, 100.0))
        s = gr.Parameter(1.0, bounds=(1e-4, 1e4))
        x = gr.Variable(start=size)
        y = gr.Output(x + rest, distribution=law(s))
        equations = [der(x) == -k * x]

    model = Decay(**({"s": 1.3 * truth["s"]} if "s" in truth else {}))
    plan = (gr.Experiment(TIMES, outputs={"y": 0 * TIMES}),)
    truth = {"k": 0.35, "rest": 4.0, **truth}
    return Case(model, truth, plan, (size * np.exp(-0.35 * TIMES) + 4.0,), draw)


def cases() -> dict[str, Case]:
    laws = gr.laws
    return {
        "Poisson": decay(lambda s: laws.Poisson(), {}, lambda r, m: r.poisson(m).astype(float)),
        "NegativeBinomial": decay(
            lambda s: laws.NegativeBinomial(size=s),
            {"s": 15.0},
            lambda r, m: r.negative_binomial(15, 15 / (15 + m)).astype(float),
        ),
        "LogNormal": decay(
            lambda s: laws.LogNormal(log_std=s), {"s": 0.2}, lambda r, m: m * np.exp(0.2 * r.standard_normal(len(m)))
        ),
        "Student": decay(
            lambda s: laws.Student(df=4.0, scale=s), {"s": 1.0}, lambda r, m: m + r.standard_t(4.0, len(m))
        ),
        "Gamma": decay(lambda s: laws.Gamma(shape=s), {"s": 20.0}, lambda r, m: r.gamma(20.0, m / 20.0)),
        "Rounded": decay(
            lambda s: laws.Rounded(step=3.0, of=laws.Normal(std=s)),
            {"s": 1.5},
            lambda r, m: 3.0 * np.round((m + 1.5 * r.standard_normal(len(m))) / 3.0),
        ),
        "Censored": decay(
            lambda s: laws.Censored(below=7.0, of=laws.Normal(std=s)),
            {"s": 1.5},
            lambda r, m: np.maximum(m + 1.5 * r.standard_normal(len(m)), 7.0),
        ),
        "Laplace": decay(lambda s: laws.Laplace(scale=s), {"s": 1.0}, lambda r, m: m + r.laplace(size=len(m))),
    }


@dataclass(frozen=True)
class Found:
    """Of each unknown how many sets hold the truth, how many fits converged, and the seconds of a fit."""

    held: dict[str, int]
    converged: int
    seconds: float


def study(case: Case, sets: int, seed: int = 0) -> Found:
    """Fit so many sets of data."""
    held, converged = dict.fromkeys(case.truth, 0), 0
    begin = time.process_time()
    for k in range(sets):
        fit = gr.fit(case.model, case.data(seed, k), list(case.truth), gr.OutputError(), progress=False)
        converged += fit.converged
        table = fit.parameters
        for name, value in case.truth.items():
            held[name] += bool(table.loc[name, "lower"] <= value <= table.loc[name, "upper"])
    return Found(held, converged, (time.process_time() - begin) / sets)


def main() -> None:
    every = {**cases(), **{name: make() for name, make in MODELS.items()}}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", nargs="?", type=int, default=40)
    parser.add_argument("cases", nargs="*", metavar="CASE", help=", ".join(every))
    asked = parser.parse_args()
    for name in asked.cases or every:
        found = study(every[name], asked.sets)
        counts = "   ".join(
            f"{n} {count} (p = {binomtest(count, asked.sets, 0.95).pvalue:.2g})" for n, count in found.held.items()
        )
        print(
            f"{name:17} of {asked.sets}: {counts}   {found.converged} converged, {1e3 * found.seconds:.0f} ms a fit",
            flush=True,
        )


if __name__ == "__main__":
    main()
