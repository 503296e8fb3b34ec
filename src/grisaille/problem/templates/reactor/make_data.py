"""How data/batches.csv was made: three runs with noise of 0.01 mol/L; some samples of B were lost."""

from pathlib import Path

import numpy as np
from model import Reactor

import grisaille as gr

TRUTH = {"k1": 0.08, "k2": 0.03, "E1": 80.0, "E2": 50.0}
RUNS = {"cold": (335.0, 1.0), "warm": (350.0, 1.2), "hot": (365.0, 0.8)}


def rows():
    random = np.random.default_rng(6)
    t = np.arange(0.0, 61.0, 3.0)
    for run, (temperature, first) in RUNS.items():
        batch = gr.simulate(Reactor(), t, parameters={**TRUTH, "T": temperature}, start={"A": first, "B": 0.0})
        noisy = {n: batch[n].values + 0.01 * random.standard_normal(len(t)) for n in ("A", "B")}
        for k, instant in enumerate(t):
            lost = random.random() < 0.1
            b = "" if lost else f"{noisy['B'][k]:.4f}"
            yield f"{run},{instant:g},{temperature:g},{first:g},{noisy['A'][k]:.4f},{b}"


if __name__ == "__main__":
    folder = Path(__file__).parent / "data"
    folder.mkdir(exist_ok=True)
    lines = ["run,t,T,A0,A,B", "-,min,K,mol/L,mol/L,mol/L", *rows()]
    (folder / "batches.csv").write_text("\n".join(lines) + "\n")
