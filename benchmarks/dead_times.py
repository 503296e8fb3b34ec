"""Dead time of a heat exchanger from 200 samples: is the truth inside 95 % intervals as often as they say?

Run: python benchmarks/dead_times.py [records]
"""

from __future__ import annotations

import sys
import time

import numpy as np

import grisaille as gr

TIMES = np.arange(0.0, 200.0)


class Exchanger(gr.Model):
    """The temperature behind a pipe and a heat exchanger."""

    gain = gr.Parameter(1.5)
    T = gr.Parameter(3.0)
    tau = gr.Parameter(1.0, bounds=(0.2, 9))
    s = gr.Parameter(0.05)
    valve = gr.Input()
    theta = gr.Variable(start=0.0)
    w = gr.Disturbance(gr.spectra.lowpass(bandwidth=0.3), scale=s)
    equations = [gr.der(theta) == (gain * gr.delay(valve, tau) - theta) / T + w]
    y = gr.Output(theta, noise=0.1)


def study(method: object, scale: float, truth: dict[str, float], hold: str, records: int) -> None:
    """One line: coverage and mean error of each parameter, in standard errors."""
    inside, errors, missed, begin = [], [], 0, time.process_time()
    for seed in range(records):
        rng = np.random.default_rng(seed)
        valve = np.repeat(rng.choice([-1.0, 1.0], size=40), 5)
        given = {"inputs": {"valve": valve}, "hold": hold, "parameters": {**truth, "s": scale}}
        run = gr.simulate(Exchanger(), TIMES, realizations=1, seed=seed, **given)
        y = run["y"].values.ravel() + 0.1 * rng.normal(size=TIMES.size)
        data = gr.Experiment(TIMES, outputs={"y": y}, inputs={"valve": valve}, hold=hold)
        fit = gr.fit(Exchanger(s=scale), data, estimate=list(truth), method=method)
        missed += not fit.converged
        off = (fit.parameters["estimate"] - list(truth.values())) / fit.parameters["std_error"]
        inside.append(np.abs(off) < 1.96)
        errors.append(off)
    shares = ", ".join(f"{n} {c:.0%}" for n, c in zip(truth, np.mean(inside, axis=0), strict=True))
    mean, spread = np.mean(errors, axis=0)[-1], np.std(errors, axis=0)[-1]
    print(
        f"{type(method).__name__:12s} {hold} tau = {truth['tau']}: {shares}; errors of tau {mean:+.2f} "
        f"± {spread:.2f} std. errors; {missed} not converged; {(time.process_time() - begin) / records:.2f} s each"
    )


def main() -> None:
    """Both estimators, dead times on and between multiples of the sampling interval."""
    records = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    for tau in (3.0, 2.6):
        truth = {"gain": 2.0, "T": 5.0, "tau": tau}
        for hold in ("zoh", "foh"):
            study(gr.OutputError(), 1e-9, truth, hold, records)
            study(gr.KalmanML(), 0.05, truth, hold, records)


if __name__ == "__main__":
    main()
