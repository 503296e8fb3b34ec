"""How data/*.csv were made: the model simulated with a leak of 1.2e-4, and noise of 2 mm added to both levels."""

from pathlib import Path

import numpy as np
import pandas as pd
from model import TwoTanks

import grisaille as gr

FOLDER = Path(__file__).parent / "data"
UNITS = {"t": "s", "pump": "m3/s", "y_upper": "m", "y_lower": "m"}
TRUTH = {"leak": 1.2e-4, "pipe": 4e-4, "outlet": 3e-4}


def record(pump, start, seed):
    """One run: levels every ten seconds for twenty minutes."""
    t = np.arange(0.0, 1201.0, 10.0)
    signal = pump(t)
    levels = gr.simulate(TwoTanks(), t, inputs={"pump": signal}, parameters=TRUTH, start=start, rtol=1e-8)
    noise = 0.002 * np.random.default_rng(seed).standard_normal((2, len(t)))
    columns = {"t": t, "pump": signal, "y_upper": levels["upper"] + noise[0], "y_lower": levels["lower"] + noise[1]}
    return pd.DataFrame(columns)


def write(table, name):
    FOLDER.mkdir(exist_ok=True)
    lines = [",".join(UNITS), ",".join(UNITS.values())]
    lines += [f"{r.t:g},{r.pump:.3g},{r.y_upper:.4f},{r.y_lower:.4f}" for r in table.itertuples()]
    (FOLDER / name).write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    filling = record(lambda t: np.where(t < 600, 2e-4, 1e-4), {"upper": 0.10, "lower": 0.12}, seed=1)
    emptying = record(lambda t: np.where(t < 600, 6e-5, 1.5e-4), {"upper": 0.30, "lower": 0.25}, seed=2)
    write(filling, "filling.csv")
    write(emptying, "emptying.csv")
