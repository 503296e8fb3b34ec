"""How data/sway.csv was made: forty seconds of the model with a drag of 6.25, one path of the wind, and noise."""

from pathlib import Path

import numpy as np
from model import Pendulum

import grisaille as gr


def record():
    t = np.arange(0.0, 40.05, 0.1)
    force = np.round(2.0 * np.sin(0.9 * t) + np.sin(2.1 * t), 4)
    plant = gr.simulate(Pendulum(k=6.25), t, inputs={"u": force}, realizations=1, seed=7, noise=True)
    return np.column_stack([t, force, plant["phi"].values[0]])


if __name__ == "__main__":
    folder = Path(__file__).parent / "data"
    folder.mkdir(exist_ok=True)
    lines = ["t,u,phi", "s,N,rad"] + [f"{t:.1f},{u:.4f},{phi:.5f}" for t, u, phi in record()]
    (folder / "sway.csv").write_text("\n".join(lines) + "\n")
