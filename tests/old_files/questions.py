"""The fits and studies whose files are kept in ``files``: small models, all estimators, every kind of prior.

Files in ``files`` were written once, by version 0.1.0 (``python tests/old_files/write.py``). They are never written
again: later versions must load them, go on from them and give the same answers.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

import grisaille as gr

FILES = Path(__file__).resolve().parent / "files"


class Tank(gr.Model):
    """A heated tank: one state, an input, a disturbance, a table of losses."""

    k = gr.Parameter(0.8, "1/s", bounds=(0.05, 5.0))
    b = gr.Parameter(1.0, bounds=(0.1, 10.0))
    x = gr.Variable(0.5, "K")
    u = gr.Input("W")
    w = gr.Disturbance(gr.spectra.white(), scale=0.15)
    y = gr.Output(x, noise=0.03, unit="K")
    equations = [gr.der(x) == -k * x + b * u + w]


class Curve(gr.Model):
    """A static characteristic with a smooth table."""

    v = gr.copies(gr.Parameter(1.0, prior=gr.Smoothness(0.3)), 4)
    u = gr.Input()
    y = gr.Output(gr.table(u, [0.0, 1.0, 2.0, 3.0], v), noise=0.05)
    equations = []


def record(name: str = "A") -> gr.Experiment:
    """Return a kept record, ``"A"``, ``"B"`` of the tank or ``"points"`` of the curve; NaN was not measured."""
    kept = json.loads((FILES / "records.json").read_text())[name]
    outputs = {n: np.array(values, dtype=float) for n, values in kept["outputs"].items()}
    return gr.Experiment(kept["time"], kept["inputs"], outputs, name=name)


def fits() -> dict[str, dict[str, Any]]:
    """Arguments of ``gr.fit`` by the name of the file."""
    joint = gr.MultivariateNormal(["k", "b"], [0.7, 1.2], [[0.04, 0.01], [0.01, 0.09]])
    two = [record("A"), record("B")]
    return {
        "output_error": {"estimate": ["k", "b"], "method": gr.OutputError()},
        "output_error_priors": {
            "experiments": two, "estimate": ["k", "b", "start(x)"], "method": gr.OutputError(),
            "priors": {"k": gr.LogNormal(0.7, 0.2), "b": gr.Normal(1.2, 0.3), "start(x)@B": gr.Uniform(0.0, 1.0)},
        },
        "output_error_robust": {"estimate": ["k", "b"], "method": gr.OutputError(loss="huber")},
        "joint_prior": {
            "estimate": ["k", "b"], "method": gr.OutputError(), "priors": joint,
        },
        "smoothness": {
            "model": Curve(), "experiments": [record("points")], "estimate": ["v[*]"], "method": gr.OutputError(),
        },
        "kalman_ml": {"experiments": two, "estimate": ["k", "b", "scale(w)"], "method": gr.KalmanML()},
        "kalman_ml_prior": {
            "estimate": ["k", "b", "noise(y)"], "method": gr.KalmanML(),
            "priors": {"k": gr.LogNormal(0.7, 0.2), "noise(y)": gr.Normal(0.03, 0.01)},
        },
        "simulated_pem": {"estimate": ["k"], "method": gr.SimulatedPEM(realizations=20, seed=1)},
        "collocation_amle": {"estimate": ["k", "b"], "method": gr.Collocation(criterion="amle", knots=21)},
        "collocation_laplace": {
            "estimate": ["k", "b"], "method": gr.Collocation(criterion="laplace", knots=21),
            "priors": {"k": gr.LogNormal(0.7, 0.2)},
        },
    }  # fmt: skip


def fitted(name: str) -> gr.Fit:
    """Return the fit of this name, computed anew."""
    options = {"model": Tank(), "experiments": [record()], "progress": False, **fits()[name]}
    return gr.fit(**options)


STUDY: dict[str, Any] = {"estimate": ["k", "b"], "method": gr.OutputError(), "progress": False}


def monte_carlo(store: Path, runs: int) -> Any:
    return gr.monte_carlo(Tank(), record(), runs=runs, seed=3, store=store, executor="serial", **STUDY)


def multistart(store: Path, starts: int) -> Any:
    return gr.multistart(Tank(), record(), starts=starts, seed=2, store=store, executor="serial", **STUDY)


def bootstrap(store: Path, runs: int) -> Any:
    """Of the fit in the file: its numbers are part of the study, to the last bit."""
    return gr.bootstrap(
        gr.load(FILES / "output_error.nc"), runs=runs, seed=5, store=store, executor="serial", progress=False
    )


def checkpointed(path: Path) -> gr.Fit:
    """A long search that writes where it stands."""
    method = gr.SimulatedPEM(realizations=20, seed=1, checkpoint=str(path))
    return gr.fit(Tank(), [record()], ["k", "b"], method, progress=False)
