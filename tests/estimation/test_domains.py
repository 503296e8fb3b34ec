"""Models without a value where inputs are zero, and searches that leave a formula's domain.

Data are made here by an Euler–Maruyama path with small steps; the truth must lie within the stated part of it. Others
of their kind (0/0 at an input of zero, a divisor of the tearing that vanishes) are in the conformance suite.
"""

from __future__ import annotations

import numpy as np
import pytest

import grisaille as gr
from grisaille import der

TIMES = np.linspace(0.0, 12.0, 41)
ESTIMATORS = [
    gr.OutputError(rtol=1e-5),
    gr.SimulatedPEM(realizations=24),
    gr.KalmanML(),
    gr.Collocation(criterion="amle"),
]


def flow(t: np.ndarray) -> np.ndarray:
    return 1.6 + 0.5 * np.sin(t) + 0.3 * np.cos(0.4 * t)


class Logarithm(gr.Model):
    """Undefined at F = 0 in the slope of its state, coloured noise."""

    k = gr.Parameter(0.5, bounds=(0.05, 5.0))
    F, x = gr.Input(), gr.Variable(1.0)
    w, y = gr.Disturbance(gr.spectra.lowpass(bandwidth=2.0), scale=0.03), gr.Output(x, noise=0.02)
    equations = [der(x) == 1 - k * x * gr.log(1 + x * F) / F + w]

    @staticmethod
    def rate(k: float, x: float, F: float) -> float:
        return 1 - k * x * np.log(1 + x * F) / F


def record(model: type, truth: float) -> gr.Experiment:
    random, fine = np.random.default_rng(11), 20
    h, x, path = TIMES[1] / fine, 1.0, [1.0]
    held = flow(TIMES)
    for F in held[:-1]:
        for _ in range(fine):
            x += h * model.rate(truth, x, F) + 0.02 * np.sqrt(h) * random.normal()
        path.append(x)
    return gr.Experiment(TIMES, inputs={"F": held}, outputs={"y": np.array(path) + 0.02 * random.normal(size=41)})


@pytest.fixture(scope="module")
def data() -> gr.Experiment:
    return record(Logarithm, 0.4)


@pytest.mark.parametrize("method", ESTIMATORS, ids=lambda m: type(m).__name__)
def test_every_estimator_fits_where_the_data_are(method: object, data: gr.Experiment) -> None:
    fit = gr.fit(Logarithm(), data, ["k"], method, progress=False)
    assert fit.converged
    assert float(fit["k"]) == pytest.approx(0.4, rel=0.1)


def test_a_guess_outside_the_domain_is_refused_by_its_equation() -> None:
    class Root(gr.Model):
        k, x = gr.Parameter(0.3, bounds=(-1.0, 5.0)), gr.Variable(1.0)
        w, y = gr.Disturbance(gr.spectra.white(), scale=0.05), gr.Output(x, noise=0.02)
        equations = [der(x) == -gr.sqrt(k) * x + w]

    data = gr.Experiment(TIMES, outputs={"y": np.exp(-TIMES)})
    for method in (gr.KalmanML(), gr.SimulatedPEM(realizations=8)):
        with pytest.raises(gr.GrisailleError, match=r"der\(x\) == -sqrt\(k\)\*x \+ w.*no finite derivatives"):
            gr.fit(Root(), data, ["k"], method, guess={"k": -0.5}, progress=False)


def test_a_search_that_leaves_the_domain_turns_back() -> None:
    """The data want a slower decay than any k > 0 gives; steps towards k < 0 have no value."""

    class Slow(gr.Model):
        k, x = gr.Parameter(0.02, bounds=(-1.0, 5.0)), gr.Variable(1.0)
        w, y = gr.Disturbance(gr.spectra.white(), scale=0.05), gr.Output(x, noise=0.02)
        equations = [der(x) == -gr.sqrt(k) * x + w]

    data = gr.Experiment(TIMES, outputs={"y": np.exp(-0.001 * TIMES)})
    fit = gr.fit(Slow(), data, ["k"], gr.KalmanML(), progress=False)
    assert 0 <= float(fit["k"]) < 0.02
