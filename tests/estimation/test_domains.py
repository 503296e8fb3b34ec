"""Models without a value where inputs are zero, or where a divisor of the tearing vanishes: every estimator fits them.

Data are made here by an Euler–Maruyama path with small steps; the truth must lie within the stated part of it.
"""

from __future__ import annotations

import numpy as np
import pytest

import grisaille as gr
from grisaille import der

TIMES = np.linspace(0.0, 12.0, 41)
ESTIMATORS = [
    gr.OutputError(rtol=1e-5, compiled=False),
    gr.SimulatedPEM(realizations=24),
    gr.KalmanML(),
    gr.Collocation(),
]


def flow(t: np.ndarray) -> np.ndarray:
    return 1.6 + 0.5 * np.sin(t) + 0.3 * np.cos(0.4 * t)


class Orifice(gr.Model):
    """0/0 at F = 0, white noise."""

    k = gr.Parameter(0.3, bounds=(0.01, 3.0))
    F, h = gr.Input(), gr.Variable(1.0)
    w, y = gr.Disturbance(gr.spectra.white(), scale=0.02), gr.Output(h, noise=0.02)
    equations = [der(h) == F**1.5 / (F + 0.5 * F**0.5) - k * h**2 + w]

    @staticmethod
    def rate(k: float, x: float, F: float) -> float:
        return F**1.5 / (F + 0.5 * F**0.5) - k * x**2


class Logarithm(gr.Model):
    """Undefined at F = 0 in the slope of its state, coloured noise."""

    k = gr.Parameter(0.5, bounds=(0.05, 5.0))
    F, x = gr.Input(), gr.Variable(1.0)
    w, y = gr.Disturbance(gr.spectra.lowpass(bandwidth=2.0), scale=0.03), gr.Output(x, noise=0.02)
    equations = [der(x) == 1 - k * x * gr.log(1 + x * F) / F + w]

    @staticmethod
    def rate(k: float, x: float, F: float) -> float:
        return 1 - k * x * np.log(1 + x * F) / F


class Divisor(gr.Model):
    """Tearing would divide by b, which is zero; i₂ then follows from the second equation alone."""

    k, b = gr.Parameter(0.5, bounds=(0.05, 5.0)), gr.Parameter(0.0)
    F, x, i1, i2 = gr.Input(), gr.Variable(1.0), gr.Variable(), gr.Variable()
    w, y = gr.Disturbance(gr.spectra.lowpass(bandwidth=2.0), scale=0.03), gr.Output(x, noise=0.02)
    equations = [der(x) == i1 - k * x + w, F - x == i1 + 0.1 * i1**3 + b * i2, i1 + i2**3 + i2 == F]

    @staticmethod
    def rate(k: float, x: float, F: float) -> float:
        i = F - x
        for _ in range(8):
            i -= (i + 0.1 * i**3 - (F - x)) / (1 + 0.3 * i**2)
        return i - k * x


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
def records() -> dict[str, gr.Experiment]:
    return {m.__name__: record(m, 0.4) for m in (Orifice, Logarithm, Divisor)}


@pytest.mark.parametrize("method", ESTIMATORS, ids=lambda m: type(m).__name__)
@pytest.mark.parametrize("model", [Orifice, Logarithm, Divisor], ids=lambda m: m.__name__)
def test_every_estimator_fits_where_the_data_are(model: type[gr.Model], method: object, records: dict) -> None:
    fit = gr.fit(model(), records[model.__name__], ["k"], method, progress=False)
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
