"""How often intervals of k hold the truth: a tank with a relay, data sets by Euler's method, the filter that takes it.

    python benchmarks/relay.py [sets]

der(h) = q − k h − 0.5 [h > 1] + w, k = 0.4, 200 samples each; the exact binomial test against 95 %.
"""

from __future__ import annotations

import sys

import numpy as np
from scipy.stats import binomtest

import grisaille as gr
from grisaille import der

K, STEP = 0.4, 1e-3
TIMES = np.arange(0, 40, 0.2)
INFLOW = np.where(TIMES % 8 < 4, 1.2, 0.2)


class Tank(gr.Model):
    """A tank whose pump runs above h = 1."""

    k = gr.Parameter(K, bounds=(0.01, 5.0))
    h = gr.Variable(0.5)
    q = gr.Input()
    w = gr.Disturbance(gr.spectra.white(), scale=0.05)
    y = gr.Output(h, noise=0.02)
    equations = [der(h) == q - k * h - gr.where(h > 1.0, 0.5, 0.0) + w]


def data_set(random: np.random.Generator) -> gr.Experiment:
    """One record."""
    x, seen, count = 0.5, [], round(0.2 / STEP)
    for q in INFLOW:
        seen.append(x)
        for z in random.standard_normal(count) * 0.05 * np.sqrt(STEP):
            x += STEP * (q - K * x - (0.5 if x > 1 else 0.0)) + z
    return gr.Experiment(TIMES, {"q": INFLOW}, {"y": np.array(seen) + 0.02 * random.standard_normal(len(TIMES))})


def main(sets: int) -> None:
    """Print coverage, spread and claimed errors."""
    random = np.random.default_rng(1)
    fits = [gr.fit(Tank(), data_set(random), ["k"]) for _ in range(sets)]
    rows = [f.parameters.loc["k"] for f in fits]
    inside = sum(bool(r["lower"] <= K <= r["upper"]) for r in rows)
    estimates, errors = ([float(r[c]) for r in rows] for c in ("estimate", "std_error"))
    print(fits[0].why["KalmanML"])
    print(
        f"{inside} of {sets} intervals hold k = {K} (p = {binomtest(inside, sets, 0.95).pvalue:.2g}); estimates "
        f"{np.mean(estimates):.4f} ± {np.std(estimates):.4f}, claimed ± {np.mean(errors):.4f}; "
        f"{sum(f.converged for f in fits)} converged"
    )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 100)
