"""A sample of weight zero is one that was not measured: the same fit to the last digit, for every estimator."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import grisaille as gr
from grisaille import der


class Decay(gr.Model):
    """Two outputs of a decaying state that is shaken."""

    k = gr.Parameter(1.0, bounds=(0.05, 10.0))
    x = gr.Variable(start=1.0)
    w = gr.Disturbance(gr.spectra.white(), scale=0.1)
    y = gr.Output(x, noise=0.05)
    double = gr.Output(2 * x, noise=0.05)
    equations = [der(x) == -k * x + w]


class Smooth(gr.Model):
    """The same, shaken smoothly and not linearly."""

    k = gr.Parameter(1.0, bounds=(0.05, 10.0))
    x = gr.Variable(start=1.0)
    w = gr.Disturbance(gr.spectra.lowpass(bandwidth=1.0), scale=0.1)
    y = gr.Output(x, noise=0.05)
    double = gr.Output(2 * x, noise=0.05)
    equations = [der(x) == -k * x * gr.sqrt(0.1 + x**2) + w]


T = np.linspace(0.0, 5.0, 51)
RNG = np.random.default_rng(8)
Y = np.exp(-0.7 * T) + 0.01 * RNG.standard_normal(51)
DOUBLE = 2 * np.exp(-0.7 * T) + 0.01 * RNG.standard_normal(51)
OUT = np.zeros(51, dtype=bool)
OUT[[0, *range(10, 20), 33, 50]] = True


def records(spoilt: float = 1e3) -> tuple[Any, Any]:
    """Weight zero on samples, which are nonsense, and the same as NaN."""
    nonsense = np.where(OUT, spoilt, Y)
    weights = {"y": np.where(OUT, 0.0, 1.5), "double": 1.0}
    zero = gr.Experiment(T, {}, {"y": nonsense, "double": DOUBLE}, weights=weights)
    gaps = gr.Experiment(T, {}, {"y": np.where(OUT, np.nan, Y), "double": DOUBLE}, weights={"y": 1.5})
    return zero, gaps


METHODS = [
    (Decay, gr.OutputError(), ["k", "start(x)"]),
    (Decay, gr.OutputError(shooting="multiple", pieces=3), ["k"]),
    (Decay, gr.OutputError(covariance="sandwich"), ["k"]),
    (Decay, gr.KalmanML(), ["k", "scale(w)", "noise(y)"]),
    (Decay, gr.KalmanML(robust=2.0), ["k", "scale(w)", "noise(y)"]),
    (Smooth, gr.KalmanML("extended"), ["k", "scale(w)", "noise(y)"]),
    (Smooth, gr.KalmanML("unscented"), ["k", "scale(w)"]),
    (Smooth, gr.Collocation(), ["k"]),
    (Smooth, gr.Collocation("laplace"), ["k", "scale(w)"]),
    (Smooth, gr.SimulatedPEM(realizations=40, seed=1), ["k"]),
]


@pytest.mark.parametrize(("model", "method", "names"), METHODS, ids=lambda v: str(v)[:40])
def test_weight_zero_is_not_measured(model: type[gr.Model], method: Any, names: list[str]) -> None:
    zero, gaps = (gr.fit(model(), e, names, method) for e in records())
    assert zero.estimate.count == gaps.estimate.count == 2 * 51 - OUT.sum()
    for one, other in zip(zero.parameters.to_numpy(), gaps.parameters.to_numpy(), strict=True):
        assert [str(v) for v in one] == [str(v) for v in other]
    assert zero.intervals().equals(gaps.intervals())
    assert zero.residuals().equals(gaps.residuals()) and zero.quality.equals(gaps.quality)
    if zero.estimate.is_likelihood:
        assert (zero.aic, zero.bic) == (gaps.aic, gaps.bic)
    assert zero.notes == gaps.notes
    try:
        told = str(gaps.diagnose())
    except gr.GrisailleError:
        return
    assert str(zero.diagnose()) == told


def test_an_output_without_weight_is_left_out() -> None:
    both = gr.Experiment(T, {}, {"y": Y, "double": np.full(51, 1e6)}, weights={"double": 0.0})
    alone = gr.Experiment(T, {}, {"y": Y})
    for method in (gr.OutputError(), gr.KalmanML()):
        a, b = (gr.fit(Decay(), e, ["k"], method) for e in (both, alone))
        assert float(a["k"]) == pytest.approx(float(b["k"]), rel=1e-9)
        assert a.estimate.count == b.estimate.count == 51 and list(a.quality.index) == ["y"]
        assert a.bic == pytest.approx(b.bic, rel=1e-9)
        assert len(a.diagnose().verdicts) == len(b.diagnose().verdicts)


def test_weights_only_where_nothing_was_measured() -> None:
    with pytest.raises(gr.DataError, match=r"(?i)every weight of a measured sample is zero"):
        gr.Experiment([0.0, 1.0, 2.0], {}, {"y": [np.nan, 1.0, 2.0]}, weights={"y": [1.0, 0.0, 0.0]})
