"""How often the band of an unknown curve holds the truth: friction against speed, simulated records.

    python benchmarks/curve_bands.py [sets]

der(v) = u − F(v), five knots, 160 samples each, data by the midpoint rule in NumPy; without a prior, and with
``gr.Smoothness`` of several scales; the truth's middle lies 0.5 off its chord. At the knots, and between them.
"""

from __future__ import annotations

import sys

import numpy as np
from scipy.stats import binomtest

import grisaille as gr
from grisaille import der

KNOTS, TRUTH = np.arange(5.0), np.array([1.0, 0.7, 0.8, 1.1, 1.6])
BETWEEN = np.array([0.5, 1.5, 2.5, 3.5])
NOISE, FIRST = 0.05, 3.8
TIMES = np.arange(0, 40, 0.25)
PUSH = np.where(TIMES % 10 < 5, 1.5, 0.2)
BELIEFS = {"no prior": None, **{f"Smoothness({s:g})": {"F": gr.Smoothness(s)} for s in (0.3, 0.1, 0.01)}}


class Drive(gr.Model):
    """A mass that is pushed against an unknown friction."""

    F = gr.Parameter(1.0, size=5)
    v = gr.Variable(FIRST)
    u = gr.Input()
    y = gr.Output(v, noise=NOISE)
    equations = [der(v) == u - gr.table(v, KNOTS, F)]


def speeds(fine: int = 40) -> np.ndarray:
    """The speed at each sample."""
    v, seen, h = FIRST, [], 0.25 / fine
    for push in PUSH:
        seen.append(v)
        for _ in range(fine):
            half = v + h / 2 * (push - np.interp(v, KNOTS, TRUTH))
            v += h * (push - np.interp(half, KNOTS, TRUTH))
    return np.array(seen)


def main(sets: int) -> None:
    """Print coverage at the knots and between them."""
    rng, clean = np.random.default_rng(4), speeds()
    print(f"speeds from {clean.min():.2f} to {clean.max():.2f}, {sets} records")
    at_knots = {name: np.zeros(len(KNOTS), dtype=int) for name in BELIEFS}
    between = dict.fromkeys(BELIEFS, 0)
    for _ in range(sets):
        data = gr.Experiment(TIMES, {"u": PUSH}, {"y": clean + NOISE * rng.standard_normal(len(TIMES))})
        for name, priors in BELIEFS.items():
            fit = gr.fit(Drive(), data, ["F"], gr.OutputError(), guess={"F": TRUTH}, priors=priors)
            curve = fit.curve("F")
            at_knots[name] += _holds(curve.table, TRUTH)
            between[name] += int(_holds(curve.at(BETWEEN), np.interp(BETWEEN, KNOTS, TRUTH)).sum())
    for name, count in at_knots.items():
        p = binomtest(int(count.sum()), sets * len(KNOTS), 0.95).pvalue
        each = ", ".join(f"{100 * c / sets:.1f}" for c in count)
        share = 100 * between[name] / (sets * len(BETWEEN))
        print(f"{name}: {100 * count.mean() / sets:.1f} % at knots ({each}; p = {p:.2g}), {share:.1f} % between them")


def _holds(table, truth):
    return ((table["lower"] <= truth) & (truth <= table["upper"])).to_numpy().astype(int)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 200)
