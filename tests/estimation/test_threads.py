"""Fits in several threads give the bits of fits one after the other."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import grisaille as gr
from grisaille import der

TIMES = np.linspace(0.0, 4.0, 13)


class Tank(gr.Model):
    k = gr.Parameter(0.4, bounds=(0.01, 5.0))
    q = gr.Parameter(0.8, bounds=(0.0, 9.0))
    h = gr.Variable(1.5)
    w = gr.Disturbance(gr.spectra.lowpass(3.0), scale=0.05)
    y = gr.Output(h + 0.05 * h**2, noise=0.02)
    equations = [der(h) == q - k * h**1.5 + w]


METHODS = [
    gr.OutputError(compiled=False),
    gr.KalmanML(compiled=False),
    gr.SimulatedPEM(realizations=2, compiled=False),
    gr.Collocation(compiled=False),
]


def record(seed: int) -> gr.Experiment:
    rng = np.random.default_rng(seed)
    h, found = 1.5, []
    for _ in TIMES:
        found.append(h + 0.05 * h**2)
        for _ in range(10):
            h += (4 / 120) * (1.0 - 0.6 * h**1.5)
    return gr.Experiment(TIMES, {}, {"y": np.array(found) + 0.02 * rng.standard_normal(len(TIMES))})


@pytest.mark.parametrize("method", METHODS, ids=lambda m: type(m).__name__)
def test_threads_do_not_disturb_each_other(method) -> None:
    def fitted(seed: int) -> bytes:
        fit = gr.fit(Tank(), record(seed), ["k", "q"], method)
        return fit.estimate.theta.tobytes() + fit.estimate.covariance.tobytes()

    alone = [fitted(seed) for seed in (1, 2)]
    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(fitted, (1, 2))) == alone
