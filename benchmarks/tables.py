"""A battery whose resistances are unknown curves of its charge: as tables of parameters, and written out as hats.

    python benchmarks/tables.py

Pulses of current over three hours, one sample a second (10 801), 15 unknowns: five values of R0(soc), five of R1(soc),
the capacity, the capacitor, the first charge, and gain and offset of the current sensor's voltage. Data by closed forms
between samples, seeded noise. Both models in turn, CPU seconds; the first fit of each builds its kernels.
"""

from __future__ import annotations

import time

import numpy as np

import grisaille as gr
from grisaille import der

KNOTS = [0.0, 0.25, 0.5, 0.75, 1.0]
R0, R1 = np.array([0.090, 0.060, 0.050, 0.052, 0.060]), np.array([0.050, 0.030, 0.022, 0.020, 0.028])
CHARGE, VOLTS = [0.0, 0.1, 0.3, 0.6, 0.9, 1.0], [3.0, 3.35, 3.6, 3.8, 4.05, 4.2]
Q, C1, FIRST, NOISE = 9000.0, 1500.0, 0.98, 0.003
TRUTH = {"Q": Q, "C1": C1, "start(soc)": FIRST, "gain": 1.0, "offset": 0.0}
ESTIMATE = ["R0", "R1", *TRUTH]


def hats(x, values):
    """The same curve as a sum of hat functions, as it had to be written before."""
    width = KNOTS[1] - KNOTS[0]
    return sum(v * gr.maximum(0.0, 1.0 - abs(x - k) / width) for k, v in zip(KNOTS, values, strict=True))


class Tabled(gr.Model):
    """A cell with one RC element; resistances are tables."""

    R0 = gr.Parameter(0.06, size=5)
    R1 = gr.Parameter(0.03, size=5)
    Q, C1 = gr.Parameter(8000.0), gr.Parameter(1000.0)
    gain, offset = gr.Parameter(1.0), gr.Parameter(0.0)
    soc, v1 = gr.Variable(1.0), gr.Variable(0.0)
    i = gr.Input("A")
    equations = [der(soc) == -i / Q, C1 * der(v1) == i - v1 / gr.table(soc, KNOTS, R1)]
    v = gr.Output(gain * (gr.table(soc, CHARGE, VOLTS) - gr.table(soc, KNOTS, R0) * i - v1) + offset, noise=NOISE)


class Hatted(gr.Model):
    """The same cell; resistances are sums of hats."""

    R0 = gr.Parameter(0.06, size=5)
    R1 = gr.Parameter(0.03, size=5)
    Q, C1 = gr.Parameter(8000.0), gr.Parameter(1000.0)
    gain, offset = gr.Parameter(1.0), gr.Parameter(0.0)
    soc, v1 = gr.Variable(1.0), gr.Variable(0.0)
    i = gr.Input("A")
    equations = [der(soc) == -i / Q, C1 * der(v1) == i - v1 / hats(soc, R1)]
    v = gr.Output(gain * (gr.table(soc, CHARGE, VOLTS) - hats(soc, R0) * i - v1) + offset, noise=NOISE)


def record(seconds: int = 10_801) -> gr.Experiment:
    """Pulses of current between rests, and the voltage at the cell."""
    rng = np.random.default_rng(7)
    t = np.arange(float(seconds))
    i = np.where(t % 300 < 200, np.repeat(rng.choice([0.5, 1.0, 1.6], seconds // 300 + 1), 300)[:seconds], 0.0)
    soc, v1 = np.empty(seconds), np.zeros(seconds)
    soc[0] = FIRST
    for k in range(seconds - 1):
        soc[k + 1] = soc[k] - i[k] / Q
        r = np.interp(0.5 * (soc[k] + soc[k + 1]), KNOTS, R1)
        v1[k + 1] = r * i[k] + (v1[k] - r * i[k]) * np.exp(-1.0 / (r * C1))
    v = np.interp(soc, CHARGE, VOLTS) - np.interp(soc, KNOTS, R0) * i - v1
    return gr.Experiment(t, {"i": i}, {"v": v + NOISE * rng.standard_normal(seconds)}, hold={"i": "zoh"})


def main(rounds: int = 5) -> None:
    """Print times and how far the estimates are apart."""
    data = record()
    models = {"tables": Tabled(), "hats": Hatted()}
    best, fits = dict.fromkeys(models, float("inf")), {}
    for k in range(rounds + 1):
        for name, model in models.items():
            begin = time.process_time()
            fits[name] = gr.fit(model, data, ESTIMATE, method=gr.OutputError())
            took = time.process_time() - begin
            if k == 0:
                print(f"{name}, the first time: {took:.2f} s")
            else:
                best[name] = min(best[name], took)
    for name, fit in fits.items():
        print(f"{name}: {best[name]:.3f} s, {fit.estimate.evaluations} evaluations, {fit.status}")
    a, b = (fits[n].estimate for n in models)
    apart = np.abs(a.theta - b.theta) / np.sqrt(np.diag(a.covariance))
    print(f"tables / hats: {best['tables'] / best['hats']:.2f}; estimates apart by {apart.max():.1e} standard errors")
    truth = np.concatenate([R0, R1, list(TRUTH.values())])
    off = np.abs(a.theta - truth) / np.sqrt(np.diag(a.covariance))
    print(f"from the truth: {off.max():.2f} standard errors at most")


if __name__ == "__main__":
    main()
