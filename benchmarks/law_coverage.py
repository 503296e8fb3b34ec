"""How often intervals of fits by laws of measurements hold the truth.

    python benchmarks/law_coverage.py [SETS [LAW …]]

Data are drawn by NumPy from the law around trajectories of the model, and fitted by output error. For each unknown the
number of sets whose 95 % Wald intervals hold the truth, with the exact p-value of that number under 95 %.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import binomtest

import grisaille as gr
from grisaille import der

Draw = Callable[[np.random.Generator, np.ndarray], np.ndarray]
TIMES = np.linspace(0.0, 10.0, 60)


@dataclass
class Case:
    """A model, the truth by name, and how its one output is drawn around the prediction."""

    model: gr.Model
    truth: dict[str, float]
    draw: Draw


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
    return Case(model, {"k": 0.35, "rest": 4.0, **truth}, draw)


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


def study(case: Case, sets: int, seed: int = 0) -> tuple[dict[str, int], int, float]:
    """Return for each unknown how many sets hold the truth, how many fits converged, and the seconds of a fit."""
    mean = gr.simulate(case.model.replace(case.truth), TIMES)["x"].values + case.truth["rest"]
    held, converged = dict.fromkeys(case.truth, 0), 0
    begin = time.process_time()
    for k in range(sets):
        y = case.draw(np.random.default_rng([seed, k]), mean)
        data = gr.Experiment(TIMES, outputs={"y": y}, name=f"set {k}")
        fit = gr.fit(case.model, data, list(case.truth), gr.OutputError(), progress=False)
        converged += fit.converged
        table = fit.parameters
        for name, value in case.truth.items():
            held[name] += bool(table.loc[name, "lower"] <= value <= table.loc[name, "upper"])
    return held, converged, (time.process_time() - begin) / sets


def main() -> None:
    every = cases()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", nargs="?", type=int, default=40)
    parser.add_argument("laws", nargs="*", metavar="LAW", help=", ".join(every))
    asked = parser.parse_args()
    for name in asked.laws or every:
        held, converged, seconds = study(every[name], asked.sets)
        found = "   ".join(
            f"{n} {count} (p = {binomtest(count, asked.sets, 0.95).pvalue:.3f})" for n, count in held.items()
        )
        print(f"{name:17} of {asked.sets}: {found}   {converged} converged, {1e3 * seconds:.0f} ms a fit", flush=True)


if __name__ == "__main__":
    main()
