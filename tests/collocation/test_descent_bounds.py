"""Steps that bounds cut off: along a narrow valley they must not pass for a minimum."""

from __future__ import annotations

import numpy as np
import pytest

import grisaille as gr
from grisaille import der

TIMES = np.linspace(0.0, 4.0, 13)


class Tank(gr.Model):
    """Only q − k h^1.5 is seen near its rest: k and q are correlated by 1.000."""

    k, q, h = gr.Parameter(0.4, bounds=(0.01, 5.0)), gr.Parameter(0.8, bounds=(0.0, 9.0)), gr.Variable(1.5)
    w = gr.Disturbance(gr.spectra.white(), scale=0.05)
    y = gr.Output(h, noise=0.02)
    equations = [der(h) == q - k * h**1.5 + w]


@pytest.fixture(scope="module")
def data() -> gr.Experiment:
    rng, h, found = np.random.default_rng(1), 1.5, []
    for _ in TIMES:
        found.append(h + 0.05 * h**2)
        for _ in range(10):
            h += (4 / 120) * (1.0 - 0.6 * h**1.5)
    return gr.Experiment(TIMES, {}, {"y": np.array(found) + 0.02 * rng.standard_normal(len(TIMES))})


@pytest.mark.parametrize("guess", [(0.4, 0.8), (0.41, 0.8), (0.5, 0.9)])
def test_a_step_that_a_bound_cuts_off_is_no_minimum(data: gr.Experiment, guess: tuple[float, float]) -> None:
    fit = gr.fit(
        Tank(), data, ["k", "q"], gr.Collocation(criterion="amle"), guess=dict(zip(("k", "q"), guess, strict=True))
    )
    assert fit.converged and fit.objective == pytest.approx(23.0366, abs=1e-3)
    assert float(fit["k"]) == pytest.approx(0.01)
