"""What dry friction costs: a geared motor in closed loop, fitted with ``gr.sign`` and with a steep ``tanh`` instead.

    python benchmarks/friction.py [records]

Three runs of 2 001 samples of an encoder make one record. J, b, K and c are correlated by 0.999 there (the loop sees
J/K, c/K and b/K + K; only the current's time constant of 10 ms tells them apart), along a valley that bends: how many
evaluations a fit needs is decided by how far along it noise has moved the minimum. So several records are fitted, the
same ones by both versions, and times are compared in sum.
"""

from __future__ import annotations

import sys
import time

import numpy as np

import grisaille as gr
from grisaille import der

TIMES, NOISE, WIDTH = np.linspace(0.0, 10.0, 2001), 0.002, 0.001
TRUTH = {"J": 0.02, "b": 0.06, "c": 0.1, "K": 0.5}
TARGETS = (
    0.5 * np.sign(np.sin(1.3 * TIMES)),
    0.8 * np.sin(0.9 * TIMES),
    0.6 * np.sign(np.sin(0.7 * TIMES)) * np.sin(2.1 * TIMES),
)


class Stiction(gr.Model):
    """Inertia J, damping b, friction c, motor constant K on the slow side of a gear; angle and speed are fed back."""

    J, b = gr.Parameter(0.02, bounds=(0.002, 0.2)), gr.Parameter(0.05, bounds=(0.005, 0.5))
    c, K = gr.Parameter(0.08, bounds=(0.01, 1.0)), gr.Parameter(0.5, bounds=(0.05, 5.0))
    q, w, i, T = gr.Variable(0.0), gr.Variable(0.0), gr.Variable(0.0), gr.Variable()
    r = gr.Input()
    y = gr.Output(q, noise=NOISE)
    motion = [
        der(q) == w,
        J * der(w) == K * i - b * w - T,
        0.01 * der(i) == 8.0 * (r - q) - 0.3 * w - i - K * w,
    ]
    equations = [*motion, T == c * gr.sign(w)]


class Steep(Stiction):
    """The same with a friction that turns round within WIDTH."""

    equations = [*Stiction.motion, Stiction.T == Stiction.c * gr.tanh(Stiction.w / WIDTH)]


def records(count: int) -> list[list[gr.Experiment]]:
    """Angles of the model with ``sign`` at 1e-9, with other noise each."""
    model = Stiction(**TRUTH)
    angles = [gr.simulate(model, TIMES, {"r": r}, rtol=1e-9).q.values for r in TARGETS]
    found = []
    for seed in range(1, count + 1):
        random = np.random.default_rng(seed)
        seen = [a + NOISE * random.standard_normal(len(TIMES)) for a in angles]
        found.append([gr.Experiment(TIMES, {"r": r}, {"y": y}) for r, y in zip(TARGETS, seen, strict=True)])
    return found


def main(count: int) -> None:
    """Print evaluations, CPU time and the friction of every fit, and the ratio of times."""
    data, spent = records(count), {Stiction: 0.0, Steep: 0.0}
    for kind in spent:
        gr.fit(kind(), data[0][1], ["c"], gr.OutputError(), progress=False)  # compiles
    for k, record in enumerate(data):
        for kind in spent:
            begin = time.process_time()
            fit = gr.fit(kind(), record, list(TRUTH), gr.OutputError(), progress=False)
            took = time.process_time() - begin
            spent[kind] += took
            c = fit["c"]
            print(
                f"{k + 1} {kind.__name__:8}  {fit.estimate.evaluations:3} evaluations {took:5.2f} s CPU   c = "
                f"{float(c):.4f} ± {c.std_error:.4f} ({(float(c) - TRUTH['c']) / c.std_error:+.1f})   log L "
                f"{fit.estimate.log_likelihood:.1f}   {'converged' if fit.converged else fit.status}",
                flush=True,
            )
    print(f"sign takes {spent[Stiction] / spent[Steep]:.2f} times as long as tanh(w/{WIDTH}) over {count} records")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 8)
