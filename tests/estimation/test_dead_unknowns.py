"""Unknowns that no output depends on are held and named; they are not zero, and cost no search."""

from __future__ import annotations

import numpy as np
import pytest

import grisaille as gr
from grisaille import der, maximum


def hat(s, centre):
    return maximum(0, 1 - abs(s - centre) / 0.25)


class Battery(gr.Model):
    """Resistance over the state of charge, of which the record sees the middle only."""

    r0, r2, r3 = (gr.Parameter(0.04, bounds=(0.0, 1.0)) for _ in range(3))
    R, C = gr.Parameter(0.03, bounds=(1e-3, 1.0)), gr.Parameter(1500.0, bounds=(100.0, 1e5))
    i = gr.Input()
    soc, v = gr.Variable(0.7), gr.Variable(0.0)
    V = gr.Output(3.5 - (r0 * hat(soc, 0.0) + r2 * hat(soc, 0.5) + r3 * hat(soc, 0.75)) * i - v, noise=0.002)
    equations = [der(soc) == -i / 3600, der(v) == i / C - v / (R * C)]


TIMES = np.linspace(0.0, 400.0, 61)
TRUTH = {"r2": 0.045, "r3": 0.06, "R": 0.02, "C": 2000.0}


@pytest.fixture(scope="module")
def data() -> gr.Experiment:
    rng = np.random.default_rng(3)
    i = np.where(rng.random(61) > 0.5, 2.0, 0.2)
    h = np.diff(TIMES)
    charge = 0.7 - np.concatenate([[0.0], np.cumsum(i[:-1] * h)]) / 3600
    v, decay = [0.0], np.exp(-h / (0.02 * 2000.0))
    for k in range(60):
        v.append(v[-1] * decay[k] + 0.02 * i[k] * (1 - decay[k]))
    across = 0.045 * np.maximum(0, 1 - abs(charge - 0.5) / 0.25) + 0.06 * np.maximum(0, 1 - abs(charge - 0.75) / 0.25)
    y = 3.5 - across * i - np.array(v) + 0.002 * rng.standard_normal(61)
    return gr.Experiment(TIMES, {"i": i}, {"V": y})


METHODS = [
    gr.OutputError(),
    gr.OutputError(optimizer="gauss-newton"),
    gr.OutputError(optimizer="levenberg-marquardt"),
    gr.KalmanML(),
]


@pytest.mark.parametrize("method", METHODS, ids=["trust-region", "gauss-newton", "levenberg-marquardt", "kalman"])
def test_a_dead_unknown_is_held_and_named(data: gr.Experiment, method) -> None:
    fit = gr.fit(Battery(), data, ["r0", "r2", "r3", "R", "C"], method)
    assert fit.converged and fit.estimate.evaluations < 60
    assert any(note.startswith("dead: no output depends on r0") for note in fit.notes)
    assert not any(note.startswith("zero: r0") for note in fit.notes)
    assert float(fit["r0"]) == pytest.approx(0.04) and not np.isfinite(fit.parameters["std_error"]["r0"])
    for name, truth in TRUTH.items():
        assert abs(float(fit[name]) - truth) < 4 * fit.parameters["std_error"][name], name


@pytest.mark.parametrize("guess", [None, 1e-8, 1e-3, 10.0])
def test_a_level_at_zero_is_still_zero(guess: float | None) -> None:
    """White noise that is not there: σ = 0 is the maximum, with a limit, from wherever the search comes."""

    class Tank(gr.Model):
        k = gr.Parameter(0.5)
        h = gr.Variable(4.0)
        w = gr.Disturbance(gr.spectra.white())
        y = gr.Output(h, noise=0.05)
        equations = [der(h) == -k * h + w]

    times = np.linspace(0.0, 6.0, 41)
    steady = 4.0 * np.exp(-0.5 * times) + 0.05 * np.tile([1.0, -1.0], 21)[:41]
    found = gr.fit(
        Tank(),
        gr.Experiment(times, {}, {"y": steady}),
        ["k", "scale(w)"],
        gr.KalmanML(),
        guess={} if guess is None else {"scale(w)": guess},
    )
    assert float(found["scale(w)"]) == 0.0 and any(n.startswith("zero: scale(w)") for n in found.notes)
