"""How data/steps.csv was made: voltage steps, noise on current and speed, and a few outliers of the tachometer."""

from pathlib import Path

import numpy as np
from model import Motor

import grisaille as gr

TRUTH = {"R": 1.6, "k": 0.042, "J": 1.8e-4, "b": 4e-5, "c": 3e-3}


def record():
    random = np.random.default_rng(8)
    t = np.round(np.arange(0.0, 2.0, 0.005), 4)
    u = np.repeat([6.0, 12.0, -6.0, 0.0, 9.0], 80)
    motor = gr.simulate(Motor(), t, inputs={"voltage": u}, parameters=TRUTH, rtol=1e-8)
    i = motor["i"].values + 0.05 * random.standard_normal(len(t))
    n = motor["speed"].values + 1.0 * random.standard_normal(len(t))
    n[random.choice(len(t), 6, replace=False)] += 40.0
    return np.column_stack([t, u, i, n])


if __name__ == "__main__":
    folder = Path(__file__).parent / "data"
    folder.mkdir(exist_ok=True)
    lines = ["t,u,i,n", "s,V,A,rad/s"] + [f"{t:g},{u:g},{i:.3f},{n:.2f}" for t, u, i, n in record()]
    (folder / "steps.csv").write_text("\n".join(lines) + "\n")
