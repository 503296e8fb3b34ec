"""Simulation-based calibration of posteriors: whether true values drawn from the prior have even ranks among the draws.

    θ* ~ prior,   y ~ p(y | θ*),   θ₁, …, θ_L ~ p(θ | y):   the rank of θ* among θ₁, …, θ_L is uniform on 0, …, L

if, and only if in practice, likelihood, priors, Jacobians and sampler are all right (S. Talts, M. Betancourt,
D. Simpson, A. Vehtari, A. Gelman, arXiv:1804.06788). Data come from closed forms written here, not from the package.
Ranks are counted in ``BINS`` bins and compared by χ². For the extended filter, whose likelihood is an approximation,
the table shows how far from uniform ranks are.

    python benchmarks/calibration.py --runs 1000 --of output-error kalman
    python benchmarks/calibration.py --runs 200 --of weakly strongly
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from typing import Any

import numpy as np
from scipy.stats import chi2

import grisaille as gr
from grisaille import der

BINS, KEPT, THINNED = 20, 99, 5
"""Bins of ranks, draws that a true value is compared with, and how many draws are taken for each of them."""
LEVEL = 0.001
TIMES = np.linspace(0.0, 10.0, 31)


class Filling(gr.Model):
    """A tank that fills and leaks; the noise of its level is open."""

    k = gr.Parameter(0.5, prior=gr.LogNormal(0.5, 0.4))
    q = gr.Parameter(2.0, prior=gr.Normal(2.0, 0.5))
    h = gr.Variable(0.5)
    y = gr.Output(h)
    equations = [der(h) == q - k * h]


class Pulled(gr.Model):
    """A process that is pulled back and disturbed by white noise."""

    k = gr.Parameter(0.5, prior=gr.LogNormal(0.5, 0.4))
    x = gr.Variable(1.0)
    w = gr.Disturbance(gr.spectra.white(), scale=0.3)
    y = gr.Output(x)
    equations = [der(x) == -k * x + w]


class Bent(gr.Model):
    """The same with a pull that grows with the distance: ``bend`` says how nonlinear it is."""

    k = gr.Parameter(0.5, prior=gr.LogNormal(0.5, 0.4))
    bend = gr.Parameter(0.1)
    x = gr.Variable(1.0)
    w = gr.Disturbance(gr.spectra.white(), scale=0.3)
    y = gr.Output(x)
    equations = [der(x) == -k * x * (1 + bend * x**2) + w]


LEVELS = {"noise(y)": gr.LogNormal(0.1, 0.5)}
"""Priors of what is not a parameter."""
SCALE = {"scale(w)": gr.LogNormal(0.3, 0.4)}


def filled(theta: dict[str, float], rng: np.random.Generator) -> np.ndarray:
    """Return measurements of the tank, by its closed form."""
    end = theta["q"] / theta["k"]
    h = end + (0.5 - end) * np.exp(-theta["k"] * TIMES)
    return np.asarray(h + theta["noise(y)"] * rng.standard_normal(len(TIMES)))


def pulled(theta: dict[str, float], rng: np.random.Generator) -> np.ndarray:
    """Return measurements of the linear process, by its exact transition."""
    k, step = theta["k"], float(TIMES[1] - TIMES[0])
    decay = np.exp(-k * step)
    spread = theta["scale(w)"] * np.sqrt((1 - decay**2) / (2 * k))
    x = np.ones(len(TIMES))
    for j in range(1, len(x)):
        x[j] = decay * x[j - 1] + spread * rng.standard_normal()
    return np.asarray(x + theta["noise(y)"] * rng.standard_normal(len(x)))


def bent(bend: float) -> Callable[[dict[str, float], np.random.Generator], np.ndarray]:
    """Return measurements of the nonlinear process, by steps of Euler and Maruyama that are short."""

    def measured(theta: dict[str, float], rng: np.random.Generator) -> np.ndarray:
        steps = 200
        h = float(TIMES[1] - TIMES[0]) / steps
        x, kept = 1.0, [1.0]
        for _ in TIMES[1:]:
            for z in rng.standard_normal(steps):
                x += -theta["k"] * x * (1 + bend * x**2) * h + theta["scale(w)"] * np.sqrt(h) * z
            kept.append(x)
        return np.array(kept) + theta["noise(y)"] * rng.standard_normal(len(TIMES))

    return measured


@dataclass(frozen=True)
class Case:
    """One model with its estimator."""

    model: gr.Model
    method: Any
    estimate: list[str]
    priors: dict[str, Any]
    measured: Callable[[dict[str, float], np.random.Generator], np.ndarray]


KNOWN_START = {"x": 1e-10}
CASES: dict[str, Case] = {
    "output-error": Case(Filling(), gr.OutputError(), ["k", "q"], LEVELS, filled),
    "kalman": Case(
        Pulled(), gr.KalmanML(initial_covariance=KNOWN_START), ["k", "scale(w)"], {**LEVELS, **SCALE}, pulled
    ),
    "weakly": Case(
        Bent(bend=0.1), gr.KalmanML("extended", initial_covariance=KNOWN_START), ["k", "scale(w)"],
        {**LEVELS, **SCALE}, bent(0.1),
    ),
    "strongly": Case(
        Bent(bend=3.0), gr.KalmanML("extended", initial_covariance=KNOWN_START), ["k", "scale(w)"],
        {**LEVELS, **SCALE}, bent(3.0),
    ),
}  # fmt: skip


def one(name: str, run: int) -> tuple[dict[str, int], str]:
    """Return the ranks of the true values of one run by name, or why there are none."""
    case, rng = CASES[name], np.random.default_rng([36, run])
    laws = {**{n: p.prior for n, p in case.model.parameters.items() if p.prior is not None}, **case.priors}
    truth = {n: float(law.quantile(rng.uniform())) for n, law in laws.items()}
    data = gr.Experiment(TIMES, {}, {"y": case.measured(truth, rng)})
    try:
        found = gr.posterior(
            case.model, data, case.estimate, case.method, priors=case.priors, chains=1, draws=KEPT * THINNED, tune=200,
            seed=run, executor="serial", progress=False,
        )  # fmt: skip
    except gr.GrisailleError as error:
        return {}, str(error)
    thinned = {n: found.draws[n].values[0, THINNED - 1 :: THINNED] for n in truth}
    return {n: int((thinned[n] < truth[n]).sum()) for n in truth}, ""


def report(name: str, runs: int, processes: int) -> bool:
    """Print a row per unknown, and return whether all are uniform."""
    begin = time.perf_counter()
    with ProcessPoolExecutor(processes, get_context("spawn")) as pool:
        answers = list(pool.map(one, [name] * runs, range(runs), chunksize=4))
    failed = [reason for ranks, reason in answers if not ranks]
    print(f"{name}: {runs} runs, {len(failed)} failed, {time.perf_counter() - begin:.0f} s on {processes} processes")
    for reason in sorted(set(failed))[:3]:
        print(f"   {failed.count(reason)}: {reason[:150]}")
    uniform = True
    for unknown in answers[0][0] or ():
        ranks = np.array([ranks[unknown] for ranks, _ in answers if ranks])
        counts = np.histogram(ranks, BINS, (0, KEPT + 1))[0]
        expected = len(ranks) / BINS
        statistic = float(((counts - expected) ** 2 / expected).sum())
        p = float(chi2.sf(statistic, BINS - 1))
        uniform &= p > LEVEL
        centred = (ranks + 0.5) / (KEPT + 1) - 0.5
        print(
            f"   {unknown:<10} χ² {statistic:6.1f} of {BINS - 1} degrees of freedom, p = {p:.3f}; mean rank "
            f"{centred.mean():+.3f} ± {centred.std() / np.sqrt(len(ranks)):.3f}, spread "
            f"{centred.std() * np.sqrt(12):.3f} of a uniform one's"
        )
    return uniform


def main() -> None:
    """Run the calibrations that are asked for."""
    parser = argparse.ArgumentParser(description="Simulation-based calibration of posteriors.")
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--of", nargs="+", choices=sorted(CASES), default=["output-error", "kalman"])
    parser.add_argument("--processes", type=int, default=2)
    given = parser.parse_args()
    for name in given.of:
        print("uniform" if report(name, given.runs, given.processes) else "not uniform at 0.1 %", flush=True)


if __name__ == "__main__":
    main()
