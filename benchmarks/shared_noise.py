"""How often intervals hold the truth where sensors share noise, and what is lost where the model does not say so.

    python benchmarks/shared_noise.py [study …] [--sets 40]

Four sensors of one state have the noise of a common reference (0.1) beside their own (0.02). Refused are counts that an
exact binomial test at 0.1 % refuses.

independent  the model says nothing: outputs are taken as independent
robust       the same with gr.OutputError(errors="robust")
full         noise_covariance returns "full"; output error
filter       the same by gr.KalmanML
known        the covariances are given in numbers: generalised least squares
parameter    the common variance is a parameter
gaps         "full", a third of the samples missing
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass

import numpy as np
from scipy.stats import binomtest

import grisaille as gr
from grisaille import der

REFUSED = 1e-3
T = np.arange(0, 40, 0.2)
U = np.where(T % 10 < 5, 1.0, 0.0)
COMMON, OWN, K = 0.1, 0.02, 0.5
NAMES = ("y1", "y2", "y3", "y4")
PAIRS = [(a, b) for k, a in enumerate(NAMES) for b in NAMES[k + 1 :]]


class Four(gr.Model):
    """One state, four sensors."""

    k = gr.Parameter(0.4, bounds=(0.05, 5.0))
    shared = gr.Parameter(0.005, bounds=(0.0, 1.0))
    x = gr.Variable(0.0)
    u = gr.Input()
    y1, y2, y3, y4 = gr.Output(x), gr.Output(x), gr.Output(x), gr.Output(x)
    equations = [der(x) == u - k * x]


class Full(Four):
    """Their covariance is unknown."""

    def noise_covariance(self) -> str:
        return "full"


class Known(Four):
    """Their covariance is given, and so is their noise."""

    y1, y2, y3, y4 = (gr.Output(Four.x, noise=np.hypot(COMMON, OWN)) for _ in range(4))

    def noise_covariance(self) -> dict[tuple[str, str], float]:
        return {pair: COMMON**2 for pair in PAIRS}


class Common(Four):
    """What they share is a parameter."""

    def noise_covariance(self) -> dict[tuple[str, str], object]:
        return {pair: self.shared for pair in PAIRS}


@dataclass(frozen=True)
class Study:
    """A model, a method, and what is estimated with its true value."""

    model: type[gr.Model]
    method: object
    truth: dict[str, float]
    gaps: bool = False


LEVEL = {"noise(y1)": float(np.hypot(COMMON, OWN))}
TIED = {**LEVEL, "correlation(y1, y2)": COMMON**2 / (COMMON**2 + OWN**2)}
STUDIES = {
    "independent": Study(Four, gr.OutputError(), {"k": K}),
    "robust": Study(Four, gr.OutputError(errors="robust"), {"k": K}),
    "full": Study(Full, gr.OutputError(), {"k": K, **TIED}),
    "filter": Study(Full, gr.KalmanML(), {"k": K, **TIED}),
    "known": Study(Known, gr.OutputError(), {"k": K}),
    "parameter": Study(Common, gr.OutputError(), {"k": K, "shared": COMMON**2, **LEVEL}),
    "gaps": Study(Full, gr.OutputError(), {"k": K, **TIED}, gaps=True),
}


def course() -> np.ndarray:
    """x of a constant input over each interval."""
    x, keep = np.zeros(T.size), np.exp(-K * 0.2)
    for i in range(1, T.size):
        x[i] = x[i - 1] * keep + U[i - 1] / K * (1 - keep)
    return x


def record(seed: int, gaps: bool) -> gr.Experiment:
    """One set of data."""
    rng = np.random.default_rng(seed)
    values = course() + COMMON * rng.normal(size=T.size) + OWN * rng.normal(size=(4, T.size))
    if gaps:
        values[rng.random(values.shape) < 1 / 3] = np.nan
    return gr.Experiment(T, {"u": U}, dict(zip(NAMES, values, strict=True)))


def count(name: str, sets: int) -> str:
    """Return the lines of a study."""
    study, began = STUDIES[name], time.process_time()
    held = {n: 0 for n in study.truth}
    errors = {n: [] for n in study.truth}
    bad = 0
    for seed in range(sets):
        names = [n for n in study.truth if "(" not in n]
        fit = gr.fit(study.model(), record(seed, study.gaps), names, study.method)
        bad += not fit.converged
        limits = fit.intervals(method="wald")
        for n, true in study.truth.items():
            held[n] += bool(limits.lower[n] <= true <= limits.upper[n])
            errors[n].append((float(fit[n]) - true) / fit[n].std_error)
    seconds = (time.process_time() - began) / sets
    lines = [f"{name:<12} {sets} sets, {bad} not converged, {seconds:.2f} s of processor time a set"]
    for n, hits in held.items():
        p = binomtest(hits, sets, 0.95).pvalue
        said = "REFUSED" if p < REFUSED else "not refused"
        lines.append(
            f"    {n:<22} {100 * hits / sets:5.1f} % held, p = {p:.2g}, {said}; "
            f"scatter over standard error {np.std(errors[n]):.2f}"
        )
    return "\n".join(lines)


def main() -> None:
    """Print every study that is asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("studies", nargs="*", choices=[*STUDIES, []], help="all where none is named")
    parser.add_argument("--sets", type=int, default=40)
    given = parser.parse_args()
    for name in given.studies or STUDIES:
        print(count(name, given.sets), flush=True)


if __name__ == "__main__":
    main()
