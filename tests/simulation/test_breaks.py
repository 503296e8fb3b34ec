"""Functions of time as inputs: narrow features are seen, and ``breaks=`` says where those are that cannot be."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import grisaille as gr
from grisaille import der
from grisaille.errors import DataError


class Sum(gr.Model):
    x = gr.Variable(0.0)
    u = gr.Input()
    equations = [der(x) == u]


def total(function, **given):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        run = gr.simulate(Sum(), [0.0, 100.0], inputs={"u": function}, **given)
    return float(run.x[-1])


@pytest.mark.parametrize("method", ["explicit", "implicit", "frozen"])
@pytest.mark.parametrize("begin", [37.123, 99.5, 0.001])
def test_a_pulse_of_a_ten_thousandth_of_the_span(method, begin):
    assert total(lambda t: 1.0 if begin < t < begin + 0.01 else 0.0, method=method) == pytest.approx(0.01, rel=1e-4)


@pytest.mark.parametrize("width", [0.01, 0.05])
def test_smooth_pulses_are_not_passed_over(width):
    found = total(lambda t: np.exp(-0.5 * ((t - 61.7) / width) ** 2))
    assert found == pytest.approx(width * np.sqrt(2 * np.pi), rel=1e-5)


def test_several_pulses():
    assert total(lambda t: 1.0 if t % 10 < 0.02 else 0.0) == pytest.approx(0.2, rel=1e-4)


@pytest.mark.parametrize("width", [1e-4, 1e-6])
def test_breaks_find_what_a_scan_does_not(width):
    pulse = lambda t: 1.0 if 61.7 <= t < 61.7 + width else 0.0  # noqa: E731
    assert total(pulse, breaks=[61.7, 61.7 + width]) == pytest.approx(width, rel=1e-3)


def test_narrow_features_are_told():
    with pytest.warns(UserWarning, match=r"Input 'u' has a feature near t = 37.1.* breaks="):
        gr.simulate(Sum(), [0.0, 100.0], inputs={"u": lambda t: float(37.123 < t < 37.133)})


def test_breaks_are_instants():
    for wrong in (["a"], [np.nan], [[1.0, 2.0]]):
        with pytest.raises(DataError, match="breaks is"):
            gr.simulate(Sum(), [0.0, 1.0], inputs={"u": 1.0}, breaks=wrong)
