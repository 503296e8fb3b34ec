"""How finely disturbances of simulated data are drawn."""

from __future__ import annotations

import numpy as np
import pytest

import grisaille as gr
from grisaille import der


class Wandering(gr.Model):
    k = gr.Parameter(1.0, bounds=(0.01, 10.0))
    x = gr.Variable(1.0)
    w = gr.Disturbance(gr.spectra.white(), scale=0.3)
    y = gr.Output(x, noise=0.01)
    equations = [der(x) == -k * x**3 + w]


TIMES = np.linspace(0.0, 2.0, 11)
PLAN = gr.Experiment(TIMES, outputs={"y": np.exp(-TIMES)}, name="wander")


def _study(**options):
    method = gr.KalmanML(substeps=1)
    return gr.monte_carlo(Wandering(), PLAN, ["k"], method, runs=1, seed=3, executor="serial", **options)


def test_data_are_drawn_on_the_grid_asked_for() -> None:
    study = _study(step=0.02)
    seed = int(study.table["seed"][0])
    same = gr.simulate(Wandering(), TIMES, realizations=1, seed=seed, step=0.02, noise=True, rtol=1e-7)
    np.testing.assert_allclose(study.data(0)[0].outputs["y"].values, same["y"].values.reshape(-1), rtol=1e-12)
    assert not np.allclose(study.data(0)[0].outputs["y"].values, _study().data(0)[0].outputs["y"].values)


def test_a_store_knows_its_step(tmp_path) -> None:
    _study(step=0.02, store=tmp_path / "study.db")
    with pytest.raises(gr.EstimationError, match="step"):
        _study(step=0.01, store=tmp_path / "study.db")
