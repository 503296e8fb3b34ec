"""How data/february.csv was made: five days of half hours from the model itself, with its disturbances and noise."""

from pathlib import Path

import numpy as np
import pandas as pd
from model import House

import grisaille as gr

TRUTH = {"Ci": 1.4, "Ce": 6.0, "Rie": 1.5, "Rea": 6.0, "scale(wi)": 0.08, "scale(we)": 0.03}
NOISE = 0.02


def record():
    t = np.arange(0.0, 120.5, 0.5)
    random = np.random.default_rng(4)
    switched = np.repeat(random.integers(0, 2, 61), 4)[: len(t)]
    heating = 3.0 * switched + 0.5
    ambient = (
        2.0 + 4.0 * np.sin(2 * np.pi * (t - 9.0) / 24.0) + np.round(np.cumsum(0.15 * random.standard_normal(len(t))), 1)
    )
    house = gr.simulate(House(), t, inputs={"heating": heating, "ambient": ambient}, parameters=TRUTH,
                        start={"Ti": 20.0, "Te": 13.0}, hold={"heating": "zoh", "ambient": "foh"},
                        realizations=1, seed=3)  # fmt: skip
    indoor = house["Ti"].values[0] + NOISE * random.standard_normal(len(t))
    stamps = pd.date_range("2025-02-03", periods=len(t), freq="30min")
    return pd.DataFrame({"time": stamps, "heating": heating, "ambient": ambient, "indoor": indoor})


if __name__ == "__main__":
    folder = Path(__file__).parent / "data"
    folder.mkdir(exist_ok=True)
    lines = ["time,heating,ambient,indoor", "-,kW,degC,degC"]
    lines += [f"{r.time:%Y-%m-%dT%H:%M},{r.heating:g},{r.ambient:.2f},{r.indoor:.3f}" for r in record().itertuples()]
    (folder / "february.csv").write_text("\n".join(lines) + "\n")
